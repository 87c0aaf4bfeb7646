"""Compiled code only: one simulation, and the batch of trees that it runs in.

Imported by `engine` and by the public modules whose options are kernels; imports `game`, the
formulas of `selection`, and `continuous.refine` for the line of vectors that a simulation refines.
Read `simulation.py` first, then `batching.py`.
"""

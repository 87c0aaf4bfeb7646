"""Compiled code only: one simulation, and the batch of trees that it runs in.

Imported by `engine` and by the public modules whose options are kernels; imports `game` and the
formulas of `selection`. Read `simulation.py` first, then `batching.py`.
"""

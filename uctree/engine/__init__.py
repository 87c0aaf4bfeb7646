"""From options to results: compile and compose kernels, drive searches, explain failures.

Imported by `mcts`, by the rooms above it and, for `compile`, by modules with kernels of their own.
Read `compose.py` first, then `driver.py`; `compile.py` alone knows how machine code is made. Numba
is imported by `compile`, `disk_cache`, `fields`, `frames`, `inlining`, `machine`, `passes` and
`shortcuts`.
Files are read and written by `treefile`, `jsontext` and `identity`, which stand below the rest.
"""

"""Services in other processes, which may die: on this machine, or as actors of Ray.

Imported by `arena` and `learn`; it knows nothing of games.
Read `processes.py` first; `ray.py` offers the same on a cluster.
"""

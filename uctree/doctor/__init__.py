"""The game doctor: whether a game keeps its contract, and how fast its rules are.

Imported by `arena`, `learn` and `cli`; it uses `mcts` and `solver`.
Read `checkup.py` first: `check` walks through the game (`walk.py`) and checks `contract.py`.
`problems.py` does the same for problems of Python objects.
`first_look.py` does a little of it before a game is compiled; `engine` and solvers import it.
"""

"""Planning in worlds that answer: Python objects, environments, simulators, language models.

`problem.py` says what a user writes, `planner.py` runs the search and asks questions, `calls.py`
answers them by calling the user's functions. Imported by adapters, arena and the command line. Read
`problem.py` first.
"""

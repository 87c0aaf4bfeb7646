"""A problem of integers: from 1 to 8 exactly."""

from __future__ import annotations

from uctree import Problem, Step


def step(number, action):
    """From 1 to 8 exactly, by adding one or doubling."""
    after = number + 1 if action == "add" else 2 * number
    return Step(after, float(after == 8), over=after >= 8)


def counting(**functions):
    given = {"actions": lambda number: ["add", "double"], "step": step, "value": lambda n: n / 16}
    return Problem(**(given | functions))

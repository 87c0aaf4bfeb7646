"""World: a problem with the state to plan from, as `plan` takes it and adapters make it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from uctree.planning.problem import Problem


class _NotGiven:
    """Stands for an argument that was omitted, since a state may be None."""

    def __repr__(self) -> str:
        return "not given"


NOT_GIVEN: Any = _NotGiven()


@dataclass(frozen=True, slots=True)
class World:
    """A problem, the state to plan from, and the player to move there.

    >>> from uctree.planning.problem import Step
    >>> World(Problem(actions=lambda n: [1, 2], step=lambda n, a: Step(n + a, over=n > 9)), 0)
    <World problem>
    """

    problem: Problem
    start: Any
    to_play: int = 0  # or uctree.CHANCE
    note: str = ""  # how it was made, as how states are copied and at which cost

    def __repr__(self) -> str:
        return f"<World {self.problem.name}{': ' * bool(self.note)}{self.note}>"


def world_of(thing: Any, start: Any = NOT_GIVEN, to_play: int | None = None) -> World:
    """The world that the arguments of `plan` describe."""
    if isinstance(thing, Problem):
        if start is NOT_GIVEN:
            raise TypeError("plan(problem, start) needs the start: the state to plan from")
        return World(thing, start, 0 if to_play is None else to_play)
    if start is not NOT_GIVEN or to_play is not None:
        raise TypeError(
            f"start and to_play belong to a uctree.Problem; a {type(thing).__name__} has its own: "
            "plan without them"
        )
    if isinstance(thing, World):
        return thing
    from uctree import adapters

    return adapters.as_world(thing)

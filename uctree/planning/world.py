"""World: a problem with the state to plan from, as `plan` takes it and adapters make it."""

from __future__ import annotations

from collections.abc import Callable
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
    first_look: Callable[[], None] | None = None  # raises BrokenGame before a plan begins

    def __repr__(self) -> str:
        return f"<World {self.problem.name}{': ' * bool(self.note)}{self.note}>"


# What `plan` passes on to `adapters.from_object`: the parts of an object, and fields of `Problem`.
OBJECT_PARTS = (
    "legal", "step", "clone", "over", "reward", "returns", "num_players", "value", "values",
    "playout", "payoff_range", "discount", "key", "show", "show_action", "dump", "load", "name",
    "horizon",
)  # fmt: skip
# Attributes by which an object says who is to move.
MOVERS = ("to_play", "current_player", "player_to_move", "side_to_move", "turn", "player")


def world_of(
    thing: Any, start: Any = NOT_GIVEN, to_play: Any = None, parts: dict[str, Any] | None = None
) -> World:
    """The world that the arguments of `plan` describe.

    Args:
        parts: names of methods of an object, and more, as `adapters.from_object` takes them.
    """
    parts = dict(parts or {})
    if isinstance(thing, (Problem, World)) and parts:
        raise TypeError(
            f"{', '.join(parts)} are for objects whose methods have other names; a "
            f"{type(thing).__name__} has its own: plan without them"
        )
    if isinstance(thing, Problem):
        if start is NOT_GIVEN:
            raise TypeError("plan(problem, start) needs the start: the state to plan from")
        return World(thing, start, 0 if to_play is None else to_play)
    is_named = isinstance(to_play, str) or callable(to_play)
    if is_named and not isinstance(thing, World):
        parts["to_play"] = to_play
    elif start is not NOT_GIVEN or to_play is not None:
        raise TypeError(
            f"start and to_play belong to a uctree.Problem; a {type(thing).__name__} has its own: "
            "plan without them"
        )
    if isinstance(thing, World):
        return thing
    from uctree import adapters

    if parts or all(callable(getattr(thing, name, None)) for name in ("legal", "step", "clone")):
        _check_players(thing, parts)
    return adapters.from_object(thing, **parts) if parts else adapters.as_world(thing)


def _check_players(thing: Any, parts: dict[str, Any]) -> None:
    """Refuse an object of several players that would be searched as if there were one."""
    found = [name for name in MOVERS if hasattr(thing, name)]
    if found and "to_play" not in parts and "num_players" not in parts:
        raise TypeError(
            f"{type(thing).__name__} has {found[0]!r}, so several players may take turns: give "
            f"to_play={found[0]!r} and num_players=2, or num_players=1 if one player makes all "
            "moves"
        )

"""The lines of metrics.jsonl that reports and ratings read, checked: a run may come from anybody.

A line that lacks a number, or has text or a huge number in place of one, is left out with a
warning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct, ValidationError, convert, to_builtins

if TYPE_CHECKING:
    from uctree.learn.run import Run

NETWORK, PAST = "network", "past"
OPPONENTS: dict[str, str] = {
    "random": "random",
    "greedy": "greedy",
    "playout_100": "search(num_simulations=100)",
    "playout_1000": "search(num_simulations=1000)",
}
# A model's network with the game's rules, and without search; as strong as their checkpoint.
RULES, POLICY = "rules", "policy"
ANCHOR = "random"  # the agent whose rating is 0
MOST_OPENINGS = 10_000  # of a measurement

Opponent = Literal["random", "greedy", "playout_100", "playout_1000", "past", "rules", "policy"]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Real = Annotated[float, Meta(ge=-1e100, le=1e100)]
Interval = tuple[Real, Real] | None
Points = Annotated[float, Meta(ge=0, le=1e6)]


class SelfPlay(Struct):
    iteration: Count
    games: Count
    positions: Count
    simulations: Count
    played: Count | None = None
    plies_per_game: Real | None = None
    games_per_second: Real | None = None
    simulations_per_second: Real | None = None


class Learning(Struct):
    iteration: Count
    steps: Count
    policy_loss: Real | None = None
    value_loss: Real | None = None
    reward_loss: Real | None = None
    consistency_loss: Real | None = None
    turn_loss: Real | None = None
    learning_rate: Real | None = None


class Checkpoint(Struct):
    iteration: Count
    seconds: Real
    weights_sha256: Annotated[str, Meta(max_length=100)]


class Played(Struct):
    """The points of the network and of an opponent, by opening."""

    points: Annotated[list[tuple[Points, Points]], Meta(min_length=1, max_length=MOST_OPENINGS)]

    def __post_init__(self) -> None:
        if not all(won + lost > 0 for won, lost in self.points):
            raise ValueError("an opening has no points")


class Compared(Played):
    games: Count
    wins: Count
    draws: Count
    losses: Count
    score: Real
    score_interval: Interval
    elo: Real
    elo_interval: Interval


class Returns(Struct):
    games: Count
    mean_return: Real
    return_interval: Interval
    opponent_return: Real
    opponent_interval: Interval
    difference: Real
    difference_interval: Interval


class Bin(Struct):
    predicted: Real
    outcome: Real
    outcome_interval: Interval


class Diagnosis(Struct):
    games: Count
    positions: Count
    value_error: Real
    search_value_error: Real
    reliability: list[Bin]
    divergence: Real
    changed: Real
    entropy: Real
    search_entropy: Real


class Exact(Struct):
    missing: str | None = None  # the program that was not installed
    positions: Count = 0
    raw: Real = 0.0
    raw_interval: Interval = None
    search: Real = 0.0
    search_interval: Interval = None


class ModelError(Struct):
    k: Count
    positions: Count
    reward: Real | None = None
    value: Real | None = None
    outcome: Real | None = None
    policy: Real | None = None
    illegal: Real | None = None
    turn: Real | None = None


class _Ladder(Struct):
    iteration: Count
    games: dict[Any, Any]
    past: Count | None = None

    def __post_init__(self) -> None:
        if ANCHOR not in self.games:
            raise ValueError(f"it has no games against {ANCHOR}")
        if PAST in self.games and not (self.past is not None and self.past < self.iteration):
            raise ValueError(f"its past is {self.past}")


class RatedLadder(_Ladder):
    games: dict[Opponent, Played]


class _Measured(_Ladder, kw_only=True):
    diagnosis: Diagnosis | None = None  # none in an environment
    exact: Exact | None = None
    strength: Real | None = None
    model: Annotated[list[ModelError], Meta(max_length=1000)] | None = None


class Ladder(_Measured, kw_only=True):
    games: dict[Opponent, Compared]


class LadderAlone(_Measured, kw_only=True):
    games: dict[Opponent, Returns]


KINDS: dict[str, type[Struct]] = {
    "self-play": SelfPlay,
    "learning": Learning,
    "checkpoint": Checkpoint,
    "ladder": Ladder,
}


def sound_rows(run: Run, kind: str, shape: type[Struct] | None = None) -> list[dict[str, Any]]:
    """The lines of a kind with what their shape names; a warning of the run counts the others.

    Args:
        shape: if omitted, that of the kind in reports.
    """
    is_alone = kind == "ladder" and run.game.num_players == 1
    wanted = shape or (LadderAlone if is_alone else KINDS[kind])
    rows, damaged = [], []
    for row in run.metrics(kind):
        try:
            rows.append(to_builtins(convert(row, wanted)))
        except ValidationError as error:
            damaged.append(f"iteration {row.get('iteration')!s:.20}: {error!s:.300}")
    if damaged:
        run.warn(
            f"{len(damaged)} lines of metrics.jsonl of the kind {kind!r} are damaged and left "
            f"out; the first is of {damaged[0]}"
        )
    return rows

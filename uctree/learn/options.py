"""Options of a training run: one flat record, checked as it is made, the same in a file."""

from __future__ import annotations

import math
import typing
from dataclasses import dataclass
from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
import numpy as np
from msgspec import Meta

from uctree import specs
from uctree.compose import checked_options
from uctree.errors import UctreeError
from uctree.game import Game

Count = Annotated[int, Meta(ge=1)]
Number = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Amount = Annotated[float, Meta(ge=0)]
Above0 = Annotated[float, Meta(gt=0)]
Below1 = Annotated[float, Meta(ge=0, lt=1)]


def about(description: str) -> Meta:
    """The words that the command line and the documentation have for an option."""
    return Meta(description=description)


# What `fill_in` reckons with.
LONGEST = 128  # plies of an episode, where a game allows more or does not say
POSITIONS = 4096  # of an iteration
ITERATIONS = 100  # of a run that nothing else limits


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a run is trained. None, where nothing else is said, lets the game decide."""

    # fmt: off
    algorithm: Annotated[Literal["alphazero"], about("how the network is trained")] = "alphazero"
    seed: Annotated[Number, about("of all randomness of the run")] = 0

    # Search.
    num_simulations: Annotated[Count | None, about(
        "simulations of a search; None: 50 to 400 by the number of actions")] = None
    num_trees: Annotated[Count, about("episodes that a worker plays at the same time")] = 64
    solver: Annotated[bool, about(
        "whether self-play proves results, which are then taught and kept; for games that "
        "pay at the end")] = False
    leaves: Annotated[Count, about("leaves of one tree that the network values together")] = 1
    root_selection: Annotated[Literal["puct", "gumbel"], about(
        "how actions of the root are chosen")] = "puct"
    c: Annotated[Amount, about("weight of exploration in PUCT")] = 1.25
    num_considered: Annotated[Count, about("actions that a Gumbel root considers")] = 16
    noise_fraction: Annotated[Share, about("how much of the root's priors is noise")] = 0.25
    noise_alpha: Annotated[Above0 | None, about(
        "of the Dirichlet distribution; None: 10 by the number of legal actions")] = None
    noise_end: Annotated[Share | None, about(
        "the fraction of noise in the end; None: as at the beginning")] = None
    noise_iterations: Annotated[Number, about("iterations until noise_end is reached")] = 0
    temperature: Annotated[Amount, about(
        "at which actions are drawn by visits at the beginning of an episode")] = 1.0
    temperature_decay: Annotated[Share, about("factor of the temperature from ply to ply")] = 1.0
    temperature_floor: Annotated[Amount, about("the temperature does not fall below this")] = 0.1
    temperature_cutover: Annotated[Number | None, about(
        "from this ply on the best action is taken; None: after a third of an episode, not "
        "before ply 8")] = None
    full_search_share: Annotated[Share, about(
        "playout-cap randomisation: share of searches that have all simulations and teach a "
        "policy")] = 1.0
    fast_simulations: Annotated[Count | None, about(
        "simulations of the other searches; None: a quarter")] = None
    opening_plies: Annotated[Number, about(
        "episodes begin with 0 to so many plies at random, which nothing is learned from")] = 0
    playout_iterations: Annotated[Number, about(
        "so many iterations at the beginning are played by searches with playouts, which cost "
        "less than an ignorant network and know more")] = 0
    playout_simulations: Annotated[Count | None, about(
        "simulations of these; None: 20 times as many as with the network")] = None

    # Targets.
    policy_target: Annotated[Literal["visits", "gumbel"], about(
        "what the policy is taught: visits, or the improved policy")] = "visits"
    value_mix: Annotated[Share, about(
        "how much of the value that is taught is what the search expected; the rest is "
        "returns")] = 0.0
    value_plies: Annotated[Count | None, about(
        "returns count so many plies, then what the search expected; None: to the end")] = None
    surprise_share: Annotated[Share, about(
        "how much of a position's weight goes by how much the search surprised the network")] = 0.0
    symmetries: Annotated[bool, about(
        "whether positions are turned by the game's symmetries in training")] = True
    evaluation_symmetries: Annotated[bool, about(
        "whether the network is asked for the mean over all symmetries in a search")] = False

    # Network.
    network: Annotated[Literal["mlp", "tower"] | None, about(
        "kind of network; None: a tower for planes of more than 16 cells")] = None
    network_width: Annotated[Count | None, about(
        "channels of a tower, neurons of a layer; None: as its function has it")] = None
    network_depth: Annotated[Count | None, about(
        "blocks of a tower, hidden layers; None: as its function has it")] = None

    # Learning.
    batch_size: Annotated[Count, about("positions of one step")] = 256
    learning_rate: Annotated[Above0, about("largest learning rate")] = 1e-3
    schedule: Annotated[Literal["constant", "linear", "cosine"], about(
        "how the learning rate falls")] = "cosine"
    schedule_iterations: Annotated[Count | None, about(
        "iterations until it has fallen; None: as many as the run may have, 1000 where that "
        "is not known; with max_hours it has fallen by then at the latest")] = None
    learning_rate_end: Annotated[Share, about("share of the learning rate that is left then")] = 0.1
    warmup_steps: Annotated[Number, about("steps in which the learning rate rises from 0")] = 100
    weight_decay: Annotated[Amount, about("decay of weights in AdamW")] = 1e-4
    precision: Annotated[Literal["float32", "bfloat16"], about(
        "of what is multiplied in learning; bfloat16 is faster where the processor computes "
        "with it")] = "float32"
    gradient_clip: Annotated[Above0 | None, about("longest gradient; None: of any length")] = 1.0
    value_weight: Annotated[Amount, about(
        "weight of the loss of values; that of policies has 1")] = 1.0
    average_decay: Annotated[Below1, about(
        "weights that play are an average of the last ones, in which those of the step "
        "before count so much; 0: no average")] = 0.99

    # Rhythm.
    episodes_per_iteration: Annotated[Count | None, about(
        "episodes played between two rounds of learning; None: 32 to 256, about 4096 "
        "positions")] = None
    draws: Annotated[Above0, about(
        "how often a position is drawn in learning, on average, for each that is new")] = 4.0
    replay_window: Annotated[Count | None, about(
        "positions that batches are drawn from, the last; None: those of 25 iterations")] = None
    replay_start: Annotated[Count | None, about(
        "positions that have to be there before the first step; None: one batch")] = None
    checkpoint_interval: Annotated[Count, about("iterations between two checkpoints")] = 10
    keep_checkpoints: Annotated[Count, about("how many of the newest checkpoints are kept")] = 5
    keep_every: Annotated[Count, about(
        "checkpoints of iterations that this divides are kept for good")] = 100
    ladder_games: Annotated[Number, about(
        "games against each opponent at a checkpoint; 0: none")] = 20

    # Where, and how long.
    workers: Annotated[Count, about(
        "processes that play; with 1 and without max_hours the run is the same every time")] = 1
    backend: Annotated[Literal["process", "ray"], about("what runs the workers")] = "process"
    inference: Annotated[Literal["torch", "onnx", "int8"], about(
        "what computes the network in a search; int8: ONNX with 8 bits in self-play, less exact "
        "and, where a processor has instructions for it, faster")] = "onnx"
    tensorboard: Annotated[bool, about("whether metrics are also written for TensorBoard")] = False
    max_hours: Annotated[Above0 | None, about("the run ends after so many hours")] = None
    max_iterations: Annotated[Count | None, about(
        "the run ends after so many iterations; None: 100 where nothing else limits it")] = None
    max_games: Annotated[Count | None, about(
        "the run ends with the iteration in which it has so many episodes")] = None
    # fmt: on

    def __post_init__(self) -> None:
        for name, hint in _hints().items():
            value = _checked(name, getattr(self, name), hint)
            msgspec.structs.force_setattr(self, name, value)
        least, most = self.fast_simulations, self.num_simulations
        if least is not None and most is not None and least > most:
            raise UctreeError(
                f"fast_simulations={least} is more than num_simulations={most}; a fast search has "
                "fewer simulations than a full one"
            )
        if self.policy_target == "gumbel" and self.root_selection != "gumbel":
            raise UctreeError(
                'policy_target="gumbel" is what a search with root_selection="gumbel" finds; give '
                "both, or neither"
            )
        if self.noise_end is not None and self.noise_iterations == 0:
            raise UctreeError(
                f"noise_end={self.noise_end} is reached after noise_iterations, which is 0: give "
                "that, too"
            )
        start, window = self.replay_start, self.replay_window
        if start is not None and window is not None and start > window:
            raise UctreeError(
                f"replay_start={start} is more than replay_window={window}, so that training would "
                "never begin; make the window larger"
            )


# What None leaves to the game.
DECIDED_BY_GAME = frozenset({
    "num_simulations", "fast_simulations", "playout_simulations", "temperature_cutover",
    "episodes_per_iteration", "replay_window", "replay_start", "schedule_iterations",
})  # fmt: skip

# What may change from one call to the next: how long, where, and what is kept.
CHANGEABLE = frozenset({
    "max_hours", "max_iterations", "max_games", "workers", "backend", "inference", "tensorboard",
    "checkpoint_interval", "keep_checkpoints", "keep_every", "ladder_games",
})  # fmt: skip


@dataclass(frozen=True)
class OptionRow:
    """One option in words, for the command line and for people."""

    name: str
    type: str
    default: Any
    description: str


def describe_options() -> list[OptionRow]:
    """Every option, in order."""
    rows = []
    for each in msgspec.structs.fields(Options):
        hint = _hints()[each.name]
        about = next(m.description for m in hint.__metadata__ if m.description)
        rows.append(OptionRow(each.name, _expected(hint), each.default, about))
    return rows


def make_options(game: Game, **given: Any) -> Options:
    """Options of a run of a game: those given, and what the game decides."""
    return fill_in(read_options(given), game)


def read_options(given: dict[str, Any]) -> Options:
    """Options by name; UctreeError says which name or value is wrong."""
    names = [each.name for each in msgspec.structs.fields(Options)]
    for name in given:
        if name not in names:
            raise UctreeError(
                f"unknown option {name!r}; {specs.meant(str(name), names)}options are "
                f"{', '.join(names)}"
            )
    return Options(**given)


def check_learnable(game: Game) -> None:
    """Raise UctreeError where no network can learn a game."""
    if game.is_continuous or game.rules.observe is None:
        raise UctreeError(
            f"{game.name} cannot be learned: a network needs numbered actions and a function "
            "observe=, which shows it a state"
        )


def fill_in(options: Options, game: Game) -> Options:
    """Options in which everything is said that the game decides."""
    check_learnable(game)
    # Refused before anyone plays.
    if options.solver:
        checked_options(game, solver=True)
    if options.network == "tower" and len(game.observation_shape or ()) != 3:
        raise UctreeError(
            f'network="tower" looks at planes, [channels, rows, cols]; {game.name} has '
            f'observation_shape={game.observation_shape}: use network="mlp"'
        )
    if options.evaluation_symmetries and game.symmetries is None:
        raise UctreeError(
            f"evaluation_symmetries=True: {game.name} has no symmetries; give "
            "Game(symmetries=...), or leave it False"
        )
    length = min(game.max_plies or LONGEST, LONGEST)
    simulations = options.num_simulations or min(400, max(50, 2 * game.num_actions))
    episodes = options.episodes_per_iteration or min(256, max(32, math.ceil(POSITIONS / length)))
    positions = episodes * length
    window = options.replay_window or 25 * positions
    iterations, games = options.max_iterations, options.max_games
    if iterations is None and games is None and options.max_hours is None:
        iterations = ITERATIONS
    planned = iterations or (math.ceil(games / episodes) if games else 1000)
    cutover = options.temperature_cutover
    return msgspec.structs.replace(
        options,
        num_simulations=simulations,
        fast_simulations=options.fast_simulations or max(1, simulations // 4),
        playout_simulations=options.playout_simulations or 20 * simulations,
        temperature_cutover=max(length // 3, 8) if cutover is None else cutover,
        episodes_per_iteration=episodes,
        replay_window=window,
        replay_start=options.replay_start or min(options.batch_size, window),
        max_iterations=iterations,
        schedule_iterations=options.schedule_iterations or planned,
    )


# --- checks --------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _hints() -> dict[str, Any]:
    return typing.get_type_hints(Options, include_extras=True)


def _checked(name: str, value: Any, hint: Any) -> Any:
    """A value of the type that an option has; UctreeError says what came and what is expected."""
    plain = value.item() if isinstance(value, np.generic) else value
    try:
        if isinstance(plain, float) and not math.isfinite(plain):
            raise msgspec.ValidationError
        return msgspec.convert(plain, hint)
    except msgspec.ValidationError:
        about = next(m.description for m in hint.__metadata__ if m.description)
        raise UctreeError(f"{name}={value!r}: expected {_expected(hint)} ({about})") from None


_WORDS = {int: "an integer", float: "a number", bool: "True or False", str: "text"}


def _expected(hint: Any) -> str:
    """In words, what values a type allows.

    >>> _expected(Annotated[Share | None, Meta(description="...")])
    'a number of at least 0 and at most 1, or None'
    """
    if get_origin(hint) is Annotated:
        inner, *metas = get_args(hint)
        bounds = [bound for meta in metas for bound in _bounds(meta)]
        return _expected(inner) + (f" {' and '.join(bounds)}" if bounds else "")
    if get_origin(hint) in (UnionType, typing.Union):
        parts = [_expected(each) for each in get_args(hint) if each is not NoneType]
        return f"{', '.join(parts)}, or None"
    if get_origin(hint) is Literal:
        return " or ".join(repr(each) for each in get_args(hint))
    return _WORDS[hint]


def _bounds(meta: Meta) -> list[str]:
    words = (("ge", "of at least"), ("gt", "above"), ("le", "at most"), ("lt", "below"))
    return [
        f"{word} {getattr(meta, name)}" for name, word in words if getattr(meta, name) is not None
    ]

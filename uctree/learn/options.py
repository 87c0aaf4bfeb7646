"""Options of a training run: one flat record, checked when it is made, stored as JSON."""

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
from uctree.engine.options import resolve
from uctree.errors import UctreeError
from uctree.game import ENDLESS, Game

Count = Annotated[int, Meta(ge=1)]
Number = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Amount = Annotated[float, Meta(ge=0)]
Above0 = Annotated[float, Meta(gt=0)]
Below1 = Annotated[float, Meta(ge=0, lt=1)]


def doc(description: str) -> Meta:
    """The description of an option, for the command line and the documentation."""
    return Meta(description=description)


# Assumptions of `fill_in`.
DEFAULT_PLIES = 128  # of an episode, if the game has more or states no max_plies
POSITIONS_PER_ITERATION = 4096
DEFAULT_ITERATIONS = 100  # of a run without any limit


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a run is trained. Unless described otherwise, None lets the game decide."""

    # fmt: off
    algorithm: Annotated[Literal["alphazero", "muzero"], doc(
        "alphazero searches with the game's rules and a network; muzero learns a model of the "
        "rules, and searches in it")] = "alphazero"
    seed: Annotated[Number, doc("decides all random draws of the run")] = 0

    # Search.
    num_simulations: Annotated[Count | None, doc(
        "simulations of a search; None: 50 to 400 by the number of actions")] = None
    num_trees: Annotated[Count, doc("episodes that a worker plays at the same time")] = 64
    solver: Annotated[bool, doc(
        "whether self-play proves results and teaches the proven ones; for games that pay only "
        "at the end")] = False
    leaves: Annotated[Count, doc("leaves of one tree in a batch of the network")] = 1
    root_selection: Annotated[Literal["puct", "gumbel"] | None, doc(
        "selection at the root; None: puct, for muzero gumbel")] = None
    c: Annotated[Amount, doc("weight of exploration in PUCT")] = 1.25
    num_considered: Annotated[Count, doc("actions that a Gumbel root considers")] = 16
    c_visit: Annotated[Amount, doc("visits that a Gumbel search adds to those of the root")] = 50.0
    c_scale: Annotated[Amount, doc("weight of values in a Gumbel search")] = 0.1
    rescale: Annotated[bool, doc(
        "whether a Gumbel search stretches the values of a node to 0 ... 1")] = True
    smallest_range: Annotated[Amount, doc(
        "PUCT of muzero: the least range of returns that is stretched to 0 ... 1")] = 0.01
    noise_fraction: Annotated[Share, doc("share of noise in the priors of the root")] = 0.25
    noise_alpha: Annotated[Above0 | None, doc(
        "alpha of the Dirichlet noise; None: 10 / number of legal actions")] = None
    noise_end: Annotated[Share | None, doc(
        "noise_fraction after noise_iterations; None: it stays the same")] = None
    noise_iterations: Annotated[Number, doc("iterations until noise_end is reached")] = 0
    temperature: Annotated[Amount, doc(
        "temperature at ply 0, at which actions are drawn by visits")] = 1.0
    temperature_decay: Annotated[Share, doc("factor of the temperature from ply to ply")] = 1.0
    temperature_floor: Annotated[Amount, doc("the lowest temperature")] = 0.1
    temperature_cutover: Annotated[Number | None, doc(
        "from this ply on the best action is taken; None: after a third of an episode, not "
        "before ply 8; in environments never")] = None
    full_search_share: Annotated[Share, doc(
        "playout-cap randomisation: share of searches that have all simulations and teach a "
        "policy")] = 1.0
    fast_simulations: Annotated[Count | None, doc(
        "simulations of the other searches; None: a quarter of num_simulations")] = None
    opening_plies: Annotated[Number, doc(
        "episodes begin with up to this number of random plies, which are not learned from")] = 0
    playout_iterations: Annotated[Number | None, doc(
        "in this number of iterations at the start, searches use playouts and the game's rules "
        "instead of the network; they are cheaper and stronger than an untrained network; None: "
        "0, for muzero 8 where the rules are known")] = None
    playout_simulations: Annotated[Count | None, doc(
        "simulations of searches with playouts; None: 20 times num_simulations")] = None

    # Targets.
    policy_target: Annotated[Literal["visits", "gumbel"] | None, doc(
        "the policy target: shares of visits, or the improved policy of Gumbel; None: visits, for "
        "muzero that of the root's selection")] = None
    value_mix: Annotated[Share, doc(
        "share of the search's value in the value target; the rest is returns")] = 0.0
    value_plies: Annotated[Count | None, doc(
        "n of n-step returns, which end with the search's value; None: to the end; for muzero in "
        "decisions, without plies of chance")] = None
    surprise_share: Annotated[Share, doc(
        "share of a position's weight that follows the KL divergence of the search's policy from "
        "the prior")] = 0.0
    symmetries: Annotated[bool, doc(
        "whether training positions are transformed by random symmetries of the game")] = True
    evaluation_symmetries: Annotated[bool, doc(
        "whether searches average the network over all symmetries of the game")] = False

    # Learned models.
    unroll_steps: Annotated[Count, doc("muzero: steps of the model in learning, K")] = 5
    reward_weight: Annotated[Amount, doc("muzero: weight of the reward loss")] = 1.0
    consistency_weight: Annotated[Amount, doc(
        "muzero: weight of the consistency loss; 0: none, which takes half of the time")] = 1.0
    learned_ends: Annotated[bool, doc(
        "muzero: whether the model may say that an episode is over")] = False
    priority_exponent: Annotated[Amount, doc(
        "muzero: how much positions with larger value errors are drawn more often; 0: not")] = 0.0
    priority_correction: Annotated[Share, doc(
        "muzero: how much weights undo that in the losses")] = 1.0
    reanalyse_share: Annotated[Amount, doc(
        "muzero: earlier positions that are searched again, per new position")] = 0.0

    # Network.
    network: Annotated[Literal["mlp", "tower"] | None, doc(
        "kind of network; None: a tower for planes of more than 16 cells")] = None
    network_width: Annotated[Count | None, doc(
        "channels of a tower, or neurons of a layer; None: the default of tower or mlp")] = None
    network_depth: Annotated[Count | None, doc(
        "blocks of a tower, or hidden layers; None: the default of tower or mlp")] = None

    # Learning.
    batch_size: Annotated[Count, doc("positions of one optimiser step")] = 256
    learning_rate: Annotated[Above0, doc("largest learning rate")] = 1e-3
    schedule: Annotated[Literal["constant", "linear", "cosine"], doc(
        "how the learning rate falls")] = "cosine"
    schedule_iterations: Annotated[Count | None, doc(
        "iterations until it has fallen; None: those of the run, 1000 if not known; with "
        "max_hours or max_cpu_hours it has fallen by then at the latest")] = None
    learning_rate_end: Annotated[Share, doc("final learning rate as a share of the largest")] = 0.1
    warmup_steps: Annotated[Number, doc("steps in which the learning rate rises from 0")] = 100
    weight_decay: Annotated[Amount, doc("weight decay of AdamW")] = 1e-4
    precision: Annotated[Literal["float32", "bfloat16"], doc(
        "of matrix products in learning, and in searches by torch; bfloat16 is faster on "
        "processors that support it")] = "float32"
    gradient_clip: Annotated[Above0 | None, doc("largest gradient norm; None: no limit")] = 1.0
    value_weight: Annotated[Amount, doc(
        "weight of the value loss; that of the policy loss is 1")] = 1.0
    average_decay: Annotated[Below1, doc(
        "decay per step of the moving average of the weights, which plays; 0: no average")] = 0.99

    # Iterations, checkpoints.
    episodes_per_iteration: Annotated[Count | None, doc(
        "episodes of self-play per iteration; None: 32 to 256, about 4096 positions")] = None
    draws: Annotated[Above0 | None, doc(
        "positions drawn in learning per new position; None: 4, for muzero 32 on boards of up to "
        "16 cells and 8 on others")] = None
    replay_window: Annotated[Count | None, doc(
        "newest positions that batches are drawn from; None: those of 25 iterations")] = None
    replay_start: Annotated[Count | None, doc(
        "positions in the replay before the first step; None: one batch")] = None
    checkpoint_interval: Annotated[Count, doc("iterations between two checkpoints")] = 10
    keep_checkpoints: Annotated[Count, doc("number of newest checkpoints to keep")] = 5
    keep_every: Annotated[Count, doc(
        "checkpoints of iterations that this divides are never deleted")] = 100
    ladder_games: Annotated[Number, doc(
        "games against each opponent at a checkpoint; 0: none")] = 20

    # Workers, limits.
    workers: Annotated[Count, doc(
        "processes that play; with 1 and without limits of time the run is the same every "
        "time")] = 1
    backend: Annotated[Literal["process", "ray"], doc("what runs the workers")] = "process"
    inference: Annotated[Literal["torch", "onnx", "int8"] | None, doc(
        "what computes the network in searches; int8: ONNX with 8 bits in self-play, less exact, "
        "faster on processors with instructions for it; None: torch on a GPU, else onnx")] = None
    device: Annotated[Literal["auto", "cpu", "cuda", "mps"], doc(
        "what computes learning, and searches with inference=torch; auto: a GPU if there is "
        "one")] = "auto"
    tensorboard: Annotated[bool, doc("whether metrics are also written for TensorBoard")] = False
    max_hours: Annotated[Above0 | None, doc("hours after which the run ends")] = None
    max_cpu_hours: Annotated[Above0 | None, doc(
        "hours of processor time, of all its processes, after which the run ends; unlike "
        "max_hours the same on a busy machine")] = None
    max_iterations: Annotated[Count | None, doc(
        "iterations after which the run ends; None: 100 if there is no other limit")] = None
    max_games: Annotated[Count | None, doc(
        "episodes after which the run ends, at the end of an iteration")] = None
    # fmt: on

    def __post_init__(self) -> None:
        for name, hint in _hints().items():
            value = _checked(name, getattr(self, name), hint)
            msgspec.structs.force_setattr(self, name, value)
        least, most = self.fast_simulations, self.num_simulations
        if least is not None and most is not None and least > most:
            raise UctreeError(
                f"fast_simulations={least} is more than num_simulations={most}; give a fast search "
                "fewer simulations than a full one"
            )
        is_gumbel = self.root_selection == "gumbel" or (
            self.root_selection is None and self.algorithm == "muzero"
        )
        if self.policy_target == "gumbel" and not is_gumbel:
            raise UctreeError(
                'policy_target="gumbel" needs root_selection="gumbel", which computes this policy; '
                "give both, or neither"
            )
        if self.noise_end is not None and self.noise_iterations == 0:
            raise UctreeError(
                f"noise_end={self.noise_end} is reached after noise_iterations, which is 0: also "
                "give noise_iterations"
            )
        start, window = self.replay_start, self.replay_window
        if start is not None and window is not None and start > window:
            raise UctreeError(
                f"replay_start={start} is more than replay_window={window}, so learning would "
                "never start; make the window larger"
            )


# Options that the game decides if they are None.
DECIDED_BY_GAME = frozenset({
    "num_simulations", "fast_simulations", "playout_simulations", "temperature_cutover",
    "episodes_per_iteration", "replay_window", "replay_start", "schedule_iterations",
    "root_selection", "policy_target", "playout_iterations", "draws",
})  # fmt: skip

# Options that may change when a run is resumed: limits, workers, checkpoints and metrics.
CHANGEABLE = frozenset({
    "max_hours", "max_cpu_hours", "max_iterations", "max_games", "workers", "backend",
    "inference", "tensorboard", "device",
    "checkpoint_interval", "keep_checkpoints", "keep_every", "ladder_games",
})  # fmt: skip


@dataclass(frozen=True)
class OptionRow:
    """The description of one option."""

    name: str
    type: str
    default: Any
    description: str


def describe_options() -> list[OptionRow]:
    """Every option, in order."""
    rows = []
    for each in msgspec.structs.fields(Options):
        hint = _hints()[each.name]
        doc = next(m.description for m in hint.__metadata__ if m.description)
        rows.append(OptionRow(each.name, _expected(hint), each.default, doc))
    return rows


def make_options(game: Game | str, **given: Any) -> Options:
    """The options of a run: the given ones, and those that the game decides."""
    game = specs.as_game(game)
    return fill_in(read_options(given), game)


def read_options(given: dict[str, Any]) -> Options:
    """The options with these values; UctreeError if a name or a value is wrong."""
    names = [each.name for each in msgspec.structs.fields(Options)]
    for name in given:
        if name not in names:
            raise UctreeError(
                f"unknown option {name!r}; {specs.meant(str(name), names)}options are "
                f"{', '.join(names)}"
            )
    return Options(**given)


def check_learnable(game: Game) -> None:
    """Raise UctreeError if no network can learn a game."""
    if game.is_continuous or game.rules.observe is None:
        raise UctreeError(
            f"{game.name} cannot be learned: a network needs numbered actions and a function "
            "observe=, which writes the observation of a state"
        )


SMALL_BOARD = 16  # cells of a plane up to which an mlp is as good as a tower, and much faster


def _is_small(game: Game) -> bool:
    shape = game.observation_shape or ()
    return len(shape) != 3 or math.prod(shape[1:]) <= SMALL_BOARD


def fill_in(options: Options, game: Game) -> Options:
    """The options with values for all those that the game decides."""
    check_learnable(game)
    if options.solver:
        resolve(game, solver=True)  # raises if the game cannot be solved
    for reason in _conflicts(options, game):
        raise UctreeError(reason)
    if options.network == "tower" and len(game.observation_shape or ()) != 3:
        raise UctreeError(
            f'network="tower" needs planes, [channels, rows, cols]; {game.name} has '
            f'observation_shape={game.observation_shape}: use network="mlp"'
        )
    if options.evaluation_symmetries and game.symmetries is None:
        raise UctreeError(
            f"evaluation_symmetries=True: {game.name} has no symmetries; give "
            "Game(symmetries=...), or omit the option"
        )
    length = min(game.max_plies or DEFAULT_PLIES, DEFAULT_PLIES)
    simulations = options.num_simulations or min(400, max(50, 2 * game.num_actions))
    enough = math.ceil(POSITIONS_PER_ITERATION / length)
    episodes = options.episodes_per_iteration or min(256, max(32, enough))
    positions = episodes * length
    window = options.replay_window or 25 * positions
    iterations, games = options.max_iterations, options.max_games
    if iterations is None and games is None and not (options.max_hours or options.max_cpu_hours):
        iterations = DEFAULT_ITERATIONS
    planned = iterations or (math.ceil(games / episodes) if games else 1000)
    cutover = options.temperature_cutover
    if cutover is None:
        # What is worth exploring in a game is its opening; in an environment it may be anywhere.
        cutover = ENDLESS if game.environment is not None else max(length // 3, 8)
    is_muzero = options.algorithm == "muzero"
    root = options.root_selection or ("gumbel" if is_muzero else "puct")
    target = options.policy_target or ("gumbel" if is_muzero and root == "gumbel" else "visits")
    draws = (32.0 if _is_small(game) else 8.0) if is_muzero else 4.0
    seeded = 8 if is_muzero and game.environment is None else 0
    return msgspec.structs.replace(
        options,
        num_simulations=simulations,
        root_selection=root,
        policy_target=target,
        draws=options.draws or draws,
        playout_iterations=(
            seeded if options.playout_iterations is None else options.playout_iterations
        ),
        fast_simulations=options.fast_simulations or max(1, simulations // 4),
        playout_simulations=options.playout_simulations or 20 * simulations,
        temperature_cutover=cutover,
        episodes_per_iteration=episodes,
        replay_window=window,
        replay_start=options.replay_start or min(options.batch_size, window),
        max_iterations=iterations,
        schedule_iterations=options.schedule_iterations or planned,
    )


def _conflicts(options: Options, game: Game) -> list[str]:
    """The messages for options that do not fit the algorithm."""
    is_muzero = options.algorithm == "muzero"
    known = {each.name: each.default for each in msgspec.structs.fields(Options)}
    of_models = (
        "unroll_steps", "reward_weight", "consistency_weight", "learned_ends",
        "priority_exponent", "priority_correction", "reanalyse_share", "smallest_range",
    )  # fmt: skip
    given = [name for name in of_models if getattr(options, name) != known[name]]
    cases = [
        (
            not is_muzero and bool(given),
            f'{", ".join(given)}: only for models that are learned; add algorithm="muzero"',
        ),
        (
            is_muzero and options.solver,
            "solver=True proves results by the game's rules, and muzero searches in a learned "
            "model: omit one of them",
        ),
        (
            is_muzero and options.inference == "int8",
            'inference="int8" is for networks of alphazero; use "onnx" or "torch" for a model',
        ),
        (
            is_muzero and options.evaluation_symmetries,
            "evaluation_symmetries=True averages a network over symmetries, which a hidden state "
            "has none of: omit it for muzero",
        ),
        (
            not is_muzero and game.environment is not None,
            f"{game.name} is an environment without rules, which alphazero needs; use "
            'algorithm="muzero"',
        ),
        (
            is_muzero and options.batch_size == 1 and options.consistency_weight > 0,
            "batch_size=1: the consistency loss compares positions of a batch; use a larger one, "
            "or consistency_weight=0",
        ),
        (
            bool(options.playout_iterations) and game.environment is not None,
            f"playout_iterations={options.playout_iterations}: {game.name} is an environment "
            "without rules, which playouts need; omit the option",
        ),
    ]
    return [message for applies, message in cases if applies]


# --- checks --------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _hints() -> dict[str, Any]:
    return typing.get_type_hints(Options, include_extras=True)


def _checked(name: str, value: Any, hint: Any) -> Any:
    """The value, converted to the type of the option; UctreeError if it does not fit."""
    plain = value.item() if isinstance(value, np.generic) else value
    try:
        if isinstance(plain, float) and not math.isfinite(plain):
            raise msgspec.ValidationError
        return msgspec.convert(plain, hint)
    except msgspec.ValidationError:
        doc = next(m.description for m in hint.__metadata__ if m.description)
        raise UctreeError(f"{name}={value!r}: expected {_expected(hint)} ({doc})") from None


_WORDS = {int: "an integer", float: "a number", bool: "True or False", str: "text"}


def _expected(hint: Any) -> str:
    """The values that a type allows, in words.

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

"""Learned models of a world: representation, dynamics, prediction and projection.

A model is any torch module with two functions of float32 tensors,

    initial(observations) -> (hidden, logits, values)
    recurrent(hidden, actions) -> (hidden, rewards, logits, values[, turns])

Observations are [n, *game.observation_shape], those of the player to move; actions are int64 [n].
`hidden` is [n, ...] of any shape. Logits are [n, num_actions]. Rewards [n, num_players] are paid by
the action and begin with the player who takes it; values [n, num_players] are those of the state
behind it and begin with the player to move there. `turns` are logits [n, num_players + 1] of who
moves next: the player who took the action, the next one, ..., and last that the episode is over.
Without them players move in turn. `project(hidden)` [n, m] and `predict_projection(projection)`
[n, m], if the module has them, are for the consistency loss.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from uctree import specs
from uctree.errors import BrokenGame, UctreeError
from uctree.game import Game
from uctree.learn import devices
from uctree.learn.network import (
    Bounded,
    Categorical,
    are_sizes,
    description_of,
    evaluating,
    squared_error,
    zero_layer,
)
from uctree.learn.options import SMALL_BOARD

KINDS = ("mlp_model", "tower_model")
HEAD_CHANNELS = 4  # planes that a head of a tower reads
SMALLEST_SPAN = 1e-5  # of a hidden state that is scaled to [0, 1]
SMALLEST_VARIANCE, LARGEST_INPUT = 1e-6, 10.0  # of observations that are standardised
SLOWEST = 1e-3  # the share of a batch in their mean, which is that of all batches at first


# --- models from a game --------------------------------------------------------------------------


def mlp_model(
    game: Game | str,
    *,
    width: int = 256,
    latent: int = 128,
    bounded: bool | None = None,
    seed: int = 0,
) -> LearnedModel:
    """An untrained model of layers of `width` neurons; hidden states have `latent` numbers.

    Args:
        bounded: as in `mlp`.
        seed: the same seed gives the same weights.
    """
    game = specs.as_game(game)
    return _seeded(seed, _description(game, "mlp_model", width, latent, bounded))


def tower_model(
    game: Game | str, *, width: int = 32, depth: int = 2, bounded: bool | None = None, seed: int = 0
) -> LearnedModel:
    """An untrained model of residual blocks, for planes; hidden states are `width` planes.

    Args:
        depth: the blocks of representation and dynamics each.
        bounded: as in `mlp`.
        seed: the same seed gives the same weights.
    """
    game = specs.as_game(game)
    if len(game.observation_shape or ()) != 3:
        raise BrokenGame(
            f"a tower needs planes, [channels, rows, cols]; {game.name} has "
            f"observation_shape={game.observation_shape}: use mlp_model(game)"
        )
    return _seeded(seed, _description(game, "tower_model", width, depth, bounded))


def default_model(
    game: Game | str, *, kind: str | None = None, width: int | None = None,
    depth: int | None = None, seed: int = 0,
) -> LearnedModel:  # fmt: skip
    """An untrained model: a tower for planes of more than 16 cells, otherwise an mlp.

    Args:
        kind: "tower" or "mlp" instead.
        depth: the blocks of a tower, or the numbers of an mlp's hidden state.
    """
    game = specs.as_game(game)
    shape = game.observation_shape or ()
    if kind is None:
        kind = "tower" if len(shape) == 3 and math.prod(shape[1:]) > SMALL_BOARD else "mlp"
    sizes: dict[str, Any] = {} if width is None else {"width": width}
    if depth is not None:
        sizes["depth" if kind == "tower" else "latent"] = depth
    return (tower_model if kind == "tower" else mlp_model)(game, seed=seed, **sizes)


def _description(
    game: Game, kind: str, width: int, depth: int, bounded: bool | None
) -> dict[str, Any]:
    """The description of a model; observations of environments are standardised."""
    found = description_of(game, kind, width, depth, bounded)
    return found | {"standardised": game.environment is not None}


def _seeded(seed: int, description: Mapping[str, Any]) -> LearnedModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LearnedModel(**description)


def is_model(module: Any) -> bool:
    """Whether a module is a model, not a network."""
    return hasattr(module, "initial") and hasattr(module, "recurrent")


def build(description: Mapping[str, Any]) -> LearnedModel:
    """The model of a description, with the weights of seed 0."""
    check_description(description)
    return _seeded(0, description)


def check_description(description: Mapping[str, Any]) -> None:
    """Raise UctreeError for a description of no model, or of one that is too large."""
    try:
        inspect.signature(LearnedModel).bind(**description)
    except TypeError as error:
        raise UctreeError(
            f"not the description of a model: {error}; got {str(description)[:500]}"
        ) from None
    sizes = {key: value for key, value in description.items() if key != "standardised"}
    if not are_sizes(**sizes) or type(description.get("standardised", False)) is not bool:
        raise UctreeError(
            f"not the description of a model of a sensible size; got {str(description)[:500]}"
        )


# --- the model -----------------------------------------------------------------------------------


class LearnedModel(nn.Module):
    """Representation, dynamics, prediction and projection, as `initial` and `recurrent`.

    The last layers begin at zero. `description` has the arguments, as JSON.
    """

    def __init__(
        self, *, kind: str, width: int, depth: int, observation_shape: Sequence[int],
        num_actions: int, num_players: int, value_range: Sequence[float] | None, per_cell: bool,
        standardised: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        if kind not in KINDS or width < 1 or depth < 1:
            raise ValueError(
                f"a model has a kind of {' or '.join(KINDS)}, and sizes of at least 1; got "
                f"kind={kind!r}, width={width}, depth={depth}"
            )
        self.description = {
            "kind": kind, "width": width, "depth": depth,
            "observation_shape": list(observation_shape), "num_actions": num_actions,
            "num_players": num_players, "per_cell": per_cell, "standardised": standardised,
            "value_range": None if value_range is None else list(value_range),
        }  # fmt: skip
        self.num_players = num_players
        shape = tuple(observation_shape)
        self.observed = Standardised(shape) if standardised else nn.Identity()
        heads = [_head_of(num_players, value_range, is_reward) for is_reward in (False, True)]
        self.value_head, self.reward_head = heads
        make = _Layers if kind == "mlp_model" else _Planes
        self.parts = make(
            shape, num_actions, width, depth, per_cell,
            self.value_head.num_outputs, self.reward_head.num_outputs, num_players + 1,
        )  # fmt: skip

    # The parts, as training uses them.

    def represent(self, observations: Tensor) -> Tensor:
        """The hidden states of observations."""
        hidden: Tensor = self.parts.represent(self.observed(observations))
        return scaled(hidden)

    def advance(self, hidden: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The hidden states behind actions, with the outputs for rewards and turns."""
        after, reward, turn = self.parts.advance(hidden, actions)
        return scaled(after), reward, turn

    def predict(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """The logits of all actions, and the output for values."""
        logits, value = self.parts.predict(hidden)
        return logits, value

    def project(self, hidden: Tensor) -> Tensor:
        """What the consistency loss compares."""
        projection: Tensor = self.parts.projection(hidden)
        return projection

    def predict_projection(self, projection: Tensor) -> Tensor:
        """The projection of the true state, as predicted from that of the model's."""
        predicted: Tensor = self.parts.predictor(projection)
        return predicted

    def value_loss(self, output: Tensor, targets: Tensor) -> Tensor:
        """The loss of each sample, [n]; `output` comes from `predict`."""
        return self.value_head.loss(output, targets)

    def reward_loss(self, output: Tensor, targets: Tensor) -> Tensor:
        """The loss of each sample, [n]; `output` comes from `advance`."""
        return self.reward_head.loss(output, targets)

    # The two functions of a search.

    def initial(self, observations: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        hidden = self.represent(observations)
        logits, value = self.predict(hidden)
        return hidden, logits, self.value_head.values(value)

    def recurrent(self, hidden: Tensor, actions: Tensor) -> tuple[Tensor, ...]:
        after, reward, turn = self.advance(hidden, actions)
        logits, value = self.predict(after)
        return (
            after, self.reward_head.values(reward), logits, self.value_head.values(value), turn
        )  # fmt: skip


class Standardised(nn.Module):
    """Observations with mean 0 and deviation 1, by all that learning has seen.

    For environments, whose numbers may be of any size; planes have one mean and deviation each.

    >>> module = Standardised((2,))
    >>> module(torch.tensor([[1.0, 0.0], [3.0, 100.0]])).tolist()
    [[-1.0, -1.0], [1.0, 1.0]]
    >>> module.eval()(torch.tensor([[4.0, 50.0]])).tolist()
    [[2.0, 0.0]]
    """

    mean: Tensor
    square: Tensor
    batches: Tensor

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        size = (shape[0], 1, 1) if len(shape) == 3 else shape
        self.axes = (0, 2, 3) if len(shape) == 3 else (0,)
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("square", torch.ones(size))
        self.register_buffer("batches", torch.zeros(()))

    def forward(self, observations: Tensor) -> Tensor:
        if self.training:
            self._see(observations)
        variance = self.square - self.mean.square()
        found = (observations - self.mean) / variance.clamp(min=SMALLEST_VARIANCE).sqrt()
        return found.clamp(-LARGEST_INPUT, LARGEST_INPUT)

    @torch.no_grad()
    def _see(self, observations: Tensor) -> None:
        self.batches += 1
        share = (1.0 / self.batches).clamp(min=SLOWEST)
        for known, new in ((self.mean, observations), (self.square, observations.square())):
            known.lerp_(new.mean(self.axes).view_as(known), share)


def _head_of(num_players: int, value_range: Sequence[float] | None, is_reward: bool) -> Any:
    if value_range is None:
        return Categorical(num_players)
    return Scaled(num_players, value_range) if is_reward else Bounded(num_players, value_range)


class Scaled(nn.Module):
    """Rewards in units of half the range of returns; the loss is the squared error.

    A reward may lie outside of that range, so it is not squeezed as values are.
    """

    def __init__(self, num_players: int, value_range: Sequence[float]) -> None:
        super().__init__()
        self.num_outputs = num_players
        self.reach = (value_range[1] - value_range[0]) / 2

    def values(self, output: Tensor) -> Tensor:
        return self.reach * output

    def loss(self, output: Tensor, targets: Tensor) -> Tensor:
        return squared_error(output, targets / self.reach)


def scaled(hidden: Tensor) -> Tensor:
    """Hidden states scaled to [0, 1], each by its own least and largest number.

        s' = (s - min s) / (max s - min s + 1e-5)                                      [Eq. 74]

    So their size neither grows nor vanishes, however many steps a model takes.

    >>> [round(x, 3) for x in scaled(torch.tensor([[1.0, 2.0, 5.0]])).tolist()[0]]
    [0.0, 0.25, 1.0]
    """
    flat = hidden.flatten(1)
    low, high = flat.amin(1, keepdim=True), flat.amax(1, keepdim=True)
    shape = (-1,) + (1,) * (hidden.dim() - 1)
    return (hidden - low.view(shape)) / (high - low + SMALLEST_SPAN).view(shape)


def _two_layers(num_inputs: int, width: int, num_outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(num_inputs, width), nn.ReLU(), nn.Linear(width, num_outputs)
    )


def _projections(num_inputs: int, width: int) -> tuple[nn.Sequential, nn.Sequential]:
    """Projection and predictor of the consistency loss, with 128 numbers.

    Batch norms take away what all states have in common. Without them all projections point the
    same way from the beginning, and the loss teaches nothing.
    """
    projection = nn.Sequential(
        nn.Flatten(), nn.Linear(num_inputs, width), nn.BatchNorm1d(width), nn.ReLU(),
        nn.Linear(width, 128), nn.BatchNorm1d(128, affine=False),
    )  # fmt: skip
    predictor = nn.Sequential(nn.Linear(128, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 128))
    return projection, predictor


def _head(num_inputs: int, width: int, num_outputs: int) -> nn.Sequential:
    *before, last = _two_layers(num_inputs, width, num_outputs)
    assert isinstance(last, nn.Linear)
    return nn.Sequential(*before, zero_layer(last))


class _Layers(nn.Module):
    """The parts of a model of layers; hidden states are vectors of `latent` numbers."""

    def __init__(
        self, shape: tuple[int, ...], num_actions: int, width: int, latent: int, per_cell: bool,
        num_values: int, num_rewards: int, num_turns: int,
    ) -> None:  # fmt: skip
        super().__init__()
        narrow = max(64, width // 4)
        self.representation = _two_layers(math.prod(shape), width, latent)
        self.state_in, self.action_in = nn.Linear(latent, width), nn.Embedding(num_actions, width)
        self.state_out = nn.Linear(width, latent)
        self.reward = _head(width, narrow, num_rewards)
        self.turn = _head(latent, narrow, num_turns)
        self.policy = _head(latent, width, num_actions)
        self.value = _head(latent, narrow, num_values)
        self.projection, self.predictor = _projections(latent, width)

    def represent(self, observations: Tensor) -> Any:
        return self.representation(observations)

    def advance(self, hidden: Tensor, actions: Tensor) -> Any:
        inner = functional.relu(self.state_in(hidden) + self.action_in(actions))
        after = hidden + self.state_out(inner)
        return after, self.reward(inner), self.turn(after)

    def predict(self, hidden: Tensor) -> Any:
        return self.policy(hidden), self.value(hidden)


class _Planes(nn.Module):
    """The parts of a model of residual blocks; hidden states are planes."""

    def __init__(
        self, shape: tuple[int, ...], num_actions: int, width: int, depth: int, per_cell: bool,
        num_values: int, num_rewards: int, num_turns: int,
    ) -> None:  # fmt: skip
        super().__init__()
        channels, rows, cols = shape
        num_cells = rows * cols
        self.board = rows, cols
        self.representation = nn.Sequential(
            nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(),
            *(_Block(width) for _ in range(depth)),
        )  # fmt: skip
        # The plane of each action: its cell if actions are cells, else learned.
        self.action_planes = nn.Embedding(num_actions, num_cells)
        if per_cell:
            with torch.no_grad():
                self.action_planes.weight.zero_()
                self.action_planes.weight[:num_cells] = torch.eye(num_cells)
        self.enter = nn.Conv2d(width + 1, width, 3, padding=1)
        self.dynamics = nn.Sequential(*(_Block(width) for _ in range(depth)))
        self.reward = _plane_head(width, num_cells, num_rewards)
        self.turn = _plane_head(width, num_cells, num_turns)
        self.value = _plane_head(width, num_cells, num_values)
        self.policy: nn.Module = (
            _Cells(width, num_actions - num_cells) if per_cell
            else _plane_head(width, num_cells, num_actions)
        )  # fmt: skip
        self.projection, self.predictor = _projections(width * num_cells, 256)

    def represent(self, observations: Tensor) -> Any:
        return self.representation(observations)

    def advance(self, hidden: Tensor, actions: Tensor) -> Any:
        plane = self.action_planes(actions).unflatten(1, (1, *self.board))
        inner = functional.relu(hidden + self.enter(torch.cat([hidden, plane], dim=1)))
        after = self.dynamics(inner)
        return after, self.reward(after), self.turn(after)

    def predict(self, hidden: Tensor) -> Any:
        return self.policy(hidden), self.value(hidden)


def _plane_head(width: int, num_cells: int, num_outputs: int) -> nn.Sequential:
    few = nn.Sequential(nn.Conv2d(width, HEAD_CHANNELS, 1), nn.ReLU())
    return nn.Sequential(*few, *_head(HEAD_CHANNELS * num_cells, 64, num_outputs))


class _Block(nn.Module):
    """A residual block without normalisation: hidden states are scaled anyway."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1)
        self.second = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, planes: Tensor) -> Tensor:
        return functional.relu(planes + self.second(functional.relu(self.first(planes))))


class _Cells(nn.Module):
    """One logit per cell, and `num_extra` logits from the mean over cells."""

    def __init__(self, width: int, num_extra: int) -> None:
        super().__init__()
        last = nn.Conv2d(width, 1, 1)
        zero_layer(last)
        self.cells = nn.Sequential(nn.Conv2d(width, width, 1), nn.ReLU(), last, nn.Flatten())
        self.extra = zero_layer(nn.Linear(width, num_extra)) if num_extra else None

    def forward(self, planes: Tensor) -> Tensor:
        logits: Tensor = self.cells(planes)
        if self.extra is None:
            return logits
        return torch.cat([logits, self.extra(planes.mean(dim=(2, 3)))], dim=1)


class Function(nn.Module):
    """One of the two functions of a model as a module of its own, for export."""

    def __init__(self, model: nn.Module, name: str) -> None:
        super().__init__()
        self.model, self.name = model, name

    def forward(self, *given: Tensor) -> Any:
        return getattr(self.model, self.name)(*given)


# --- checks of modules ---------------------------------------------------------------------------


def check_model(model: Any, game: Game) -> None:
    """Raise BrokenGame if a module is not a model for a game; both functions are run once."""
    name, n = type(model).__name__, 2
    if not isinstance(model, nn.Module) or not is_model(model):
        raise BrokenGame(
            f"a learned model is a torch module with the functions initial(observations) and "
            f"recurrent(hidden, actions); {name} is not one: start from uctree.learn.mlp_model"
        )
    model = devices.on_cpu(model)
    observations = torch.zeros(n, *(game.observation_shape or ()))
    logits, players = (n, game.num_actions), (n, game.num_players)
    with evaluating(model), torch.inference_mode():
        first = _called(model.initial, "initial", game, observations)
        _check_shapes(f"{name}.initial", first, [None, logits, players], game)
        after = _called(
            model.recurrent, "recurrent", game, first[0], torch.zeros(n, dtype=torch.int64)
        )
        wanted: list[Any] = [tuple(first[0].shape), players, logits, players]
        if len(after) == 5:
            wanted.append((n, game.num_players + 1))
        _check_shapes(f"{name}.recurrent", after, wanted, game)


def _called(function: Any, name: str, game: Game, *given: Tensor) -> Any:
    try:
        return function(*given)
    except (RuntimeError, TypeError, ValueError) as error:
        raise BrokenGame(
            f"{name} of the model failed for {game.name}, with inputs of shapes "
            f"{[list(each.shape) for each in given]}: {error}"
        ) from error


def _check_shapes(name: str, found: Any, wanted: list[Any], game: Game) -> None:
    """Raise BrokenGame unless these are finite tensors of the wanted shapes; None fits all."""
    shapes = [tuple(each.shape) if isinstance(each, Tensor) else None for each in found]
    fits = len(shapes) == len(wanted) and all(
        each is not None and (want is None or each == want)
        for each, want in zip(shapes, wanted, strict=True)
    )
    if not fits:
        expected = ["any" if want is None else want for want in wanted]
        raise BrokenGame(
            f"{name} returned shapes {shapes} for 2 observations of {game.name}; expected "
            f"{expected}"
        )
    if not all(bool(torch.isfinite(each).all()) for each in found):
        raise BrokenGame(f"{name} returned numbers that are not finite; check its weights")

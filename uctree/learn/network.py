"""Networks: their architectures, descriptions, losses and checks.

A network is any torch module with

    forward(observations) -> (logits, values)

of float32 tensors [n, *game.observation_shape], [n, num_actions], [n, num_players]. An observation
is that of the player to move. `values[:, 0]` are the returns of that player from here on,
`values[:, 1]` those of the next player, and so on, in the units of the game's rewards.
"""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from uctree import specs
from uctree.errors import BrokenGame, UctreeError
from uctree.game import Game
from uctree.learn import devices
from uctree.learn.options import SMALL_BOARD
from uctree.learn.targets import squash, unsquash

HEAD_CHANNELS = 8  # planes that a head of a tower reads
LARGEST_SIZE, LARGEST_DEPTH = 1_000_000, 1_000  # of a network from a file
LARGEST_ATOM = 300  # the largest atom of a categorical value head: returns of about 58,700


# --- networks from a game ------------------------------------------------------------------------


def mlp(
    game: Game | str,
    *,
    width: int = 128,
    depth: int = 3,
    bounded: bool | None = None,
    seed: int = 0,
) -> Network:
    """An untrained network of `depth` layers of `width` neurons, for small observations.

    Args:
        bounded: whether values stay within the game's payoff_range; None: if it has one. False is
            for games in which the returns from some state on can be outside of it. Unbounded
            values are learned on the scale of `targets.squash`.
        seed: the same seed gives the same weights.
    """
    game = specs.as_game(game)
    return _seeded(seed, description_of(game, "mlp", width, depth, bounded))


def tower(
    game: Game | str, *, width: int = 64, depth: int = 4, bounded: bool | None = None, seed: int = 0
) -> Network:
    """An untrained network of `depth` residual blocks of `width` planes; arguments as in `mlp`."""
    game = specs.as_game(game)
    if len(game.observation_shape or ()) != 3:
        raise BrokenGame(
            f"a tower needs planes, [channels, rows, cols]; {game.name} has "
            f"observation_shape={game.observation_shape}: use mlp(game)"
        )
    return _seeded(seed, description_of(game, "tower", width, depth, bounded))


def default_network(
    game: Game | str, *, width: int | None = None, depth: int | None = None, seed: int = 0
) -> Network:
    """An untrained network: a tower for planes of more than 16 cells, otherwise an mlp."""
    game = specs.as_game(game)
    shape = game.observation_shape or ()
    make = tower if len(shape) == 3 and math.prod(shape[1:]) > SMALL_BOARD else mlp
    sizes: dict[str, Any] = {"width": width, "depth": depth}
    return make(game, seed=seed, **{k: v for k, v in sizes.items() if v is not None})


def description_of(
    game: Game, kind: str, width: int, depth: int, bounded: bool | None
) -> dict[str, Any]:
    """The description of a network for a game."""
    if game.rules.observe is None or game.is_continuous:
        raise BrokenGame(
            f"a network needs observe= and numbered actions; {game.name} has "
            + ("actions that are vectors" if game.is_continuous else "no observe= function")
        )
    if game.payoff_range is None and bounded:
        raise BrokenGame(f"bounded=True needs a payoff_range; {game.name} has none")
    known = game.payoff_range if bounded is not False else None
    return {
        "kind": kind,
        "width": width,
        "depth": depth,
        "observation_shape": list(game.observation_shape or ()),
        "num_actions": game.num_actions,
        "num_players": game.num_players,
        # The first value belongs to another player in every state, so all have one range.
        "value_range": None if known is None else [float(known.min()), float(known.max())],
        "per_cell": kind.startswith("tower") and _actions_are_cells(game),
    }


def _actions_are_cells(game: Game) -> bool:
    """Whether action i is cell i of the board, by its symmetries; more actions may follow."""
    if game.symmetries is None or len(game.symmetries[0]) == 1:
        return False
    actions, cells = game.symmetries
    num_cells = math.prod((game.observation_shape or ())[1:])
    return cells.shape[1] == num_cells and np.array_equal(actions[:, :num_cells], cells)


def _seeded(seed: int, description: Mapping[str, Any]) -> Network:
    """The network of a description with the weights of a seed; torch's generator is unchanged."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Network(**description)


def build(description: Mapping[str, Any]) -> Network:
    """The network of a description from `describe`, with the weights of seed 0."""
    _check_description(description)
    return _seeded(0, description)


def _check_description(description: Mapping[str, Any]) -> None:
    """Raise UctreeError for a description of no network, or of one that is too large."""
    if description.get("kind") == "own":
        raise UctreeError(
            f"the network is your custom module {description.get('name')}: pass one of the same "
            "architecture as network="
        )
    try:
        inspect.signature(Network).bind(**description)
    except TypeError as error:
        raise UctreeError(
            f"not the description of a network: {error}; got {str(description)[:500]}"
        ) from None
    if description["kind"] not in ("mlp", "tower"):
        raise UctreeError(
            'not the description of a network, which has kind "mlp" or "tower"; got '
            f"kind={str(description['kind'])[:100]!r}"
        )
    if not are_sizes(**description):
        raise UctreeError(
            f"not the description of a network with sizes from 1 to {LARGEST_SIZE:,} and a depth "
            f"of at most {LARGEST_DEPTH:,}; got {str(description)[:500]}"
        )


def are_sizes(
    *, kind: Any, width: Any, depth: Any, observation_shape: Any, num_actions: Any,
    num_players: Any, value_range: Any, per_cell: Any,
) -> bool:  # fmt: skip
    """Whether these are the arguments of a network that is not too large."""
    dims = (3, 3) if kind.startswith("tower") else (1, 8)
    if not isinstance(observation_shape, list) or not dims[0] <= len(observation_shape) <= dims[1]:
        return False
    sizes = [width, depth, num_actions, num_players, *observation_shape]
    ends = [] if value_range is None else value_range
    return (
        all(type(size) is int and 1 <= size <= LARGEST_SIZE for size in sizes)
        and depth <= LARGEST_DEPTH
        and math.prod(observation_shape) <= LARGEST_SIZE
        and isinstance(ends, list)
        and all(type(end) in (int, float) for end in ends)
        and (value_range is None or len(ends) == 2)
        and type(per_cell) is bool
    )


def describe(network: nn.Module) -> dict[str, Any]:
    """The description of a network for `build`, as JSON; of a custom module only its name."""
    if isinstance(network, Network):
        return dict(network.description)
    return {"kind": "own", "name": f"{type(network).__module__}.{type(network).__qualname__}"}


# --- the network ---------------------------------------------------------------------------------


class Network(nn.Module):
    """A body with heads for the policy and for the values of all players.

    The last layers begin at zero: before training all priors are equal, and every value is the
    middle of the range. `description` has the arguments, as JSON.
    """

    def __init__(
        self, *, kind: str, width: int, depth: int, observation_shape: Sequence[int],
        num_actions: int, num_players: int, value_range: Sequence[float] | None, per_cell: bool,
    ) -> None:  # fmt: skip
        super().__init__()
        if kind not in ("mlp", "tower") or width < 1 or depth < 1:
            raise ValueError(
                'a network has kind "mlp" or "tower", and width and depth of at least 1; '
                f"got kind={kind!r}, width={width}, depth={depth}"
            )
        self.description = {
            "kind": kind, "width": width, "depth": depth,
            "observation_shape": list(observation_shape), "num_actions": num_actions,
            "num_players": num_players, "per_cell": per_cell,
            "value_range": None if value_range is None else list(value_range),
        }  # fmt: skip
        self.value_head: Bounded | Categorical = (
            Categorical(num_players) if value_range is None else Bounded(num_players, value_range)
        )
        num_outputs = self.value_head.num_outputs
        if kind == "mlp":
            self.body = _layers(math.prod(observation_shape), width, depth)
            self.policy: nn.Module = zero_layer(nn.Linear(width, num_actions))
            self.value: nn.Module = zero_layer(nn.Linear(width, num_outputs))
            return
        channels, rows, cols = observation_shape
        num_flat = HEAD_CHANNELS * rows * cols
        self.body = nn.Sequential(
            _convolution(channels, width, 3), nn.ReLU(), *(Block(width) for _ in range(depth))
        )
        self.policy = (
            CellPolicy(width, num_actions - rows * cols) if per_cell
            else nn.Sequential(*_flat(width), zero_layer(nn.Linear(num_flat, num_actions)))
        )  # fmt: skip
        self.value = nn.Sequential(
            *_flat(width), nn.Linear(num_flat, width), nn.ReLU(),
            zero_layer(nn.Linear(width, num_outputs)),
        )  # fmt: skip

    def heads(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """The logits, and the output that `value_head` turns into values or a loss."""
        features = self.body(observations)
        return self.policy(features), self.value(features)

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """The logits of all actions, and the values of all players, the player to move first."""
        logits, output = self.heads(observations)
        return logits, self.value_head.values(output)

    def value_loss(self, output: Tensor, targets: Tensor) -> Tensor:
        """The loss of each sample, [n]; `output` comes from `heads`, `targets` are [n, players]."""
        return self.value_head.loss(output, targets)


def _layers(num_inputs: int, width: int, depth: int) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Flatten()]
    for size in [num_inputs, *[width] * (depth - 1)]:
        layers += [nn.Linear(size, width), nn.ReLU()]
    return nn.Sequential(*layers)


def _convolution(channels: int, width: int, size: int) -> nn.Sequential:
    convolution = nn.Conv2d(channels, width, size, padding=size // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(width))


def _flat(width: int) -> list[nn.Module]:
    """The layers that reduce the body's planes to `HEAD_CHANNELS`, as one vector."""
    return [_convolution(width, HEAD_CHANNELS, 1), nn.ReLU(), nn.Flatten()]


def zero_layer(layer: nn.Linear | nn.Conv2d) -> nn.Module:
    """The layer with all weights zero."""
    nn.init.zeros_(layer.weight)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


class Block(nn.Module):
    """A residual block of two convolutions."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.steps = nn.Sequential(
            _convolution(width, width, 3), nn.ReLU(), _convolution(width, width, 3)
        )

    def forward(self, planes: Tensor) -> Tensor:
        return functional.relu(planes + self.steps(planes))


class CellPolicy(nn.Module):
    """One logit per cell by 1x1 convolutions, and `num_extra` logits from the mean over cells."""

    def __init__(self, width: int, num_extra: int) -> None:
        super().__init__()
        self.cells = nn.Sequential(
            _convolution(width, width, 1), nn.ReLU(), zero_layer(nn.Conv2d(width, 1, 1)),
            nn.Flatten(),
        )  # fmt: skip
        self.extra = zero_layer(nn.Linear(width, num_extra)) if num_extra else None

    def forward(self, planes: Tensor) -> Tensor:
        logits: Tensor = self.cells(planes)
        if self.extra is None:
            return logits
        return torch.cat([logits, self.extra(planes.mean(dim=(2, 3)))], dim=1)


# --- value heads ---------------------------------------------------------------------------------


class Bounded(nn.Module):
    """Values within a range, by tanh; the loss is the squared error in units of half the range."""

    def __init__(self, num_players: int, value_range: Sequence[float]) -> None:
        super().__init__()
        low, high = value_range
        self.num_outputs = num_players
        self.middle, self.reach = (high + low) / 2, (high - low) / 2

    def values(self, output: Tensor) -> Tensor:
        return self.middle + self.reach * torch.tanh(output)

    def loss(self, output: Tensor, targets: Tensor) -> Tensor:
        return squared_error(torch.tanh(output), (targets - self.middle) / self.reach)


class Categorical(nn.Module):
    """Values of any size, as distributions over atoms -300 ... 300 on the scale of `squash`."""

    atoms: Tensor

    def __init__(self, num_players: int) -> None:
        super().__init__()
        atoms = torch.arange(-LARGEST_ATOM, LARGEST_ATOM + 1, dtype=torch.float32)
        self.register_buffer("atoms", atoms, persistent=False)
        self.num_atoms = len(atoms)
        self.num_outputs = num_players * self.num_atoms

    def values(self, output: Tensor) -> Tensor:
        shares = torch.softmax(self._per_player(output), dim=2)
        return unsquash(shares @ self.atoms)

    def loss(self, output: Tensor, targets: Tensor) -> Tensor:
        return two_hot_loss(self._per_player(output), squash(targets) + LARGEST_ATOM).mean(dim=1)

    def _per_player(self, output: Tensor) -> Tensor:
        return output.unflatten(1, (-1, self.num_atoms))


# --- losses --------------------------------------------------------------------------------------


def losses(
    network: Any, observations: Tensor, policies: Tensor, values: Tensor,
    legal: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The policy loss and the value loss of each sample, [n] each, not weighted.

    The value loss of a module without `heads` and `value_loss` is the squared error.

    Args:
        legal: which actions are legal, bool [n, num_actions]. Logits of the others are masked, as
            in a search, so that they are not trained.
    """
    if hasattr(network, "value_loss"):
        logits, output = network.heads(observations)
        value_loss = network.value_loss(output.float(), values)
    else:
        logits, predicted = network(observations)
        value_loss = squared_error(predicted.float(), values)
    if legal is not None:
        logits = logits.masked_fill(~legal, -math.inf)
    return policy_loss(logits.float(), policies), value_loss


def policy_loss(logits: Tensor, policies: Tensor) -> Tensor:
    """The cross entropy of each sample's logits with its policy target.

        -Σ_a π(a) ln softmax(l)(a)                                                     [Eq. 71]

    Terms with π(a) = 0 are 0, even if the logit is minus infinity.

    >>> round(float(policy_loss(torch.zeros(1, 4), torch.tensor([[0.5, 0.5, 0.0, 0.0]]))), 6)
    1.386294
    """
    shares = functional.log_softmax(logits, dim=-1)
    taught = policies > 0
    return -torch.where(taught, policies * torch.where(taught, shares, 0.0), 0.0).sum(dim=-1)


def squared_error(predicted: Tensor, targets: Tensor) -> Tensor:
    """The mean over players of the squared error of each sample, [n]."""
    return (predicted - targets).square().mean(dim=-1)


def two_hot_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """The cross entropy with the two atoms next to a target, weighted by how near they are.

        -(1 - f) ln p_i - f ln p_{i+1},  i = ⌊y⌋, f = y - i                            [Eq. 72]

    `logits` are [..., num_atoms]; y [...] is the target in atoms from the first, clipped to the
    range. The weighted mean of the two atoms is y, so the least loss decodes to the target.

    >>> round(float(two_hot_loss(torch.log(torch.tensor([0.5, 0.25, 0.25])), torch.tensor(0.5))), 6)
    1.039721
    """
    last = logits.shape[-1] - 1
    y = targets.clamp(0, last)
    below = y.floor().clamp(max=last - 1)
    index = below.long().unsqueeze(-1)
    shares = functional.log_softmax(logits, dim=-1)
    f = y - below
    low, high = (shares.gather(-1, at).squeeze(-1) for at in (index, index + 1))
    return -((1 - f) * low + f * high)


# --- checks of modules ---------------------------------------------------------------------------


@contextlib.contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """The network in evaluation mode inside the block: batch norms are not updated."""
    was_training = network.training
    if was_training:
        network.eval()
    try:
        yield
    finally:
        if was_training:
            network.train()


def check_module(network: Any) -> None:
    """Raise TypeError if this is not a torch module."""
    if not isinstance(network, nn.Module):
        raise TypeError(
            "a network is a torch.nn.Module, such as uctree.learn.mlp(game); got a "
            f"{type(network).__name__} (of what train and load return, pass .network())"
        )


def check_network(network: nn.Module, game: Game) -> None:
    """Raise BrokenGame if a module is not a network for a game; it is run once."""
    check_module(network)
    description_of(game, "mlp", 1, 1, None)  # raises if no network can learn the game
    name = type(network).__name__
    observations = torch.zeros(2, *(game.observation_shape or ()))
    expected = f"(logits [n, {game.num_actions}], values [n, {game.num_players}])"
    try:
        module = devices.on_cpu(network)
        with evaluating(module), torch.inference_mode():
            output = module(observations)
    except (RuntimeError, TypeError, ValueError) as error:
        raise BrokenGame(
            f"{name} failed on observations of {game.name}, float32 {list(observations.shape)}; "
            f"expected {expected}: {error}"
        ) from error
    shapes = [(2, game.num_actions), (2, game.num_players)]
    if not isinstance(output, (tuple, list)) or [_shape(part) for part in output] != shapes:
        came = [_shape(part) for part in output] if isinstance(output, (tuple, list)) else output
        raise BrokenGame(
            f"{name} returned {_format_output(came)} for {len(observations)} observations of "
            f"{game.name}; expected {expected}, here {shapes}"
        )
    if not all(bool(torch.isfinite(part).all()) for part in output):
        raise BrokenGame(f"{name} returned numbers that are not finite; check its weights")


def _shape(part: Any) -> Any:
    return tuple(part.shape) if isinstance(part, Tensor) else type(part).__name__


def _format_output(came: Any) -> str:
    return f"shapes {came}" if isinstance(came, list) else f"a {type(came).__name__}"

"""The losses of a learned model that is unrolled for K steps beside an episode."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from uctree.learn.network import policy_loss, squared_error


@dataclass(frozen=True)
class Targets:
    """The tensors of a `sequences.SequenceBatch`, by the same names."""

    names: ClassVar[tuple[str, ...]]

    observations: Tensor
    actions: Tensor
    policies: Tensor
    policy_weights: Tensor
    values: Tensor
    value_weights: Tensor
    rewards: Tensor
    reward_weights: Tensor
    turns: Tensor
    turn_weights: Tensor
    exists: Tensor
    weights: Tensor


Targets.names = tuple(each.name for each in fields(Targets))


@dataclass(frozen=True)
class UnrolledLosses:
    """The losses of each sample, [n] each, summed over the steps [Eq. 75]."""

    value: Tensor
    policy: Tensor
    reward: Tensor
    consistency: Tensor
    turn: Tensor
    root_error: Tensor  # how far the value of the first position is from its target


def unrolled_losses(
    model: Any, batch: Targets, *, with_consistency: bool = True, with_turns: bool = True
) -> UnrolledLosses:
    """The losses of a model over the steps of a batch.

        L = L_0 + (1/K) Σ_{k=1..K} L_k                                                 [Eq. 75]

    L_0 has value and policy; L_k value, policy, the reward of the k-th action, consistency and
    turn. The hidden state that enters a step passes half of its gradient, so that the first
    representation does not follow late steps more than early ones.
    """
    num_steps = batch.actions.shape[1]
    weights, _ = unroll_weights(num_steps)
    parts = _Parts(model)
    hidden = parts.represent(batch.observations[:, 0])
    losses = _empty(hidden, len(batch.actions))
    targets = _projections(parts, batch) if with_consistency and parts.projects else None
    for k in range(num_steps + 1):
        logits, value = parts.predict(hidden)
        if k == 0:
            root_error = parts.value_error(value.detach(), batch.values[:, 0])
        values = parts.value_loss(value, batch.values[:, k]) * batch.value_weights[:, k]
        policies = policy_loss(wide(logits), batch.policies[:, k]) * batch.policy_weights[:, k]
        losses["value"] = losses["value"] + weights[k] * values
        losses["policy"] = losses["policy"] + weights[k] * policies
        if k == num_steps:
            break
        hidden, reward, turn = parts.advance(half_gradient(hidden), batch.actions[:, k])
        rewards = parts.reward_loss(reward, batch.rewards[:, k]) * batch.reward_weights[:, k]
        losses["reward"] = losses["reward"] + weights[k + 1] * rewards
        if with_turns and turn is not None:
            turns = functional.cross_entropy(wide(turn), batch.turns[:, k], reduction="none")
            losses["turn"] = losses["turn"] + weights[k + 1] * turns * batch.turn_weights[:, k]
        if targets is not None:
            predicted = parts.predict_projection(parts.project(hidden))
            distance = consistency_loss(wide(predicted), targets[:, k])
            distance = distance * batch.exists[:, k + 1]
            losses["consistency"] = losses["consistency"] + weights[k + 1] * distance
    return UnrolledLosses(**losses, root_error=root_error)


def wide(tensor: Tensor) -> Tensor:
    """The tensor in at least 32 bits, for losses."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()


def _empty(like: Tensor, count: int) -> dict[str, Tensor]:
    names = ("value", "policy", "reward", "consistency", "turn")
    return {name: torch.zeros(count, device=like.device) for name in names}


def unroll_weights(num_steps: int) -> tuple[list[float], list[float]]:
    """The weight of the loss of each step, and the share of gradient that reaches its start.

    Both are those of [Eq. 75]: 1 and then 1/K, and 2^-k.

    >>> unroll_weights(2)
    ([1.0, 0.5, 0.5], [1.0, 0.5, 0.25])
    """
    share = 1.0 / max(1, num_steps)
    return [1.0] + [share] * num_steps, [0.5**k for k in range(num_steps + 1)]


def half_gradient(hidden: Tensor) -> Tensor:
    """The same hidden state, through which half of the gradient passes."""
    return 0.5 * hidden + 0.5 * hidden.detach()


def consistency_loss(predicted: Tensor, target: Tensor) -> Tensor:
    """How far projections point from those of the true states, [n], between 0 and 4.

        2 - 2 cos(p, t) = |p/|p| - t/|t||²                                             [Eq. 76]

    The target has no gradient: without that, all states could become the same. The cosine with a
    vector of zeros is 0.

    >>> consistency_loss(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 3.0]])).tolist()
    [2.0]
    """
    return 2.0 - 2.0 * functional.cosine_similarity(predicted, target.detach(), dim=-1, eps=1e-30)


def _projections(parts: _Parts, batch: Targets) -> Tensor:
    """The projections of the true states behind each action, without gradient, [n, K, m]."""
    count, num_steps = batch.actions.shape
    with torch.no_grad():
        later = batch.observations[:, 1:].flatten(0, 1)
        return wide(parts.project(parts.represent(later))).unflatten(0, (count, num_steps))


class _Parts:
    """The parts of a model, also of a custom one, which has `initial` and `recurrent` alone."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.is_own = not hasattr(model, "represent")
        self.projects = hasattr(model, "project") and hasattr(model, "predict_projection")
        self._heads: tuple[Tensor, Tensor] | None = None  # of the newest hidden state

    def represent(self, observations: Tensor) -> Tensor:
        if not self.is_own:
            return self.model.represent(observations)
        hidden, *self._heads = self.model.initial(observations)
        return hidden

    def predict(self, hidden: Tensor) -> Any:
        return self._heads if self.is_own else self.model.predict(hidden)

    def advance(self, hidden: Tensor, actions: Tensor) -> Any:
        if not self.is_own:
            return self.model.advance(hidden, actions)
        hidden, reward, logits, values, *turn = self.model.recurrent(hidden, actions)
        self._heads = logits, values
        return hidden, reward, turn[0] if turn else None

    def value_loss(self, output: Tensor, targets: Tensor) -> Tensor:
        loss = squared_error if self.is_own else self.model.value_loss
        return loss(wide(output), targets)

    def value_error(self, output: Tensor, targets: Tensor) -> Tensor:
        """How far the value for the player to move is from its target, [n]."""
        values = output if self.is_own else self.model.value_head.values(wide(output))
        return (values[:, 0] - targets[:, 0]).abs()

    def reward_loss(self, output: Tensor, targets: Tensor) -> Tensor:
        loss = squared_error if self.is_own else self.model.reward_loss
        return loss(wide(output), targets)

    def project(self, hidden: Tensor) -> Tensor:
        return self.model.project(hidden)

    def predict_projection(self, projection: Tensor) -> Tensor:
        return self.model.predict_projection(projection)

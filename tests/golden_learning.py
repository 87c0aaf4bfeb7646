"""The answers of uctree.learn to the test vectors: value targets and losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from uctree.evaluators import to_absolute
from uctree.learn import targets

Input = dict[str, Any]
Answer = dict[str, Any]


def _n_step(given: Input) -> Answer:
    movers = given["movers"]
    seen = zip(given["root_values_relative"], movers, strict=True)
    returns = targets.n_step_returns(
        given["reward_vectors_absolute"], discount=given["discount"],
        values=[to_absolute(np.array(value), mover) for value, mover in seen],
        num_steps=given["td_steps"], final_value=given["final_value_absolute"],
    )  # fmt: skip
    return {"target_relative": targets.to_frames(returns, movers)[given["pos"]]}


def _policy_loss(given: Input) -> Answer:
    network, torch = _network()
    logits, policy = (
        torch.tensor([given[key]], dtype=torch.float64) for key in ("logits", "target")
    )
    return {"loss": network.policy_loss(logits, policy).item()}


def _squared_error(given: Input) -> Answer:
    network, torch = _network()
    predicted, target = (
        torch.tensor([given[key]], dtype=torch.float64) for key in ("predicted", "target")
    )
    mean = network.squared_error(predicted, target).item()
    return {"mean": mean, "sum": mean * len(given["target"])}


def _consistency(given: Input) -> Answer:
    _, torch = _network()
    from uctree.learn.unroll import consistency_loss

    predicted, target = (
        torch.tensor([given[key]], dtype=torch.float64, requires_grad=True)
        for key in ("predicted", "target")
    )
    loss = consistency_loss(predicted, target)
    loss.sum().backward()
    assert target.grad is None
    gradient = predicted.grad[0].tolist() if predicted.any() else None  # undefined at 0
    return {"loss": loss.item(), "grad_predicted": gradient}


def _unroll(given: Input) -> Answer:
    _network()
    from uctree.learn.unroll import unroll_weights

    weights, shares = unroll_weights(given["K"])
    return {"loss_weight": weights, "state_gradient_factor": shares}


def _network() -> tuple[Any, Any]:
    torch = pytest.importorskip("torch", reason="the learn extra is not installed")
    from uctree.learn import network

    return network, torch


FAMILIES: dict[str, Callable[[Input], Answer]] = {
    "nstep.": _n_step,
    "policy_ce.": _policy_loss,
    "value_mse": _squared_error,
    "consistency.": _consistency,
    "unroll.": _unroll,
}

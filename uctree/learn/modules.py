"""Networks of AlphaZero and models of MuZero alike: made, rebuilt and checked by what they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from uctree.game import Game
from uctree.learn import model, network
from uctree.learn.options import Options


def new_module(game: Game, options: Options) -> nn.Module:
    """The untrained module of a new run."""
    width, depth, seed = options.network_width, options.network_depth, options.seed
    if options.algorithm == "muzero":
        return model.default_model(game, kind=options.network, width=width, depth=depth, seed=seed)
    sizes = {"width": width, "depth": depth}
    make = getattr(network, options.network or "default_network")
    made: nn.Module = make(game, seed=seed, **{k: v for k, v in sizes.items() if v is not None})
    return made


def build(description: Mapping[str, Any]) -> nn.Module:
    """The network or model of a description from `describe`, with the weights of seed 0."""
    make = model.build if description.get("kind") in model.KINDS else network.build
    return make(description)


def outline(description: Mapping[str, Any]) -> nn.Module:
    """The module of a description without memory for its weights: names and shapes alone."""
    with torch.device("meta"):
        return build(description)


def describe(module: nn.Module) -> dict[str, Any]:
    """The description of a module for `build`, as JSON; of a custom one only its name."""
    if isinstance(module, model.LearnedModel):
        return dict(module.description)
    return network.describe(module)


def check_module(module: nn.Module, game: Game, algorithm: str) -> None:
    """Raise BrokenGame if a module cannot be trained for a game by this algorithm."""
    check = model.check_model if algorithm == "muzero" else network.check_network
    check(module, game)

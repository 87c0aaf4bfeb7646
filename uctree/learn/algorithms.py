"""What differs between AlphaZero and MuZero in training: batches, losses, and what is exported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from torch import Tensor, nn

from uctree.learn.devices import Device
from uctree.learn.extras import load_module
from uctree.learn.replay import Window

if TYPE_CHECKING:
    from uctree.learn.run import Run


@dataclass(frozen=True)
class Loss:
    """The loss of a batch, and its parts by name, each without its weight."""

    total: Tensor
    parts: dict[str, Tensor]
    errors: np.ndarray | None = None  # [n], of the values, for priorities


class Algorithm(Protocol):
    """How a network is taught, and how it gets into self-play."""

    def read(self, end: int) -> None:
        """Follow the replay up to a position."""

    def draw(self, window: Window, rng: np.random.Generator) -> Any:
        """A batch."""

    def loss(self, network: nn.Module, batch: Any, device: Device) -> Loss:
        """The loss of a batch."""

    def after_step(self, batch: Any, loss: Loss) -> None:
        """Called after the optimiser's step on a batch."""

    def take_reanalysed(self, end: int) -> None:
        """Teach what was searched again, up to a cursor."""

    def export(self, network: nn.Module) -> Any:
        """A network in full precision for workers."""

    def state(self) -> dict[str, np.ndarray]:
        """Arrays for a checkpoint."""

    def load(self, state: Mapping[str, np.ndarray], end: int) -> None:
        """Continue with the arrays of a checkpoint, which was made at a position."""


def make_algorithm(run: Run) -> Algorithm:
    """The algorithm of a run."""
    if run.options.algorithm == "muzero":
        made: Algorithm = load_module("uctree.learn.muzero").MuZero(run)
    else:
        made = load_module("uctree.learn.alphazero").AlphaZero(run)
    return made

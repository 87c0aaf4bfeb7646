"""AlphaZero: positions are learned one by one, and searched by the game's rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from uctree.learn import devices, inference
from uctree.learn.algorithms import Loss
from uctree.learn.devices import Device
from uctree.learn.network import losses
from uctree.learn.replay import Batch, Window
from uctree.learn.run import Run


class AlphaZero:
    """What the training of AlphaZero learns from, as `algorithms.Algorithm`."""

    def __init__(self, run: Run) -> None:
        self.run, self.options = run, run.options

    def read(self, end: int) -> None:
        pass

    def draw(self, window: Window, rng: np.random.Generator) -> Batch:
        options = self.options
        return window.draw(
            rng, options.batch_size, value_mix=options.value_mix, symmetries=options.symmetries
        )

    def loss(self, network: nn.Module, batch: Batch, device: Device) -> Loss:
        options = self.options
        observations, policies, values, legal, weights = device.put_all(
            [batch.observations, batch.policy, batch.values, batch.legal, batch.policy_weights]
        )
        if observations.dim() == 4:  # convolutions are a fifth faster with channels last
            observations = observations.contiguous(memory_format=torch.channels_last)
        with device.autocast(options.precision):
            policy, value = losses(network, observations, policies, values, legal)
        policy_loss = (policy * weights).sum() / weights.sum().clamp(min=1.0)
        value_loss = value.mean()
        total = policy_loss + options.value_weight * value_loss
        return Loss(total, {"policy": policy_loss, "value": value_loss})

    def after_step(self, batch: Batch, loss: Loss) -> None:
        pass

    def take_reanalysed(self, end: int) -> None:
        pass

    def export(self, network: nn.Module) -> Any:
        if devices.inference(self.options) == "torch":
            return devices.on_cpu(network)  # workers move it where they compute
        return inference.onnx_bytes(network, self.run.game)

    def state(self) -> dict[str, np.ndarray]:
        return {}

    def load(self, state: Mapping[str, np.ndarray], end: int) -> None:
        pass

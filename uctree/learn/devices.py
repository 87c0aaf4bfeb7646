"""Devices: where learning and searches with torch compute, and how arrays get there and back."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from uctree.errors import UctreeError


class Device:
    """A processor or a GPU. Arrays go to a GPU through pinned memory, while it computes.

    >>> Device("cpu").get(Device("cpu").put(np.array([1.0, 2.0]))).tolist()
    [1.0, 2.0]
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.torch = torch.device(name)

    @property
    def is_cpu(self) -> bool:
        return self.torch.type == "cpu"

    def put(self, array: np.ndarray) -> Tensor:
        """The array as a tensor on the device; on a processor without a copy."""
        tensor = torch.from_numpy(array)
        if self.is_cpu:
            return tensor
        if self.torch.type == "cuda":
            tensor = tensor.pin_memory()
        return self.move(tensor)

    def move(self, tensor: Tensor) -> Tensor:
        """A tensor on the device; the copy does not wait."""
        return tensor.to(self.torch, non_blocking=True)

    def get(self, tensor: Tensor) -> np.ndarray:
        """A tensor of the device as an array, in 32 bits if it has fewer."""
        tensor = tensor.detach()
        if tensor.dtype in (torch.bfloat16, torch.float16):
            tensor = tensor.float()
        array: np.ndarray = tensor.cpu().numpy()
        return array

    def place(self, module: nn.Module) -> nn.Module:
        """The module, moved to the device."""
        return module.to(self.torch)

    def autocast(self, precision: str) -> Any:
        """A block in which matrix products have this precision: "float32" or "bfloat16"."""
        return torch.autocast(self.torch.type, torch.bfloat16, enabled=precision == "bfloat16")


def of(module: nn.Module) -> Device:
    """The device of a module's weights."""
    weights = next(iter(module.parameters()), None)
    return Device("cpu" if weights is None else str(weights.device))


def on_cpu(module: nn.Module) -> nn.Module:
    """The module, or a copy on the processor if it is elsewhere."""
    return module if of(module).is_cpu else copy.deepcopy(module).cpu()


def choose(name: str) -> Device:
    """The device of the option `device`; UctreeError if this machine does not have it."""
    possible = available()
    if name == "auto":
        return Device(possible[0])
    if name not in possible:
        raise UctreeError(
            f"device={name!r}: torch finds {', '.join(possible)} on this machine; choose one of "
            'them, or "auto"'
        )
    return Device(name)


def available() -> list[str]:
    """The devices of this machine, the fastest first."""
    found = ["cuda"] * torch.cuda.is_available()
    found += ["mps"] * torch.backends.mps.is_available()
    return [*found, "cpu"]

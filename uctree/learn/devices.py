"""Devices: where learning and searches with torch compute, and how arrays get there and back."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from uctree.errors import UctreeError
from uctree.learn.options import Options

# Bytes at whose multiples arrays begin. The last digits of small products depend on where their
# factors are in memory, and a run that is resumed must get the same ones.
ALIGNED = 64


class Device:
    """A processor or a GPU. The arrays of a batch cross in one copy, and so do its results.

    >>> device = Device("cpu")
    >>> [each.tolist() for each in device.get_all(device.put_all([np.array([1.0, 2.0])]))]
    [[1.0, 2.0]]
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.torch = torch.device(name)
        self._staged = torch.empty(0, dtype=torch.uint8)  # bytes on their way, used again
        self._copied: Any = None  # the event after the copy out of them

    @property
    def is_cpu(self) -> bool:
        return self.torch.type == "cpu"

    def put(self, array: np.ndarray) -> Tensor:
        """The array as a tensor on the device; on a processor without a copy if it is aligned."""
        return self.put_all([array])[0]

    def put_all(self, arrays: Sequence[np.ndarray]) -> list[Tensor]:
        """The arrays as tensors on the device, by one copy; on a processor as `put` does."""
        if self.is_cpu:
            return [_aligned(torch.from_numpy(array)) for array in arrays]
        ends = np.cumsum([-(-array.nbytes // ALIGNED) * ALIGNED for array in arrays]).tolist()
        begins = [0, *ends[:-1]]
        staged = self._staging(ends[-1])
        place = staged.numpy()
        for array, begin in zip(arrays, begins, strict=True):
            plain = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            place[begin : begin + array.nbytes] = plain
        moved = self.move(staged)
        return [
            moved[begin : begin + array.nbytes].view(_torch_dtype(array)).view(array.shape)
            for array, begin in zip(arrays, begins, strict=True)
        ]

    def _staging(self, num_bytes: int) -> Tensor:
        """Bytes for a copy to the device, pinned if it is a GPU that copies by itself."""
        if self._copied is not None:
            self._copied.synchronize()  # what was written last is on the device
        if len(self._staged) < num_bytes:
            is_pinned = self.torch.type == "cuda"
            self._staged = torch.empty(2 * num_bytes, dtype=torch.uint8, pin_memory=is_pinned)
        return self._staged[:num_bytes]

    def move(self, staged: Tensor) -> Tensor:
        """A copy of bytes on the device; out of pinned memory the copy does not wait."""
        moved = staged.to(self.torch, non_blocking=staged.is_pinned(), copy=True)
        if self.torch.type == "cuda":
            self._copied = torch.cuda.Event()
            self._copied.record()
        return moved

    def get(self, tensor: Tensor) -> np.ndarray:
        """A tensor of the device as an array, in 32 bits if it has fewer."""
        array: np.ndarray = _wide(tensor.detach()).cpu().numpy()
        return array

    def get_all(self, tensors: Sequence[Tensor]) -> list[np.ndarray]:
        """Tensors of 32 bits or fewer as arrays, by one copy."""
        if self.is_cpu:
            return [self.get(each) for each in tensors]
        joined = self.get(torch.cat([_wide(each).reshape(-1) for each in tensors]))
        parts = np.split(joined, np.cumsum([each.numel() for each in tensors])[:-1])
        return [part.reshape(each.shape) for part, each in zip(parts, tensors, strict=True)]

    def place(self, module: nn.Module) -> nn.Module:
        """The module, moved to the device."""
        return module.to(self.torch)

    def autocast(self, precision: str) -> Any:
        """A block in which matrix products have this precision: "float32" or "bfloat16"."""
        if precision == "float32":
            return contextlib.nullcontext()
        return torch.autocast(self.torch.type, torch.bfloat16)


def _aligned(tensor: Tensor) -> Tensor:
    """The tensor, or a copy that is aligned."""
    return tensor if tensor.data_ptr() % ALIGNED == 0 else tensor.clone()


def _torch_dtype(array: np.ndarray) -> torch.dtype:
    return torch.from_numpy(np.empty(0, array.dtype)).dtype


def _wide(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor


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


def inference(options: Options) -> str:
    """What computes the network in searches; if the option is None, torch on a GPU, else ONNX."""
    return options.inference or ("onnx" if choose(options.device).is_cpu else "torch")


def available() -> list[str]:
    """The devices of this machine, the fastest first."""
    found = ["cuda"] * torch.cuda.is_available()
    found += ["mps"] * torch.backends.mps.is_available()
    return [*found, "cpu"]

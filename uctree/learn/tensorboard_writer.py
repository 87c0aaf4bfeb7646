"""Metrics for TensorBoard, in addition to metrics.jsonl, which stays the record of a run."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


class TensorBoardWriter:
    """Writes event files that `tensorboard --logdir FOLDER` shows."""

    def __init__(self, folder: Path) -> None:
        try:
            importlib.import_module("tensorboard")
            module: Any = importlib.import_module("torch.utils.tensorboard")
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"tensorboard=True needs {error.name}, which is not installed: "
                "pip install 'uctree[learn,tensorboard]'",
                name=error.name,
            ) from error
        self.writer = module.SummaryWriter(str(folder))

    def write(self, row: Mapping[str, Any]) -> None:
        """Add the numbers of a line of metrics, each under its name, as `ladder/exact/search`."""
        if "iteration" not in row:
            return
        for name, number in flat(row):
            self.writer.add_scalar(f"{row['kind']}/{name}", number, row["iteration"])
        self.writer.flush()

    def close(self) -> None:
        """Write what is still buffered, and close the files."""
        self.writer.close()


def flat(numbers: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """The numbers of a line of metrics by name, without lists, text and times.

    >>> list(flat({"loss": 0.5, "games": {"random": {"score": 1, "points": [[2, 0]]}}, "kind": ""}))
    [('loss', 0.5), ('games/random/score', 1.0)]
    """
    for name, value in numbers.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}/")
        elif isinstance(value, (int, float)) and name not in ("iteration", "time"):
            yield f"{prefix}{name}", float(value)

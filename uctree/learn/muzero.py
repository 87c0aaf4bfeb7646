"""MuZero: a model of the world is learned from sequences, and searched instead of the rules."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from torch import Tensor, nn

from uctree.errors import UctreeError
from uctree.learn import devices
from uctree.learn.algorithms import Loss
from uctree.learn.devices import Device
from uctree.learn.model_inference import ModelExport, export_model
from uctree.learn.replay import Window
from uctree.learn.run import Run
from uctree.learn.sequences import Columns, Reanalysed, SequenceBatch, draw_sequences
from uctree.learn.unroll import Targets, unrolled_losses


class MuZero:
    """What the training of MuZero learns from, as `algorithms.Algorithm`."""

    def __init__(self, run: Run) -> None:
        self.run, self.options = run, run.options
        self.reanalysed = Reanalysed(run.game)
        self._columns: Columns | None = None
        self._rotated_before = True  # also in episodes that were dropped
        self.reanalysed_end = 0  # positions that were searched again and are taught

    @property
    def columns(self) -> Columns:
        if self._columns is None:
            self._columns = Columns(self.run.replay, self.run.game.discount)
        return self._columns

    def read(self, end: int) -> None:
        self.columns.extend(end, self.options.value_plies)
        assert self.options.replay_window is not None
        self.columns.forget(end - self.options.replay_window)
        self.reanalysed.forget(end - self.options.replay_window)

    @property
    def rotates(self) -> bool:
        """Whether players moved in turn in all episodes that were read."""
        return self._rotated_before and self.columns.rotates

    def take_reanalysed(self, end: int) -> None:
        """Teach the policies and values of searches that were made again, up to a cursor."""
        store, columns = self.run.reanalysis, self.columns
        window = self.run.replay.window(columns.end - columns.base, end=columns.end)
        for entry in store.entries_between(self.reanalysed_end, end):
            found = store.intact_positions(entry)
            if found is not None:
                self.reanalysed.note(found, columns, window)
        self.reanalysed_end = end

    def draw(self, window: Window, rng: np.random.Generator) -> SequenceBatch:
        options = self.options
        return draw_sequences(
            window, self.columns, rng, options.batch_size, unroll_steps=options.unroll_steps,
            num_steps=options.value_plies, value_mix=options.value_mix,
            symmetries=options.symmetries, exponent=options.priority_exponent,
            correction=options.priority_correction, newest=self.reanalysed,
        )  # fmt: skip

    def loss(self, network: nn.Module, batch: SequenceBatch, device: Device) -> Loss:
        options = self.options
        targets = Targets(*device.put_all([getattr(batch, name) for name in Targets.names]))
        teaches_turns = options.learned_ends or not self.rotates
        with device.autocast(options.precision):
            found = unrolled_losses(
                network, targets, with_consistency=options.consistency_weight > 0,
                with_turns=teaches_turns,
            )  # fmt: skip
        weights = targets.weights
        parts = {
            "policy": found.policy, "value": found.value, "reward": found.reward,
            "consistency": found.consistency, "turn": found.turn,
        }  # fmt: skip
        factors = {
            "policy": 1.0, "value": options.value_weight, "reward": options.reward_weight,
            "consistency": options.consistency_weight, "turn": 1.0,
        }  # fmt: skip
        total = _weighted(parts, factors, weights)
        shown = {name: part.detach().mean() for name, part in parts.items()}
        errors = None
        if options.priority_exponent > 0:
            errors = device.get(found.root_error)
        return Loss(total, shown, errors)

    def after_step(self, batch: SequenceBatch, loss: Loss) -> None:
        if loss.errors is not None:
            self.columns["priority"][batch.numbers - self.columns.base] = loss.errors

    def export(self, network: nn.Module) -> ModelExport:
        return export_model(
            network, self.run.game, backend=devices.inference(self.options), rotates=self.rotates,
            ends=self.options.learned_ends,
        )  # fmt: skip

    def state(self) -> dict[str, np.ndarray]:
        columns = self.columns
        found = {"cursors": np.array([columns.end, self.reanalysed_end, int(self.rotates)])}
        if self.options.priority_exponent > 0:
            window = self.options.replay_window or 0
            found["priority"] = columns["priority"][-window:].copy()
        return found

    def load(self, state: Mapping[str, np.ndarray], end: int) -> None:
        self.read(end)
        cursors = state.get("cursors")
        if cursors is None or cursors.shape != (3,) or cursors.dtype != np.int64:
            raise UctreeError("the checkpoint has no state of a muzero run; it is of another run")
        self._rotated_before = bool(cursors[2])
        self.take_reanalysed(int(cursors[1]))
        saved = state.get("priority")
        if saved is not None:
            if saved.ndim != 1 or not (np.isfinite(saved) & (saved >= 0)).all():
                raise UctreeError(
                    "the checkpoint has priorities that are not numbers of at least 0"
                )
            column = self.columns["priority"]
            count = min(len(saved), len(column))
            if count:
                column[-count:] = saved[-count:]


def _weighted(parts: Mapping[str, Tensor], factors: Mapping[str, float], weights: Tensor) -> Tensor:
    """The mean over samples of the weighted sum of their losses."""
    total = sum(factors[name] * part for name, part in parts.items())
    assert isinstance(total, Tensor)
    return (total * weights).mean()

"""A small training for tests of checkpoints and runs."""

from __future__ import annotations

import numpy as np
import pytest

from tests.learn.episodes import episode
from uctree.learn.run import new_network

torch = pytest.importorskip("torch", reason="the extra learn is not installed")


class Learner:
    """A small training on a replay, with everything that a checkpoint stores."""

    def __init__(self, run):
        torch.set_num_threads(1)
        self.run = run
        self.network = new_network(run.game, run.options)
        self.averaged = new_network(run.game, run.options)
        self.optimizer = torch.optim.AdamW(self.network.parameters(), lr=0.01)
        self.rng = np.random.default_rng(5)
        self.noise = torch.Generator().manual_seed(6)
        self.iteration = 0

    @property
    def parts(self):
        return {
            "network": self.network,
            "averaged": self.averaged,
            "optimizer": self.optimizer,
            "generators": {"batches": self.rng, "noise": self.noise},
        }

    def iterate(self):
        replay, self.iteration = self.run.replay, self.iteration + 1
        for number in (2 * self.iteration, 2 * self.iteration + 1):
            if number not in replay:
                replay.append(number, episode(self.run.game, number))
        end = replay.end_of(2 * self.iteration + 1)
        window = replay.window(40, end=end)
        for _ in range(3):
            batch = window.draw(self.rng, 16, value_mix=0.5)
            observations = torch.from_numpy(batch.observations)
            observations = observations + 0.1 * torch.randn(
                observations.shape, generator=self.noise
            )
            logits, values = self.network(observations)
            loss = (values - torch.from_numpy(batch.values)).square().mean()
            loss = loss - (torch.from_numpy(batch.policy) * logits.log_softmax(1)).sum(1).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            with torch.no_grad():
                for mean, new in zip(
                    self.averaged.parameters(), self.network.parameters(), strict=True
                ):
                    mean.lerp_(new, 0.1)
        self.run.log("iteration", iteration=self.iteration, loss=loss.item())
        return self.run.save(
            self.iteration, **self.parts, counters={"steps": 3 * self.iteration}, replay_end=end
        )

    def resume(self):
        checkpoint = self.run.resume(**self.parts)
        self.iteration = 0 if checkpoint is None else checkpoint.iteration
        return checkpoint

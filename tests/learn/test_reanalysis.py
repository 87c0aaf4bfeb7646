"""Positions that are searched again: which, and what is stored of them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the learn extra is not installed")

from tests.learn.test_sequences import GAME, finished  # noqa: E402
from uctree.learn import model  # noqa: E402
from uctree.learn.model_inference import export_model  # noqa: E402
from uctree.learn.options import make_options  # noqa: E402
from uctree.learn.reanalysis import CHUNKS_PER_ITERATION, Reanalysis, choose_chunks  # noqa: E402
from uctree.learn.replay import Replay  # noqa: E402
from uctree.learn.sequences import sequence_schema  # noqa: E402

OPTIONS = make_options(GAME, algorithm="muzero", num_simulations=8, num_trees=2, inference="torch")


@pytest.fixture
def chunks(tmp_path):
    with Replay(tmp_path, GAME, schema=sequence_schema(GAME)) as replay:
        replay.append(0, finished())
        yield choose_chunks(replay.window(100), OPTIONS, 3, 50)


def test_every_position_is_chosen_at_most_once_in_chunks_of_the_iteration(chunks):
    numbers = np.concatenate([each for each, _ in chunks.values()])
    assert numbers.tolist() == [0, 1, 2, 3]
    assert list(chunks) == [3 * CHUNKS_PER_ITERATION, 3 * CHUNKS_PER_ITERATION + 1]
    for positions, states in chunks.values():
        assert len(positions) == len(states) <= 2


def test_a_search_made_again_gives_policies_of_legal_actions(chunks):
    torch.set_num_threads(1)
    module = model.mlp_model(GAME, width=8, latent=8)
    network = export_model(module, GAME, backend="torch", rotates=True)
    job = Reanalysis(GAME, OPTIONS, network, 1, chunks)
    found = list(job.play(list(chunks)))
    again = list(job.play(list(chunks)))
    assert [each.number for each in found] == list(chunks)
    for each, repeated in zip(found, again, strict=True):
        assert each.simulations == 8 * len(each.positions)
        np.testing.assert_allclose(each.positions["policy_shares"].sum(axis=1), 1, atol=1e-5)
        assert each.positions.tobytes() == repeated.positions.tobytes()
    states = dict(zip(*(np.concatenate(part) for part in zip(*chunks.values(), strict=True)),
                      strict=True))  # fmt: skip
    for position in np.concatenate([each.positions for each in found]):
        actions = position["policy_actions"]
        assert set(actions[actions >= 0]) <= set(GAME.legal(GAME.copy(states[position["number"]])))


def test_a_job_can_be_given_to_a_worker_with_its_game(chunks):
    job = Reanalysis(GAME, OPTIONS, None, 1, chunks)
    assert dataclasses.replace(job, game=None).chunks is chunks

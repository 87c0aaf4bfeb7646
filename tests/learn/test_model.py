"""Learned models: shapes, descriptions, checks, and their two functions as ONNX."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the learn extra is not installed")

from tests.learn.models import THREE, Own, observations  # noqa: E402
from uctree import games, learn  # noqa: E402
from uctree.errors import BrokenGame  # noqa: E402
from uctree.learn import model  # noqa: E402
from uctree.learn.environments import environment  # noqa: E402

torch.set_num_threads(1)


@pytest.mark.parametrize("game", [games.tic_tac_toe(), games.connect_four(), games.go(5), THREE])
def test_default_models_fit_every_game(game):
    made = model.default_model(game, width=8)
    model.check_model(made, game)
    hidden, logits, values = made.initial(torch.from_numpy(observations(game)))
    assert not logits.any()  # before training all priors are equal
    middle = game.payoff_range.mean()
    assert np.allclose(values.detach().numpy(), middle, atol=1e-3)
    after, rewards, *_ = made.recurrent(hidden, torch.tensor([0, 1, 2]))
    assert after.shape == hidden.shape
    assert rewards.shape == (3, game.num_players)
    assert 0 <= float(after.detach().min()) <= float(after.detach().max()) <= 1


def test_observations_of_environments_are_standardised_by_what_was_learned_from():
    pytest.importorskip("gymnasium", reason="the gym extra is not installed")
    game = environment("gymnasium:CartPole-v1")
    made = model.build(model.mlp_model(game, width=8, latent=4).description)
    rng = np.random.default_rng(0)
    seen = rng.normal([0.0, 5.0, -1e4, 1.0], [1.0, 0.01, 300.0, 0.0], (2000, 4)).astype(np.float32)
    for part in np.split(seen, 20):
        made.represent(torch.from_numpy(part))
    made.eval()
    found = made.observed(torch.from_numpy(seen)).numpy()
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=0.1)
    np.testing.assert_allclose(found.std(axis=0), [1, 1, 1, 0], atol=0.1)
    before = made.observed.mean.clone()
    made.represent(torch.from_numpy(seen))  # in a search nothing is changed
    assert torch.equal(made.observed.mean, before)
    planes = model.Standardised((2, 3, 3))
    images = torch.from_numpy(rng.integers(0, 256, (50, 2, 3, 3)).astype(np.float32))
    np.testing.assert_allclose(planes(images).std(), 1.0, atol=0.05)
    assert not model.default_model(THREE, width=8).description["standardised"]


def test_an_action_on_a_cell_changes_its_plane():
    made = model.tower_model(THREE, width=8, depth=1)
    planes = made.parts.action_planes.weight[:25].detach().numpy()
    assert np.array_equal(planes, np.eye(25))
    columns = model.tower_model(games.connect_four(), width=8, depth=1)  # not cells: learned
    assert columns.parts.action_planes.weight.abs().sum() > 0


def test_a_model_of_ones_own_is_checked():
    model.check_model(Own(), THREE)
    with pytest.raises(BrokenGame, match=r"Own.recurrent returned shapes .*expected"):
        model.check_model(Own(values=2), THREE)
    with pytest.raises(BrokenGame, match=r"recurrent of the model failed .*: no"):
        model.check_model(Own(fails=True), THREE)
    with pytest.raises(BrokenGame, match="with the functions initial"):
        model.check_model(torch.nn.Linear(2, 2), THREE)


def test_a_model_is_refused_as_a_network():
    with pytest.raises(TypeError, match=r"learn.train\(algorithm=.muzero.\)|a network"):
        learn.evaluator("not a module")

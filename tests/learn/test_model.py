"""Learned models: shapes, descriptions, checks, and their two functions as ONNX."""

from __future__ import annotations

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the learn extra is not installed")

from uctree import games, learn  # noqa: E402
from uctree.errors import BrokenGame, UctreeError  # noqa: E402
from uctree.learn import model, model_inference, modules  # noqa: E402

torch.set_num_threads(1)

THREE = games.n_in_a_row(rows=5, cols=5, length=4, num_players=3)


def observations(game, n=3):
    return np.random.default_rng(0).random((n, *game.observation_shape), np.float32)


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


def test_an_action_on_a_cell_changes_its_plane():
    made = model.tower_model(THREE, width=8, depth=1)
    planes = made.parts.action_planes.weight[:25].detach().numpy()
    assert np.array_equal(planes, np.eye(25))
    columns = model.tower_model(games.connect_four(), width=8, depth=1)  # not cells: learned
    assert columns.parts.action_planes.weight.abs().sum() > 0


def test_a_model_is_rebuilt_from_its_description():
    made = model.mlp_model(THREE, width=16, latent=8, seed=3)
    description = json.loads(json.dumps(modules.describe(made)))
    again = modules.build(description)
    again.load_state_dict(made.state_dict())
    given = torch.from_numpy(observations(THREE))
    for one, other in zip(made.initial(given), again.initial(given), strict=True):
        assert torch.equal(one, other)
    outline = modules.outline(description)
    assert next(outline.parameters()).device.type == "meta"


@pytest.mark.parametrize("change", [{"depth": 10**9}, {"width": 0}, {"colour": 1}, {"kind": "x"}])
def test_a_wrong_description_is_refused(change):
    description = modules.describe(model.mlp_model(THREE, width=8, latent=8))
    with pytest.raises(UctreeError, match="not the description"):
        modules.build(description | change)


class Own(torch.nn.Module):
    """The smallest model of three players; it may return something wrong."""

    def __init__(self, values=3, fails=False):
        super().__init__()
        self.layer, self.values, self.fails = torch.nn.Linear(75, 4), values, fails

    def initial(self, observations):
        hidden = self.layer(observations.flatten(1))
        return hidden, hidden.new_zeros(len(hidden), 25), hidden.new_zeros(len(hidden), 3)

    def recurrent(self, hidden, actions):
        if self.fails:
            raise RuntimeError("no")
        n = len(hidden)
        rewards, values = hidden.new_zeros(n, 3), hidden.new_zeros(n, self.values)
        return hidden, rewards, hidden.new_zeros(n, 25), values


def test_a_model_of_ones_own_is_checked():
    model.check_model(Own(), THREE)
    with pytest.raises(BrokenGame, match=r"Own.recurrent returned shapes .*expected"):
        model.check_model(Own(values=2), THREE)
    with pytest.raises(BrokenGame, match=r"recurrent of the model failed .*: no"):
        model.check_model(Own(fails=True), THREE)
    with pytest.raises(BrokenGame, match="with the functions initial"):
        model.check_model(torch.nn.Linear(2, 2), THREE)


def test_a_model_without_turns_cannot_learn_other_orders():
    with pytest.raises(UctreeError, match="does not say who moves next"):
        model_inference.export_model(Own(), THREE, backend="torch", rotates=False)


@pytest.mark.parametrize("made", [model.mlp_model, model.tower_model])
def test_onnx_gives_what_torch_gives(made, tmp_path):
    module = made(THREE, width=8)
    with torch.no_grad():
        for each in module.parameters():
            each.add_(0.1 * torch.randn(each.shape, generator=torch.Generator().manual_seed(0)))
    by_torch = model_inference.torch_functions(module)
    export = model_inference.export_model(module, THREE, rotates=True)
    functions = export.functions(THREE)
    hidden = by_torch[0](observations(THREE))[0]
    for n in (1, 3):
        actions = np.arange(n)
        expected = by_torch[1](hidden[:n], actions)
        for one, other in zip(expected, functions.recurrent(hidden[:n], actions), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)
    paths = model_inference.export_onnx_model(module, THREE, tmp_path / "four.onnx")
    assert [path.name for path in paths] == ["four.initial.onnx", "four.recurrent.onnx"]
    evaluator = model_inference.load_onnx_model(tmp_path / "four", THREE)
    assert evaluator.model is not None
    with pytest.raises(BrokenGame, match="does not take observations of connect_four"):
        model_inference.load_onnx_model(tmp_path / "four", games.connect_four())


def test_a_model_is_refused_as_a_network():
    with pytest.raises(TypeError, match=r"learn.train\(algorithm=.muzero.\)|a network"):
        learn.evaluator("not a module")

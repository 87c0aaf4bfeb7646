"""Networks and models alike: described, rebuilt, checked."""

from __future__ import annotations

import json

import pytest

torch = pytest.importorskip("torch", reason="the learn extra is not installed")

from tests.learn.models import THREE, observations  # noqa: E402
from uctree.errors import BrokenGame, UctreeError  # noqa: E402
from uctree.learn import model, modules, network  # noqa: E402
from uctree.learn.options import make_options  # noqa: E402

torch.set_num_threads(1)


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


def test_a_new_module_is_what_the_algorithm_needs():
    net = modules.new_module(THREE, make_options(THREE, network="mlp", network_width=8))
    made = modules.new_module(
        THREE, make_options(THREE, algorithm="muzero", network="mlp", network_width=8)
    )
    assert isinstance(net, network.Network)
    assert isinstance(made, model.LearnedModel)
    modules.check_module(net, THREE, "alphazero")
    modules.check_module(made, THREE, "muzero")
    with pytest.raises(BrokenGame, match="with the functions initial"):
        modules.check_module(net, THREE, "muzero")

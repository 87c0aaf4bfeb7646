"""Models as functions of arrays: by torch, by ONNX, as files."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the learn extra is not installed")

from tests.learn.models import THREE, Own, observations  # noqa: E402
from uctree import games  # noqa: E402
from uctree.errors import BrokenGame, UctreeError  # noqa: E402
from uctree.learn import model, model_inference  # noqa: E402

torch.set_num_threads(1)


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

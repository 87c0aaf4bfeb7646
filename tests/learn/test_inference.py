"""Networks as evaluators: torch against ONNX Runtime, symmetries, files."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

import uctree
from uctree import BrokenGame, UctreeError, games
from uctree.engine.driver import BatchedSearch
from uctree.engine.queue import aligned_zeros

torch = pytest.importorskip("torch", reason="the learn extra is not installed")
pytest.importorskip("onnxruntime", reason="the learn extra is not installed")

from tests.learn.networks import Own, random_planes, shaken, small  # noqa: E402
from uctree.learn import inference, network, targets  # noqa: E402

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("game", [games.tic_tac_toe(), games.connect_four()], ids=lambda g: g.name)
def test_8_bits_give_nearly_the_same_results(game):
    module, shown = small(game), random_planes(game, 64, seed=2)
    content = inference.int8_bytes(module, game, random_planes(game, 128))
    exact = inference.predictor(module, game, backend="onnx")(shown)
    small_one = inference.onnx_evaluator(content, game).batch.value(shown)
    for one, other in zip(exact, small_one, strict=True):
        spread = one.max() - one.min()
        assert 0 < np.abs(one - other).max() < 0.15 * spread


def test_with_8_bits_returns_without_bounds_stay_right():
    game = games.twenty48()
    module = shaken(network.mlp(game, width=16, depth=2), 3)
    shown = inference.random_observations(game, 100)
    exact = inference.predictor(module, game)(shown)[1]
    there = inference.predictor(module, game, backend="int8")(shown)[1]
    assert np.abs(exact - there).mean() < 0.2 * exact.std()


def test_8_bits_need_no_observations_from_the_caller():
    game = games.tic_tac_toe()
    module, shown = small(game), inference.random_observations(game, 20)
    exact = inference.predictor(module, game)(shown)
    there = inference.predictor(module, game, backend="int8", threads=2)(shown)
    assert np.corrcoef(exact[0].ravel(), there[0].ravel())[0, 1] > 0.99
    with pytest.raises(ValueError, match="needs the game"):
        inference.predictor(module, backend="int8")


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize(
    "game",
    [games.tic_tac_toe(), games.connect_four(), games.othello(6), games.dots_and_boxes(2, 2)],
    ids=lambda game: game.name,
)
def test_torch_and_onnx_give_the_same_results(game, count):
    module = small(game)
    observations = random_planes(game, count)
    by_torch = inference.predictor(module, game)(observations)
    by_onnx = inference.predictor(module, game, backend="onnx")(observations)
    with torch.inference_mode():
        itself = module(torch.from_numpy(observations))
    for one, other, own in zip(by_torch, by_onnx, itself, strict=True):
        assert one.dtype == other.dtype == np.float32
        assert np.array_equal(one, own.numpy())
        assert np.abs(one - other).max() < 1e-5


def test_torch_and_onnx_decode_large_values_alike():
    game = games.twenty48()
    module, observations = small(game), random_planes(game, 5)
    by_torch = inference.predictor(module, game)(observations)[1]
    by_onnx = inference.predictor(module, game, backend="onnx")(observations)[1]
    assert np.abs(by_torch).max() > 1
    assert np.abs(targets.squash(by_torch) - targets.squash(by_onnx)).max() < 1e-4


@pytest.mark.parametrize("backend", ["torch", "onnx"])
@pytest.mark.parametrize(
    "game",
    [games.tic_tac_toe(), games.connect_four(), games.othello(6)],
    ids=lambda game: game.name,
)
def test_the_mean_over_symmetries_of_an_image_is_the_image_of_the_mean(game, backend):
    module = small(game)
    plain = inference.predictor(module, game, backend=backend)
    mean = inference.predictor(module, game, backend=backend, symmetries=True)
    observations = random_planes(game, 3)
    logits, values = mean(observations)
    uneven = 0.0
    for k in range(len(game.symmetries[0])):
        images, moved = targets.transform(game, [k] * 3, observations, logits)
        again = mean(images)
        assert np.abs(again[0] - moved).max() < 1e-5
        assert np.abs(again[1] - values).max() < 1e-5
        uneven = max(uneven, np.abs(plain(images)[1] - plain(observations)[1]).max())
    assert uneven > 1e-3  # the network itself is not symmetric


def test_the_mean_over_symmetries_is_that_of_all_images():
    game = games.tic_tac_toe()
    plain = inference.predictor(small(game), game)
    observations = random_planes(game, 1)
    logits, values = inference.predictor(small(game), game, symmetries=True)(observations)
    images, _ = targets.transform(
        game, range(8), np.repeat(observations, 8, axis=0), np.zeros((8, 9))
    )
    answers = plain(images)
    by_hand = np.mean([answers[0][k][game.symmetries[0][k]] for k in range(8)], axis=0)
    assert logits[0] == pytest.approx(by_hand, abs=1e-6)
    assert values[0] == pytest.approx(answers[1].mean(axis=0), abs=1e-6)


def test_torch_follows_the_module_and_onnx_copies_its_weights():
    game = games.tic_tac_toe()
    module, observations = small(game), random_planes(game, 2)
    live = inference.predictor(module, game)
    copied = inference.predictor(module, game, backend="onnx")
    before = live(observations)[0].copy(), copied(observations)[0].copy()
    shaken(module, seed=2)
    assert np.abs(live(observations)[0] - before[0]).max() > 1e-3
    assert np.array_equal(copied(observations)[0], before[1])


def test_the_evaluation_cache_is_cleared_when_weights_change():
    game = games.tic_tac_toe()
    module = small(game)

    def priors(batch):
        batch.reset([0], [game.start()], num_simulations=20)
        batch.run()
        return batch.root(0).priors.copy()

    batch = BatchedSearch(game, 1, evaluator=inference.evaluator(module, game))
    before = priors(batch)
    shaken(module, seed=2)
    found, fresh = (
        priors(batch),
        BatchedSearch(game, 1, evaluator=inference.evaluator(module, game)),
    )
    assert found == pytest.approx(priors(fresh), abs=1e-6)
    assert np.abs(found - before).max() > 1e-3


def test_inference_does_not_change_batch_norms():
    game = games.connect_four()
    module = small(game).train()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    inference.predictor(module, game)(random_planes(game, 4))
    inference.predictor(module, game, backend="onnx")
    assert module.training
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())


def test_the_buffer_of_observations_is_read_where_it_is():
    game = games.tic_tac_toe()
    seen = []

    class Watching(Own):
        def forward(self, observations):
            seen.append(observations.data_ptr())
            return super().forward(observations)

    planes = random_planes(game, 8)
    buffer = aligned_zeros(planes.shape, np.float32)
    buffer[:] = planes
    predict = inference.predictor(Watching())
    predict(buffer[:3])
    assert seen == [buffer.ctypes.data]


def test_results_do_not_depend_on_where_observations_are():
    game = games.tic_tac_toe()
    predict = inference.predictor(small(game))
    planes = random_planes(game, 2)  # small products are the ones that depend on it
    found = set()
    for first in range(0, 64, 4):
        place = aligned_zeros((64 + planes.nbytes,), np.uint8)[first : first + planes.nbytes]
        moved = place.view(np.float32).reshape(planes.shape)
        moved[:] = planes
        found.add(b"".join(part.tobytes() for part in predict(moved)))
    assert len(found) == 1


def test_torch_computes_with_one_thread_in_every_calling_thread():
    game = games.tic_tac_toe()
    numbers = []

    class Counting(Own):
        def forward(self, observations):
            numbers.append(torch.get_num_threads())
            return super().forward(observations)

    predict = inference.predictor(Counting())
    torch.set_num_threads(2)
    threads = [threading.Thread(target=predict, args=(random_planes(game, 1),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    predict(random_planes(game, 1))
    assert numbers == [1, 1, 1]


@pytest.mark.parametrize("backend", ["torch", "onnx"])
@pytest.mark.parametrize("symmetries", [False, True])
def test_a_search_uses_a_network(backend, symmetries):
    game = games.tic_tac_toe()
    state = game.play([0, 3, 1, 4])  # player 0 wins with 2, and else loses to 5
    evaluator = inference.evaluator(small(game), game, backend=backend, symmetries=symmetries)
    rule = uctree.selection.gumbel(scale=0)  # keeps what the evaluator said of the root
    result = uctree.search(
        game, state, evaluator=evaluator, root_selection=rule, num_simulations=200
    )
    assert result.action == 2
    predict = inference.predictor(small(game), game, symmetries=symmetries)
    logits, values = predict(game.observation(state, 0)[None])
    legal = game.legal(state)
    weights = np.exp(logits[0, legal] - logits[0, legal].max())
    prior = dict(zip(result.edges["action"], result.edges["prior"], strict=True))
    assert [prior[a] for a in legal] == pytest.approx(weights / weights.sum(), abs=1e-5)
    # What a zero-sum game is worth to one player is what it costs the other.
    assert result.tree.raw_value[0] == pytest.approx((values[0, 0] - values[0, 1]) / 2, abs=1e-5)


def test_a_file_is_the_network_again_without_torch(tmp_path):
    game = games.tic_tac_toe()
    module, path = small(game), tmp_path / "net.onnx"
    inference.export_onnx(module, game, path)
    assert [found.name for found in tmp_path.iterdir()] == ["net.onnx"]
    found = [
        uctree.search(game, game.start(), evaluator=evaluator, num_simulations=50).edges["visits"]
        for evaluator in (inference.evaluator(module), inference.load_onnx(path, game))
    ]
    assert found[0].tolist() == found[1].tolist()
    code = (
        f"import sys; from uctree import games, learn; learn.load_onnx({str(path)!r}, "
        "games.tic_tac_toe(), symmetries=True); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "False\n", done.stderr


def test_a_file_of_another_game_is_refused(tmp_path):
    path = tmp_path / "net.onnx"
    inference.export_onnx(small(games.tic_tac_toe()), games.tic_tac_toe(), path)
    with pytest.raises(BrokenGame, match=r"net.onnx does not take observations of connect_four"):
        inference.load_onnx(path, games.connect_four())
    inference.export_onnx(small(games.othello(6)), games.othello(6), path)
    with pytest.raises(BrokenGame, match=r"gives logits and values of shapes \[\(2, 37\), \(2,"):
        inference.load_onnx(path, games.n_in_a_row(6, 6, 4))


def test_a_file_that_is_no_network_is_refused(tmp_path):
    path = tmp_path / "net.onnx"
    path.write_bytes(b"not a network")
    with pytest.raises(UctreeError, match=r"net.onnx is not an ONNX network that can be run"):
        inference.load_onnx(path, games.tic_tac_toe())


class Frozen(Own):
    """Its Python looks at the number of observations, which an export cannot follow."""

    def forward(self, observations):
        logits, values = super().forward(observations)
        return logits, values * len(observations)


@pytest.mark.filterwarnings("ignore:.*might cause the trace to be incorrect")
def test_a_module_that_cannot_be_exported_is_noticed():
    with pytest.raises(UctreeError, match="Frozen gives other results as ONNX than in torch"):
        inference.predictor(shaken(Frozen()), games.tic_tac_toe(), backend="onnx")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "tensorflow"}, 'backend is "torch", "onnx" or "int8"; got \'tensorflow\''),
        ({"threads": 0}, "threads must be at least 1; got 0"),
        ({"symmetries": True}, "symmetries=True needs the game"),
        ({"backend": "onnx"}, 'backend="onnx" needs the game'),
        ({"symmetries": True, "game": games.nim()}, "has no symmetries"),
    ],
    ids=["backend", "threads", "symmetries", "onnx", "none"],
)
def test_options_that_cannot_work_are_refused(options, message):
    game = options.get("game")
    module = Own() if game is None else small(game)
    with pytest.raises(ValueError, match=message):
        inference.predictor(module, **options)


def test_a_network_of_another_game_is_refused():
    with pytest.raises(BrokenGame, match="Network failed on observations of connect_four"):
        inference.evaluator(small(games.tic_tac_toe()), games.connect_four())
    with pytest.raises(TypeError, match=r"a network is a torch\.nn\.Module"):
        inference.evaluator("weights.safetensors")

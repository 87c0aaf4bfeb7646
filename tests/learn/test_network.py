"""Networks: shapes, ranges, losses, and which modules are refused."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from uctree import BrokenGame, UctreeError, games

torch = pytest.importorskip("torch", reason="the learn extra is not installed")

from tests.learn.networks import Own, shaken  # noqa: E402
from uctree.learn import network  # noqa: E402
from uctree.learn.targets import squash  # noqa: E402

torch.set_num_threads(1)  # tests run side by side

# All but those without observe=, or with actions that are vectors.
BUILT_IN = [name for name in games.__all__ if name not in ("leap", "loss_game", "point_mass")]


def observations_of(game, count=5, seed=1):
    """Observations of a random episode, each for the player to play."""
    actions = game.random_episode(seed).actions
    seen = []
    state = game.start()
    for action in actions:
        if game.to_play(state) >= 0:
            seen.append(game.observation(state, game.to_play(state)))
        state = game.step(state, action)[0]
    return torch.from_numpy(np.array(seen[:count], np.float32))


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_built_in_game_has_a_network(name):
    game = getattr(games, name)()
    module = network.default_network(game)
    network.check_network(module, game)
    observations = observations_of(game)
    logits, values = shaken(module).eval()(observations)
    assert logits.shape == (len(observations), game.num_actions)
    assert values.shape == (len(observations), game.num_players)
    assert torch.isfinite(logits).all()
    assert torch.isfinite(values).all()


@pytest.mark.parametrize(
    ("game", "kind", "per_cell"),
    [
        (games.tic_tac_toe(), "mlp", False),
        (games.pig(), "mlp", False),
        (games.connect_four(), "tower", False),
        (games.hex(5), "tower", True),
        (games.othello(), "tower", True),
        (games.breakthrough(), "tower", False),
    ],
    ids=lambda given: getattr(given, "name", None),
)
def test_the_observation_decides_which_network_a_game_gets(game, kind, per_cell):
    description = network.default_network(game).description
    assert (description["kind"], description["per_cell"]) == (kind, per_cell)


def test_sizes_are_those_asked_for():
    module = network.default_network(games.connect_four(), width=8, depth=2)
    assert sum(isinstance(part, network.Block) for part in module.modules()) == 2
    assert module.body[0][0].out_channels == 8


@pytest.mark.parametrize("make", [network.mlp, network.tower])
def test_before_training_all_actions_and_players_look_alike(make):
    game = games.connect_four()
    logits, values = make(game)(observations_of(game))
    assert not logits.any()
    assert not values.any()


@pytest.mark.parametrize("make", [network.mlp, network.tower])
def test_the_same_seed_gives_the_same_weights_and_leaves_the_generator_of_torch_alone(make):
    before = torch.get_rng_state()
    one, same, other = (make(games.connect_four(), seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    pairs = zip(one.parameters(), same.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    weights = [module.state_dict() for module in (one, other)]
    assert any(not torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_values_stay_within_the_range_of_payoffs():
    game = games.dots_and_boxes()
    low, high = game.payoff_range[0]
    observations = observations_of(game)
    with torch.no_grad():
        values = torch.cat([
            shaken(network.mlp(game), seed, size=1.0)(observations)[1] for seed in range(10)
        ])  # fmt: skip
    assert values.min() == low
    assert values.max() == high


def test_the_value_before_training_is_the_middle_of_the_range():
    game = games.dots_and_boxes(2, 2)
    _, values = network.mlp(game)(observations_of(game))
    assert values.unique().tolist() == [2.0]


def test_a_range_that_differs_between_players_is_one_range_for_every_seat():
    game = games.tic_tac_toe()
    game.payoff_range = np.array([[-1.0, 1.0], [0.0, 9.0]])
    assert network.mlp(game).description["value_range"] == [-1.0, 9.0]


def test_returns_of_any_size_are_learned_where_no_range_is_known():
    game = games.twenty48()
    module = network.mlp(game, width=32, depth=1)
    assert module.description["value_range"] is None
    observations = observations_of(game, count=3)
    targets = torch.tensor([[4.0], [2000.0], [30_000.0]])
    policies = torch.full((3, 4), 0.25)
    optimizer = torch.optim.Adam(module.parameters(), lr=0.02)
    for _ in range(150):
        optimizer.zero_grad()
        policy, value = network.losses(module, observations, policies, targets)
        (policy + value).mean().backward()
        optimizer.step()
    with torch.no_grad():
        predicted = module(observations)[1]
    assert torch.allclose(squash(predicted), squash(targets), atol=0.2)


def test_a_bounded_network_learns_what_it_is_taught():
    game = games.tic_tac_toe()
    module = network.mlp(game, width=32)
    observations = observations_of(game, count=4)
    policies = torch.eye(9)[torch.tensor([3, 1, 4, 8])]
    values = torch.tensor([[1.0, -1.0], [0.0, 0.0], [-0.5, 0.5], [0.25, -0.25]])
    optimizer = torch.optim.Adam(module.parameters(), lr=0.01)
    for _ in range(200):
        optimizer.zero_grad()
        sum(
            loss.mean() for loss in network.losses(module, observations, policies, values)
        ).backward()
        optimizer.step()
    with torch.no_grad():
        logits, predicted = module(observations)
    assert logits.argmax(dim=1).tolist() == [3, 1, 4, 8]
    assert torch.allclose(predicted, values, atol=0.05)


def test_the_loss_of_a_bounded_value_is_in_units_of_half_the_range():
    game = games.dots_and_boxes(2, 2)  # payoffs 0 to 4: the middle is 2
    module = network.mlp(game)
    _, output = module.heads(observations_of(game, count=2))
    loss = module.value_loss(output, torch.tensor([[4.0, 0.0], [2.0, 2.0]]))
    assert loss.tolist() == [1.0, 0.0]


def test_two_atoms_share_a_target_and_the_ends_take_what_is_beyond():
    even = torch.zeros(1, 3)
    assert network.two_hot_loss(even, torch.tensor([1.5])).item() == pytest.approx(math.log(3))
    sure = torch.tensor([[0.0, 0.0, 100.0]])
    for beyond in (2.0, 2.7, 1e6):
        assert network.two_hot_loss(sure, torch.tensor([beyond])).item() == pytest.approx(0)
    assert network.two_hot_loss(sure, torch.tensor([-5.0])).item() == pytest.approx(100)


def test_illegal_actions_are_not_taught():
    game = games.tic_tac_toe()
    module = shaken(network.mlp(game))
    observations = observations_of(game, count=1)
    legal = torch.ones(1, 9, dtype=torch.bool)
    legal[0, 1:] = False
    policies = torch.eye(9)[[0]]
    loss, _ = network.losses(module, observations, policies, torch.zeros(1, 2), legal)
    assert loss.item() == 0
    loss.sum().backward()
    assert torch.isfinite(module.policy.weight.grad).all()


def test_a_network_is_rebuilt_from_its_description_as_json():
    for game in (games.connect_four(), games.othello(6), games.twenty48()):
        module = shaken(network.default_network(game, width=16, depth=1)).eval()
        again = network.build(json.loads(json.dumps(network.describe(module)))).eval()
        again.load_state_dict(module.state_dict())
        observations = observations_of(game)
        for one, other in zip(module(observations), again(observations), strict=True):
            assert torch.equal(one, other)


def test_a_description_that_is_none_is_refused():
    with pytest.raises(UctreeError, match="not the description of a network: missing a required"):
        network.build({"kind": "mlp"})
    good = network.describe(network.mlp(games.tic_tac_toe()))
    with pytest.raises(UctreeError, match="got an unexpected keyword argument 'colour'"):
        network.build(good | {"colour": "red"})
    with pytest.raises(ValueError, match=r'has kind "mlp" or "tower".*got kind=.resnet'):
        network.build(good | {"kind": "resnet"})


def test_a_custom_module_is_a_network():
    module = Own()
    game = games.tic_tac_toe()
    network.check_network(module, game)
    observations, targets = observations_of(game, count=2), torch.tensor([[1.0, -1.0], [0.5, 0.0]])
    policy, value = network.losses(module, observations, torch.full((2, 9), 1 / 9), targets)
    logits, predicted = module(observations)
    by_hand = ((predicted - targets) ** 2).mean(dim=1)
    assert torch.allclose(value, by_hand)
    assert torch.allclose(policy, -torch.log_softmax(logits, 1).mean(dim=1))


def test_a_custom_module_cannot_be_built_from_its_description():
    description = network.describe(Own())
    assert description == {"kind": "own", "name": "tests.learn.networks.Own"}
    with pytest.raises(UctreeError, match=r"tests\.learn\.networks\.Own: pass one of the same"):
        network.build(description)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (Own(num_actions=7), r"Own returned shapes \[\(2, 7\), \(2, 2\)\] for 2 observations of"),
        (Own(num_players=1), r"expected \(logits \[n, 9\], values \[n, 2\]\)"),
        (torch.nn.Flatten(), "Flatten returned a Tensor for 2 observations of tic_tac_toe"),
        (torch.nn.Linear(5, 5), r"Linear failed on observations of tic_tac_toe, float32 \[2, 2, 3"),
    ],
    ids=["actions", "players", "one tensor", "input"],
)
def test_a_module_that_does_not_fit_the_game_is_refused(module, message):
    with pytest.raises(BrokenGame, match=message):
        network.check_network(module, games.tic_tac_toe())


def test_a_network_that_returns_nan_is_refused():
    module = Own()
    module.value.weight.data.fill_(math.nan)
    with pytest.raises(BrokenGame, match="Own returned numbers that are not finite"):
        network.check_network(module, games.tic_tac_toe())


def test_what_is_no_module_is_refused():
    with pytest.raises(TypeError, match=r"a network is a torch.nn.Module.*got a str"):
        network.check_network("net", games.tic_tac_toe())


def test_a_check_leaves_a_network_in_training_and_its_batch_norm_alone():
    game = games.connect_four()
    module = network.tower(game, width=4, depth=1).train()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    network.check_network(module, game)
    assert all(part.training for part in module.modules())
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())


@pytest.mark.parametrize(
    ("game", "make", "message"),
    [
        (games.loss_game(), network.mlp, "has actions that are vectors"),
        (games.pig(), network.tower, r"a tower needs planes.*use mlp\(game\)"),
    ],
    ids=["vectors", "flat"],
)
def test_a_game_that_a_network_cannot_play_is_refused(game, make, message):
    with pytest.raises(BrokenGame, match=message):
        make(game)


def test_bounded_values_need_a_range():
    with pytest.raises(BrokenGame, match="bounded=True needs a payoff_range; twenty48 has none"):
        network.mlp(games.twenty48(), bounded=True)
    assert network.mlp(games.tic_tac_toe(), bounded=False).description["value_range"] is None

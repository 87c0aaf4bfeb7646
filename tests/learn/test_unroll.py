"""The losses of a model that is unrolled: weights, gradients, masks."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the learn extra is not installed")

from tests.learn.networks import shaken  # noqa: E402
from tests.learn.test_sequences import finished, stored  # noqa: E402
from uctree import games  # noqa: E402
from uctree.learn import model, unroll  # noqa: E402
from uctree.learn.sequences import draw_sequences  # noqa: E402
from uctree.learn.unroll import Targets, unrolled_losses  # noqa: E402

torch.set_num_threads(1)  # two threads are slow beside another process

GAME = games.n_in_a_row(rows=3, cols=3, length=3, num_players=3)
N, K, A, P = 4, 3, 9, 3


def targets(seed=0, **given):
    rng = np.random.default_rng(seed)
    made = {
        "observations": rng.random((N, K + 1, *GAME.observation_shape), np.float32),
        "actions": rng.integers(A, size=(N, K)),
        "policies": rng.dirichlet(np.ones(A), size=(N, K + 1)).astype(np.float32),
        "policy_weights": np.ones((N, K + 1), np.float32),
        "values": rng.uniform(-0.4, 0.9, (N, K + 1, P)).astype(np.float32),
        "value_weights": np.ones((N, K + 1), np.float32),
        "rewards": rng.uniform(-1, 1, (N, K, P)).astype(np.float32),
        "reward_weights": np.ones((N, K), np.float32),
        "turns": rng.integers(P + 1, size=(N, K)),
        "turn_weights": np.ones((N, K), np.float32),
        "exists": np.ones((N, K + 1), bool),
        "weights": np.ones(N, np.float32),
    }
    return Targets(**{name: torch.from_numpy(np.asarray(v)) for name, v in (made | given).items()})


def net(seed=0, **sizes):
    return model.mlp_model(GAME, **{"width": 16, "latent": 8} | sizes, seed=seed)


def trained(module, batch, steps):
    optimizer = torch.optim.Adam(module.parameters())
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 1e-2 * 0.01 ** (step / steps)
        found = unrolled_losses(module, batch)
        total = sum(getattr(found, name).mean() for name in NAMES)
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
    return unrolled_losses(module, batch)


NAMES = ("value", "policy", "reward", "consistency", "turn")


def test_fields_of_targets_are_those_of_a_batch_of_sequences():
    from uctree.learn.sequences import SequenceBatch

    batch = {each.name for each in dataclasses.fields(SequenceBatch)}
    assert set(Targets.names) == batch - {"numbers"}


def test_later_steps_weigh_one_kth_each():
    batch, module = targets(), net()
    alone = [
        unrolled_losses(module, targets(policy_weights=np.eye(K + 1, dtype=np.float32)[[k] * N]))
        for k in range(K + 1)
    ]
    found = unrolled_losses(module, batch).policy
    torch.testing.assert_close(found, sum(each.policy for each in alone))
    # An untrained model has equal logits, so each step's cross entropy is ln 9.
    for k, each in enumerate(alone):
        expected = np.log(A) * (1.0 if k == 0 else 1.0 / K)
        np.testing.assert_allclose(each.policy.detach(), expected, rtol=1e-5)


def test_half_of_the_gradient_passes_each_step():
    _, shares = unroll.unroll_weights(K)
    hidden = torch.ones(2, 3, requires_grad=True)
    passed = hidden
    for k in range(K + 1):
        (gradient,) = torch.autograd.grad(passed.sum(), hidden, retain_graph=True)
        assert gradient.unique().tolist() == [shares[k]]
        passed = unroll.half_gradient(passed)


@pytest.mark.parametrize(
    ("mask", "losses"),
    [
        ("policy_weights", {"policy"}),
        ("value_weights", {"value"}),
        ("reward_weights", {"reward"}),
        ("turn_weights", {"turn"}),
        ("exists", {"consistency"}),
    ],
)
def test_what_is_masked_teaches_nothing(mask, losses):
    module = net()
    empty = torch.zeros_like(getattr(targets(), mask))
    found = unrolled_losses(module, dataclasses.replace(targets(), **{mask: empty}))
    for name in NAMES:
        assert bool((getattr(found, name) == 0).all()) == (name in losses)


def test_the_target_of_consistency_has_no_gradient():
    module, batch = net(), targets()
    only_later = dataclasses.replace(batch, observations=batch.observations.clone())
    only_later.observations.requires_grad_()
    unrolled_losses(module, only_later).consistency.sum().backward()
    gradient = only_later.observations.grad
    assert gradient[:, 0].abs().sum() > 0
    assert gradient[:, 1:].abs().sum() == 0


def in_doubles(module, batch):
    """A model with other weights, and a batch, in 64 bits."""
    # All last layers begin at zero, where many gradients are 0.
    module = shaken(module.double())
    doubles = {
        name: value.double() if value.is_floating_point() else value
        for name, value in ((name, getattr(batch, name)) for name in Targets.names)
    }
    return module, Targets(**doubles)


@pytest.mark.parametrize("part", ["representation", "state_in", "action_in", "state_out", "reward",
                                  "turn", "policy", "value", "predictor"])  # fmt: skip
def test_gradients_are_those_of_finite_differences(part, monkeypatch):
    # Halved gradients are not those of the loss, and a target without gradient is a constant; so
    # the whole gradient passes, and only what is no target is compared with consistency.
    monkeypatch.setattr(unroll, "half_gradient", lambda hidden: hidden)
    module, batch = in_doubles(net(), targets())

    def total():
        found = unrolled_losses(module, batch, with_consistency=part == "predictor")
        return sum(getattr(found, name).sum() for name in NAMES)

    total().backward()
    generator = np.random.default_rng(0)
    for weight in getattr(module.parts, part).parameters():
        place = tuple(int(generator.integers(size)) for size in weight.shape)
        with torch.no_grad():
            before = weight[place].item()
            weight[place] = before + 1e-5
            high = total().item()
            weight[place] = before - 1e-5
            low = total().item()
            weight[place] = before
        assert weight.grad[place].item() == pytest.approx((high - low) / 2e-5, rel=1e-4, abs=1e-7)


def test_losses_do_not_depend_on_the_order_of_the_seats():
    """Targets and outputs of the seats in another order: the same losses."""
    module, batch = in_doubles(net(), targets())
    order = torch.tensor([2, 0, 1])
    before = unrolled_losses(module, batch)
    with torch.no_grad():
        for head in (module.parts.value[-1], module.parts.reward[-1]):
            head.weight.copy_(head.weight[order])
            head.bias.copy_(head.bias[order])
    moved = {name: getattr(batch, name)[..., order] for name in ("values", "rewards")}
    after = unrolled_losses(module, dataclasses.replace(batch, **moved))
    for name in NAMES:
        torch.testing.assert_close(getattr(after, name), getattr(before, name))
    assert not torch.equal(unrolled_losses(module, batch).value, before.value)


def test_one_batch_can_be_learned_by_heart():
    torch.manual_seed(0)
    policies = np.eye(A, dtype=np.float32)[np.random.default_rng(0).integers(A, size=(N, K + 1))]
    found = trained(net(width=128, latent=64), targets(policies=policies), 300)
    assert found.policy.max() < 0.05
    assert found.value.max() < 0.02
    assert found.reward.max() < 0.02
    assert found.turn.max() < 0.05


def learned_by_heart(folder):
    """A model that was trained on one episode, with the losses before."""
    with stored(folder, finished()) as (window, columns):
        drawn = draw_sequences(
            window, columns, np.random.default_rng(0), 16, unroll_steps=K, symmetries=False
        )
    batch = Targets(**{name: torch.from_numpy(getattr(drawn, name)) for name in Targets.names})
    module = net(width=64, latent=32)
    before = unrolled_losses(module, batch)
    return module, (before, trained(module, batch, 300))


def test_one_episode_can_be_learned_by_heart(tmp_path):
    """All losses fall to their floor, also that of consistency, over all plies and beyond."""
    _, (before, found) = learned_by_heart(tmp_path)
    assert before.consistency.max() > 0.3
    assert before.value.max() > 0.5
    for name in NAMES:
        assert getattr(found, name).max() < 0.03, name


def test_a_model_of_ones_own_has_squared_errors():
    class Own(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(A * 3, 5)

        def initial(self, observations):
            hidden = self.layer(observations.flatten(1)[:, : A * 3])
            return hidden, torch.zeros(len(hidden), A), torch.full((len(hidden), P), 0.5)

        def recurrent(self, hidden, actions):
            n = len(hidden)
            return hidden, torch.zeros(n, P), torch.zeros(n, A), torch.full((n, P), 0.5)

    values = np.zeros((N, K + 1, P), np.float32)
    rewards = np.full((N, K, P), 2.0, np.float32)
    found = unrolled_losses(Own(), targets(values=values, rewards=rewards))
    np.testing.assert_allclose(found.value.detach(), 0.25 * 2)  # L_0 and K times 1/K
    np.testing.assert_allclose(found.reward.detach(), 4.0)
    assert not found.consistency.any()
    assert not found.turn.any()

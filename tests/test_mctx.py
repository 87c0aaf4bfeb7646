"""Searches of table models against mctx, DeepMind's search in JAX: visit for visit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.golden_gumbel import gumbel_rules, muzero_rules, root_of, search_table

pytestmark = pytest.mark.peer

NUM_ROOTS = 12


@dataclass(frozen=True)
class Case:
    """A random table model, and how it is searched."""

    num_actions: int
    discount: float  # -1: two players
    num_simulations: int
    num_states: int = 60
    num_considered: int = 16
    num_invalid: int = 0  # at the root
    ends: float = 0.0  # the share of actions that end the episode
    max_depth: int | None = None
    seed: int = 0

    def model(self) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(self.seed)
        shape = (self.num_states, self.num_actions)
        return {
            "next_state": rng.integers(0, self.num_states, shape),
            "reward": 0.3 * rng.normal(size=shape),
            "discount": np.where(rng.random(shape) < self.ends, 0.0, self.discount),
            "logits": rng.normal(size=shape),
            "value": rng.normal(size=self.num_states),
        }

    def invalid(self) -> np.ndarray:
        """Which actions each root may not take."""
        rng = np.random.default_rng(self.seed + 1)
        row = np.arange(self.num_actions) < self.num_invalid
        return rng.permuted(np.tile(row, (NUM_ROOTS, 1)), axis=1)


# mctx counts illegal actions of the root as never taken when it stretches values to [0, 1]; uctree
# leaves them out. That is the same where a legal action is never taken as well, so there are more
# of those than are considered.
GUMBEL = {
    "one player": Case(5, 0.97, num_simulations=32),
    "one player, few considered": Case(5, 0.97, num_simulations=50, num_considered=3, ends=0.1),
    "two players": Case(9, -1.0, num_simulations=64, ends=0.1),
    "two players, illegal actions": Case(
        9, -1.0, num_simulations=40, num_considered=5, num_invalid=3
    ),
    "two players, limited depth": Case(9, -1.0, num_simulations=64, max_depth=2),
}
MUZERO = {
    "one player": Case(5, 0.97, num_simulations=60, ends=0.1),
    "two players": Case(9, -1.0, num_simulations=100),
    "two players, illegal actions": Case(9, -1.0, num_simulations=60, num_invalid=4, ends=0.1),
}


def some(name: str) -> Any:
    """A case; JAX compiles for seconds, so `make test` leaves out those that others include."""
    return pytest.param(
        name, marks=pytest.mark.slow if name in ("one player", "two players") else ()
    )


@pytest.fixture(scope="module", autouse=True)
def _loaded_with_doubles():
    jax = pytest.importorskip("jax", reason="mctx and jax come with the dev extra")
    pytest.importorskip("mctx", reason="mctx and jax come with the dev extra")
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_disable_most_optimizations", True)  # compilation takes all the time
    yield
    jax.config.update("jax_enable_x64", False)
    jax.config.update("jax_disable_most_optimizations", False)


def run_mctx(policy: str, case: Case, **options: Any) -> Any:
    """What mctx says of the first states of a model, all in one batch."""
    import jax
    import mctx

    table = {name: jax.numpy.asarray(array) for name, array in case.model().items()}
    places = jax.numpy.arange(NUM_ROOTS)

    def recurrent_fn(parameters, rng_key, action, place):
        following = table["next_state"][place, action]
        output = mctx.RecurrentFnOutput(
            reward=table["reward"][place, action],
            discount=table["discount"][place, action],
            prior_logits=table["logits"][following],
            value=table["value"][following],
        )
        return output, following

    def run():
        root = mctx.RootFnOutput(
            prior_logits=table["logits"][places], value=table["value"][places], embedding=places
        )
        return getattr(mctx, policy)(
            (), jax.random.PRNGKey(case.seed), root, recurrent_fn, case.num_simulations,
            invalid_actions=jax.numpy.asarray(case.invalid()), max_depth=case.max_depth, **options,
        )  # fmt: skip

    return jax.jit(run)()


def run_uctree(case: Case, root: int, rules: dict[str, Any]) -> Any:
    return search_table(
        case.model(), root, case.num_simulations, invalid=case.invalid()[root],
        max_depth=case.max_depth, **rules,
    )  # fmt: skip


def assert_same_root(result: Any, summary: Any, root: int) -> None:
    found = root_of(result)
    visits = np.asarray(summary.visit_counts)[root]
    assert found["visit_counts"].tolist() == visits.tolist(), f"visits of root {root}"
    got = np.array(found["q_values"], float)[visits > 0]
    assert got == pytest.approx(np.asarray(summary.qvalues)[root][visits > 0], abs=1e-9)
    assert found["root_value"] == pytest.approx(float(summary.value[root]), abs=1e-9)


@pytest.mark.parametrize("name", [some(name) for name in GUMBEL])
def test_gumbel_search_is_that_of_mctx(name):
    case = GUMBEL[name]
    output = run_mctx("gumbel_muzero_policy", case, max_num_considered_actions=case.num_considered)
    summary = output.search_tree.summary()
    noise = np.asarray(output.search_tree.extra_data.root_gumbel)
    for root in range(NUM_ROOTS):
        result = run_uctree(case, root, gumbel_rules(case.num_considered, noise[root]))
        assert_same_root(result, summary, root)
        assert result.action == int(output.action[root])
        policy = np.asarray(output.action_weights)[root]
        assert result.improved_policy() == pytest.approx(policy, abs=1e-9)


@pytest.mark.parametrize("name", [some(name) for name in MUZERO])
def test_muzero_search_is_that_of_mctx(name):
    case = MUZERO[name]
    output = run_mctx("muzero_policy", case, dirichlet_fraction=0.0, temperature=0.0)
    summary = output.search_tree.summary()
    for root in range(NUM_ROOTS):
        result = run_uctree(case, root, muzero_rules())
        assert_same_root(result, summary, root)
        visits = np.asarray(summary.visit_counts)[root]
        if np.sum(visits == visits.max()) == 1:  # mctx draws lots among equals
            assert result.action == int(output.action[root])

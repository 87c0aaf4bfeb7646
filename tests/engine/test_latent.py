"""Searches in a model: the same trees as in the world that the model knows exactly."""

from __future__ import annotations

import numpy as np
import pytest

from tests.table_worlds import TableWorld
from uctree import OVER, evaluators, selection
from uctree.engine.driver import BatchedSearch
from uctree.errors import BrokenGame
from uctree.kernels.records import NONE

pytestmark = pytest.mark.usefixtures("both_ways")

MINMAX = selection.puct(normalise="minmax")
RULES = {
    "gumbel": {"root_selection": selection.gumbel(num_considered=4)},
    "puct": {"selection": MINMAX},
    "noise": {"selection": MINMAX, "root_noise": selection.dirichlet(1.0)},
    "narrow": {"selection": selection.puct(normalise="minmax", smallest_range=8.0)},
}


def started(world, evaluator, *, num_simulations=60, num_trees=3, **options):
    """A search whose trees start from different places."""
    batch = BatchedSearch(world.game, num_trees, evaluator=evaluator, check=False, **options)
    states = [world.game.start() for _ in range(num_trees)]
    for number, state in enumerate(states):
        state["place"] = number
        state["to_play"] = world.to_play[number]
    world.over[:num_trees] = False
    batch.reset(range(num_trees), states, num_simulations=num_simulations, seed=5)
    return batch


def roots_of(world, evaluator, **options):
    batch = started(world, evaluator, **options)
    batch.run()
    return roots(batch)


def roots(batch):
    return [batch.root(number) for number in range(batch.num_trees)]


def in_model(world, leaves=1):
    return evaluators.model(world, leaves=leaves, number=np.float64)


def in_world(world, leaves=1):
    return evaluators.python(world.judge, priors=True, leaves=leaves, cache=0)


def assert_same(ones, others, num_simulations=60):
    for one, other in zip(ones, others, strict=True):
        assert one.visits.sum() == num_simulations
        assert one.actions.tolist() == other.actions.tolist()
        assert one.visits.tolist() == other.visits.tolist()
        np.testing.assert_allclose(one.q, other.q, atol=1e-6)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("leaves", [1, 3])
@pytest.mark.parametrize("num_players", [1, 2, 3])
def test_an_exact_model_gives_the_search_of_the_world(num_players, leaves, rule):
    # Only a model is asked whether an edge ends the episode, which takes a place in the batch.
    world = TableWorld(seed=num_players, num_players=num_players, ends=0.2 if leaves == 1 else 0.0)
    exact = roots_of(world, in_world(world, leaves), **RULES[rule])
    assert_same(exact, roots_of(world, in_model(world, leaves), **RULES[rule]))


@pytest.mark.parametrize("rule", ["gumbel", "puct"])
@pytest.mark.parametrize(
    ("num_players", "given"),
    [(1, {}), (2, {"zero_sum": True}), (2, {"zero_sum": True, "rotates": True}),
     (3, {"rotates": True, "ends": 0.0}), (3, {"rotates": True, "discount": 0.5})],
)  # fmt: skip
def test_only_what_is_legal_at_the_root_is_searched_there(num_players, given, rule):
    world = TableWorld(seed=7, num_players=num_players, **given)
    world.allowed[1] = False
    exact = roots_of(world, in_world(world), **RULES[rule])
    assert exact[0].actions.tolist() == [0, 2, 3]
    assert_same(exact, roots_of(world, in_model(world), **RULES[rule]))


def test_the_smallest_range_of_returns_is_an_option():
    world = TableWorld(seed=1, num_players=2)
    narrow, wide = (roots_of(world, in_model(world), **RULES[rule]) for rule in ("narrow", "puct"))
    assert [one.visits.tolist() for one in narrow] != [one.visits.tolist() for one in wide]


@pytest.mark.parametrize("num_players", [1, 2, 3])
def test_what_edges_keep_and_add_up_to_is_what_the_world_says(num_players):
    """With several leaves in flight, ends as well: every edge by hand, from the places."""
    world = TableWorld(seed=num_players, num_players=num_players, discount=0.5, ends=0.3)
    batch = started(world, in_model(world, leaves=3), **RULES["puct"])
    batch.run()
    num_over = num_rows = 0
    for number in range(batch.num_trees):
        edges, hidden = batch.tree(number).edges, batch._latent.hidden
        rows, waiting = [0], [(0, number)]
        while waiting:
            node, place = waiting.pop()
            first, count = edges["first"][node], edges["num_edges"][node]
            for edge in range(first, first + count) if first != NONE else ():
                record, action = edges[edge], edges["action"][edge]
                if record["row"] == NONE:
                    assert record["visits"] == 0
                    continue
                after = world.next[place, action]
                rows.append(int(record["row"]))
                assert hidden[record["row"] * batch.num_trees + number]["place"] == after
                assert record["mover"] == (OVER if world.over[after] else world.to_play[after])
                assert record["reward"].tolist() == world.rewards[place, action].tolist()
                below = value_below(edges, record)
                if not world.over[after]:
                    below = below + num_own(edges, record) * world.values[after]
                expected = record["visits"] * record["reward"] + 0.5 * below
                assert record["value_sum"].tolist() == expected.tolist()
                num_over += world.over[after]
                waiting.append((edge, after))
        assert len(set(rows)) == len(rows)
        num_rows += len(rows)
    assert num_over > 3
    assert num_rows > 40


def block_of(edges, record):
    first = record["first"]
    return edges[first : first + record["num_edges"]] if first != NONE else edges[:0]


def value_below(edges, record):
    """The returns of the edges behind an edge, summed."""
    return block_of(edges, record)["value_sum"].sum(axis=0)


def num_own(edges, record):
    """How many simulations ended behind an edge, and not further below."""
    return record["visits"] - block_of(edges, record)["visits"].sum()


LOGITS = {
    "random": lambda rng, shape: rng.normal(size=shape),
    "equal": lambda rng, shape: np.zeros(shape),
    "steep": lambda rng, shape: 500 * rng.normal(size=shape),
    "whole": lambda rng, shape: rng.integers(-2, 3, size=shape).astype(float),
    "impossible": lambda rng, shape: np.where(rng.random(shape) < 0.5, -np.inf, 0.0),
}


@pytest.mark.parametrize("kind", LOGITS)
def test_forgotten_priors_change_nothing(kind):
    """Trees that forget what their budget cannot reach have the same visits, in less memory."""
    world = TableWorld(seed=3, num_players=2, num_actions=60)
    world.logits = LOGITS[kind](np.random.default_rng(2), world.logits.shape)
    found, sizes = [], []
    for keeps_trees in (True, False):
        batch = started(
            world, in_model(world), num_simulations=30, keeps_trees=keeps_trees, **RULES["gumbel"]
        )
        batch.run()
        found.append(roots(batch))
        sizes.append(int(batch._storage.tree_arrays()["heads"]["num_untried"].sum()))
    assert_same(*found, num_simulations=30)
    # Equal ones cannot be told apart, so they are kept together.
    assert sizes[1] < (1.0 if kind == "equal" else 0.8) * sizes[0]
    with pytest.raises(ValueError, match="has forgotten parts of its trees"):
        batch.tree(0)


def test_searches_with_one_evaluator_do_not_share_hidden_states():
    world = TableWorld(seed=4, num_players=2)
    evaluator = in_model(world)
    alone = [roots_of(world, evaluator, num_trees=n, **RULES["gumbel"]) for n in (3, 2)]
    batches = [started(world, evaluator, num_trees=n, **RULES["gumbel"]) for n in (3, 2)]
    for _ in range(100):
        for batch in batches:
            batch.step()
    for one, batch in zip(alone, batches, strict=True):
        assert_same(one, roots(batch))


def test_trees_may_start_again_at_any_time_and_with_more_simulations():
    world = TableWorld(seed=4, num_players=3)
    alone = roots_of(world, in_model(world), num_simulations=90, **RULES["gumbel"])
    batch = started(world, in_model(world), **RULES["gumbel"])
    states = batch._latent.roots.copy()
    for _ in range(20):
        batch.step()
    batch.reset([1], states[1:2], num_simulations=90, seed=6)  # the others go on
    batch.run()
    assert_same([batch.root(0), batch.root(2)], [roots_of(world, in_model(world),
                **RULES["gumbel"])[n] for n in (0, 2)])  # fmt: skip
    assert batch.root(1).visits.tolist() == alone[1].visits.tolist()


def test_rewards_of_the_wrong_shape_are_refused():
    world = TableWorld(seed=4, num_players=2)

    def step(hidden, actions, given=world.step):
        found = given(hidden, actions)
        found.rewards = found.rewards[:, :1]
        return found

    world.step = step
    with pytest.raises(BrokenGame, match=r"rewards of 3 edges must be \[3, 2\].* got \[3, 1\]"):
        roots_of(world, in_model(world), **RULES["gumbel"])

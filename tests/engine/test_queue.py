"""The evaluation queue: which leaves are requested, the cache, and what comes back."""

from __future__ import annotations

import numpy as np
import pytest

import uctree
from tests.judges import GAME, in_python, judge, judge_batch, visits
from uctree import UctreeError, evaluators, games, selection
from uctree.engine.driver import BatchedSearch

pytestmark = pytest.mark.usefixtures("both_ways")


@pytest.mark.parametrize("rule", [None, selection.gumbel()])
def test_leaves_that_wait_together_lose_no_visit(rule):
    for leaves in (2, 8, 50):
        result = uctree.search(
            GAME, GAME.start(), num_simulations=300, evaluator=in_python(cache=0), leaves=leaves,
            root_selection=rule,
        )  # fmt: skip
        assert result.simulations == 300
        assert result.edges["visits"].sum() == 300
        assert not result.tree.edges["pending"].any()


@pytest.mark.quick
def test_a_batch_has_as_many_leaves_as_wait_and_no_state_twice():
    batches = []

    def note(states):
        batches.append(states["taken"].astype(int) * 1000 + states["own"])
        return judge_batch(states)

    uctree.search(
        GAME, GAME.start(), num_simulations=200, leaves=8,
        evaluator=evaluators.python(note, priors=True, cache=0),
    )  # fmt: skip
    assert max(len(batch) for batch in batches) > 4
    assert all(len(set(batch.tolist())) == len(batch) for batch in batches)


@pytest.mark.quick
def test_what_is_cached_is_not_asked_again_until_it_is_forgotten():
    asked = []

    def note(states):
        asked.extend((states["taken"].astype(int) * 1000 + states["own"]).tolist())
        return judge_batch(states)

    batch = BatchedSearch(GAME, 1, evaluator=evaluators.python(note, priors=True, cache="10MB"))
    batch.reset([0], [GAME.start()], num_simulations=400)
    batch.run()
    assert len(set(asked)) == len(asked)
    before = batch.root(0).visits.tolist()
    asked.clear()
    batch.reset([0], [GAME.start()], num_simulations=400)
    batch.run()
    assert asked == []
    assert batch.root(0).visits.tolist() == before
    batch.options.evaluator.forget()
    batch.reset([0], [GAME.start()], num_simulations=10)
    batch.run()
    assert len(asked) == 11  # the root and ten leaves


def test_a_small_cache_forgets_the_oldest_and_changes_nothing():
    assert visits(in_python(cache=800)) == visits(judge)


def test_ends_are_never_asked_about():
    def note(states):
        assert (states["to_play"] >= 0).all()
        return judge_batch(states)

    visits(evaluators.python(note, priors=True))


def test_planes_are_empty_before_a_state_is_shown():
    """Whoever writes only what is there is not shown the stones of an earlier batch."""

    def observe(state, player, planes):
        if state.ply > 0:
            planes[state.ply - 1] = 1.0

    game = line_of_plies(observe, shape=(9,))
    seen = []

    def network(observations):
        seen.append(observations.copy())
        return np.zeros((len(observations), 2)), np.zeros((len(observations), 1))

    uctree.search(
        game, game.start(), num_simulations=40, evaluator=evaluators.network(network, cache=0)
    )
    assert len(seen) > 9
    assert max(batch.sum(axis=1).max() for batch in seen) == 1.0


def line_of_plies(observe, *, shape, players=1):
    """Nine plies, each of which pays its player the number of the action, 0 or 1."""
    dtype = np.dtype([("ply", np.int8), ("to_play", np.int8)])

    def legal(state, actions):
        actions[0], actions[1] = 0, 1
        return 2

    def step(state, action, reward):
        reward[state.to_play] += action
        state.ply += 1
        state.to_play = uctree.OVER if state.ply == 9 else (state.to_play + 1) % players

    return uctree.Game(
        dtype, legal, step, num_players=players, num_actions=2, observe=observe,
        observation_shape=shape, payoff_range=(0, 9),
    )  # fmt: skip


@pytest.mark.parametrize("players", [1, 2, 3])
def test_networks_see_who_is_to_play_and_answer_in_that_order(players):
    """Values that only depend on how many plies there are until a player's turn."""

    def observe(state, player, planes):
        planes[0], planes[1] = state.ply, player

    game = line_of_plies(observe, shape=(2,), players=players)
    seen = []

    def network(observations):
        seen.append(observations.copy())
        relative = np.arange(players, dtype=np.float32)
        return np.zeros((len(observations), 2)), relative + 10 * observations[:, 1:]

    state = game.play([0] * (players - 1))
    batch = BatchedSearch(
        game, 1, evaluator=evaluators.network(network), root_selection=selection.gumbel()
    )
    batch.reset([0], [state], num_simulations=1)
    batch.run()
    root = batch.root(0)
    me = players - 1
    assert seen[0][0].tolist() == [players - 1, me]
    assert root.raw.tolist() == [10 * me + (player - me) % players for player in range(players)]
    after = (me + 1) % players
    taken = int(root.actions[root.visits.argmax()])
    expected = [10 * after + (player - after) % players for player in range(players)]
    expected[me] += taken
    assert root.q[root.visits.argmax()].tolist() == expected


def test_answers_that_cannot_be_written_to_are_taken():
    def frozen(states):
        logits, values = (part.astype(np.float32) for part in judge_batch(states))
        logits.flags.writeable = values.flags.writeable = False
        return logits, values

    assert visits(evaluators.python(frozen, priors=True)) == visits(in_python())


def test_chance_between_the_leaf_and_the_next_player_is_drawn():
    game = games.pig()

    def flat(states):
        assert (states["to_play"] >= 0).all()
        return np.zeros((len(states), game.num_players))

    result = uctree.search(
        game, game.start(), num_simulations=500, evaluator=evaluators.python(flat), leaves=4
    )
    assert result.edges["visits"].sum() == 500


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            lambda n: (np.zeros((n, 8)), np.zeros((n, 2))),
            r"logits of a batch of 1 must be \[1, 9\]",
        ),
        (lambda n: (np.zeros((n, 9)), np.zeros(n)), r"values of a batch of 1 must be \[1, 2\]"),
        (lambda n: np.zeros((n, 2)), r"returns \(logits, values\); got ndarray"),
        (lambda n: (np.zeros((n, 9)), np.full((n, 2), np.nan)), "not a finite number"),
        (lambda n: (np.full((n, 9), np.nan), np.zeros((n, 2))), "not a finite number"),
    ],
)
def test_answers_of_another_shape_or_no_numbers_are_refused(answer, told):
    evaluator = evaluators.python(lambda states: answer(len(states)), priors=True, name="f")
    with pytest.raises(UctreeError, match=told):
        visits(evaluator)

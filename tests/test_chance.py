"""Ways to deal with chance: outcomes of any number, open loops, few outcomes at a time."""

from __future__ import annotations

import numpy as np
import pytest

import uctree
from uctree import Searcher, games, selection
from uctree.engine.compile import interpreted
from uctree.kernels import playouts, simulation

pytestmark = pytest.mark.quick

# --- outcomes ------------------------------------------------------------------------------------


def _legal(state, actions):
    actions[0], actions[1] = 0, 1
    return 2


def _step(state, action, reward):
    if state.to_play == uctree.CHANCE:
        reward[0] = 1.0 if action == 300 else -1.0
        state.to_play = uctree.OVER
    elif action == 0:
        state.to_play = uctree.CHANCE
    else:
        state.to_play = uctree.OVER


def _chance(state, outcomes, probabilities):
    outcomes[0], outcomes[1] = 200, 300
    probabilities[0], probabilities[1] = 0.25, 0.75
    return 2


COIN = uctree.Game(
    [("to_play", np.int8)], _legal, _step, num_players=1, num_actions=2, chance=_chance,
    max_outcomes=2, payoff_range=(-1, 1), name="coin",
)  # fmt: skip


@pytest.mark.parametrize("chance", ["sample", "proportional", selection.outcome_widening(2.0)])
def test_outcomes_may_be_any_numbers(chance):
    result = uctree.search(COIN, COIN.start(), num_simulations=4_000, chance=chance)
    assert result.action == 0
    assert result.edges["q"][0, 0] == pytest.approx(0.5, abs=0.05)
    tossed, _ = COIN.step(COIN.start(), 0)
    root = uctree.search(COIN, tossed, num_simulations=100, chance=chance)
    assert sorted(root.edges["action"].tolist()) == [200, 300]


# --- open loops ----------------------------------------------------------------------------------
# After an outcome o only the actions 2 o and 2 o + 1 are legal; the second of them pays.

NUM_OUTCOMES = 20
Place = np.dtype([("outcome", np.int16), ("turn", np.int16), ("to_play", np.int8)])


def _open_legal(state, actions):
    actions[0], actions[1] = 2 * state.outcome, 2 * state.outcome + 1
    return 2


def _open_step(state, action, reward):
    if state.to_play == uctree.CHANCE:
        state.outcome = action
        state.to_play = 0
        return
    if action // 2 != state.outcome:
        reward[0] = 1e9  # an action that is not legal here
    reward[0] += action % 2
    state.turn += 1
    state.to_play = uctree.OVER if state.turn == 3 else uctree.CHANCE


def _open_chance(state, outcomes, probabilities):
    for i in range(NUM_OUTCOMES):
        outcomes[i] = i
        probabilities[i] = 1.0 / NUM_OUTCOMES
    return NUM_OUTCOMES


def open_game():
    return uctree.Game(
        Place, _open_legal, _open_step, num_players=1, num_actions=2 * NUM_OUTCOMES,
        chance=_open_chance, max_outcomes=NUM_OUTCOMES, payoff_range=(0, 3), name="open",
    )  # fmt: skip


@pytest.mark.parametrize("max_memory", [None, "30kB"])
def test_an_open_loop_takes_only_what_is_legal(max_memory):
    game = open_game()
    result = uctree.search(
        game, game.start(), num_simulations=20_000, open_loop=True, max_memory=max_memory
    )
    assert result.action == 1
    assert 0 <= result.value[0] <= 3


def test_an_open_loop_is_kept_over_actions_and_outcomes():
    searcher = Searcher(open_game(), open_loop=True)
    total = 0.0
    rng = np.random.default_rng(1)
    while not searcher.game.is_over(searcher.state):
        if searcher.game.to_play(searcher.state) == uctree.CHANCE:
            action = int(rng.integers(NUM_OUTCOMES))
        else:
            action = searcher.search(num_simulations=3_000).action
            total += action % 2
        searcher.advance(action)
    assert total == 3


@pytest.mark.usefixtures("both_ways")
def test_an_open_loop_has_no_states_below_chance():
    game = open_game()
    tree = uctree.search(game, num_simulations=200, open_loop=True).tree
    node = tree.root.child(tree.root.edges[1])
    assert node.to_play == uctree.CHANCE
    assert len(node.edges) > 0
    for below in (lambda: node.child(node.edges[0]), lambda: list(tree.root.walk())):
        with pytest.raises(ValueError, match=r"open-loop tree.* search without open_loop=True"):
            below()
    game = games.tic_tac_toe()
    tree = uctree.search(game, num_simulations=200, open_loop=True).tree
    assert sum(1 for _ in tree.root.walk()) > 100


@pytest.mark.usefixtures("both_ways")
def test_an_open_loop_is_not_continued_as_a_tree_with_outcomes():
    few = {"chance": selection.outcome_widening(), "ties": "random"}  # else the same records
    tree = uctree.search(COIN, num_simulations=50, open_loop=True, ties="random").tree
    with pytest.raises(ValueError, match=r"look at (.*, )?open_loop="):
        uctree.search(COIN, num_simulations=50, tree=tree, **few)


def test_an_open_loop_needs_no_chance_at_all():
    game = games.tic_tac_toe()
    result = uctree.search(game, game.start(), num_simulations=2_000, open_loop=True)
    assert result.edges["visits"].sum() == 2_000


# --- roots ---------------------------------------------------------------------------------------


def test_roots_where_nobody_moves_are_refused_where_somebody_must(interpreted):
    tossed, _ = COIN.step(COIN.start(), 0)
    with pytest.raises(ValueError, match="take an outcome first"):
        uctree.search(COIN, tossed, num_simulations=10, open_loop=True)
    with pytest.raises(ValueError, match="take an outcome first"):
        uctree.search(COIN, tossed, num_simulations=10, opponents="paranoid")


# --- chance that is wrong ------------------------------------------------------------------------

WAYS = {
    "closed loop": {},
    "open loop": {"open_loop": True},
    "outcome widening": {"chance": selection.outcome_widening()},
    "proportional": {"chance": "proportional"},
}


def coin_with(probabilities, outcomes=(0, 1), step=_step):
    """The coin with other outcomes or probabilities."""

    def chance(state, listed, chances):
        for i in range(2):
            listed[i], chances[i] = outcomes[i], probabilities[i]
        return 2

    return uctree.Game(
        [("to_play", np.int8)], _legal, step, num_players=1, num_actions=2, chance=chance,
        max_outcomes=2, name="wrong coin",
    )  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wrong", [(0.5, np.nan), (1.5, -0.5), (-0.5, 1.5), (0.9, 0.9)])
def test_probabilities_that_are_no_distribution_are_refused(both_ways, way, wrong):
    game = coin_with(wrong)
    with pytest.raises(uctree.BrokenGame, match="probabilities are not negative and add up to 1"):
        uctree.search(game, num_simulations=50, check=False, **WAYS[way])


@pytest.mark.parametrize("way", WAYS)
def test_outcomes_below_0_are_refused(both_ways, way):
    game = coin_with((0.5, 0.5), outcomes=(0, -2))
    with pytest.raises(uctree.BrokenGame, match="outcomes of at least 0"):
        uctree.search(game, num_simulations=50, check=False, **WAYS[way])


@pytest.mark.parametrize("wrong", [(0.5, np.nan), (1.5, -0.5), (0.2, 0.2)])
def test_playouts_see_probabilities_that_are_none(both_ways, wrong):
    def step(state, action, reward):
        state.to_play = uctree.CHANCE if state.to_play == 0 else uctree.OVER

    game = coin_with(wrong, step=step)
    with pytest.raises(uctree.BrokenGame, match="add up to 1"):
        uctree.search(game, num_simulations=2, check=False, open_loop=False)


def _never_ends(state, action, reward):
    state.to_play = uctree.CHANCE


def judge(state, values):
    values[0] = 0.5


@pytest.mark.parametrize("options", [{"open_loop": True}, {"evaluator": judge}])
def test_chance_that_leads_to_chance_for_ever_is_an_error_not_a_hang(
    both_ways, options, monkeypatch
):
    if interpreted():
        for module in (playouts, simulation):
            monkeypatch.setattr(module, "ENDLESS", 500)
    game = coin_with((0.5, 0.5), step=_never_ends)
    with pytest.raises(uctree.BrokenGame, match="chance states followed each other, and no player"):
        uctree.search(game, num_simulations=5, check=False, **options)

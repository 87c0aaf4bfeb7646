"""Games of OpenSpiel: all that fit are searched, the others say why not; bots."""

from __future__ import annotations

import random

import numpy as np
import pytest

import uctree
from uctree import adapters

pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed")
pytestmark = [pytest.mark.peer, pytest.mark.usefixtures("both_ways")]

SEARCHED = [
    "2048", "amazons", "antichess", "backgammon", "banqi", "breakthrough", "catch", "checkers",
    "chess", "chinese_checkers", "cliff_walking", "clobber", "connect_four", "crazyhouse",
    "cursor_go", "dots_and_boxes", "einstein_wurfelt_nicht", "go", "gomoku", "havannah", "hex",
    "hive", "lines_of_action", "maedn", "mancala", "mnk", "morpion_solitaire", "nim",
    "nine_mens_morris", "othello", "oware", "pentago", "pig", "quoridor", "shogi", "tic_tac_toe",
    "twixt", "ultimate_tic_tac_toe", "xiangqi", "y", "yacht",
]  # fmt: skip
REASONS = {
    "matrix_pd": "players act at the same time",
    "kuhn_poker": "hidden information",
    "stones_and_gems": "draws its chance inside a step",
    "mfg_garnet": "mean field",
    "efg_game": "filename",
    "misere": "parameters",
}


def state_after(name, *actions):
    state = pyspiel.load_game(name).new_initial_state()
    for action in actions:
        state.apply_action(action)
    return state


@pytest.mark.parametrize("name", SEARCHED)
def test_a_game_with_perfect_information_is_searched(name):
    world = adapters.from_openspiel(name)
    result = uctree.plan(world, num_simulations=4, seed=1)
    assert result.simulations == 4
    if world.to_play >= 0:
        assert result.action in world.start.legal_actions()
        assert world.start.action_to_string(result.action) in str(result)


def test_every_other_game_is_refused_by_name():
    for kind in pyspiel.registered_games():
        if kind.short_name not in SEARCHED:
            with pytest.raises(ValueError, match=kind.short_name) as error:
                adapters.from_openspiel(kind.short_name)
            assert REASONS.get(kind.short_name, "") in str(error.value)
    for game in (pyspiel.load_game("kuhn_poker"), state_after("kuhn_poker", 0, 1)):
        with pytest.raises(ValueError, match="hidden information"):
            uctree.plan(game, num_simulations=1)


def test_an_unknown_name_and_other_things_are_refused():
    with pytest.raises(ValueError, match="OpenSpiel has no game 'ches'"):
        adapters.from_openspiel("ches")
    with pytest.raises(TypeError, match=r"a pyspiel\.Game or a pyspiel\.State; got int"):
        adapters.from_openspiel(3)
    with pytest.raises(ValueError, match="has ended"):
        uctree.plan(state_after("tic_tac_toe", 0, 3, 1, 4, 2), num_simulations=1)


def test_the_parameters_of_a_name_are_used():
    # Two piles of one: who begins loses, and wins if taking the last one loses.
    values = {}
    for misere in (False, True):
        world = adapters.from_openspiel(f"nim(pile_sizes=1;1,is_misere={misere})")
        values[misere] = uctree.plan(world, num_simulations=50, seed=1).value.tolist()
    assert values == {False: [-1.0, 1.0], True: [1.0, -1.0]}


def test_a_win_is_found_and_proven_and_the_state_is_left_alone():
    state = state_after("connect_four", 3, 2, 3, 2, 3, 2)
    before = str(state)
    result = uctree.plan(state, num_simulations=200, seed=1, solver=True)
    assert result.action == 3
    assert result.status == "solved"
    assert str(state) == before


PLAYED_OUT = {
    "X moves": ("tic_tac_toe", (0, 3)),
    "O moves": ("tic_tac_toe", (0, 3, 1)),
    "one player": ("catch", (1,)),
    "rewards on the way": ("cliff_walking(horizon=12)", (0, 1)),
    "three players and dice": ("pig(players=3,winscore=4,horizon=30)", (0, 1)),
}


@pytest.mark.parametrize(("name", "actions"), PLAYED_OUT.values(), ids=PLAYED_OUT)
def test_playouts_in_cpp_give_each_player_what_playouts_in_python_do(name, actions):
    state = state_after(name, *actions)
    playout = adapters.from_openspiel(state).problem.playout
    in_order, num = playout.in_order(7), 1500
    found = {
        "seeds": [playout(state, random.Random(seed)) for seed in range(num)],
        "in order": [in_order(state) for _ in range(num)],
        "many": [adapters.from_openspiel(state, num_playouts=num).problem.playout.play(state, 5)],
    }
    rng, ends = random.Random(2), []
    for _ in range(num):
        end = state.clone()
        while not end.is_terminal():
            if end.is_chance_node():
                outcomes, weights = zip(*end.chance_outcomes(), strict=True)
                end.apply_action(rng.choices(outcomes, weights)[0])
            else:
                end.apply_action(rng.choice(end.legal_actions()))
        ends.append(np.subtract(end.returns(), state.returns()))
    error = 5 * np.std(ends, axis=0) / num**0.5
    for means in (np.mean(each, axis=0) for each in found.values()):
        assert (np.abs(means - np.mean(ends, axis=0)) <= error + 1e-9).all()


def test_a_plan_that_is_made_again_gives_the_same_tree(tmp_path):
    world = adapters.from_openspiel("tic_tac_toe")
    for options in ({}, {"in_flight": 3}, {"journal": tmp_path / "run.jsonl"}):
        found = [uctree.plan(world, num_simulations=60, seed=1, **options) for _ in range(2)]
        assert (found[0].edges == found[1].edges).all()


def test_rewards_before_the_end_are_differences_of_returns():
    world = adapters.from_openspiel("cliff_walking")
    down = adapters.from_openspiel(state_after("cliff_walking", 1)).problem
    after = down.step(world.start, 0)  # to the right, off the cliff
    assert after.reward == [-100.0]
    assert after.over
    up = world.problem.step(world.start, 1)
    assert up.reward == [-1.0]
    again = world.problem.step(up.state, 1)
    assert again.reward == [-1.0]


def test_a_state_outlives_the_one_it_was_copied_from():
    # Copies by OpenSpiel itself crash here once their original is gone.
    world = adapters.from_openspiel("morpion_solitaire")
    for seed in range(20):
        world.problem.playout(world.start, random.Random(seed))
    first = world.start.legal_actions()[0]
    after = world.problem.step(world.problem.step(world.start, first).state, first + 1).state
    assert after.history() == [first, first + 1]


def test_playouts_of_several_players_return_one_number_each():
    world = adapters.from_openspiel("pig(players=3,winscore=5)")
    assert world.problem.num_players == 3
    returns = world.problem.playout(world.start, random.Random(1))
    assert sorted(returns) == [-0.5, -0.5, 1.0]


def test_a_journal_holds_states_of_openspiel(tmp_path):
    found = [
        uctree.plan(adapters.from_openspiel("tic_tac_toe"), num_simulations=20, seed=1,
                    journal=tmp_path / "run.jsonl").edges
        for _ in range(2)
    ]  # fmt: skip
    assert (found[0] == found[1]).all()


def test_a_bot_beats_a_random_bot_and_offers_its_policy():
    game = pyspiel.load_game("tic_tac_toe")
    bot = adapters.openspiel_bot("tic_tac_toe", num_simulations=200, seed=1)
    returns = []
    for number in range(4):
        other = pyspiel.make_uniform_random_bot(1 - number % 2, number)
        bots = [bot, other] if number % 2 == 0 else [other, bot]
        returns.append(pyspiel.evaluate_bots(game.new_initial_state(), bots, number)[number % 2])
    assert sum(returns) >= 3
    state = state_after("tic_tac_toe", 0, 3, 1, 4)
    policy, action = bot.step_with_policy(state)
    assert [each for each, _ in policy] == state.legal_actions()
    assert sum(share for _, share in policy) == pytest.approx(1.0)
    assert action == max(policy, key=lambda pair: pair[1])[0] == 2
    bot.restart_at(state)
    bot.inform_action(state, 0, 2)


def test_a_bot_searches_with_our_rules_of_the_same_game():
    state = state_after("connect_four", 3, 2, 3, 2, 3, 2)
    rules = uctree.games.connect_four()
    bot = adapters.openspiel_bot("connect_four", rules=rules, num_simulations=50)
    assert bot.step(state) == 3
    policy, _ = bot.step_with_policy(state)
    assert max(policy, key=lambda pair: pair[1])[0] == 3


def test_a_bot_needs_a_limit():
    with pytest.raises(ValueError, match="a bot needs a limit"):
        adapters.openspiel_bot("tic_tac_toe")

"""The search as a user calls it: budgets, roots of every kind, and games that are wrong."""

from __future__ import annotations

import json
import math
import os
import signal
import threading
import time

import numpy as np
import pytest

import uctree
from uctree import evaluators, selection
from uctree.games import connect_four

pytestmark = pytest.mark.quick

COUNTER = np.dtype([("left", np.int16), ("to_play", np.int8)])


def counting_game(step=None, legal=None, **options):
    """Take 1 or 2 from a heap of 5; who takes the last one wins."""

    def plain_legal(state, actions):
        for i in range(min(2, state.left)):
            actions[i] = i
        return min(2, state.left)

    def plain_step(state, action, reward):
        player = state.to_play
        state.left -= action + 1
        state.to_play = 1 - player
        if state.left == 0:
            reward[player] = 1.0
            reward[1 - player] = -1.0
            state.to_play = uctree.OVER

    def start(state):
        state.left = 5

    options = {"num_players": 2, "num_actions": 2, "start": start, "name": "counting"} | options
    return uctree.Game(COUNTER, legal or plain_legal, step or plain_step, **options)


@pytest.fixture(scope="module")
def game():
    return counting_game()


@pytest.mark.usefixtures("both_ways")
def test_the_winning_action_is_found(game):
    result = uctree.search(game, game.start(), num_simulations=2000, seed=1)
    assert result.action == 1  # leaves three, and the other loses
    assert result.value[0] > 0.8
    assert result.value[0] == -result.value[1]


def test_root_edge_visits_add_up_to_the_simulations(game):
    result = uctree.search(game, game.start(), num_simulations=123)
    assert result.edges["visits"].sum() == result.simulations == 123


def test_a_search_does_not_change_the_state_it_is_given(game):
    state = game.start()
    before = state.tobytes()
    uctree.search(game, state, num_simulations=50)
    assert state.tobytes() == before


def test_an_over_root_gives_an_empty_result_without_failing(game):
    state = game.play([1, 1, 0])
    result = uctree.search(game, state, num_simulations=10)
    assert (result.status, result.action, result.simulations) == ("terminal", None, 0)
    assert result.policy().sum() == 0.0
    assert result.principal_variation().actions == []
    assert "over" in str(result)
    assert json.dumps(result.to_json())


def test_one_legal_action_is_taken(game):
    result = uctree.search(game, game.play([1, 1]), num_simulations=10)
    assert result.action == 0
    assert result.value.tolist() == [1.0, -1.0]


@pytest.mark.parametrize("budget", [0, -1])
def test_a_budget_below_one_is_refused(game, budget):
    with pytest.raises(ValueError, match="at least 1; got"):
        uctree.search(game, game.start(), num_simulations=budget)
    with pytest.raises(ValueError, match="above 0; got"):
        uctree.search(game, game.start(), seconds=budget)


def test_a_search_without_a_budget_has_ten_thousand_simulations():
    result, again = uctree.search("tic_tac_toe"), uctree.search(uctree.games.tic_tac_toe())
    assert (result.simulations, result.status) == (10_000, "simulations")
    assert result.edges["visits"].tolist() == again.edges["visits"].tolist()


def test_an_evaluator_in_python_needs_a_budget(game):
    judge = uctree.evaluators.python(lambda states: np.zeros((len(states), 2)))
    with pytest.raises(ValueError, match="runs in Python, so the search needs a budget: give num"):
        uctree.search(game, game.start(), evaluator=judge)


def test_a_game_may_be_named():
    start = uctree.games.tic_tac_toe().start()
    (many,) = uctree.search_many("tic_tac_toe", [start], num_simulations=300)
    searcher = uctree.Searcher("tic_tac_toe")
    one = searcher.search(num_simulations=300)
    assert one.edges["visits"].tolist() == many.edges["visits"].tolist()
    with pytest.raises(uctree.UctreeError, match="unknown game 'conect_four'; did you mean connec"):
        uctree.search("conect_four")
    with pytest.raises(TypeError, match="or its name, as 'connect_four'; got the function tic_tac"):
        uctree.Searcher(uctree.games.tic_tac_toe)
    with pytest.raises(TypeError, match=r"expected a uctree\.Game or its name, .*; got 7"):
        uctree.search(7)


def test_a_record_of_another_dtype_is_refused(game):
    with pytest.raises(uctree.BrokenGame, match="expected one record of counting"):
        uctree.search(game, connect_four().start(), num_simulations=1)
    with pytest.raises(uctree.BrokenGame, match="got int"):
        uctree.search(game, 3, num_simulations=1)


def test_options_of_the_wrong_kind_are_refused(game):
    with pytest.raises(TypeError, match=r"selection must come from uctree.selection"):
        uctree.search(game, game.start(), num_simulations=1, selection="ucb1")
    with pytest.raises(TypeError, match=r"backup must come from uctree.backup"):
        uctree.search(game, game.start(), num_simulations=1, backup="mean")


def test_seconds_end_a_search(game):
    result = uctree.search(game, game.start(), seconds=0.2)
    assert result.status == "seconds"
    assert 0.2 <= result.seconds < 3
    assert result.simulations > 100


def test_whichever_budget_is_used_up_first_ends_a_search(game):
    assert uctree.search(game, game.start(), num_simulations=5, seconds=60).simulations == 5
    result = uctree.search(game, game.start(), num_simulations=10**12, seconds=0.05)
    assert result.status == "seconds"


@pytest.mark.parametrize("options", [{}, {"threads": 2, "parallel": "root"}])
def test_a_search_by_the_clock_ends_when_visits_can_count_no_further(game, options):
    begun = uctree.search(game, game.start(), num_simulations=10, **options)
    for tree in begun.trees:
        tree.head["simulations"] = 2**31 - 2 - 100
    result = uctree.search(game, game.start(), seconds=60, tree=begun.trees, **options)
    assert result.status == "full"
    assert result.simulations == 100 * len(begun.trees)
    assert ", full" in str(result)


def test_ctrl_c_returns_what_was_found_so_far(game):
    uctree.search(game, game.start(), num_simulations=1)  # compiled before the clock runs
    # A test run that was started in the background ignores the signal.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    result = uctree.search(game, game.start(), seconds=60)
    timer.join()
    signal.signal(signal.SIGINT, handler)
    assert result.status == "interrupted"
    assert result.seconds < 10
    assert result.edges["visits"].sum() == result.simulations > 0


def test_progress_is_told_and_grows(game):
    seen = []
    uctree.search(game, game.start(), num_simulations=5000, progress=seen.append)
    counts = [progress.simulations for progress in seen]
    assert counts == sorted(counts)
    assert counts[-1] == 5000
    assert seen[-1].num_simulations == 5000


def test_the_same_seed_gives_the_same_tree_however_the_time_is_cut():
    game = connect_four()
    options = {"num_simulations": 30_000}
    first = uctree.search(game, game.start(), **options, seed=7)
    second = uctree.search(
        game, game.start(), **options, seed=7, progress=lambda _: time.sleep(0.01)
    )
    other = uctree.search(game, game.start(), **options, seed=8)
    assert (first.tree.edges == second.tree.edges).all()
    assert first.edges["visits"].tolist() != other.edges["visits"].tolist()


def test_a_tree_can_be_searched_on(game):
    first = uctree.search(game, game.start(), num_simulations=100)
    second = uctree.search(game, game.start(), num_simulations=50, tree=first.tree)
    assert second.simulations == 50
    assert second.edges["visits"].sum() == 150


def test_a_tree_of_another_state_game_or_evaluator_is_refused(game):
    tree = uctree.search(game, game.start(), num_simulations=10).tree
    with pytest.raises(ValueError, match="another state"):
        uctree.search(game, game.play([0]), num_simulations=1, tree=tree)
    with pytest.raises(ValueError, match="another game"):
        uctree.search(connect_four(), connect_four().start(), num_simulations=1, tree=tree)


PAY = 1.0


def _paying_step(state, action, reward):
    reward[0] = PAY * action
    state.to_play = uctree.OVER


def _paying_legal(state, actions):
    actions[0], actions[1] = 0, 1
    return 2


@pytest.mark.usefixtures("both_ways")
def test_a_tree_is_refused_if_its_rules_were_edited_in_the_same_process(monkeypatch, tmp_path):
    game = uctree.Game(
        [("to_play", np.int8)], _paying_legal, _paying_step, num_players=1, num_actions=2
    )
    searcher = uctree.Searcher(game)
    tree = searcher.search(num_simulations=10).tree
    tree.save(tmp_path / "tree")
    trees = [tree, tree.copy(0, 100), uctree.Tree.load(tmp_path / "tree", game)]
    monkeypatch.setitem(globals(), "PAY", -1.0)
    for each in trees:
        with pytest.raises(ValueError, match=r"grown by other rules .* search without tree="):
            uctree.search(game, num_simulations=10, tree=each)
    with pytest.raises(ValueError, match="a new Searcher"):
        searcher.search(num_simulations=10)
    assert uctree.search(game, num_simulations=20).action == 0
    monkeypatch.setitem(globals(), "PAY", float("1.0"))  # another object, the same rules
    assert uctree.search(game, num_simulations=10, tree=tree).edges["visits"].sum() == 20


def test_the_refusal_of_a_tree_names_the_option_that_differs(game, monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    tree = uctree.search(game, game.start(), num_simulations=10).tree
    with pytest.raises(ValueError, match=r"other options.* look at solver=; search with"):
        uctree.search(game, game.start(), num_simulations=1, tree=tree, solver=True)
    with pytest.raises(ValueError, match=r"look at (.*, )?transpositions="):
        uctree.search(game, game.start(), num_simulations=1, tree=tree, transpositions=True)


def test_memory_is_bounded_and_the_search_goes_on():
    game = connect_four()
    result = uctree.search(game, game.start(), num_simulations=20_000, max_memory="100kB")
    assert result.tree.num_bytes <= 100_000
    assert result.edges["visits"].sum() == 20_000
    assert result.action == 3


@pytest.mark.parametrize("amount", ["many", "-5MB", 0])
def test_a_memory_bound_that_is_none_is_refused(game, amount):
    with pytest.raises(ValueError, match="max_memory"):
        uctree.search(game, game.start(), num_simulations=1, max_memory=amount)


def test_many_roots_are_searched_each_with_its_own_seed(game):
    states = [game.start(), game.play([0]), game.play([1, 1, 0])]
    results = uctree.search_many(game, states, num_simulations=200, seed=3)
    assert [result.status for result in results] == ["simulations", "simulations", "terminal"]
    alone = uctree.search(game, states[1], num_simulations=200, seed=4)
    assert (results[1].edges == alone.edges).all()


@pytest.mark.usefixtures("both_ways")
def test_another_rule_at_the_root_is_used_at_the_root_alone(game):
    options = {"num_simulations": 400, "seed": 1}
    greedy = selection.ucb1(0.0)
    plain = uctree.search(game, game.start(), **options)
    mixed = uctree.search(game, game.start(), **options, root_selection=greedy)
    assert mixed.edges["visits"].min() < plain.edges["visits"].min()
    both = uctree.search(game, game.start(), **options, selection=greedy)
    assert mixed.tree.num_edges != both.tree.num_edges or (mixed.edges != both.edges).any()


# --- evaluators ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("both_ways")
def test_a_plain_function_can_value_leaves(game):
    def judge(state, values):
        sign = 1.0 if state.left % 3 else -1.0
        values[state.to_play] = sign
        values[1 - state.to_play] = -sign

    result = uctree.search(game, game.start(), num_simulations=200, evaluator=judge)
    assert result.action == 1
    assert result.value[0] > 0.7


@pytest.mark.usefixtures("both_ways")
def test_priors_steer_the_search_and_are_reported(game):
    def judge(state, values, priors):
        priors[0], priors[1] = 0.9, 0.1

    result = uctree.search(game, game.start(), num_simulations=50, evaluator=judge)
    assert result.edges["prior"].tolist() == pytest.approx([0.9, 0.1], abs=1e-6)
    assert result.edges["visits"][0] > result.edges["visits"][1]
    assert result.edges["visits"].sum() == 50
    assert result.tree.root.visits == 51  # the root is valued once, outside the budget


@pytest.mark.usefixtures("both_ways")
def test_priors_without_mass_become_uniform(game):
    def judge(state, values, priors):
        values[0] = 0.0

    result = uctree.search(game, game.start(), num_simulations=10, evaluator=judge)
    assert result.edges["prior"].tolist() == [0.5, 0.5]


@pytest.mark.usefixtures("both_ways")
def test_several_playouts_are_averaged(game):
    result = uctree.search(
        game, game.start(), num_simulations=300, evaluator=evaluators.playout(num_playouts=4)
    )
    quarter = result.tree.edges["value_sum"][: result.tree.num_edges] * 4
    assert (quarter == np.round(quarter)).all()
    assert result.action == 1


@pytest.mark.usefixtures("both_ways")
def test_a_cut_playout_is_worth_the_heuristic():
    def heuristic(state, values):
        values[0], values[1] = 0.25, -0.25

    game = counting_game(heuristic=heuristic)
    result = uctree.search(
        game, game.start(), num_simulations=2, evaluator=evaluators.playout(max_plies=0)
    )
    assert result.value.tolist() == [0.25, -0.25]
    plain = counting_game()
    cut = evaluators.playout(max_plies=0)
    result = uctree.search(plain, plain.start(), num_simulations=2, evaluator=cut)
    assert result.value.tolist() == [0.0, 0.0]


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_no_number_is_an_error_that_names_the_state(game, bad):
    def judge(state, values):
        values[0] = bad if state.left == 2 else 0.0

    with pytest.raises(uctree.BrokenGame, match=r"judge gave a value .*\n.*actions \[[01, ]+\]"):
        uctree.search(game, game.start(), num_simulations=100, evaluator=judge)


@pytest.mark.usefixtures("both_ways")
def test_a_prior_that_is_no_number_is_an_error(game):
    def judge(state, values, logits):
        logits[0] = math.nan

    with pytest.raises(uctree.BrokenGame, match="judge gave a value or prior"):
        uctree.search(game, game.start(), num_simulations=10, evaluator=judge)


def test_an_evaluator_with_other_arguments_is_refused(game):
    def judge(position, value):
        pass

    with pytest.raises(uctree.BrokenGame, match="judge takes position, value"):
        uctree.search(game, game.start(), num_simulations=10, evaluator=judge)


# --- games that are wrong ------------------------------------------------------------------------


def search_broken(game, **options):
    """Search without the look in plain Python, which would find the mistake first."""
    return uctree.search(game, game.start(), num_simulations=2000, check=False, **options)


def test_legal_that_counts_too_many_is_an_error_deep_in_the_tree():
    def legal(state, actions):
        actions[0] = 0
        return 1 if state.left > 2 else 50

    with pytest.raises(uctree.BrokenGame, match=r"legal .*outside"):
        search_broken(counting_game(legal=legal))


def test_legal_that_writes_past_the_end_is_an_error():
    def legal(state, actions):
        for i in range(2 if state.left > 3 else 9):
            actions[i] = i % 2
        return 2 if state.left > 1 else 1

    with pytest.raises(uctree.BrokenGame, match="wrote more"):
        search_broken(counting_game(legal=legal))


def test_legal_out_of_range_is_an_error():
    def legal(state, actions):
        actions[0] = 0 if state.left > 3 else 7
        return 1

    with pytest.raises(uctree.BrokenGame, match=r"outside \[0, 2\)"):
        search_broken(counting_game(legal=legal))


@pytest.mark.usefixtures("both_ways")
def test_no_legal_action_in_a_state_that_is_not_over_is_an_error():
    def legal(state, actions):
        actions[0] = 0
        return 1 if state.left > 2 else 0

    with pytest.raises(uctree.BrokenGame, match=r"uctree.OVER|gave none"):
        search_broken(counting_game(legal=legal))


@pytest.mark.usefixtures("both_ways")
def test_an_endless_game_is_an_error_not_a_hang():
    def step(state, action, reward):
        state.to_play = 1 - state.to_play

    with pytest.raises(uctree.BrokenGame, match="still going after 100000 plies"):
        search_broken(counting_game(step=step))
    game = counting_game(step=step, max_plies=20)
    result = uctree.search(game, game.start(), num_simulations=50)
    assert result.simulations == 50


@pytest.mark.usefixtures("both_ways")
def test_a_player_who_does_not_exist_is_an_error():
    def step(state, action, reward):
        state.left -= 1
        state.to_play = 2 if state.left == 2 else 0

    with pytest.raises(uctree.BrokenGame, match="to_play to 2"):
        search_broken(counting_game(step=step))


@pytest.mark.usefixtures("both_ways")
def test_a_reward_that_is_no_number_is_an_error():
    def step(state, action, reward):
        state.left -= 1
        reward[0] = math.inf
        state.to_play = uctree.OVER if state.left == 0 else 0

    with pytest.raises(uctree.BrokenGame, match="finite"):
        search_broken(counting_game(step=step))


@pytest.mark.usefixtures("both_ways")
def test_a_game_declared_zero_sum_that_is_not_is_an_error():
    def step(state, action, reward):
        player = state.to_play
        state.left -= action + 1
        state.to_play = 1 - player
        if state.left == 0:
            reward[1] = 1.0
            state.to_play = uctree.OVER

    with pytest.raises(uctree.BrokenGame, match="zero_sum"):
        search_broken(counting_game(step=step, zero_sum=True))


def test_what_a_compiled_rule_raises_is_told_with_the_way_there():
    def step(state, action, reward):
        state.left -= 1
        reward[0] = 10 // (state.left - 2)
        state.to_play = uctree.OVER if state.left == 0 else 0

    with pytest.raises(uctree.BrokenGame, match=r"ZeroDivisionError(.|\n)*actions \[[01, ]*\]"):
        search_broken(counting_game(step=step))


@pytest.mark.usefixtures("both_ways")
def test_a_root_beyond_max_plies_is_an_error():
    position = np.dtype([("ply", np.int16), ("to_play", np.int8)])

    def legal(state, actions):
        actions[0] = 0
        return 1

    def step(state, action, reward):
        state.ply += 1

    game = uctree.Game(position, legal, step, num_players=1, num_actions=1, max_plies=3)
    state = game.play([0, 0, 0])
    with pytest.raises(uctree.BrokenGame, match="max_plies=3"):
        uctree.search(game, state, num_simulations=1)


# --- chance --------------------------------------------------------------------------------------

DICE = np.dtype([("rolled", np.int8), ("to_play", np.int8)])


def dice_game(probabilities=(0.5, 0.5)):
    """Stop for 0.4, or roll: 1 with the second outcome, 0 with the first."""

    def legal(state, actions):
        actions[0], actions[1] = 0, 1
        return 2

    def chance(state, outcomes, chances):
        for i in range(2):
            outcomes[i] = i
            chances[i] = probabilities[i]
        return 2

    def step(state, action, reward):
        if state.to_play == uctree.CHANCE:
            reward[0] = float(action)
            state.to_play = uctree.OVER
        elif action == 1:
            state.to_play = uctree.CHANCE
        else:
            reward[0] = 0.4
            state.to_play = uctree.OVER

    return uctree.Game(
        DICE, legal, step, num_players=1, num_actions=2, chance=chance, max_outcomes=2, name="dice"
    )


@pytest.mark.usefixtures("both_ways")
def test_an_edge_into_chance_has_the_expected_value():
    game, rule = dice_game(), selection.ucb1(c=math.sqrt(2))
    result = uctree.search(game, game.start(), num_simulations=500, selection=rule)
    assert result.edges["q"][1, 0] == pytest.approx(0.5, abs=1e-12)
    assert result.edges["q"][0, 0] == pytest.approx(0.4)
    assert result.action == 1


@pytest.mark.usefixtures("both_ways")
def test_a_chance_root_is_valued_and_has_nothing_to_decide():
    game = dice_game()
    result = uctree.search(game, game.play([1]), num_simulations=500)
    assert result.action is None
    assert result.value[0] == pytest.approx(0.5, abs=1e-12)
    assert result.edges["prior"].tolist() == [0.5, 0.5]
    assert "chance to move" in str(result)
    assert result.policy().sum() == pytest.approx(1.0)


def test_there_may_be_more_outcomes_than_actions():
    def legal(state, actions):
        actions[0] = 0
        return 1

    def chance(state, outcomes, probabilities):
        for i in range(50):
            outcomes[i] = i
            probabilities[i] = 0.02
        return 50

    def step(state, action, reward):
        if state.to_play == uctree.CHANCE:
            reward[0] = float(action)
            state.rolled += 1
            state.to_play = 0 if state.rolled < 3 else uctree.OVER
        else:
            state.to_play = uctree.CHANCE

    game = uctree.Game(
        DICE, legal, step, num_players=1, num_actions=1, chance=chance, max_outcomes=50
    )
    result = uctree.search(game, game.start(), num_simulations=3000)
    assert result.value[0] == pytest.approx(3 * 24.5, rel=0.05)


@pytest.mark.usefixtures("both_ways")
def test_probabilities_that_do_not_add_up_are_an_error():
    with pytest.raises(uctree.BrokenGame, match="add up to 1"):
        search_broken(dice_game(probabilities=(0.5, 0.4)))


@pytest.mark.usefixtures("both_ways")
def test_an_impossible_outcome_never_becomes_an_edge():
    game = dice_game(probabilities=(0.0, 1.0))
    result = uctree.search(game, game.play([1]), num_simulations=20)
    assert result.edges["action"].tolist() == [1]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_search_out_of_time_still_chooses(threads):
    game = uctree.games.connect_four()
    result = uctree.search(game, game.start(), seconds=1e-9, threads=threads, parallel="root")
    assert result.status == "seconds"
    assert result.simulations >= 1
    assert result.action in game.legal(game.start())


@pytest.mark.usefixtures("both_ways")
def test_playouts_leave_the_actions_alone_that_priors_are_for():
    def flat(state, priors):
        for action in range(len(priors)):
            priors[action] = 1.0

    rules = connect_four(rows=3, cols=4)
    game = uctree.Game(
        rules.dtype, rules.rules.legal, rules.rules.step, num_players=2, num_actions=4,
        priors=flat, zero_sum=True, max_plies=12,
    )  # fmt: skip
    result = uctree.search(
        game, game.start(), num_simulations=400, evaluator=evaluators.playout(priors=True)
    )
    nodes = [node for node in result.tree.root.walk() if node.edges]
    assert len(nodes) > 200
    for node in nodes:
        assert [node.tree.action(edge) for edge in node.edges] == game.legal(node.state)


# --- numbers from NumPy, large and small ---------------------------------------------------------


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.uint64])
def test_numpy_integers_are_budgets_and_seeds(both_ways, game, kind):
    result = uctree.search(game, game.start(), num_simulations=kind(100), seed=kind(7))
    plain = uctree.search(game, game.start(), num_simulations=100, seed=7)
    assert result.edges["visits"].tolist() == plain.edges["visits"].tolist()
    assert json.dumps(result.to_json())
    many = uctree.search_many(game, [game.start()] * 2, num_simulations=kind(50), seed=kind(7))
    assert many[1].seed == 8


def test_too_many_threads_are_refused_at_once(game):
    with pytest.raises(ValueError, match=r"threads must be at most 1,024; got 100,000\. More"):
        uctree.search(game, game.start(), num_simulations=10, threads=100_000)
    with pytest.raises(ValueError, match="at most 1,024"):
        uctree.Searcher(game, threads=np.int64(100_000))


def paying_game(amount, **options):
    """One player, two actions, three plies; action 1 pays `amount`."""

    def legal(state, actions):
        actions[0], actions[1] = 0, 1
        return 2

    def step(state, action, reward):
        state.left += 1
        reward[0] = amount * action
        state.to_play = uctree.OVER if state.left == 3 else 0

    return uctree.Game(COUNTER, legal, step, num_players=1, num_actions=2, **options)


@pytest.mark.parametrize("amount", [5e-324, 1e-310, 1e-300, 1e100 / 3])
@pytest.mark.parametrize("rule", [selection.ucb1(), selection.ucb1_tuned(), selection.puct()])
def test_rewards_of_any_size_give_numbers(both_ways, amount, rule):
    def judge(state, values, logits):
        values[0] = 0.0

    options = {"evaluator": judge} if rule.name.startswith("puct") else {}
    game = paying_game(amount)
    result = uctree.search(game, num_simulations=64, selection=rule, **options)
    for name in ("q", "lcb", "ucb"):
        assert np.isfinite(result.edges[name]).all(), name
    assert np.isfinite(result.value).all()
    assert np.isfinite(result.policy()).all()
    assert "nan" not in str(result)


@pytest.mark.parametrize("amount", [1e308, -1e308, 1.1e100])
@pytest.mark.parametrize("options", [{}, {"max_plies": 3, "payoff_range": (0, 1)}])
def test_rewards_whose_sums_would_overflow_are_refused(both_ways, amount, options):
    with pytest.raises(uctree.BrokenGame, match=r"at most 1e\+100|value above 1e\+100"):
        search_broken(paying_game(amount, **options))


def test_two_rewards_that_cancel_are_refused_as_well(both_ways):
    def step(state, action, reward):
        state.left -= 1
        reward[0], reward[1] = 1e308, -1e308
        state.to_play = uctree.OVER if state.left == 0 else 0

    for zero_sum in (False, True):
        with pytest.raises(uctree.BrokenGame, match=r"1e\+100"):
            search_broken(counting_game(step=step, zero_sum=zero_sum))

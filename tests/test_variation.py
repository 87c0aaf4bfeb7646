"""The principal variation, from trees made by hand, and how it is completed."""

from __future__ import annotations

import numpy as np
import pytest

import uctree
from tests.hand_made_trees import grown, result_of
from tests.small_games import Heap, dice_game, heap_game, heap_legal, heap_start, heap_step
from uctree import evaluators, games
from uctree.tree import Layout, Tree


def test_a_shallow_tree_gives_a_short_line():
    line = result_of(grown(heap_game(), {(0, 1): (5, 0.0)})).principal_variation()
    assert (line.actions, line.complete, line.tree_depth, line.completed_by) == (
        [0, 1], False, 2, None,
    )  # fmt: skip
    assert len(line.edges) == 2


def test_a_line_says_who_takes_each_action_and_what_is_an_outcome():
    game = games.pig()
    result = result_of(grown(game, {(0, 4, 1, 0): (5, [0.0, 0.0])}))
    line = result.principal_variation()
    assert line.players == [0, uctree.CHANCE, 0, 1]
    assert "expected: P0:roll chance:5 P0:stop P1:roll\n" in str(result)
    assert result.to_json()["principal_variation"]["players"] == [0, -1, 0, 1]
    completed = result.principal_variation("playout")
    states = [game.play(completed.actions[:ply]) for ply in range(completed.depth)]
    assert completed.players == [game.to_play(state) for state in states]


def test_the_line_of_a_lone_player_names_only_chance():
    tree = grown(dice_game(), {(0, 0, 0): (5, [2.0])})
    assert "expected: 0 chance:0 0\n" in str(result_of(tree))
    open_loop = result_of(tree, options={"open_loop": True})
    assert open_loop.principal_variation().players == [0, uctree.CHANCE] * 3


def test_a_line_is_completed_by_a_playout_of_the_results_seed():
    game = heap_game()
    tree = grown(game, {(0, 1): (5, 0.0)})
    lines = [result_of(tree, seed=s).principal_variation("playout") for s in range(20)]
    for line in lines:
        assert line.actions[:2] == [0, 1]
        assert game.is_over(game.play(line.actions))
        assert (line.complete, line.tree_depth, line.completed_by) == (True, 2, "playout")
    assert len({tuple(line.actions) for line in lines}) > 5
    again = result_of(tree, seed=3).principal_variation("playout")
    assert again == lines[3]


def perfect(state, values):
    """The player to move loses if the heap can be divided by 4."""
    wins = 1.0 if state.left % 4 else -1.0
    values[state.to_play] = wins
    values[1 - state.to_play] = -wins


def test_a_line_is_completed_by_what_an_evaluator_likes():
    tree = grown(heap_game(), {(1,): (5, 0.0)})  # 7 are left for player 1
    for evaluator in (perfect, evaluators.compiled(perfect)):
        line = result_of(tree).principal_variation(evaluator)
        # To 4, then any (the first), to 0.
        assert line.actions == [1, 2, 0, 2]
        assert (line.complete, line.tree_depth, line.completed_by) == (True, 1, "perfect")


def test_a_line_is_completed_by_playouts_of_every_action():
    tree = grown(heap_game(), {(0, 1, 2): (5, 0.0)})  # 3 are left for player 1, who takes them
    line = result_of(tree).principal_variation(evaluators.playout(num_playouts=20))
    assert line.actions == [0, 1, 2, 2]
    assert line.completed_by == "playout"


def test_a_line_is_completed_by_a_function_of_the_state():
    def take_one(state):
        return 0

    line = result_of(grown(heap_game(), {(2,): (5, 0.0)})).principal_variation(take_one)
    assert line.actions == [2, *6 * [0]]
    assert line.complete
    assert line.completed_by.endswith("take_one")


def test_a_line_to_the_end_is_not_completed():
    game = heap_game()
    tree = grown(game, {(1,): (5, 1.0)}, game.play([2, 2, 0]))
    line = result_of(tree).principal_variation("playout")
    assert (line.actions, line.complete, line.completed_by) == ([1], True, None)


def test_what_cannot_complete_a_line_is_refused():
    result = result_of(grown(heap_game(), {(2,): (5, 0.0)}))
    with pytest.raises(TypeError, match=r'"best_reply", an evaluator, or a function.*got 3'):
        result.principal_variation(3)
    with pytest.raises(uctree.BrokenGame, match="an evaluator takes state, values"):
        result.principal_variation(lambda state, action: 0)


def test_a_completion_ends_at_max_plies():
    def idle(state, action, reward):
        state.ply += 1
        state.to_play = 1 - state.to_play

    game = uctree.Game(
        Heap, heap_legal, idle, num_players=2, num_actions=3, start=heap_start, max_plies=7
    )
    tree = grown(game, {(0,): (5, 0.0)}, game.play([0, 0]))
    line = result_of(tree).principal_variation("playout")
    assert (line.depth, line.complete) == (5, False)


def test_outcomes_of_a_completion_are_drawn_by_their_probability():
    tree = grown(dice_game(), {(0,): (5, [2.0])})

    def rolls(seed):
        return result_of(tree, seed=seed).principal_variation(lambda state: 0).actions[1::2]

    outcomes = [outcome for seed in range(60) for outcome in rolls(seed)]
    # 60 sixes end 60 lines; 300 other rolls are expected, give or take 42.
    assert outcomes.count(1) == 60
    assert 300 - 170 < outcomes.count(0) < 300 + 170


def test_in_an_open_loop_the_likeliest_outcomes_stand_between_the_actions():
    tree = grown(dice_game(), {(0, 0, 0): (5, [2.0])})
    line = result_of(tree, options={"open_loop": True}).principal_variation()
    assert line.actions == [0, 0, 0, 0, 0, 0]  # roll, no six, roll, ...
    assert [edge >= 0 for edge in line.edges] == [True, False] * 3
    assert (line.tree_depth, line.complete) == (6, False)


def test_in_an_open_loop_only_what_is_legal_after_those_outcomes_is_expected():
    state = heap_game().play([2, 2])  # three are left
    tree = grown(heap_game(), {(1, 2): (5, 0.0), (1, 0): (2, 0.0)}, state)
    line = result_of(tree, options={"open_loop": True}).principal_variation()
    assert (line.actions, line.complete) == ([1, 0], True)


def test_at_a_chance_root_priors_are_probabilities():
    game = dice_game()
    tree = grown(game, {(1,): (5, [1.0]), (0,): (2, [3.0])}, game.play([0]))
    assert result_of(tree).edges["prior"].tolist() == [1 / 6, 5 / 6]
    assert result_of(tree).action is None


def test_a_shared_node_met_again_ends_the_line():
    def turn(state, action, reward):
        state.left = 8 - state.left  # 8, 0, 8, ...

    def two(state, actions):
        actions[0] = 0
        return 1

    game = uctree.Game([("left", np.int16), ("to_play", np.int8)], two, turn, num_players=1,
                       num_actions=1, max_plies=50)  # fmt: skip
    tree = Tree(game, game.start(), Layout(shared=True), 1, 10)
    tree.edges[:3] = 0
    tree.edges["first"][:2] = [1, 2]
    tree.edges["num_edges"][:2] = 1
    tree.edges["visits"][:3] = tree.edges["node_visits"][:3] = 4
    tree.edges["node"][:3] = [0, 1, 0]
    tree.head["used"] = 3
    line = result_of(tree).principal_variation()
    assert (line.actions, line.complete) == ([0, 0], False)


def test_players_around_a_paranoid_one_break_ties_against_it():
    game = uctree.Game(Heap, heap_legal, heap_step, num_players=3, num_actions=3, start=heap_start)
    tree = grown(game, {(0, 0): (5, [0.5, 0.9, 0.0]), (0, 1): (5, [0.1, 0.2, 0.0])})
    assert result_of(tree).principal_variation().actions == [0, 0]
    paranoid = result_of(tree, options={"opponents": "paranoid"})
    assert paranoid.principal_variation().actions == [0, 1]

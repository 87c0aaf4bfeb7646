"""Games whose actions are vectors: the contract, the search, lines of play."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import uctree
from tests.continuous.vector_games import LOSS, LOSS_3D, MASS, NARROW, SPHERE
from uctree import backup, continuous, games, selection, stopping

pytestmark = pytest.mark.quick

# --- the contract --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_actions": 3}, "no num_actions"),
        ({"legal": lambda state, actions: 0}, "pass None"),
        ({"action_space": 3}, r"uctree\.Box"),
        ({"action_space": None}, "num_actions must"),
        ({"bounds": lambda state: 1}, "bounds takes 1"),
    ],
)
def test_a_continuous_game_that_makes_no_sense_is_refused(arguments, message):
    given = {"legal": None, "action_space": uctree.Box(0, 1), "num_players": 3} | arguments
    legal = given.pop("legal")
    with pytest.raises(uctree.BrokenGame, match=message):
        uctree.Game(LOSS.dtype, legal, LOSS.rules.step, **given)


@pytest.mark.parametrize(("low", "high", "dim"), [(1, 0, None), (0, math.inf, 2), ([0, 0], [1], 2)])
def test_a_box_needs_finite_corners_in_order(low, high, dim):
    with pytest.raises(uctree.BrokenGame):
        uctree.Box(low, high, dim)


def test_an_action_outside_its_box_is_illegal():
    with pytest.raises(uctree.IllegalAction, match=r"expected \[-5.0\] to \[5.0\]"):
        LOSS.step(LOSS.start(), 5.1)
    with pytest.raises(uctree.IllegalAction, match="3 finite numbers"):
        LOSS_3D.step(LOSS_3D.start(), [1.0, 2.0])
    with pytest.raises(uctree.IllegalAction, match="length"):
        SPHERE.step(SPHERE.start(), [1.0, 1.0, 0.0])


def test_bounds_make_the_box_of_a_state_and_say_how_many_coordinates_count():
    after, _ = NARROW.step(NARROW.start(), [0.25, 0.0])
    low, high = NARROW.box(after)
    assert (low.tolist(), high.tolist()) == ([-0.25], [0.25])
    with pytest.raises(uctree.IllegalAction):
        NARROW.step(after, [0.3])


def test_actions_are_shown_and_read_as_vectors():
    start = LOSS_3D.start()
    assert LOSS.show_action(LOSS.start(), [0.5]) == "0.5"
    assert LOSS_3D.show_action(start, [0.5, -1, 2]) == "(0.5, -1, 2)"
    assert LOSS_3D.read_action(start, "(0.5, -1, 2)").tolist() == [0.5, -1.0, 2.0]
    with pytest.raises(uctree.IllegalAction, match="write 3 numbers"):
        LOSS_3D.read_action(start, "left")


def test_a_vector_that_the_game_cannot_read_is_illegal():
    rules = LOSS.rules
    game = uctree.Game(
        LOSS.dtype, None, rules.step, num_players=3, action_space=LOSS.action_space, max_plies=3,
        read_action=lambda state, text: [{"left": -1.0, "right": 1.0}[text]],
    )  # fmt: skip
    assert game.read_action(game.start(), " left ").tolist() == [-1.0]
    with pytest.raises(uctree.IllegalAction, match=r"'up' is no action; write 1 numbers"):
        game.read_action(game.start(), "up")


def test_a_continuous_game_lists_no_actions_and_a_discrete_one_has_no_box():
    with pytest.raises(TypeError, match="too many to list"):
        LOSS.legal(LOSS.start())
    with pytest.raises(uctree.UctreeError, match=r"continuous\.solve_backward"):
        uctree.solve(LOSS)
    with pytest.raises(TypeError, match="legal"):
        games.nim().box(games.nim().start())


def test_replay_gives_the_episode_of_a_path():
    episode = LOSS.replay([[-0.5], [2.0], [-1.25]])
    assert episode.complete
    assert episode.returns.tolist() == [4.625, 0.5625, 45.125]
    assert not LOSS.replay([[0.0]]).complete


def test_a_continuous_game_can_be_sent_to_another_process():
    copy = pickle.loads(pickle.dumps(LOSS_3D))
    assert copy.action_space == LOSS_3D.action_space
    assert copy.replay([[1, 1, 1]] * 3).returns.tolist() == LOSS.replay([3] * 3).returns.tolist()


@pytest.mark.parametrize("game", [LOSS, LOSS_3D, MASS, NARROW, SPHERE, games.leap()])
def test_the_doctor_finds_nothing_wrong_with_continuous_games(game):
    report = uctree.check(game, episodes=20)
    assert not report.findings
    assert "diverges" in report.checked


def test_the_doctor_finds_bounds_that_are_no_box():
    def bounds(state, low, high):
        low[0], high[0] = 3.0, 2.0
        return 1

    game = uctree.Game(
        LOSS.dtype, None, LOSS.rules.step, num_players=3, action_space=LOSS.action_space,
        bounds=bounds, max_plies=3,
    )  # fmt: skip
    assert [finding.rule for finding in uctree.check(game, episodes=3).findings] == ["bounds-range"]


def test_the_doctor_finds_rewards_that_are_no_numbers():
    def step(state, action, reward):
        LOSS.rules.step(state, action, reward)
        if state.ply == 3 and action[0] > 0:
            reward[0] = np.inf

    game = uctree.Game(
        LOSS.dtype, None, step, num_players=3, action_space=LOSS.action_space, max_plies=3
    )
    assert "reward-finite" in [finding.rule for finding in uctree.check(game, episodes=9).findings]


# --- the search ----------------------------------------------------------------------------------


def test_widening_bounds_the_edges_of_every_node():
    result = uctree.search(LOSS, LOSS.start(), num_simulations=2000, seed=1)
    for node in result.tree.root.walk():
        limit = selection.widening_limit(node.visits, 2.0, 0.5)
        assert len(node.edges) <= limit
        own = 0 if node.edge == 0 else 1
        if node.edges:
            assert node.visits == own + result.tree.edge_visits(node.edges).sum()


def test_the_same_seed_gives_the_same_tree_compiled_or_not(monkeypatch):
    compiled = uctree.search(LOSS, LOSS.start(), num_simulations=60, seed=3)
    again = uctree.search(LOSS, LOSS.start(), num_simulations=60, seed=3)
    assert compiled.tree.edges[: compiled.tree.num_edges].tobytes() == again.tree.edges[
        : again.tree.num_edges].tobytes()  # fmt: skip
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    plain = uctree.search(LOSS, LOSS.start(), num_simulations=60, seed=3)
    assert plain.edges["visits"].tolist() == compiled.edges["visits"].tolist()
    np.testing.assert_allclose(plain.edges["q"], compiled.edges["q"], rtol=1e-12)


def test_all_vectors_of_a_search_are_legal(both_ways):
    for game in (NARROW, SPHERE, MASS):
        result = uctree.search(game, game.start(), num_simulations=200, seed=0)
        for node in result.tree.root.walk():  # which steps, and so checks every action
            assert node.visits > 0


def test_a_result_speaks_of_vectors(interpreted):
    result = uctree.search(LOSS_3D, LOSS_3D.start(), num_simulations=60, seed=0)
    assert result.action.shape == (3,)
    assert result.edges["action"].shape == (len(result.edges), 3)
    assert result.policy().sum() == pytest.approx(1.0)
    assert result.to_json()["action"] == result.action.tolist()
    assert "(" in str(result)
    lower, upper = result.bounds()
    assert (lower <= upper).all()


def test_a_search_of_one_player_plans_well():
    result = uctree.search(
        MASS, MASS.start(), num_simulations=30_000, selection=selection.ucb1(0.05),
        proposal=continuous.quadratic(), backup=backup.maximum(), seed=0,
    )  # fmt: skip
    best = continuous.solve_backward(MASS).returns[0]
    nothing = MASS.replay([[0.0]] * 6).returns[0]
    assert nothing < result.value[0] <= best + 1e-9
    assert best - result.value[0] < 0.3 * (best - nothing)


@pytest.mark.parametrize(
    "proposal",
    [continuous.uniform(), continuous.gaussian(), continuous.low_discrepancy(),
     continuous.quadratic()],
    ids=lambda proposal: proposal.name,
)  # fmt: skip
def test_every_proposal_gives_a_search(both_ways, proposal):
    result = uctree.search(LOSS, LOSS.start(), num_simulations=200, proposal=proposal, seed=0)
    assert result.edges["visits"].sum() == 200
    assert len({tuple(a) for a in result.edges["action"].tolist()}) > 1


def test_a_function_of_the_users_proposes():
    def propose(state, action, low, high, count):
        action[0] = low[0] + (high[0] - low[0]) * (count + 1) / 100.0

    result = uctree.search(LOSS, LOSS.start(), num_simulations=30, proposal=propose)
    np.testing.assert_allclose(result.edges["action"][:3, 0], [-4.9, -4.8, -4.7])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"transpositions": True}, "transpositions"),
        ({"solver": True}, "solver"),
        ({"open_loop": True}, "open_loop"),
        ({"threads": 2, "parallel": "tree"}, "root"),
        ({"selection": selection.rave()}, "ucb1"),
        ({"evaluator": lambda state, values, priors: None}, "prior"),
    ],
)
def test_what_does_not_go_with_vectors_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        uctree.search(LOSS, LOSS.start(), num_simulations=10, **options)


def test_vectors_are_not_proposed_where_actions_are_numbers():
    game = games.nim()
    with pytest.raises(ValueError, match="numbers"):
        uctree.search(game, game.start(), num_simulations=5, proposal=continuous.uniform())
    with pytest.raises(ValueError, match="boxes"):
        uctree.search(
            SPHERE, SPHERE.start(), num_simulations=5, proposal=continuous.low_discrepancy()
        )


def test_root_parallel_trees_are_one_result():
    result = uctree.search(LOSS, LOSS.start(), num_simulations=600, threads=2, seed=4)
    again = uctree.search(LOSS, LOSS.start(), num_simulations=600, threads=2, seed=4)
    assert len(result.trees) == 2
    assert result.edges["visits"].sum() == 600
    assert result.action.tolist() == again.action.tolist()
    assert LOSS.replay(result.principal_variation().actions)


def test_a_searcher_keeps_what_it_knows_below_the_action_taken():
    searcher = uctree.Searcher(LOSS)
    result = searcher.search(num_simulations=2000)
    row = int(np.argmax(result.edges["visits"]))
    below = int(result.edges["visits"][row])
    searcher.advance(result.action)
    assert searcher.tree.root.visits == below
    after = searcher.search(num_simulations=500)
    assert after.tree.root.visits == below + 500
    searcher.advance([0.123])  # what nobody has tried
    assert searcher.tree is None


def test_memory_is_kept_and_the_search_goes_on():
    result = uctree.search(LOSS, LOSS.start(), num_simulations=30_000, max_memory="500kB", seed=0)
    assert result.simulations == 30_000
    assert result.tree.num_bytes <= 500_000


def test_a_tree_is_saved_and_goes_on_from_a_file(tmp_path):
    result = uctree.search(LOSS, LOSS.start(), num_simulations=500, seed=0)
    result.tree.save(tmp_path / "tree")
    tree = uctree.Tree.load(tmp_path / "tree")
    more = uctree.search(tree.game, tree.state, num_simulations=100, tree=tree, seed=1)
    assert more.tree.root.visits == 600
    with pytest.raises(ValueError, match=r"other|another|differ"):
        uctree.Tree.load(tmp_path / "tree", LOSS_3D)


def test_a_search_of_vectors_stops_when_it_is_told():
    result = uctree.search(
        LOSS, LOSS.start(), num_simulations=50_000, stop=stopping.kl_gain(1e-3, interval=200),
        selection=selection.ucb1(0.01), seed=0,
    )  # fmt: skip
    assert result.status in ("kl_gain", "simulations")


def test_two_searches_of_vectors_are_compared():
    one = uctree.search(LOSS, LOSS.start(), num_simulations=100, seed=0)
    other = uctree.search(LOSS, LOSS.start(), num_simulations=100, seed=1)
    comparison = uctree.compare(one, other)
    assert len(comparison.edges) == len(one.edges) + len(other.edges)
    assert comparison.total_variation == 1.0
    assert uctree.compare(one, one).total_variation == 0.0


# --- paths ---------------------------------------------------------------------------------------


def test_a_shallow_tree_gives_an_incomplete_line_and_no_exception():
    result = uctree.search(LOSS, LOSS.start(), num_simulations=8, seed=0)
    line = result.principal_variation()
    assert not line.complete
    assert line.depth < 3


@pytest.mark.parametrize("complete", ["best_reply", "playout", uctree.evaluators.playout()])
def test_a_shallow_line_is_completed(complete):
    result = uctree.search(LOSS, LOSS.start(), num_simulations=3, seed=0)
    line = result.principal_variation(complete=complete)
    assert line.complete
    assert line.tree_depth < 3
    assert line.completed_by in ("best_reply", "playout")
    assert LOSS.replay(line.actions).complete


def test_best_replies_complete_a_line_as_players_who_foresee_would():
    result = uctree.search(LOSS, LOSS.start(), num_simulations=1, seed=0)
    x1, x2, x3 = (float(a[0]) for a in result.principal_variation("best_reply").actions)
    assert x2 == pytest.approx(games.loss_game.__globals__["reply_2"](x1), abs=1e-9)
    assert x3 == pytest.approx(games.loss_game.__globals__["reply_3"](x2), abs=1e-9)

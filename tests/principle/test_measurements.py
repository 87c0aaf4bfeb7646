"""Studies: searches with pruning, compared with the action principle."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from uctree import games, principle
from uctree.principle import measurements
from uctree.principle.page import shown_line


@pytest.fixture(scope="module")
def connect_four():
    return games.connect_four()


@pytest.fixture(scope="module")
def pruned(connect_four):
    return principle.study(connect_four, num_simulations=4_000, num_nodes=4, seed=3)


def test_the_visits_of_a_search_are_those_of_the_classical_solution(connect_four):
    found = principle.study(connect_four, num_simulations=20_000, num_rounds=1, keep=None)
    root = found.nodes[0].edges
    assert len(root) == 7
    assert root["share"] == pytest.approx(root["classical"], abs=0.005)
    assert root["share"].max() > 1.5 * root["share"].min()
    assert found.prunings == ()


def test_pruned_actions_are_not_searched_any_more(pruned):
    gone = {a for each in pruned.prunings if each.line == () for a in each.actions}
    left = set(pruned.nodes[0].edges["action"].tolist())
    assert gone
    assert gone | left == set(range(7))
    assert not gone & left
    assert pruned.result.action in left


def test_nodes_below_one_that_was_just_pruned_lose_their_own_actions(connect_four):
    found = principle.study(
        connect_four, num_simulations=4_000, num_rounds=2, keep=principle.by_value(0.1)
    )
    tree = found.result.tree
    assert found.prunings[0].line == ()
    children = [each for each in found.prunings if len(each.line) == 1]
    assert len(children) >= 2
    for pruning in children:
        actions = tree.edges["action"]
        (edge,) = (e for e in tree.root.edges if actions[e] == pruning.line[0])
        span = tree.root.child(edge).edges
        left = actions[span.start : span.stop].tolist()
        assert sorted([*left, *pruning.actions]) == list(range(7))


def test_visits_of_pruned_actions_stay_in_their_node(pruned):
    root = pruned.nodes[0]
    assert root.visits == 4_000 > root.edges["visits"].sum()
    assert root.num_pruned == 7 - len(root.edges)
    assert root.edges["prior"] == pytest.approx(1 / len(root.edges))


def test_every_pruning_keeps_the_identity(pruned):
    assert len(pruned.prunings) >= 3
    for each in pruned.prunings:
        assert abs(each.measured - each.predicted) <= 4 * each.error
        assert each.predicted == pytest.approx(math.exp(-each.free_energy / each.hbar))
        assert each.special_case == pytest.approx(each.hbar * math.log1p(len(each.actions)))
        assert each.free_energy > 0


def test_nodes_add_up(pruned):
    for node in pruned.nodes:
        mine = [each for each in pruned.prunings if each.line == node.line]
        assert node.free_energy == sum(each.free_energy for each in mine)
        total = node.action + node.one_loop + node.free_energy
        assert node.effective_action == pytest.approx(total)
        assert node.penalty == node.free_energy / node.visits
        assert node.hbar == pytest.approx(1 / math.sqrt(1 + node.visits / 100))
        edges = node.edges
        assert edges["bonus"] == pytest.approx(0.375 * edges["validity"] * edges["exploration"])


def test_the_constant_falls_along_the_search(pruned):
    simulations, hbars = zip(*pruned.hbars, strict=True)
    assert simulations == tuple(range(400, 4_001, 400))
    assert list(hbars) == sorted(hbars, reverse=True)
    assert hbars[-1] == pytest.approx(1 / math.sqrt(41))


def test_the_same_seed_gives_the_same_study(connect_four, pruned):
    again = principle.study(connect_four, num_simulations=4_000, num_nodes=4, seed=3)
    assert again.to_json() == pruned.to_json()
    json.dumps(again.to_json(), allow_nan=False)


def test_values_can_decide_what_is_pruned(connect_four):
    found = principle.study(
        connect_four, num_simulations=2_000, keep=principle.by_value(0.05), num_nodes=1
    )
    assert found.nodes[0].num_pruned > 0
    assert repr(found).startswith("<Study of connect_four: 1 nodes, ")


def leaning(state, values, logits):
    for action in range(logits.shape[0]):
        logits[action] = -0.2 * action


@pytest.mark.parametrize("mode", ["simplex", "saddle", "off"])
def test_priors_of_an_evaluator_are_those_of_the_study(connect_four, mode):
    found = principle.study(
        connect_four, num_simulations=1_000, evaluator=leaning, mode=mode, keep=None, num_rounds=2,
        visit_scale=math.inf,
    )  # fmt: skip
    root = found.nodes[0].edges
    weights = np.exp(-0.2 * np.arange(7))
    assert root["prior"] == pytest.approx(weights / weights.sum(), abs=1e-6)
    assert root["share"] == pytest.approx(root["classical"], abs=0.02)
    assert found.to_json()["options"]["visit_scale"] is None
    assert root["squares"] == pytest.approx(weights**2 / np.sum(weights**2), abs=1e-6)
    assert (root["bonus"].max() > 0) == (mode != "off")


def test_without_a_weight_for_priors_there_is_no_classical_solution(connect_four):
    found = principle.study(connect_four, num_simulations=300, kappa=0.0, mode="off", keep=None)
    assert np.isnan(found.nodes[0].edges["classical"]).all()
    edge = found.to_json()["nodes"][0]["edges"][0]
    assert edge["classical"] is None
    assert edge["validity"] is None


def test_nodes_of_chance_are_passed_through():
    found = principle.study(games.pig(), num_simulations=1_000, num_nodes=12)
    assert all(node.to_play >= 0 for node in found.nodes)
    below = [node for node in found.nodes if len(node.line) == 2 and node.line[0] == 0]
    assert below  # rolled, and an outcome
    shown = shown_line(found.result.game, found.result.state, (0, 2))
    assert shown == "roll 3"


def test_a_study_says_what_it_cannot_do(connect_four):
    over = connect_four.play([0, 1, 0, 1, 0, 1, 0])
    with pytest.raises(ValueError, match="is over; pass a state that is not over"):
        principle.study(connect_four, over)
    with pytest.raises(ValueError, match="num_rounds must be at least 1; got 0"):
        principle.study(connect_four, num_rounds=0)
    with pytest.raises(ValueError, match="10 rounds need at least 10 simulations"):
        principle.study(connect_four, num_simulations=5)
    with pytest.raises(ValueError, match=r"shape \(2,\) for 7 edges"):
        principle.study(connect_four, keep=lambda visits, q, prior: np.array([True, False]))
    with pytest.raises(ValueError, match="nothing is kept; keep a child"):
        principle.study(connect_four, keep=lambda visits, q, prior: visits < 0)
    with pytest.raises(ValueError, match=r"loss_game are vectors.*opened again"):
        principle.study(games.loss_game())


def test_ctrl_c_ends_a_study_with_the_result_so_far(monkeypatch):
    game, real, rounds = games.tic_tac_toe(), measurements.search, []

    def interrupted_at_the_second(*arguments, **options):
        result = real(*arguments, **options)
        rounds.append(result)
        return replace(result, status="interrupted") if len(rounds) == 2 else result

    monkeypatch.setattr(measurements, "search", interrupted_at_the_second)
    study = principle.study(game, num_simulations=1000, num_rounds=5)
    assert len(rounds) == len(study.hbars) == 2
    assert "400 simulations in 2 rounds, interrupted" in str(study)

"""Refinement of actions in the tree: new edges, sound statistics, better lines."""

from __future__ import annotations

import numpy as np
import pytest

import uctree
from uctree import backup, continuous, games, refine, regret, selection
from uctree.continuous import budgets

pytestmark = pytest.mark.quick

LOSS = games.loss_game()
KINDS = [
    refine.gradient(0.1, frequency=0.2),
    refine.gradient(0.1, frequency=2.0, whole=False, num_steps=2),
    refine.local_minimax(0.05, frequency=0.1),
    refine.local_minimax(0.05, axes=True, frequency=0.1),
    refine.best_replies(frequency=0.05),
]
LOSS_3D = games.loss_game(3)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.name} {kind.frequency}")
def test_refined_edges_have_the_returns_of_their_own_vectors_alone(both_ways, kind):
    """At the last stage every visit of an edge pays what its path pays, and nothing else."""
    result = uctree.search(LOSS, LOSS.start(), num_simulations=100, refine=kind, seed=0)
    assert result.evaluations > result.simulations
    tree, checked = result.tree, 0
    for first in tree.root.edges:
        one = tree.root.child(first)
        for second in one.edges:
            two = one.child(second)
            for third in two.edges:
                visits = int(tree.edges["visits"][third])
                path = [tree.action(edge) for edge in (first, second, third)]
                if visits:
                    paid = LOSS.replay(path).returns
                    np.testing.assert_allclose(tree.edges["value_sum"][third] / visits, paid)
                    checked += 1
    assert checked > 10


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.name} {kind.frequency}")
def test_visits_add_up_where_edges_are_refined(both_ways, kind):
    result = uctree.search(LOSS, LOSS.start(), num_simulations=50, refine=kind, seed=1)
    tree = result.tree
    assert tree.edge_visits(tree.root.edges).sum() == 50
    for node in tree.root.walk():
        if node.edges:
            own = node.visits - tree.edge_visits(node.edges).sum()
            assert own in (0, 1)  # a node that a line was inserted with is never valued itself


def test_the_same_seed_refines_alike_compiled_or_not(monkeypatch):
    def searched():
        return uctree.search(
            LOSS, LOSS.start(), num_simulations=40, refine=refine.best_replies(frequency=0.2),
            backup=backup.maximum(), seed=2,
        )  # fmt: skip

    one = searched()
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    plain = searched()
    assert plain.edges["visits"].tolist() == one.edges["visits"].tolist()
    np.testing.assert_allclose(plain.edges["action"], one.edges["action"], rtol=1e-9)
    assert plain.evaluations == one.evaluations


def test_lines_climb_slopes_in_plain_python_too(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    kind = refine.gradient(0.1, frequency=1.0, num_steps=2)
    result = uctree.search(LOSS, LOSS.start(), num_simulations=5, refine=kind, seed=0)
    assert result.evaluations > result.simulations


def test_the_frequency_says_how_often_lines_are_improved(both_ways):
    def evaluations(frequency):
        kind = refine.local_minimax(frequency=frequency)
        return uctree.search(
            LOSS, LOSS.start(), num_simulations=16, refine=kind, seed=0
        ).evaluations

    assert evaluations(0.125) == 16 + 2 * 28
    assert evaluations(2.0) == 16 + 32 * 28


@pytest.mark.parametrize("game", [LOSS, LOSS_3D], ids=["dim 1", "dim 3"])
@pytest.mark.parametrize(
    "kind",
    [
        refine.gradient(num_steps=3, frequency=1.0),
        refine.local_minimax(axes=True, frequency=1.0),
        refine.best_replies(frequency=1.0),
    ],
    ids=["gradient", "axes", "uphill"],
)
def test_an_improvement_takes_as_many_payoffs_as_it_says(both_ways, game, kind):
    result = uctree.search(game, game.start(), num_simulations=6, refine=kind, seed=0)
    assert result.evaluations == 6 * (1 + kind.cost(game))


def test_a_gradient_that_is_given_counts_once():
    kind = refine.gradient(num_steps=3, gradient=lambda line, slopes: None)
    assert kind.cost(LOSS_3D) == 1 + 3 * 2


def test_refined_trees_are_kept_saved_and_pruned(tmp_path):
    searcher = uctree.Searcher(LOSS, refine=refine.best_replies(frequency=0.05))
    result = searcher.search(num_simulations=500)
    searcher.advance(result.action)
    assert searcher.search(num_simulations=200).simulations == 200
    result.tree.save(tmp_path / "tree")
    loaded = uctree.Tree.load(tmp_path / "tree")
    assert loaded.evaluations == result.evaluations
    small = uctree.search(
        LOSS, LOSS.start(), num_simulations=20_000, refine=refine.local_minimax(),
        max_memory="1MB", seed=0,
    )  # fmt: skip
    assert small.tree.num_bytes <= 1_000_000


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: refine.gradient(0.0), "rate"),
        (lambda: refine.gradient(clip=-1.0), "clip"),
        (lambda: refine.gradient(gradient=lambda x: None), "line, slopes"),
        (lambda: refine.local_minimax(axes=True, peaks=True), "axes=False"),
        (lambda: refine.local_minimax(decay=2.0), "decay"),
        (lambda: refine.local_minimax(axes=True, uphill=1.0), "axes=False"),
        (lambda: refine.local_minimax(uphill=1.5), "uphill must be from 0 to 1; got 1.5"),
    ],
)
def test_a_refinement_that_makes_no_sense_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_refinement_needs_vectors_and_few_candidates(both_ways):
    nim = games.nim()
    with pytest.raises(ValueError, match="numbers"):
        uctree.search(nim, nim.start(), num_simulations=5, refine=refine.gradient())
    wide = refine.local_minimax(axes=True, levels=8)
    mass = games.point_mass(stages=12)
    assert uctree.search(mass, mass.start(), num_simulations=5, refine=wide).simulations == 5
    too_wide = refine.local_minimax(axes=True, levels=12)
    with pytest.raises(ValueError, match="fewer levels"):
        uctree.search(mass, mass.start(), num_simulations=5, refine=too_wide)


@pytest.mark.slow
def test_a_search_with_best_replies_finds_the_equilibrium_of_foresight():
    """On at least 19 of 20 seeds, with all payoffs counted."""
    runs = [budgets.run(LOSS, "foresight-search", 100_000, seed) for seed in range(20)]
    assert max(run.evaluations for run in runs) <= 100_000
    assert sum(run.worst < 0.01 for run in runs) >= 19


def test_a_short_search_with_best_replies_beats_what_ends_elsewhere():
    found = uctree.search(
        LOSS, LOSS.start(), num_simulations=90_000, refine=refine.best_replies(),
        proposal=continuous.quadratic(), selection=selection.ucb1(0.005),
        widening=selection.widening(4, 0.3), backup=backup.maximum(), seed=0,
    )  # fmt: skip
    stage = regret.stage_regret(LOSS, found.principal_variation(by="value"))
    climbed = continuous.own_gradient_ascent(LOSS, rate=0.01, num_steps=3000)
    assert stage.max() < 0.01 < 0.5 < regret.stage_regret(LOSS, climbed.actions).max()

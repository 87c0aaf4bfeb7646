"""Composing: which options share a kernel, and what a composition says of them."""

from __future__ import annotations

from dataclasses import fields

import pytest

from tests.judges import GAME, judge
from uctree import backup, evaluators, games, refine, selection
from uctree.engine.compose import bindings, compose, num_blocks
from uctree.engine.options import Options, resolve

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("interpreted")]


def composed(**options):
    return compose(GAME, resolve(GAME, **options))


@pytest.mark.parametrize(
    "options",
    [
        {"selection": selection.ucb1(c=2.0)},
        {"stop": None, "choice": "lcb"},
        {"max_memory": "1MB"},
    ],
    ids=["number", "choice", "memory"],
)
def test_other_numbers_and_what_python_does_need_no_other_kernel(options):
    assert composed(**options).kernel is composed().kernel


@pytest.mark.parametrize(
    "options",
    [
        {"selection": selection.ucb1_tuned()},
        {"solver": True},
        {"transpositions": True},
        {"backup": backup.maximum()},
        {"evaluator": judge},
        {"ties": "random"},
        {"debug": True},
    ],
    ids=lambda options: next(iter(options)),
)
def test_what_kernels_branch_on_is_another_kernel(options):
    assert composed(**options).kernel is not composed().kernel


def test_a_manifest_has_every_option_with_its_default_filled_in():
    manifest = composed().manifest
    assert manifest.keys() == {each.name for each in fields(Options)}
    assert manifest["selection"] == selection.ucb1()
    assert manifest["evaluator"].name == "playout"
    assert manifest["root_selection"] is None  # the same as below the root


def test_constants_follow_from_options_and_layout():
    plain = bindings(GAME, resolve(GAME))
    assert not plain["HAS_PROOFS"]
    assert plain["SCORES"]
    solver = bindings(GAME, resolve(GAME, solver=True))
    assert solver["HAS_BOUNDS"]  # two players whose payoffs add up to zero
    halving = bindings(GAME, resolve(GAME, root_selection=selection.gumbel(), evaluator=judge))
    assert halving["HALVES_ROOT"]
    asked = evaluators.python(lambda states: None)
    assert bindings(GAME, resolve(GAME, evaluator=asked))["HAS_BATCH_EVALUATOR"]


def test_a_refinement_makes_edges_in_many_nodes_of_one_simulation():
    game = games.loss_game()
    assert num_blocks(game, resolve(game)) == 1
    assert num_blocks(game, resolve(game, refine=refine.gradient(frequency=2.0))) == 1 + 2 * 2 * 3

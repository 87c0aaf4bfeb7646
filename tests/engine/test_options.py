"""Options: declared once, with defaults filled in, and refused by name."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields, replace
from pathlib import Path

import pytest

import uctree
from tests.judges import GAME, in_python, judge
from uctree import evaluators, games, selection
from uctree.engine import options
from uctree.engine.options import Options, resolve

pytestmark = pytest.mark.quick


def test_every_option_has_a_default_and_a_line_of_help():
    for each in fields(Options):
        assert each.metadata["help"].endswith("."), each.name
        assert f"        {each.name}: " in options.options_docstring(), each.name


def test_the_signature_of_search_has_every_option_with_its_default():
    parameters = inspect.signature(uctree.search).parameters
    for each in fields(Options):
        assert parameters[each.name].default == each.default, each.name
        assert parameters[each.name].kind is inspect.Parameter.KEYWORD_ONLY


def test_the_reference_has_a_row_for_every_option():
    page = (Path(__file__).parents[2] / "docs/api.md").read_text()
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert set(options.OPTION_NAMES) <= listed


def test_defaults_depend_on_the_game_and_on_other_options():
    plain = resolve(GAME)
    assert (plain.selection.name, plain.backup.name) == ("ucb1", "mean")
    assert plain.root_selection is plain.selection
    assert (plain.leaves, plain.widening, plain.proposal) == (1, None, None)
    assert resolve(GAME, evaluator=judge).selection.name == "puct"
    assert resolve(GAME, evaluator=in_python(leaves=7)).leaves == 7
    vectors = resolve(games.point_mass())
    assert vectors.backup.name == "maximum"  # one player, no chance
    assert vectors.widening == selection.widening()
    assert vectors.proposal.name == "uniform"


def test_below_a_gumbel_root_the_interior_rule_has_its_numbers():
    gumbel = selection.gumbel(c_visit=20.0, c_scale=0.5)
    below = resolve(GAME, root_selection=gumbel, evaluator=judge).selection
    assert below == selection.gumbel_interior(c_visit=20.0, c_scale=0.5)


def test_options_that_are_resolved_stay_as_they_are():
    first = resolve(GAME, evaluator=evaluators.playout(), solver=True)
    given = {each.name: getattr(first, each.name) for each in fields(first)}
    again = resolve(GAME, **given)
    assert replace(again, choice=first.choice) == first


def test_a_wrong_name_is_refused_with_the_nearest_one():
    with pytest.raises(TypeError, match=r"num_simulation.*did you mean num_simulations\?"):
        options.check_names(["num_simulation"])
    with pytest.raises(TypeError, match=r"did you mean solver\?"):
        resolve(GAME, solve=True)
    options.check_names(options.OPTION_NAMES)


@pytest.mark.parametrize(
    ("options", "sparse", "lazy"),
    [({}, False, True), ({"evaluator": judge}, False, False),
     ({"evaluator": judge, "root_selection": selection.gumbel()}, True, True)],
)  # fmt: skip
def test_the_trees_of_a_batch_may_have_smaller_records(options, sparse, lazy):
    layout = resolve(GAME, **options).layout(GAME, many=True)
    assert (layout.sparse, layout.lazy) == (sparse, lazy)
    assert not resolve(GAME, **options).layout(GAME).sparse

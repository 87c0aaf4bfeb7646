"""Names, labels and `show` texts stay text on every page, whatever they contain."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest

import uctree
from tests.pages.results import SCRIPT, Reader
from uctree import Box, games, principle
from uctree.arena.reports import markdown_table
from uctree.pages import chart, document, result_page
from uctree.principle import page as study_page

HOSTILE = [
    SCRIPT,
    "]]><svg onload=alert(1)>",
    "\"'><img src=x onerror=alert(1)>",
    "<!--",
    "\u2028\u2029</title>",
    "{{data}}&amp;&lt;",
]
SCRIPTS = ["application/json", None]  # the types of those of a result's page


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")


def hostile_game(text):
    source = games.tic_tac_toe()
    return uctree.Game(
        source.dtype, source.rules.legal, source.rules.step, num_players=2, num_actions=9,
        name=f"game{text}", payoff_range=(-1, 1), geometry=("grid", 3, 3),
        show=lambda state: f". . .\n. . .\n. . .{text}",
        show_action=lambda state, action: f"{action}{text}",
    )  # fmt: skip


def check_page(text, scripts=()):
    """The page has no element or attribute that comes from a text."""
    reader = Reader(text)
    assert [each.get("type") for each in reader.all("script")] == list(scripts)
    assert reader.all("img") == []
    handlers = {name for _, given in reader.elements for name in given if name.startswith("on")}
    assert handlers == set()
    assert "<!--" not in text
    return reader


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_pages_of_a_result_and_of_a_study(text):
    game = hostile_game(text)
    result = uctree.search(game, num_simulations=30, seed=1)
    page = check_page(result_page.page(result), SCRIPTS)
    (data,) = [each for each in page.texts["script"] if each.startswith("{")]
    assert any(text in label for label in json.loads(data)["texts"])
    assert "\u2028" not in data
    check_page(result._repr_html_())
    study = principle.study(game, num_simulations=40, num_nodes=2, seed=1)
    check_page(study_page.page(study))


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_notebook_shows_a_result_of_vectors_as_text(text):
    plain = games.point_mass()
    game = uctree.Game(
        plain.dtype, None, plain.rules.step, num_players=1, name=text, action_space=Box(-1.0, 1.0),
        start=plain.rules.start, max_plies=plain.max_plies, show=lambda state: text,
    )  # fmt: skip
    check_page(uctree.search(game, num_simulations=5)._repr_html_())


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_charts_and_documents(text):
    line = chart.Series(text, np.arange(3.0), np.arange(3.0))
    drawn = chart.line_chart([line], title=text, x_label=text, y_label=text)
    ElementTree.fromstring(drawn)
    check_page(drawn)
    parts = [document.paragraph(text), document.heading(text), document.table([[text], [text]])]
    check_page(document.document(text, parts))


def test_names_of_settings_add_neither_columns_nor_markup():
    name = "a|<script>alert(1)</script>"
    lines = markdown_table([["setting", "games"], [name, "2"]]).splitlines()
    assert "<script>" not in lines[-1]
    assert len(re.findall(r"(?<!\\)\|", lines[-1])) == 3

"""The rules of the contract, and the report of a check."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.broken_games import BROKEN, report_of, rule_of
from uctree.doctor.checkup import check
from uctree.doctor.contract import RULES, Report
from uctree.games import tic_tac_toe

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def good() -> Report:
    return check(tic_tac_toe())


def test_a_report_is_a_line_for_each_rule(good):
    lines = str(good).splitlines()
    assert re.fullmatch(
        r"tic_tac_toe: ok   \(200 episodes, [\d,]+ plies, solved: 4,520 states, [\d.]+ s\)",
        lines[0],
    )
    assert [line.split()[1] for line in lines[2:]] == list(good.checked)
    assert all(line.split()[0] == "ok" for line in lines[2:])


def test_a_finding_is_printed_with_actions_and_cure():
    text = str(report_of("nothing_is_legal"))
    assert text.startswith("heap: not ok")
    assert re.search(r"\n  FAIL  legal-count ", text)
    assert re.search(
        r"\nerror: legal-count\n  legal returned 0; expected 1 to 2\n  after the actions \[", text
    )
    assert RULES["legal-count"][2] in text


def test_a_report_goes_through_json():
    report = report_of("nothing_is_legal")
    known = json.loads(json.dumps(report.to_json()))
    assert known == report.to_json()
    assert known["ok"] is False
    assert known["findings"][0]["rule"] == "legal-count"
    assert known["findings"][0]["actions"] == list(report.findings[0].actions)


def test_the_page_on_the_doctor_has_every_rule():
    text = (ROOT / "docs" / "doctor.md").read_text()
    assert set(re.findall(r"^\| `([a-z-]+)` ", text, re.M)) == set(RULES)


def test_every_broken_game_names_a_rule_that_exists():
    assert {rule_of(factory) for factory in BROKEN.values()} <= set(RULES)
    assert len(BROKEN) >= 25

"""The rules of the contract, and the report of a check."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.broken_games import BROKEN, report_of, rule_of
from tests.pages.results import Reader
from uctree.doctor.checkup import check
from uctree.doctor.contract import RULES, Finding, Report

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def good() -> Report:
    return check("tic_tac_toe")


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


def test_a_report_counts_warnings_and_errors():
    assert str(report_of("pays_nobody")).startswith("heap: ok, 1 warning   (")
    text = str(report_of("pays_beyond_its_range"))
    assert text.startswith("heap: not ok, 1 error   ("), text
    assert _report("warning", "warning").startswith("heap: ok, 2 warnings   (")
    assert _report("error", "warning").startswith("heap: not ok, 1 error, 1 warning   (")


def _report(*severities: str) -> str:
    findings = tuple(Finding("pickle", severity, "", (), "") for severity in severities)
    return str(Report("heap", findings, (), 0, 0, None, 0.0))


def test_a_notebook_shows_a_report(good):
    page = good._repr_html_()
    Reader(page)
    assert page.startswith("<p>tic_tac_toe: ok   (200 episodes, ")
    assert page.count("<td>ok</td>") == len(good.checked)


def test_text_of_a_finding_cannot_become_markup():
    finding = Finding(
        "raises", "error", "<script>alert(1)</script>\nand <b>", (1, 2), "Look & see."
    )
    page = Report("<i>", (finding,), ("raises",), 1, 2, None, 0.1)._repr_html_()
    Reader(page)
    assert "error: raises\n&lt;script&gt;alert(1)&lt;/script&gt;\nand &lt;b&gt;\n" in page
    assert "after the actions [1, 2]\nLook &amp; see.</pre>" in page
    assert page.startswith("<p>&lt;i&gt;: not ok")
    assert "Compiled code was skipped" in page
    assert "<td>FAIL</td><td>raises</td>" in page


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

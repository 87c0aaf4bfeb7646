"""The walk through a game in plain Python: it finds the shortest way to a breach."""

from __future__ import annotations

import pytest

from tests.broken_games import BROKEN, heap_game, report_of
from uctree.doctor.checkup import check

pytestmark = pytest.mark.quick


def test_the_way_to_a_breach_is_the_shortest():
    finding = report_of("writes_out_of_bounds").findings[0]
    assert finding.actions == (0, 0, 0, 0)
    finding = report_of("nothing_is_legal").findings[0]
    assert len(finding.actions) == 3  # two and two and two leave one
    finding = report_of("counter_overflows").findings[0]
    assert len(finding.actions) == 4


def test_repeating_the_actions_shows_the_breach():
    game = BROKEN["divides_by_zero"]()
    (finding,) = report_of("divides_by_zero").findings
    with pytest.raises(ZeroDivisionError):
        game.play(finding.actions)


def test_a_start_that_raises_is_a_finding():
    def start(state):
        state.left = 10**6

    report = check(heap_game(start=start))
    assert [finding.rule for finding in report.findings] == ["overflow"]
    assert report.episodes == 0

"""The table of a match."""

from __future__ import annotations

import json

import pytest

from tests.pages.results import Reader
from uctree import UctreeError, games
from uctree.arena import MatchResult
from uctree.arena.records import GameRecord

pytestmark = pytest.mark.quick


def result_of(*games_played, game=None, agents=("a", "b")):
    """The result of games given as (opening, agents by seat, returns)."""
    game = game or games.tic_tac_toe()
    records = [
        GameRecord(
            number, opening, tuple(seats), (), 0, (), tuple(map(float, returns)), "over",
            (5,) * len(seats), (0.5,) * len(seats), game=game,
        )
        for number, (opening, seats, returns) in enumerate(games_played)
    ]  # fmt: skip
    header = {"game": {}, "settings": {}, "agents": {}}
    return MatchResult(game, list(agents), records, "complete", header)


def test_wins_draws_and_losses_are_those_of_the_agent_and_not_of_the_seat():
    result = result_of(
        (0, "ab", (1, -1)), (0, "ba", (-1, 1)), (1, "ab", (0, 0)), (1, "ba", (1, -1))
    )
    first, second = result.standings
    assert (first.agent, first.wins, first.draws, first.losses) == ("a", 2, 1, 1)
    assert (second.agent, second.wins, second.draws, second.losses) == ("b", 1, 1, 2)
    assert (first.score, second.score) == (0.625, 0.375)
    assert first.score_interval[0] < 0.625 < first.score_interval[1]
    assert first.elo == -second.elo > 0
    assert first.seconds_per_action == 0.1
    assert result.points.tolist() == [[[0, 2], [0, 0]], [[0, 0.5], [1.5, 0]]]


def test_three_players_have_placements():
    game = games.n_in_a_row(3, 3, 3, 3)
    result = result_of(
        (0, "abc", (2, 1, 0)), (0, "bca", (5, 5, 5)), (1, "cab", (0, 7, 7)),
        game=game, agents="abc",
    )  # fmt: skip
    by_name = {each.agent: each for each in result.standings}
    assert by_name["a"].placements == (3, 0, 0)
    assert by_name["b"].placements == (2, 1, 0)
    assert by_name["c"].placements == (1, 0, 2)
    assert (by_name["a"].wins, by_name["a"].draws) == (1, 2)
    assert by_name["a"].score == pytest.approx((1 + 0.5 + 0.75) / 3)
    assert "#1  #2  #3" in str(result)


def test_an_agent_can_be_put_at_zero():
    result = result_of((0, "ab", (1, -1)), (0, "ba", (1, -1)), (1, "ab", (1, -1)))
    anchored = result.anchored("b")
    assert dict(zip("ab", anchored.ratings.elo, strict=True))["b"] == 0
    assert anchored.difference("a", "b") == pytest.approx(result.difference("a", "b"))
    with pytest.raises(UctreeError, match="no agent 'c' in this match; it has a, b"):
        result.anchored("c")


def test_a_difference_is_the_same_from_both_sides():
    result = result_of(*[(n // 2, "ab", (1, -1) if n % 3 else (-1, 1)) for n in range(60)])
    elo, low, high = result.difference("a", "b")
    assert low < elo < high
    assert result.difference("b", "a") == pytest.approx((-elo, -high, -low))
    assert result.superiority("a", "b") == pytest.approx(1 - result.superiority("b", "a"))
    assert result.superiority("a", "b") > 0.95


def test_a_result_without_games_says_so():
    result = result_of()
    assert str(result) == "tic_tac_toe: 0 games, 0 openings, complete"
    assert result.to_json()["standings"] == []
    with pytest.raises(UctreeError, match="there are no games yet"):
        _ = result.ratings


def test_an_agent_that_has_not_played_is_left_out():
    result = result_of((0, "ab", (1, -1)), agents="abc")
    assert [each.agent for each in result.standings] == ["a", "b"]


def test_a_result_becomes_json():
    result = result_of((0, "ab", (1, -1)), (0, "ba", (0, 0)))
    content = json.loads(json.dumps(result.to_json()))
    assert content["games"] == 2
    assert content["standings"][0]["agent"] == "a"
    assert content["superiority"][0][1] > 0.5


def test_a_notebook_shows_a_result_and_names_cannot_become_markup():
    names = ("<b>", "search(c=1)")
    page = result_of((0, names, (1, -1)), (0, names[::-1], (0, 0)), agents=names)._repr_html_()
    Reader(page)
    assert page.startswith("<p>tic_tac_toe: 2 games, 1 opening, complete</p>")
    assert "<tr><td>&lt;b&gt;</td><td>2</td><td>1</td><td>1</td><td>0</td>" in page
    assert "<p>&lt;b&gt; - search(c=1): " in page
    assert result_of()._repr_html_() == "<p>tic_tac_toe: 0 games, 0 openings, complete</p>"

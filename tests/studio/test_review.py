"""Reviews: what actions lost, against exact values."""

from __future__ import annotations

import numpy as np
import pytest

import uctree
from tests.pages.results import Reader
from uctree import games
from uctree.errors import UctreeError
from uctree.studio.episode import StudioEpisode
from uctree.studio.review import Found, Review, is_go, judged, review_page, sgf

pytestmark = pytest.mark.quick


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")


def played(game, actions):
    episode = StudioEpisode(game)
    for action in actions:
        episode.take(action)
    return episode


def reviewed(episode, first=0, **options):
    """The review of an episode from a ply on."""
    review = Review()
    for ply in range(first, len(episode.states)):
        if not episode.game.is_over(episode.states[ply]):
            result = uctree.search(episode.game, episode.states[ply], seed=1, **options)
            review.note(ply, result)
            episode.values[ply] = result.value.tolist()
    return review


# X threatens to win, but plays elsewhere, and then O wins.
EPISODE = [0, 3, 1, 4, 8, 5]


def test_losses_are_those_of_the_exact_values():
    game = games.tic_tac_toe()
    episode = played(game, EPISODE)
    judgements = reviewed(episode, 3, num_simulations=3_000, solver=True).judgements(episode)
    solution = uctree.solve(game, episode.states[3])
    assert [each.ply for each in judgements] == [3, 4, 5]
    for each in judgements:
        before, after = (solution.value_of(episode.states[each.ply + i]) for i in (0, 1))
        loss = (before - after - episode.rewards[each.ply])[each.player]
        assert each.loss == pytest.approx(loss)
        assert each.is_mistake == (loss > 0.2)
    assert [each.is_mistake for each in judgements] == [False, True, False]


def test_an_end_of_the_episode_is_worth_what_it_pays():
    game = games.tic_tac_toe()
    state = game.play([0, 3, 1, 4])
    before = Found(2, "3", np.array([1.0, -1.0]))
    assert judged(game, 4, state, 2, before, None).loss == 0
    missed = judged(game, 4, state, 8, before, Found(5, "6", np.array([-1.0, 1.0])))
    assert (missed.loss, missed.is_mistake, missed.best, missed.text) == (2.0, True, "3", "9")


def test_outcomes_of_chance_are_not_judged():
    episode = played(games.pig(target=30), [0, 4, 1])
    review = reviewed(episode, num_simulations=20)
    assert [each.ply for each in review.judgements(episode)] == [0, 2]


def test_another_continuation_forgets_the_old_one():
    episode = played(games.tic_tac_toe(), [4, 0, 8])
    review = reviewed(episode, num_simulations=20)
    review.forget_after(1)
    assert review.next_ply(episode) == 2
    assert len(review.judgements(episode)) == 1


def test_a_page_lists_the_actions_and_the_mistakes():
    episode = played(games.tic_tac_toe(), EPISODE)
    review = reviewed(episode, num_simulations=30)
    judgements = review.judgements(episode)
    reader = Reader(review_page(episode, judgements))
    assert reader.texts["h2"] == [
        f"Ply {each.ply + 1}: player {each.player} played {each.text}"
        for each in judgements
        if each.is_mistake
    ]
    assert len(reader.all("tr")) == 1 + len(judgements)
    with pytest.raises(UctreeError, match="no review to save yet"):
        review_page(episode, [])


def test_go_is_written_as_sgf_and_other_games_are_not():
    assert is_go(games.go(9))
    assert not is_go(games.hex())
    with pytest.raises(UctreeError, match="SGF is for go"):
        sgf(played(games.hex(5), [0]))

"""Our games as environments of Gymnasium, by its own check."""

from __future__ import annotations

import warnings

import pytest

import uctree
from tests.adapters.small import last_legal
from uctree import adapters, games

pytest.importorskip("gymnasium", reason="Gymnasium is not installed")
from gymnasium.utils.env_checker import check_env

pytestmark = pytest.mark.peer


@pytest.mark.parametrize("illegal", ["end", "noop"])
def test_gymnasiums_own_check_passes(game, illegal):
    env = adapters.to_gymnasium(game, illegal=illegal)
    with warnings.catch_warnings():
        # Hints about unbounded boxes and missing names.
        warnings.simplefilter("ignore")
        check_env(env, skip_render_check=True)


def test_a_step_ends_when_the_player_is_to_move_again():
    env = adapters.to_gymnasium(games.tic_tac_toe(), player=1, opponent=last_legal)
    _, info = env.reset(seed=1)
    assert info["action_mask"].tolist() == [1] * 8 + [0]
    _, reward, over, _, info = env.step(0)
    assert (reward, over) == (0.0, False)
    assert info["action_mask"].tolist() == [0] + [1] * 6 + [0, 0]
    _, reward, over, _, _ = env.step(1)  # the opponent completes 6, 7, 8
    assert (reward, over) == (-1.0, True)
    assert "X" in env.render().upper()
    with pytest.raises(RuntimeError, match=r"call reset\(\)"):
        env.step(2)


@pytest.mark.parametrize(("illegal", "expected"), [("end", (-5.0, True)), ("noop", (0.0, False))])
def test_an_illegal_action_ends_the_episode_or_does_nothing(illegal, expected):
    env = adapters.to_gymnasium(
        games.tic_tac_toe(), opponent=last_legal, illegal=illegal, illegal_reward=-5.0
    )
    env.reset(seed=1)
    before, *_ = env.step(0)
    after, reward, over, _, info = env.step(0)
    assert (reward, over) == expected
    assert info["illegal"]
    assert (before == after).all()


def test_an_environment_out_can_be_planned_in_again():
    env = adapters.to_gymnasium(games.tic_tac_toe(), opponent=last_legal)
    env.reset(seed=1)
    for action in (0, 1):
        env.step(action)  # the opponent has 8 and 7, and threatens 6; 2 wins
    with pytest.warns(UserWarning, match="copy.deepcopy"):
        result = uctree.plan(env, num_simulations=40, seed=1)
    assert result.action == 2


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="are vectors"):
        adapters.to_gymnasium(games.leap())
    with pytest.raises(TypeError, match=r"expected a uctree\.Game or its name.*got 7"):
        adapters.to_gymnasium(7)
    with pytest.raises(ValueError, match='illegal is "end" or "noop"'):
        adapters.to_gymnasium(games.nim(), illegal="raise")
    with pytest.raises(ValueError, match="player must be 0 to 1; got 2"):
        adapters.to_gymnasium(games.nim(), player=2)

"""A mass on a line: costs of a stage, by hand."""

from __future__ import annotations

import pytest

from uctree import games

pytestmark = pytest.mark.quick


def test_a_stage_costs_position_and_push_and_the_last_one_the_speed():
    game = games.point_mass(stages=2)
    after, reward = game.step(game.start(), [-1.0])
    assert (after.x, after.v) == (0.75, -0.5)
    assert reward[0] == -(0.75**2 + 0.1)
    after, reward = game.step(after, [1.0])
    assert (after.x, after.v) == (0.75, 0.0)
    assert reward[0] == pytest.approx(-(0.75**2 + 0.1))
    assert game.is_over(after)


def test_a_state_shows_how_many_pushes_are_left():
    game = games.point_mass()
    assert game.show(game.start()) == "position 1, speed 0, 6 pushes left"


@pytest.mark.parametrize("stages", [0, 128, 2.0])
def test_a_wrong_number_of_stages_is_refused(stages):
    with pytest.raises(ValueError, match="stages must be a whole number from 1 to 127; got"):
        games.point_mass(stages)

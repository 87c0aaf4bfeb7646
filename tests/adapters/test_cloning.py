"""How the state of a Gymnasium environment is taken and put back, and the check that it works."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import uctree
from uctree import adapters
from uctree.adapters.cloning import layers_of, same_observation, shallow_copy

pytest.importorskip("gymnasium", reason="Gymnasium is not installed")
from tests.adapters.corridors import LikeALE, Rebuilt, WithStates, made

pytestmark = [pytest.mark.peer, pytest.mark.usefixtures("both_ways")]


def test_a_state_inside_a_container_is_copied_by_deepcopy_with_a_warning():
    env = made(steps=(1,))
    with pytest.warns(UserWarning, match=r"Corridor is copied by copy\.deepcopy, \d+ µs"):
        world = adapters.from_gymnasium(env)
    assert "copy.deepcopy" in world.note
    assert uctree.plan(world, num_simulations=60, seed=1).action == 1
    assert env.unwrapped.inside == {"place": [1]}


@pytest.mark.parametrize(
    ("kind", "how"),
    [(WithStates, "get_state and set_state"), (LikeALE, "clone_state and restore_state")],
)
def test_states_that_can_be_put_back_are(kind, how):
    env = made(kind, steps=(1,))
    world = adapters.from_gymnasium(env)
    assert how in world.note
    assert uctree.plan(world, num_simulations=60, seed=1).action == 1
    assert env.unwrapped.inside == {"place": [1]}
    assert env._elapsed_steps == 1


def test_a_function_of_the_user_comes_first_and_is_checked():
    def right(env):
        return copy.deepcopy(env)

    assert "clone=" in adapters.from_gymnasium(made(WithStates), clone=right).note
    env = made()
    with pytest.raises(ValueError, match="no way was found to copy Corridor"):
        adapters.from_gymnasium(env, clone=lambda env: env)
    assert env.unwrapped.inside == {"place": [0]}


def test_copies_that_begin_anew_are_refused():
    with pytest.raises(ValueError, match=r"a copy differs from its original.*Give clone=f"):
        adapters.from_gymnasium(made(Rebuilt, steps=(1,)))


def test_a_shallow_copy_has_wrappers_and_containers_of_its_own():
    env = made(steps=(1,))
    env.unwrapped.places = np.array([1, 2])
    twin = shallow_copy(env)
    assert [type(layer) for layer in layers_of(twin)] == [type(layer) for layer in layers_of(env)]
    twin.unwrapped.places[0] = 9
    twin.unwrapped.inside["more"] = 1
    twin.unwrapped.inside["place"][0] = 3  # two levels down, which a shallow copy shares
    assert env.unwrapped.places.tolist() == [1, 2]
    assert env.unwrapped.inside == {"place": [3]}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({"a": np.arange(3)}, {"a": np.arange(3)}, True),
        ({"a": np.arange(3)}, {"b": np.arange(3)}, False),
        ((1, np.array([np.nan])), (1, np.array([np.nan])), True),
        ((1, 2), (1, 2, 3), False),
        (np.arange(3), np.arange(4), False),
    ],
)
def test_observations_are_compared_down_to_their_arrays(one, other, expected):
    assert same_observation(one, other) == expected

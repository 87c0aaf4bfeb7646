"""Objects with methods of any names as worlds, and what `plan` makes of other things."""

from __future__ import annotations

import copy

import pytest

import uctree
from uctree import BrokenGame, adapters
from uctree.planning.playouts import draws, one_of, weighed
from uctree.planning.problem import as_vector

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("both_ways")]


class Nim:
    """Players take one or two; who takes the last one wins."""

    def __init__(self, left, turn=0, won=(0, 0)):
        self.left, self.turn, self.won = left, turn, won

    def legal(self):
        return [n for n in (1, 2) if n <= self.left]

    def step(self, action):
        self.left -= action
        if self.left == 0:
            self.won = (1, -1) if self.turn == 0 else (-1, 1)
        self.turn = 1 - self.turn

    def clone(self):
        return Nim(self.left, self.turn, self.won)


NAMES = {"to_play": "turn", "returns": "won", "num_players": 2, "payoff_range": (-1, 1)}


@pytest.mark.parametrize(("left", "best"), [(4, 1), (5, 2)])
def test_a_winning_action_is_found_whoever_begins(left, best):
    for turn in (0, 1):
        world = adapters.from_object(Nim(left, turn), **NAMES)
        result = uctree.plan(world, num_simulations=100, seed=1)
        assert result.action == best
        assert result.value[turn] > 0.5


def test_the_object_does_not_change():
    nim = Nim(7)
    uctree.plan(adapters.from_object(nim, **NAMES), num_simulations=20)
    assert (nim.left, nim.turn) == (7, 0)


class Walk:
    """One player walks to 3; some methods have other names."""

    def __init__(self, place=0):
        self.place = place

    def moves(self):
        return ["left", "right"]

    def go(self, way):
        self.place += 1 if way == "right" else -1
        return float(self.place == 3)

    def moved(self, way):
        after = Walk(self.place)
        after.go(way)
        return after

    @property
    def done(self):
        return abs(self.place) >= 3

    legal, step, clone = moves, go, lambda self: Walk(self.place)


def test_plan_takes_an_object_with_legal_step_and_clone():
    result = uctree.plan(adapters.from_object(Walk(), over="done"), num_simulations=150, seed=3)
    assert result.action == "right"
    assert uctree.plan(Nim(1), num_simulations=3, num_players=1).action == 1


def test_plan_takes_the_names_of_methods():
    named = {"legal": "moves", "step": "go", "clone": copy.copy, "over": "done"}
    wanted = uctree.plan(adapters.from_object(Walk(), **named), num_simulations=60, seed=3)
    found = uctree.plan(Walk(), num_simulations=60, seed=3, **named)
    assert (found.edges == wanted.edges).all()
    result = uctree.plan(Nim(5), num_simulations=100, seed=1, **NAMES)
    assert result.action == 2
    with pytest.raises(TypeError, match="legal are for objects"):
        uctree.plan(uctree.Problem(actions=len, step=max), 1, num_simulations=3, legal="moves")


def test_an_object_that_says_who_moves_is_not_taken_for_one_players():
    with pytest.raises(TypeError, match="Nim has 'turn', so several players may take turns"):
        uctree.plan(Nim(5), num_simulations=10)


def test_other_names_functions_and_steps_that_return_another_object():
    worlds = [
        adapters.from_object(Walk(), legal="moves", step="go", clone=copy.copy, over="done"),
        adapters.from_object(
            Walk(), legal="moves", step="moved", clone=None, over="done",
            reward=lambda walk: float(walk.place == 3),
        ),
    ]  # fmt: skip
    found = [uctree.plan(world, num_simulations=150, seed=3) for world in worlds]
    assert found[0].action == "right"
    assert (found[0].edges == found[1].edges).all()


def test_what_cannot_be_a_world_is_refused():
    with pytest.raises(TypeError, match="Walk has no 'turn': name its method with to_play="):
        adapters.from_object(Walk(), to_play="turn")
    with pytest.raises(TypeError, match="give to_play="):
        adapters.from_object(Walk(), num_players=2)
    with pytest.raises(TypeError, match="reward= or returns="):
        adapters.from_object(Nim(3), reward="won", returns="won")
    with pytest.raises(ValueError, match="has ended"):
        adapters.from_object(Nim(0))


def test_plan_says_what_it_takes():
    with pytest.raises(TypeError, match=r"plan takes a uctree\.Problem with a start.*got int"):
        uctree.plan(3, num_simulations=1)
    with pytest.raises(TypeError, match="search a uctree"):
        uctree.plan(uctree.games.nim(), num_simulations=1)
    problem = uctree.Problem(actions=lambda n: [1], step=lambda n, a: uctree.Step(n, over=True))
    with pytest.raises(TypeError, match="needs the start"):
        uctree.plan(problem, num_simulations=1)
    with pytest.raises(TypeError, match=r"belong to a uctree\.Problem; a Nim has its own"):
        uctree.plan(Nim(3), to_play=1, num_simulations=1)


def test_a_step_of_the_wrong_kind_is_named():
    world = adapters.from_object(Walk(), step=lambda walk, way: "far", over="done")
    with pytest.raises(BrokenGame, match="the step 'left' returned 'far'; expected a reward"):
        world.problem.step(world.start, "left")


class Race:
    """Two players and a die move forward on one track; every step pays both."""

    def __init__(self, place=0, turn=0, paid=(0.0, 0.0)):
        self.place, self.turn, self.paid = place, turn, list(paid)

    def legal(self):
        return range(1, 4)

    def step(self, length):
        self.place += length
        reward = (length / 4, -self.place / 8)
        self.paid = [a + b for a, b in zip(self.paid, reward, strict=True)]
        self.turn = (self.turn + 2) % 3 - 1  # 0, 1, the die
        return reward

    def clone(self):
        return Race(self.place, self.turn, self.paid)

    def done(self):
        return self.place > 20


RACE = {"to_play": "turn", "over": "done", "num_players": 2,
        "chance": lambda race: [(1, 0.5), (3, 0.5)]}  # fmt: skip


@pytest.mark.parametrize("discount", [1.0, 0.75])
@pytest.mark.parametrize("parts", [{}, {"returns": "paid"}, {"reward": lambda race: 0.5}])
def test_a_playout_pays_what_its_steps_pay(parts, discount):
    world = adapters.from_object(Race(3), **RACE, **parts, discount=discount)
    if "reward" in parts:  # a number, for the player who acted
        world = adapters.from_object(
            Race(3), **(RACE | {"chance": None, "to_play": lambda race: race.place % 2}), **parts,
            discount=discount,
        )  # fmt: skip
    for seed in range(20):
        state, mover, total, factor = world.start, world.to_play, [0.0, 0.0], 1.0
        for draw in draws(seed):
            if mover == uctree.CHANCE:
                action = weighed((1, 3), (0.5, 0.5), draw)
            else:
                action = one_of(world.problem.actions(state), draw)
            state, reward, after, over = world.problem.step(state, action)
            for player, part in enumerate(as_vector(reward, 2, mover)):
                total[player] += factor * part
            factor, mover = discount * factor, after
            if over:
                break
        assert world.problem.playout.play(world.start, seed) == pytest.approx(total)
    assert world.start.place == 3


class Trail:
    def __init__(self):
        self.places = [0]

    def legal(self):
        return [1, 2] if self.places[-1] < 5 else []

    def step(self, length):
        self.places.append(self.places[-1] + length)
        return float(self.places[-1] == 5)


def moved(trail, length):
    trail.step(length)
    return trail


@pytest.mark.parametrize("parts", [{"clone": copy.copy}, {"step": moved, "clone": None}])
def test_copies_that_share_what_a_step_changes_are_refused(parts):
    with pytest.raises(BrokenGame, match=r"changed the Trail that was copied: .*copy.deepcopy"):
        uctree.plan(adapters.from_object(Trail(), **parts), num_simulations=10)
    world = adapters.from_object(Trail(), clone=copy.deepcopy)
    uctree.plan(world, num_simulations=10)
    assert world.start.places == [0]

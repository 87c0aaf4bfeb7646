"""Positions without their states: actions are stored, and states reached again."""

from __future__ import annotations

import numpy as np
import pytest

from tests.learn import walked
from uctree import games
from uctree.engine import stepping
from uctree.errors import UctreeError
from uctree.learn import moves
from uctree.learn.replay import Replay, position_dtype
from uctree.learn.sequences import sequence_dtype

pytestmark = pytest.mark.quick


@pytest.fixture(scope="module")
def game():
    return games.n_in_a_row(7, 7, 5, 3, view=5)


@pytest.fixture(scope="module")
def episodes(game):
    return [walked.play(game, seed) for seed in range(4)]


@pytest.fixture
def plain(monkeypatch):
    """Kernels run in plain Python; another test compares them with machine code."""
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")


@pytest.fixture
def replay(game, episodes, tmp_path, plain):
    with Replay(tmp_path / "replay", game) as opened:
        for number, each in enumerate(episodes):
            opened.append(number, walked.as_positions(game, each))
        yield opened


def test_games_with_windows_and_with_large_states_store_actions(game):
    assert moves.is_walked(game)
    assert moves.is_walked(games.n_in_a_row(100, 100, 5, 3))
    assert not moves.is_walked(games.n_in_a_row())
    assert not moves.is_walked(games.twenty48())
    for rewards in ("win", "placement"):
        large = games.n_in_a_row(100, 100, 5, 3, view=21, rewards=rewards)
        assert large.dtype.itemsize > 70_000
        assert position_dtype(large).itemsize < 96
        assert sequence_dtype(large).itemsize < 96


@pytest.mark.parametrize("every", [2, 7, 128])
def test_states_are_reached_again_whatever_stays_in_memory(
    replay, game, episodes, every, monkeypatch
):
    monkeypatch.setattr(moves, "EVERY", every)
    monkeypatch.setattr(moves, "SNAPSHOT_BYTES", 5 * game.dtype.itemsize)
    window = replay.window(10_000)
    known = [state for each in episodes for state in each.states]
    rng = np.random.default_rng(every)
    for _ in range(4):
        numbers = rng.integers(replay.end, size=12)
        states = replay.states(window.entries, numbers)
        for state, number in zip(states, numbers, strict=True):
            assert state.tobytes() == known[number].tobytes()


def test_a_batch_is_what_the_states_show(replay, game, episodes):
    """Also of policies with more actions than slots: the rest is spread."""
    known = [(each, ply) for each in episodes for ply in range(len(each.states))]
    window = replay.window(10_000)
    rng, again = np.random.default_rng(3), np.random.default_rng(3)
    batch = window.draw(rng, 40, symmetries=False)
    for row, number in enumerate(window.draw_numbers(again, 40)):
        played, ply = known[number]
        assert ply >= 2  # the opening is not drawn
        state, center = played.states[ply], game.view.center_of(played.states[ply])
        expected, _ = walked.policy_in(game, state, played.policies[ply], center, moves.FEW_SLOTS)
        assert np.abs(batch.policy[row] - expected).max() < 1e-6
        assert np.flatnonzero(batch.legal[row]).tolist() == game.legal(state)
        planes = walked.planes_in(game, state, center)
        assert np.abs(batch.observations[row] - planes).max() < 1e-6
        assert (batch.policy_weights[row], batch.windows[row].tolist()) == (1.0, list(center))


def test_symmetries_turn_observation_and_policy_alike(replay, game, episodes):
    actions, cells = game.symmetries
    window = replay.window(10_000)
    batch = window.draw(np.random.default_rng(5), 30, symmetries=False)
    turned = window.draw(np.random.default_rng(5), 30)
    found = set()
    for row in range(30):
        one = batch.observations[row].reshape(-1, 25)
        two = turned.observations[row].reshape(-1, 25)
        fitting = [k for k in range(8) if (two[:, cells[k]] == one).all()]
        assert any((turned.policy[row][actions[k]] == batch.policy[row]).all() for k in fitting)
        found |= set(fitting)
    assert len(found) == 8


def test_actions_that_are_not_legal_are_refused(game, episodes, tmp_path, plain):
    positions = walked.as_positions(game, episodes[0])
    repeated, other = positions.copy(), positions.copy()
    repeated["action"][5] = repeated["action"][4]
    other["to_play"][3] = other["to_play"][2]
    outside = positions.copy()
    outside["action"][6] = 1 << 30
    with Replay(tmp_path / "replay", game) as opened:
        for wrong, place in ((repeated, 5), (other, 3), (outside, 6)):
            with pytest.raises(UctreeError, match=f"position {place} of the episode cannot be"):
                opened.append(1, wrong)
        opened.append(1, positions)


def test_a_damaged_action_leaves_its_episode_out(replay, game, episodes):
    replay.close()
    path = replay.folder / "000000.positions"
    content = bytearray(path.read_bytes())
    content[3 * replay.dtype.itemsize] ^= 1
    path.write_bytes(content)
    with Replay(replay.folder, game) as opened:
        window = opened.window(10_000)
        assert window.num_positions == sum(len(each.states) for each in episodes[1:])
        assert window.draw(np.random.default_rng(0), 8).observations.any()


def test_machine_code_fills_the_same_batches(game, episodes, tmp_path, monkeypatch):
    found = {}
    for setting in ("1", "0"):
        monkeypatch.setenv("NUMBA_DISABLE_JIT", setting)
        with Replay(tmp_path / setting, game) as opened:
            for number, each in enumerate(episodes):
                opened.append(number, walked.as_positions(game, each))
            window = opened.window(10_000)
            batch = window.draw(np.random.default_rng(1), 30)
            states = opened.states(window.entries, np.arange(0, 40, 3))
            found[setting] = [batch.observations, batch.policy, batch.legal, states]
    for one, two in zip(*found.values(), strict=True):
        assert one.tobytes() == two.tobytes()


def test_large_states_without_a_window_are_walked_as_well(tmp_path, monkeypatch, plain):
    monkeypatch.setattr(stepping, "LARGE_STATE", 100)
    monkeypatch.setattr(moves, "LARGE_STATE", 100)
    game = games.n_in_a_row(6, 6, 4, 3)
    states, state = [], game.start()
    played = game.random_episode(2)
    for action in played.actions:
        states.append(state)
        state, _ = game.step(state, action)
    rng = np.random.default_rng(0)
    players = np.array([int(each["to_play"]) for each in states], np.int8)
    positions = moves_of(game, players, played.actions, rng)
    with Replay(tmp_path / "replay", game) as opened:
        opened.append(0, positions)
        window = opened.window(100)
        assert "state" not in positions.dtype.names
        numbers = np.array([0, 5, 3])
        found = opened.states(window.entries, numbers)
        assert [each.tobytes() for each in found] == [states[n].tobytes() for n in numbers]
        batch = window.draw(np.random.default_rng(0), 5, symmetries=False)
        assert batch.observations.shape == (5, 3, 6, 6)


def moves_of(game, players, actions, rng):
    from uctree.learn.replay import make_positions

    count = len(actions)
    return make_positions(
        game, players.view([("to_play", np.int8)]), rng.dirichlet(np.ones(36), count),
        rng.uniform(-1, 1, (count, 3)), actions=actions,
    )  # fmt: skip

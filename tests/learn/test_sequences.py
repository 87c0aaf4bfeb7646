"""Sequences: what is stored, and the targets that are made when a batch is drawn."""

from __future__ import annotations

import contextlib
import itertools

import numpy as np
import pytest

from tests.engine.test_storage import Failing
from tests.learn import walked
from tests.views.test_frames import listed
from uctree import games
from uctree.errors import UctreeError
from uctree.learn.replay import Replay
from uctree.learn.sequences import (
    CUT,
    OVER,
    Columns,
    Reanalysed,
    draw_sequences,
    make_reanalysed,
    make_sequence,
    reanalysed_schema,
    sequence_schema,
)

GAME = games.n_in_a_row(rows=3, cols=3, length=3, num_players=3)
PLAYERS = 3
# Four plies of three players; the last action pays.
ACTIONS = [0, 4, 8, 2]
REWARDS = np.array([[0, 0, 0], [0, 0, 0], [0, 0, 0], [1.0, -0.5, -0.25]])
VALUES = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9], [0.3, 0.2, 0.1]])


def states_of(actions, more=0):
    states, state = [], GAME.start()
    for action in actions:
        states.append(state)
        state, _ = GAME.step(state, action)
    return np.array([*states, *[state] * more], GAME.dtype)


def one_hot(actions):
    return [(np.array([action]), np.array([1.0])) for action in actions]


def finished():
    return make_sequence(
        GAME, states_of(ACTIONS), ACTIONS, REWARDS, one_hot(ACTIONS), VALUES, is_over=True
    )


def cut():
    """The same episode, cut before its last action; its last state was valued."""
    return make_sequence(
        GAME, states_of(ACTIONS[:3], more=1), ACTIONS[:3], REWARDS[:3], one_hot(ACTIONS), VALUES,
        is_over=False,
    )  # fmt: skip


@contextlib.contextmanager
def stored(folder, positions, game=GAME, num_steps=None):
    """A window on one stored episode, and its columns."""
    with Replay(folder, game, schema=sequence_schema(game)) as replay:
        replay.append(0, positions)
        columns = Columns(replay, 1.0)
        columns.extend(replay.end, num_steps)
        yield replay.window(1000), columns


def drawn(folder, positions, count=64, **options):
    with stored(folder, positions, num_steps=options.get("num_steps")) as (window, columns):
        batch = draw_sequences(
            window, columns, np.random.default_rng(0), count,
            **{"unroll_steps": 3, "symmetries": False} | options,
        )  # fmt: skip
    return batch, {int(n): int(np.flatnonzero(batch.numbers == n)[0]) for n in set(batch.numbers)}


def test_columns_are_right_wherever_memory_runs_out(tmp_path, monkeypatch):
    with Replay(tmp_path, GAME, schema=sequence_schema(GAME)) as replay:
        for number in range(300):  # more positions than the first columns have room for
            replay.append(number, finished() if number % 2 else cut())
        whole = Columns(replay, 1.0)
        whole.extend(replay.end, 2)
        for number in itertools.count(1, 3):
            failing, columns = Failing(number), Columns(replay, 1.0)
            with monkeypatch.context() as patch:
                patch.setattr("uctree.learn.sequences.np", failing)
                with contextlib.suppress(MemoryError):
                    columns.extend(replay.end, 2)
            columns.extend(replay.end, 2)
            assert columns.end == replay.end
            for name in whole._arrays:
                np.testing.assert_array_equal(columns[name], whole[name])
            if failing.countdown > 0:
                break
    assert number > 10


def frame(vector, player):
    """A vector as `player` sees it: me, next, previous."""
    return [vector[(player + j) % PLAYERS] for j in range(PLAYERS)]


def test_the_targets_of_a_finished_episode_are_those_by_hand(tmp_path):
    batch, row = drawn(tmp_path, finished())
    for first in range(4):
        at = row[first]
        for k in range(4):
            position = first + k
            if position < 4:
                expected = frame(REWARDS[3], position % PLAYERS)
                np.testing.assert_allclose(batch.values[at, k], expected)
                assert batch.policies[at, k].argmax() == ACTIONS[position]
                assert batch.exists[at, k]
            else:  # the value beyond the end is 0, and nothing else is taught
                assert not batch.values[at, k].any()
                assert not batch.exists[at, k]
                assert batch.policy_weights[at, k] == 0
            assert batch.value_weights[at, k] == 1
        for k in range(3):
            position = first + k
            paid = REWARDS[position] if position < 4 else np.zeros(3)
            np.testing.assert_allclose(batch.rewards[at, k], frame(paid, position % PLAYERS))
            assert batch.reward_weights[at, k] == 1
            if position < 4:
                assert batch.actions[at, k] == ACTIONS[position]
                assert batch.turns[at, k] == (PLAYERS if position == 3 else 1)
            assert batch.turn_weights[at, k] == (position < 4)


def test_n_step_targets_end_with_the_value_of_the_search(tmp_path):
    batch, row = drawn(tmp_path, finished(), num_steps=2)
    np.testing.assert_allclose(batch.values[row[0], 0], frame(VALUES[2], 0), rtol=1e-6)
    np.testing.assert_allclose(batch.values[row[0], 1], frame(VALUES[3], 1), rtol=1e-6)
    np.testing.assert_allclose(batch.values[row[0], 2], frame(REWARDS[3], 2), rtol=1e-6)


def test_an_episode_that_was_cut_ends_with_the_value_of_its_last_state(tmp_path):
    batch, row = drawn(tmp_path, cut())
    assert set(row) == {0, 1, 2}  # the last state is not drawn
    at = row[1]
    np.testing.assert_allclose(batch.values[at, 0], frame(VALUES[3], 1), rtol=1e-6)
    np.testing.assert_allclose(batch.values[at, 2], frame(VALUES[3], 0), rtol=1e-6)
    assert batch.exists[at].tolist() == [True, True, True, False]
    assert batch.policy_weights[at].tolist() == [1, 1, 0, 0]
    assert batch.value_weights[at].tolist() == [1, 1, 1, 0]  # nothing is known beyond the cut
    assert batch.reward_weights[at].tolist() == [1, 1, 0]
    assert batch.turns[at, 1] == 1


def test_positions_before_a_cut_of_unknown_value_teach_no_value(tmp_path):
    positions = make_sequence(
        GAME, states_of(ACTIONS[:3]), ACTIONS[:3], REWARDS[:3], one_hot(ACTIONS[:3]), VALUES[:3],
        is_over=False,
    )  # fmt: skip
    batch, row = drawn(tmp_path, positions)
    assert batch.value_weights[row[0]].tolist() == [0, 0, 0, 0]
    assert batch.policy_weights[row[0]].tolist() == [1, 1, 1, 0]
    batch, row = drawn(tmp_path / "n", positions, num_steps=1)
    assert batch.value_weights[row[0]].tolist() == [1, 1, 0, 0]


def test_a_symmetry_turns_all_steps_of_a_sequence_alike(tmp_path):
    batch, _ = drawn(tmp_path, finished(), symmetries=True)
    for at in range(len(batch.numbers)):
        for k in range(3):
            if batch.exists[at, k] and batch.policy_weights[at, k]:
                assert batch.policies[at, k].argmax() == batch.actions[at, k]
            if batch.exists[at, k + 1]:  # the stone of the action is on the next board
                before, after = batch.observations[at, k], batch.observations[at, k + 1]
                changed = np.flatnonzero((before[:3].sum(0) != after[:3].sum(0)).ravel())
                assert changed.tolist() == [batch.actions[at, k]]


def test_players_that_do_not_move_in_turn_are_noticed(tmp_path):
    game = games.dots_and_boxes(2, 2)
    episode = game.random_episode(3)
    state, states = game.start(), []
    for action in episode.actions:
        states.append(state)
        state, _ = game.step(state, action)
    positions = make_sequence(
        game, np.array(states, game.dtype), episode.actions, episode.rewards,
        one_hot(episode.actions), np.zeros((len(states), 2)), is_over=True,
    )  # fmt: skip
    with stored(tmp_path, positions, game) as (window, columns):
        assert not columns.rotates
        batch = draw_sequences(
            window, columns, np.random.default_rng(0), 64, unroll_steps=2, symmetries=False
        )
    assert set(batch.turns[batch.turn_weights > 0]) == {0, 1, 2}


def test_larger_errors_are_drawn_more_often_and_weigh_less(tmp_path):
    positions = finished()
    batch, _ = drawn(tmp_path, positions, count=4000, exponent=1.0, correction=1.0)
    # |V - z| of the player to move, from VALUES and the rewards.
    errors = np.array([abs(VALUES[i, i % 3] - REWARDS[3, i % 3]) for i in range(4)]) + 1e-3
    counts = np.bincount(batch.numbers, minlength=4)
    np.testing.assert_allclose(counts / 4000, errors / errors.sum(), atol=0.03)
    weights = np.array([batch.weights[batch.numbers == n][0] for n in range(4)])
    np.testing.assert_allclose(weights, errors.min() / errors, rtol=1e-5)


def again(replay, number):
    """The result of another search of a position: action 5, and values of 9, 8 and 7."""
    window = replay.window(100)
    states = replay.gather(window.entries, np.array([number]))["state"]
    return make_reanalysed(
        GAME, np.array([number]), states, [([5], [1.0])], [np.array([9.0, 8.0, 7.0])]
    )


def test_searches_made_again_replace_policies_and_values(tmp_path):
    newest = Reanalysed(GAME)
    with (
        Replay(tmp_path / "again", GAME, schema=reanalysed_schema(GAME)) as store,
        stored(tmp_path / "replay", finished(), num_steps=1) as (window, columns),
    ):
        store.append(7, again(window.replay, 2))
        newest.note(store.positions(7), columns, window)
        other = again(window.replay, 3)
        other["number"] = 1  # as if it were of a replay that was lost
        newest.note(other, columns, window)
        beyond = again(window.replay, 3)
        beyond["number"] = 99
        newest.note(beyond, columns, window)
        batch = draw_sequences(
            window, columns, np.random.default_rng(0), 64, unroll_steps=1, num_steps=1,
            symmetries=False, newest=newest,
        )  # fmt: skip
    at = int(np.flatnonzero(batch.numbers == 1)[0])
    np.testing.assert_allclose(batch.values[at, 0], frame([9.0, 8.0, 7.0], 1))
    assert batch.policies[at, 1].argmax() == 5
    assert batch.policies[at, 0].argmax() == ACTIONS[1]


def test_what_no_batch_needs_any_more_is_forgotten_and_batches_stay_the_same(tmp_path):
    with Replay(tmp_path, GAME, schema=sequence_schema(GAME)) as replay:
        for number in range(8):
            replay.append(number, finished())
        whole, short = Columns(replay, 1.0), Columns(replay, 1.0)
        newest, fewer = Reanalysed(GAME), Reanalysed(GAME)
        for columns, policies in ((whole, newest), (short, fewer)):
            columns.extend(replay.end, 2)
            for number in (3, 30):
                policies.note(again(replay, number), columns, replay.window(100))
        window = replay.window(8)
        short.forget(10)
        assert short.base == 0  # less than half: a copy is not worth it
        short.forget(window.start)
        fewer.forget(window.start)
        assert (short.base, short.end, len(short["action"])) == (window.start, replay.end, 8)
        assert list(fewer._policies) == [30]
        drawn = [
            draw_sequences(
                window, columns, np.random.default_rng(0), 64, unroll_steps=3, num_steps=2,
                exponent=0.5, newest=policies,
            )
            for columns, policies in ((whole, newest), (short, fewer))
        ]  # fmt: skip
        for one, other in zip(*(vars(each).values() for each in drawn), strict=True):
            assert one.tobytes() == other.tobytes()
        replay.append(8, finished())
        short.extend(replay.end, 2)
        assert len(short["returns"]) == 12
        np.testing.assert_allclose(short["returns"][-4:], [REWARDS[3]] * 4)


def test_players_who_are_renamed_in_turn_see_the_same_and_teach_the_same(tmp_path):
    """Whoever has which number: frames begin with the player to move."""
    plain = finished()
    for turned in range(1, PLAYERS):
        renamed = plain.copy()
        renamed["state"]["to_play"] = (plain["state"]["to_play"] + turned) % PLAYERS
        renamed["rewards"] = np.roll(plain["rewards"], turned, axis=1)
        folder = tmp_path / str(turned)
        batch, _ = drawn(folder / "plain", plain, num_steps=2)
        other, _ = drawn(folder / "renamed", renamed, num_steps=2)
        for name in ("values", "rewards", "turns", "actions", "policies", "numbers"):
            np.testing.assert_array_equal(getattr(batch, name), getattr(other, name))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p["action"].__setitem__(1, 9), "no action"),
        (lambda p: p["end"].__setitem__(1, OVER), "an end in the middle"),
        (lambda p: p["end"].__setitem__(3, 0), "no end"),
        (lambda p: p["rewards"].__setitem__(0, np.nan), "not finite"),
        (lambda p: p["end"].__setitem__(3, CUT + 1), "no end"),
    ],
)
def test_a_damaged_sequence_is_refused(tmp_path, change, message):
    positions = finished()
    change(positions)
    with (
        Replay(tmp_path, GAME, schema=sequence_schema(GAME)) as replay,
        pytest.raises(UctreeError, match=message),
    ):
        replay.append(0, positions)


# --- games with a window -------------------------------------------------------------------------


@pytest.mark.parametrize("view", [3, 5])
def test_a_sequence_is_seen_in_the_window_of_its_first_position(tmp_path, monkeypatch, view):
    """Observations, actions and policies; nothing is taught behind an action outside of it."""
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    game = games.n_in_a_row(7, 7, 4, 3, view=view)
    played = walked.play(game, seed=4)
    batch, rows = drawn_from(tmp_path / "replay", game, played)
    count, num_steps, ended, beyond = len(played.actions), 3, 0, 0
    assert set(rows) == set(range(count))
    for first, row in rows.items():
        center = game.view.center_of(played.states[first])
        places, is_seen = listed(game.view.frame, center), True
        for k in range(num_steps + 1):
            ply = first + k
            assert batch.value_weights[row, k] == is_seen
            if ply >= count:
                beyond += is_seen
                assert not batch.exists[row, k]
                assert batch.policy_weights[row, k] == 0
                break
            state, player = played.states[ply], played.players[ply]
            assert batch.exists[row, k] == is_seen
            if is_seen:
                planes = walked.planes_in(game, state, center)
                assert np.abs(batch.observations[row, k] - planes).max() < 1e-6
                policy, share = walked.policy_in(game, state, played.policies[ply], center, 11)
                assert np.abs(batch.policies[row, k] - policy).max() < 2e-6
                assert batch.policy_weights[row, k] == (share > 0)
                returns = played.rewards[ply:].sum(axis=0)
                assert batch.values[row, k] == pytest.approx(np.roll(returns, -player), abs=1e-6)
            else:
                assert batch.policy_weights[row, k] == 0
            if k == num_steps:
                break
            place = divmod(played.actions[ply], 7)
            ended += is_seen and place not in places
            is_seen = is_seen and place in places
            assert batch.reward_weights[row, k] == batch.turn_weights[row, k] == is_seen
            if is_seen:
                assert batch.actions[row, k] == places.index(place)
                paid = np.roll(played.rewards[ply], -player)
                assert batch.rewards[row, k] == pytest.approx(paid)
    assert ended > 3
    assert beyond > 0


def test_turned_sequences_are_those_of_turned_windows(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    game = games.n_in_a_row(7, 7, 4, 3, view=5)
    played = walked.play(game, seed=1)
    plain, rows = drawn_from(tmp_path / "a", game, played)
    turned, others = drawn_from(tmp_path / "b", game, played, symmetries=True)
    actions, cells = game.symmetries
    for first in rows:
        one, two = rows[first], others[first]
        there = turned.observations[two].reshape(4, -1, 25)
        here = plain.observations[one].reshape(4, -1, 25)
        table = next(k for k in range(8) if (there[:, :, cells[k]] == here).all())
        assert np.abs(turned.policies[two][:, actions[table]] - plain.policies[one]).max() < 1e-6
        taken = plain.reward_weights[one] * plain.exists[one, :-1] > 0
        assert (turned.actions[two] == actions[table][plain.actions[one]])[taken].all()


def drawn_from(folder, game, played, **options):
    """A batch of sequences of one episode, and a row of each first position."""
    with stored(folder, walked.as_sequence(game, played), game) as (window, columns):
        batch = draw_sequences(
            window, columns, np.random.default_rng(0), 150,
            **{"unroll_steps": 3, "symmetries": False} | options,
        )  # fmt: skip
    return batch, {int(n): int(np.flatnonzero(batch.numbers == n)[0]) for n in set(batch.numbers)}


def test_searches_made_again_are_taken_over_where_states_are_not_stored(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    game = games.n_in_a_row(7, 7, 4, 3, view=5)
    played, newest = walked.play(game, seed=4), Reanalysed(game)
    numbers, values = np.array([1, 3]), np.arange(6.0).reshape(2, 3)
    with stored(tmp_path, walked.as_sequence(game, played), game) as (window, columns):
        found = make_reanalysed(
            game, numbers, np.array([played.states[n] for n in numbers], game.dtype),
            [played.policies[n] for n in numbers], values,
        )  # fmt: skip
        found["state"][1] += 1  # of a replay that was lost
        newest.note(found, columns, window)
        assert columns["values"][1].tolist() == values[0].tolist()
        assert columns["values"][3].tolist() != values[1].tolist()
    assert list(newest._policies) == [1]

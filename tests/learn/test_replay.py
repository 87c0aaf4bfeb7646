"""Episodes on disk: exact round trips, windows, batches, and recovery after faults."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil

import numpy as np
import pytest

import uctree
from tests.engine.test_storage import Failing
from tests.learn.episodes import LEARNABLE, episode, sequence
from tests.learn.faults import killed_after, killed_at, mutated, small_disk
from uctree import games, specs
from uctree.learn import targets
from uctree.learn.replay import (
    ENTRY,
    POLICY_SLOTS,
    Replay,
    make_batch,
    make_positions,
    position_dtype,
)
from uctree.learn.sequences import sequence_schema


@pytest.fixture(scope="module")
def game():
    return games.connect_four()


@pytest.fixture(scope="module")
def episodes(game):
    return [episode(game, seed) for seed in range(12)]


@pytest.fixture(scope="module")
def sequences(game):
    return [sequence(game, seed) for seed in range(12)]


def filled(folder, game, episodes, **options):
    replay = Replay(folder, game, **options)
    for number, each in enumerate(episodes):
        assert replay.append(number, each)
    return replay


def test_episodes_come_back_bit_for_bit(tmp_path, game, episodes):
    with filled(tmp_path, game, episodes, shard_bytes=5000) as replay:
        assert replay.end == sum(map(len, episodes))
    assert len(list(tmp_path.glob("*.positions"))) > 3
    again = Replay(tmp_path, game, read_only=True)
    assert again.num_episodes == len(episodes)
    assert again.end == replay.end
    assert again.warnings == []
    for number, each in enumerate(episodes):
        assert again.positions(number).tobytes() == each.tobytes()
        assert again.end_of(number) == sum(map(len, episodes[: number + 1]))


def test_an_id_that_is_there_is_not_appended_again(tmp_path, game, episodes):
    with Replay(tmp_path, game) as replay:
        assert 7 not in replay
        assert replay.append(7, episodes[0]) is True
        assert replay.append(7, episodes[1]) is False
        assert 7 in replay
    with Replay(tmp_path, game) as replay:
        assert replay.append(7, episodes[1]) is False
        assert replay.end == len(episodes[0])
        assert replay.positions(7).tobytes() == episodes[0].tobytes()


def test_a_replay_continues_after_it_was_closed(tmp_path, game, episodes):
    filled(tmp_path / "one", game, episodes).close()
    for number, each in enumerate(episodes):
        with Replay(tmp_path / "many", game) as replay:
            replay.append(number, each)
    for name in ("episodes.index", "000000.positions", "layout.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "many" / name).read_bytes()


def test_files_hold_no_pickle(tmp_path, game, episodes):
    filled(tmp_path, game, episodes).close()
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"layout.json", "episodes.index", "000000.positions"}
    data = b"".join(each.tobytes() for each in episodes)
    assert (tmp_path / "000000.positions").read_bytes() == data
    assert (tmp_path / "episodes.index").stat().st_size == ENTRY.itemsize * len(episodes)
    json.loads((tmp_path / "layout.json").read_text())


def test_the_files_can_be_read_by_numpy_alone(tmp_path, game, episodes):
    filled(tmp_path, game, episodes).close()
    layout = json.loads((tmp_path / "layout.json").read_text())
    dtype = uctree.engine.treefile.dtype_from(layout["dtype"])
    positions = np.memmap(tmp_path / "000000.positions", dtype, mode="r")
    assert np.array_equal(positions["returns"], np.concatenate(episodes)["returns"])
    index = np.fromfile(tmp_path / "episodes.index", ENTRY)
    assert index["count"].tolist() == [len(each) for each in episodes]


# --- policies ------------------------------------------------------------------------------------


def test_a_policy_of_few_actions_is_stored_completely(game):
    state = np.zeros(1, game.dtype)
    state[0] = game.start()
    policy = np.array([[0.0, 0.25, 0.5, 0.0, 0.125, 0.125, 0.0]])
    pairs = [(np.array([1, 2, 4, 5]), np.array([0.25, 0.5, 0.125, 0.125]))]
    for given in (policy, pairs):
        (position,) = make_positions(game, state, given, [[1.0, -1.0]])
        assert position["policy_actions"].tolist() == [2, 1, 4, 5, -1, -1, -1]
        assert position["policy_shares"].tolist() == [0.5, 0.25, 0.125, 0.125, 0, 0, 0]
        batch = make_batch(game, np.array([position]), np.zeros(1, int))
        assert np.array_equal(batch.policy, policy.astype(np.float32))


@pytest.fixture(scope="module")
def huge_game():
    """A game of 10,000 actions: each player takes one, and the larger wins."""
    dtype = np.dtype([("first", np.int32), ("ply", np.int8), ("to_play", np.int8)])

    def legal(state, actions):
        for action in range(10_000):
            actions[action] = action
        return 10_000

    def step(state, action, reward):
        if state.ply == 0:
            state.first = action
            state.to_play = 1
        else:
            reward[0] = 1.0 if state.first > action else -1.0
            reward[1] = -reward[0]
            state.to_play = uctree.OVER
        state.ply += 1

    def observe(state, player, planes):
        planes[0] = state.first / 10_000
        planes[1] = player

    return uctree.Game(
        dtype, legal, step, num_players=2, num_actions=10_000, observe=observe,
        observation_shape=(2,), payoff_range=(-1, 1), max_plies=2,
    )  # fmt: skip


def test_ten_thousand_actions_take_a_few_kilobytes_and_keep_the_largest_shares(tmp_path, huge_game):
    assert position_dtype(huge_game).itemsize < 3000
    state = np.zeros(1, huge_game.dtype)
    state[0] = huge_game.start()
    rng = np.random.default_rng(0)
    dense = rng.dirichlet(np.full(10_000, 0.01))[None]
    few = np.zeros((1, 10_000))
    few[0, rng.choice(10_000, 50, replace=False)] = 1 / 50
    with Replay(tmp_path, huge_game) as replay:
        replay.append(0, make_positions(huge_game, state, dense, [[1.0, -1.0]]))
        replay.append(1, make_positions(huge_game, state, few, [[1.0, -1.0]]))
        batch = make_batch(huge_game, replay.positions(0), np.zeros(1, int))
        largest = np.sort(np.argsort(-dense[0])[:POLICY_SLOTS])
        expected = np.zeros(10_000)
        expected[largest] = dense[0, largest] / dense[0, largest].sum()
        assert np.allclose(batch.policy[0], expected, atol=1e-7)
        assert batch.policy.sum() == pytest.approx(1.0, abs=1e-5)
        assert batch.legal.all()
        batch = make_batch(huge_game, replay.positions(1), np.zeros(1, int))
        assert np.array_equal(batch.policy, few.astype(np.float32))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("returns", np.nan, "not finite"),
        ("weight", -1.0, "below 0"),
        ("policy_shares", 0.0, "does not add up to 1"),
        ("policy_actions", 7, "out of range"),
    ],
)
def test_positions_that_cannot_be_trained_on_are_refused(
    tmp_path, game, episodes, field, value, message
):
    wrong = episodes[0].copy()
    wrong["policy_weight"] = 1.0
    wrong[field] = value
    with Replay(tmp_path, game) as replay:
        with pytest.raises(uctree.UctreeError, match=message):
            replay.append(0, wrong)
        assert replay.end == 0


def test_positions_of_another_game_are_refused(tmp_path, game):
    other = episode(games.tic_tac_toe(), 0)
    with Replay(tmp_path, game) as replay:
        with pytest.raises(uctree.UctreeError, match="array of positions of connect_four"):
            replay.append(0, other)
        with pytest.raises(uctree.UctreeError, match="at least one position"):
            replay.append(0, np.zeros(0, position_dtype(game)))


def test_a_folder_of_another_game_is_refused(tmp_path, game):
    Replay(tmp_path, game).close()
    with pytest.raises(
        uctree.UctreeError, match=r"another game than tic_tac_toe.*num_actions is 7"
    ):
        Replay(tmp_path, games.tic_tac_toe())


def test_a_game_without_observe_cannot_be_learned(tmp_path):
    with pytest.raises(uctree.UctreeError, match=r"needs numbered actions and a function observe="):
        Replay(tmp_path, games.loss_game())


# --- windows -------------------------------------------------------------------------------------


def test_a_window_has_the_last_positions_and_nothing_that_comes_later(tmp_path, game, episodes):
    with filled(tmp_path, game, episodes[:6], shard_bytes=4000) as replay:
        everything = np.concatenate(episodes)
        end = replay.end
        window = replay.window(50)
        before = window.draw_positions(np.random.default_rng(0), 500)
        for number in range(6, 12):
            replay.append(number, episodes[number])
        after = window.draw_positions(np.random.default_rng(0), 500)
        assert before.tobytes() == after.tobytes()
        again = replay.window(50, end=end)
        assert (again.start, again.end, again.num_positions) == (end - 50, end, 50)
        assert again.draw_positions(np.random.default_rng(0), 500).tobytes() == before.tobytes()
        allowed = {each.tobytes() for each in everything[end - 50 : end]}
        assert {each.tobytes() for each in before} == allowed


def test_positions_are_drawn_by_their_weights(tmp_path, game, episodes):
    positions = episodes[0][:4].copy()
    positions["weight"] = [0.0, 1.0, 2.0, 5.0]
    positions["ply"] = range(4)
    with Replay(tmp_path, game) as replay:
        replay.append(0, positions)
        drawn = replay.window(100).draw_positions(np.random.default_rng(1), 80_000)["ply"]
        counts = np.bincount(drawn, minlength=4)
    assert counts[0] == 0
    # Five standard deviations of a binomial count are below 700.
    assert np.abs(counts[1:] - [10_000, 20_000, 50_000]).max() < 700


def test_nothing_to_draw_is_an_error(tmp_path, game, episodes):
    with Replay(tmp_path, game) as replay:
        with pytest.raises(uctree.UctreeError, match="of 0 positions none"):
            replay.window(100).draw(np.random.default_rng(0), 4)
        positions = episodes[0].copy()
        positions["weight"] = 0.0
        replay.append(0, positions)
        with pytest.raises(uctree.UctreeError, match="none has a weight above 0"):
            replay.window(100).draw(np.random.default_rng(0), 4)


def test_the_same_generator_draws_the_same_batches_after_opening_again(tmp_path, game, episodes):
    with filled(tmp_path, game, episodes, shard_bytes=6000) as replay:
        rng = np.random.default_rng(5)
        batches = [replay.window(100).draw(rng, 32, value_mix=0.3) for _ in range(3)]
    rng = np.random.default_rng(5)
    window = Replay(tmp_path, game, read_only=True).window(100)
    for batch in batches:
        again = window.draw(rng, 32, value_mix=0.3)
        for one, other in zip(vars(batch).values(), vars(again).values(), strict=True):
            assert one.tobytes() == other.tobytes()


def test_dropped_files_leave_the_ids_known_and_the_numbers_as_they_were(tmp_path, game, episodes):
    with filled(tmp_path, game, episodes, shard_bytes=4000) as replay:
        end, before = replay.end, len(list(tmp_path.glob("*.positions")))
        replay.drop_before(end - 60)
        left = len(list(tmp_path.glob("*.positions")))
        assert left < before
        sample = replay.window(60).draw_positions(np.random.default_rng(0), 100)
    with Replay(tmp_path, game) as replay:
        assert replay.append(0, episodes[0]) is False
        assert replay.end == end
        again = replay.window(60).draw_positions(np.random.default_rng(0), 100)
        assert again.tobytes() == sample.tobytes()
        assert replay.window(10_000).num_positions < end
        assert replay.warnings == []
        with pytest.raises(uctree.UctreeError, match="damaged or were dropped"):
            replay.positions(0)


# --- batches -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LEARNABLE)
def test_a_batch_is_what_the_game_shows_after_a_symmetry(name):
    game = specs.built_in()[name]()
    positions = np.concatenate([episode(game, seed, max_plies=40) for seed in range(2)])[:60]
    count = len(positions)
    has_some = game.symmetries is not None
    num_symmetries = len(game.symmetries[0]) if has_some else 1
    choices = np.arange(count) % num_symmetries
    batch = make_batch(game, positions, choices, value_mix=0.25)
    states = positions["state"]
    observations = np.array([game.observation(s, int(s["to_play"])) for s in states])
    policies = np.zeros((count, game.num_actions), np.float32)
    legal = np.zeros((count, game.num_actions), np.float32)
    for i, position in enumerate(positions):
        policies[i, position["policy_actions"]] = position["policy_shares"]
        legal[i, game.legal(states[i])] = 1.0
    if has_some:
        _, legal = targets.transform(game, choices, observations, legal)
        observations, policies = targets.transform(game, choices, observations, policies)
    assert batch.observations.dtype == np.float32
    assert np.array_equal(batch.observations, observations)
    assert np.array_equal(batch.policy, policies)
    assert np.array_equal(batch.legal, legal > 0)
    mixed = 0.75 * positions["returns"] + 0.25 * positions["search_values"]
    assert np.allclose(batch.values, mixed, atol=1e-6)
    assert np.array_equal(batch.policy_weights, positions["policy_weight"])


def test_the_kernel_does_the_same_without_compilation(monkeypatch, episodes):
    positions = np.concatenate(episodes)[:50]
    choices = np.arange(50) % 2
    compiled = make_batch(games.connect_four(), positions, choices)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    plain_game = games.connect_four()
    plain = make_batch(plain_game, positions, choices)
    assert plain_game.tables["batches"].get(True).interpreted
    for one, other in zip(vars(compiled).values(), vars(plain).values(), strict=True):
        assert np.array_equal(one, other)


SHOWN = 1.0


def test_a_batch_follows_a_changed_global(monkeypatch):
    def legal(state, actions):
        actions[0] = 0
        return 1

    def step(state, action, reward):
        state.to_play = uctree.OVER

    def observe(state, player, planes):
        planes[0, 0, 0] = SHOWN

    dtype = np.dtype([("to_play", np.int8)])
    game = uctree.Game(
        dtype, legal, step, num_players=1, num_actions=1, observe=observe,
        observation_shape=(1, 1, 1),
    )  # fmt: skip
    positions = np.zeros(1, position_dtype(game))
    for shown in (1.0, 2.0):
        monkeypatch.setitem(globals(), "SHOWN", shown)
        batch = make_batch(game, positions, np.zeros(1, int))
        assert batch.observations.tolist() == [[[[shown]]]]


def test_every_symmetry_is_drawn(tmp_path):
    game = games.tic_tac_toe()
    positions = episode(game, 0)[1:2].copy()  # one stone somewhere
    positions["policy_weight"] = 1.0
    with Replay(tmp_path, game) as replay:
        replay.append(0, positions)
        window = replay.window(10)
        drawn = window.draw(np.random.default_rng(0), 400)
        plain = window.draw(np.random.default_rng(0), 400, symmetries=False)
    assert len({each.tobytes() for each in plain.observations}) == 1
    pairs = {
        (one.tobytes(), other.tobytes())
        for one, other in zip(drawn.observations, drawn.policy, strict=True)
    }
    assert len(pairs) == 8


# --- faults --------------------------------------------------------------------------------------


def check_after_fault(folder, game, episodes, least, schema=None):
    """At least `least` episodes of a killed process are intact, and the rest can be appended."""
    with Replay(folder, game, schema=schema) as replay:
        there = [number for number in range(len(episodes)) if number in replay]
        assert there == list(range(len(there)))
        assert len(there) >= least
        for number in there:
            assert replay.positions(number).tobytes() == episodes[number].tobytes()
        for number, each in enumerate(episodes):
            assert replay.append(number, each) is (number not in there)
        assert replay.end == sum(map(len, episodes))
        assert replay.window(10_000).num_positions == replay.end
    again = Replay(folder, game, schema=schema, read_only=True)
    assert again.warnings == []
    everything = b"".join(again.positions(n).tobytes() for n in range(len(episodes)))
    assert everything == b"".join(each.tobytes() for each in episodes)
    assert not list(folder.glob(".uctree-*"))


def test_memory_that_runs_out_loses_no_episode(tmp_path, game, episodes, monkeypatch):
    filled(tmp_path / "there", game, episodes[:4]).close()
    num_failures = 0
    for number in range(1, 200):
        failing, done = Failing(number), False
        folder = tmp_path / f"copy{number}"
        shutil.copytree(tmp_path / "there", folder)
        with monkeypatch.context() as patch:
            patch.setattr("uctree.learn.replay.np", failing)
            try:
                with Replay(folder, game) as replay:
                    assert replay.window(1000).num_positions > 0
                    replay.append(4, episodes[4])
                    done = True
            except MemoryError:
                num_failures += 1
        assert done == (failing.countdown > 0)  # no failure is overlooked
        check_after_fault(folder, game, episodes[:6], least=5 if done else 4)
        shutil.rmtree(folder)
        if done:
            break
    assert done
    assert num_failures > 3


def kill_at_every_write(tmp_path, game, episodes, shard_bytes, step, schema=None):
    """Kill a process that appends at its 1st, 2nd, ... change of a file."""
    done = tmp_path / "done"

    def work(folder):
        with Replay(folder, game, schema=schema, shard_bytes=shard_bytes) as replay:
            for number, each in enumerate(episodes):
                replay.append(number, each)
                os.close(os.open(done / str(number), os.O_CREAT))
            replay.sync()

    for call in itertools.count(1, step):
        done.mkdir()
        folder = tmp_path / f"replay-{call}"
        result = killed_at(call, lambda: work(folder))  # noqa: B023 (called at once)
        least = len(list(done.iterdir()))
        shutil.rmtree(done)
        check_after_fault(folder, game, episodes, least, schema)
        shutil.rmtree(folder)
        if result < 0:
            assert least == len(episodes)
            return -result
    raise AssertionError


def test_a_process_killed_at_any_write_loses_no_episode_that_was_stored(tmp_path, game, episodes):
    changes = kill_at_every_write(tmp_path, game, episodes[:6], 8000, step=1)
    assert changes > 20


def test_sequences_survive_the_same_faults(tmp_path, game, sequences):
    schema = sequence_schema(game)
    assert kill_at_every_write(tmp_path, game, sequences[:3], 8000, 5, schema) > 12
    check_mutations(tmp_path, game, sequences, times=30, seed=0, schema=schema)


APPENDING = """
import sys
import numpy as np
from uctree import games
from uctree.learn.replay import Replay, position_dtype
game = games.connect_four()
episodes = np.load(sys.argv[2], allow_pickle=False)
counts = np.load(sys.argv[3], allow_pickle=False)
cut = np.split(episodes.view(position_dtype(game)), np.cumsum(counts)[:-1])
replay = Replay(sys.argv[1], game, shard_bytes=20000)
print("ready", flush=True)
for number in range(1_000_000):
    if replay.append(number, cut[number % len(cut)]):
        print(number, flush=True)
"""


def kill_at_random_moments(tmp_path, game, episodes, times, seed):
    """Kill a process that appends without end, over and over on the same folder."""
    data, counts = tmp_path / "data.npy", tmp_path / "counts.npy"
    np.save(data, np.frombuffer(np.concatenate(episodes).tobytes(), np.uint8))
    np.save(counts, [len(each) for each in episodes])
    rng = np.random.default_rng(seed)
    stored = -1
    for _ in range(times):
        printed = killed_after(rng.uniform(0, 0.2), APPENDING, tmp_path / "r", data, counts)
        # The last line may be cut off.
        whole = printed[: printed.rfind("\n") + 1].split()[1:]
        stored = max(stored, *map(int, whole), -1)
        replay = Replay(tmp_path / "r", game, read_only=True)
        assert replay.num_episodes > stored
        known = range(replay.num_episodes)
        assert all(number in replay for number in known)
        for number in known[-50:]:
            expected = episodes[number % len(episodes)].tobytes()
            assert replay.positions(number).tobytes() == expected
        assert replay.window(10**9).num_positions == replay.end
    assert stored > 10 * times


def test_a_process_killed_at_a_random_moment_loses_no_episode(tmp_path, game, episodes):
    kill_at_random_moments(tmp_path, game, episodes, times=5, seed=0)


@pytest.mark.slow
def test_a_process_killed_at_fifty_random_moments_loses_no_episode(tmp_path, game, episodes):
    kill_at_random_moments(tmp_path, game, episodes, times=50, seed=1)


def test_a_torn_last_episode_is_cut_off(tmp_path, game, episodes):
    filled(tmp_path, game, episodes[:3]).close()
    with open(tmp_path / "000000.positions", "ab") as file:
        file.write(b"half an episode")
    check_after_fault(tmp_path, game, episodes, least=3)


def test_a_torn_entry_is_cut_off(tmp_path, game, episodes):
    filled(tmp_path, game, episodes[:3]).close()
    os.truncate(tmp_path / "episodes.index", 3 * ENTRY.itemsize - 5)
    with Replay(tmp_path, game) as replay:
        assert replay.num_episodes == 2
        assert "that are no complete entry" in replay.warnings[0]
    check_after_fault(tmp_path, game, episodes, least=2)


def test_a_flipped_bit_costs_one_episode_which_is_named(tmp_path, game, episodes):
    filled(tmp_path, game, episodes, shard_bytes=6000).close()
    path = tmp_path / "000001.positions"
    content = bytearray(path.read_bytes())
    content[10] ^= 4
    path.write_bytes(content)
    with Replay(tmp_path, game) as replay:
        window = replay.window(10_000)
        (damaged,) = [n for n in range(12) if _is_damaged(replay, n)]
        assert window.num_positions == replay.end - len(episodes[damaged])
        (warning,) = replay.warnings
        assert "000001.positions is damaged or truncated: 1 of its episodes" in warning
        assert warning.endswith(f"left out ({damaged})")
        drawn = window.draw_positions(np.random.default_rng(0), 5000)
        assert not {p.tobytes() for p in drawn} & {p.tobytes() for p in episodes[damaged]}


def _is_damaged(replay, number):
    try:
        replay.positions(number)
    except uctree.UctreeError:
        return True
    return False


def test_a_shard_that_is_truncated_or_missing_is_left_out_and_a_new_one_begins(
    tmp_path, game, episodes
):
    replay = filled(tmp_path, game, episodes[:8], shard_bytes=6000)
    replay.close()
    end = replay.end
    shards = sorted(tmp_path.glob("*.positions"))
    shards[0].unlink()
    os.truncate(shards[-1], 100)
    with Replay(tmp_path, game, shard_bytes=6000) as replay:
        for number in range(8, 12):
            assert replay.append(number, episodes[number])
        assert replay.end == end + sum(map(len, episodes[8:]))
        window = replay.window(10_000)
        assert 0 < window.num_positions < replay.end
        assert any(f"{shards[0].name} is missing" in each for each in replay.warnings)
        assert any(f"{shards[-1].name} is damaged or truncated" in each for each in replay.warnings)
        window.draw(np.random.default_rng(0), 64)
    again = Replay(tmp_path, game, read_only=True)
    for number in range(8, 12):
        assert again.positions(number).tobytes() == episodes[number].tobytes()


def test_a_damaged_layout_is_an_error_that_says_what_to_do(tmp_path, game, episodes):
    filled(tmp_path, game, episodes).close()
    path = tmp_path / "layout.json"
    path.write_text(path.read_text().replace("connect_four", "connect_five"))
    with pytest.raises(uctree.UctreeError, match=r"checksum is wrong; restore it, or move"):
        Replay(tmp_path, game)
    path.unlink()
    with pytest.raises(uctree.UctreeError, match=r"layout.json is missing; restore it, or move"):
        Replay(tmp_path, game)


def check_intact_episodes(replay, episodes, known, rng):
    """All positions that a damaged replay returns were stored, and it takes another episode."""
    there = [number for number in range(12) if not _is_damaged(replay, number)]
    for number in there:
        assert replay.positions(number).tobytes() == episodes[number].tobytes()
    window = replay.window(10_000)
    assert window.num_positions == sum(len(episodes[number]) for number in there)
    if there:
        assert {each.tobytes() for each in window.draw_positions(rng, 50)} <= known
    assert replay.append(100, episodes[0])
    assert replay.positions(100).tobytes() == episodes[0].tobytes()


def check_mutations(tmp_path, game, episodes, times, seed, schema=None):
    """Damage one file after the other: intact episodes come back, or a UctreeError is raised."""
    filled(tmp_path / "whole", game, episodes, shard_bytes=6000, schema=schema).close()
    known = {each.tobytes() for each in np.concatenate(episodes)}
    names = sorted(path.name for path in (tmp_path / "whole").iterdir())
    rng = np.random.default_rng(seed)
    refused = 0
    for turn in range(times):
        folder = tmp_path / "damaged"
        shutil.copytree(tmp_path / "whole", folder)
        path = folder / names[turn % len(names)]
        content = path.read_bytes()
        path.write_bytes(mutated(content, rng))
        try:
            replay = Replay(folder, game, schema=schema)
        except uctree.UctreeError:
            assert path.name == "layout.json"
            refused += 1
        else:
            check_intact_episodes(replay, episodes, known, rng)
            replay.close()
        shutil.rmtree(folder)
    assert 0 < refused < times


def test_damaged_files_never_give_a_wrong_position(tmp_path, game, episodes):
    check_mutations(tmp_path, game, episodes, times=300, seed=0)


@pytest.mark.slow
def test_ten_thousand_damaged_files_never_give_a_wrong_position(tmp_path, game, episodes):
    check_mutations(tmp_path, game, episodes, times=10_000, seed=1)


@pytest.mark.parametrize("kind", ["episodes", "sequences"])
def test_a_full_disk_is_an_error_and_leaves_stored_episodes(tmp_path, game, kind, request):
    episodes = request.getfixturevalue(kind)
    schema = sequence_schema(game) if kind == "sequences" else None
    with small_disk(tmp_path / "disk", 128 * 1024) as disk:
        replay = Replay(disk / "replay", game, schema=schema)
        stored = 0
        with contextlib.suppress(uctree.UctreeError):
            for stored in range(10_000):
                replay.append(stored, episodes[stored % 12])
        assert 5 < stored == replay.num_episodes < 10_000
        message = f"No space left on device while storing episode {stored}.*repeat the call"
        with pytest.raises(uctree.UctreeError, match=message):
            replay.append(stored, episodes[stored % 12])
        for number in range(stored):
            assert replay.positions(number).tobytes() == episodes[number % 12].tobytes()
        replay.close()
        again = Replay(disk / "replay", game, schema=schema, read_only=True)
        assert again.num_episodes == stored
        assert again.window(10**6).num_positions == replay.end
        assert again.warnings == []


def test_a_replay_that_is_read_only_takes_no_episode(tmp_path, game, episodes):
    empty = Replay(tmp_path / "none", game, read_only=True)
    assert empty.end == 0
    assert not (tmp_path / "none").exists()
    with pytest.raises(uctree.UctreeError, match="read only"):
        empty.append(0, episodes[0])

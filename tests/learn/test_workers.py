"""Workers: the same tests for this process, other processes and Ray."""

from __future__ import annotations

import importlib.util
import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid

import pytest

from tests.learn import failing_jobs
from tests.learn.failing_jobs import FailingSetup, LoggedSetup, all_ended, logged, processes_with
from tests.learn.faults import ROOT
from uctree import games
from uctree.errors import BrokenGame, UctreeError
from uctree.game import Game
from uctree.learn import inference
from uctree.learn.model_inference import export_model
from uctree.learn.options import make_options
from uctree.learn.reanalysis import Reanalysis, choose_chunks
from uctree.learn.replay import Replay
from uctree.learn.run import Run, new_network
from uctree.learn.selfplay import Episode, Setup
from uctree.learn.sequences import sequence_schema
from uctree.learn.workers import EvaluationJob, Failed, InProcessWorker, make_workers

torch = pytest.importorskip("torch", reason="the extra learn is not installed")
pytest.importorskip("onnxruntime", reason="the extra learn is not installed")

SMALL = {"num_simulations": 4, "num_trees": 4, "network_width": 8, "network_depth": 1}
CHUNKS = [(0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11)]
NUMBERS = list(range(12))
RAY = pytest.param("ray", marks=pytest.mark.peer)
SLOW_RAY = pytest.param("ray", marks=[pytest.mark.peer, pytest.mark.slow])
OTHERS = ["process", SLOW_RAY]


@pytest.fixture(scope="module")
def game():
    return games.tic_tac_toe()


def options_of(game, **given):
    return make_options(game, **SMALL, **given)


@pytest.fixture(scope="module")
def network(game):
    return inference.onnx_bytes(new_network(game, options_of(game)), game)


def workers_of(game, kind):
    if kind == "in process":
        return make_workers(options_of(game))
    if kind == "ray" and importlib.util.find_spec("ray") is None:
        pytest.skip("the extra ray is not installed")  # not loaded before it is set up
    return make_workers(options_of(game, workers=2, backend=kind))


@pytest.fixture(scope="module")
def known(game):
    """Workers by kind, each made once: two processors are enough for all actors."""
    found = {}
    yield found
    for each in found.values():
        each.close()


def workers_of_kind(kind, game, known):
    if kind not in known:
        known[kind] = workers_of(game, kind)
    return known[kind]


@pytest.fixture(params=["in process", *OTHERS])
def workers(request, game, known):
    return workers_of_kind(request.param, game, known)


@pytest.fixture(params=["in process", "process", RAY])
def all_workers(request, game, known):
    return workers_of_kind(request.param, game, known)


@pytest.fixture(params=OTHERS)
def other_workers(request, game, known):
    return workers_of_kind(request.param, game, known)


@pytest.fixture
def make(game, network, tmp_path):
    """A function that makes setups, which log the played episodes in the test's folder."""

    def made(kind=LoggedSetup, **given):
        given = {"game": game, "network": network} | given
        if issubclass(kind, LoggedSetup):
            given["folder"] = str(tmp_path)
        return kind(options=options_of(given["game"]), iteration=1, **given)

    return made


def content(episodes):
    """The content of episodes by number."""
    return {each.number: (each.positions.tobytes(), each.returns.tolist()) for each in episodes}


# --- all workers ---------------------------------------------------------------------------------


def test_every_episode_comes_once_and_is_the_same_in_every_kind_of_worker(all_workers, make):
    setup = make()
    episodes = list(all_workers.play(setup, CHUNKS))
    assert sorted(each.number for each in episodes) == NUMBERS
    expected = {}
    for chunk in CHUNKS:
        expected |= content(Setup.play(setup, chunk))
    assert content(episodes) == expected


def test_the_next_iteration_is_played_with_its_own_network(workers, make, game):
    first = make(Setup)
    second = Setup(game, first.options, random_network(game), iteration=2)
    before, after = (content(workers.play(each, [(0,)])) for each in (first, second))
    assert before == content(first.play((0,)))
    assert after == content(second.play((0,)))
    assert before != after


def random_network(game):
    """A network with random weights; a new one has last layers of zero."""
    network = new_network(game, options_of(game))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for each in network.parameters():
            each.copy_(torch.randn(each.shape, generator=generator))
    return inference.onnx_bytes(network, game)


def test_an_episode_that_raises_an_error_three_times_is_left_out_and_named(workers, make, tmp_path):
    found = list(workers.play(make(FailingSetup, failing=(6,)), CHUNKS))
    failed = [each for each in found if isinstance(each, Failed)]
    assert failed == [Failed(6, "ZeroDivisionError: one over zero")]
    played = [each.number for each in found if isinstance(each, Episode)]
    assert sorted(played) == [number for number in NUMBERS if number != 6]
    tried = [numbers for _, numbers in logged(tmp_path)]
    assert tried.count((4, 5, 6, 7)) == 3
    assert tried.count((6,)) == 3
    assert tried.count((0, 1, 2, 3)) == 1


def test_an_error_in_every_episode_ends_it_with_the_message(workers, make):
    hasty = failing_jobs.over_at_once()
    with pytest.raises(UctreeError, match="hasty is over before any player has acted"):
        list(workers.play(make(game=hasty), CHUNKS))


def test_errors_in_more_episodes_than_can_be_played_end_it(workers, make):
    setup = make(FailingSetup, failing=(0, 1, 2))
    with pytest.raises(UctreeError, match=r"self-play of tic_tac_toe fails: .*one over zero"):
        list(workers.play(setup, [(0, 1, 2, 3)]))


def test_workers_play_again_after_an_error(workers, make):
    with pytest.raises(UctreeError):
        list(workers.play(make(game=failing_jobs.over_at_once()), CHUNKS))
    assert sorted(each.number for each in workers.play(make(), CHUNKS)) == NUMBERS


def test_workers_can_play_again_after_their_generator_was_closed(workers, make):
    episodes = workers.play(make(), CHUNKS)
    next(episodes)
    episodes.close()
    assert sorted(each.number for each in workers.play(make(), CHUNKS)) == NUMBERS


def test_a_checkpoint_is_measured_where_episodes_are_played(workers):
    reports = []
    game = games.nim()
    network = random_network(game)
    job = EvaluationJob(game, options_of(game, ladder_games=2), network, network, seed=3)
    found = workers.measure(job, lambda done, total: reports.append((done, total)))
    assert found["games"]["past"]["games"] == 2
    assert found["games"] == job.measure(lambda done, total: None)["games"]
    assert reports[-1][0] == reports[-1][1]


@pytest.mark.parametrize("kind", ["process", SLOW_RAY])
def test_positions_are_searched_again_where_episodes_are_played(kind, game, known, tmp_path):
    workers = workers_of_kind(kind, game, known)
    small = SMALL | {"network_depth": 8, "playout_simulations": 8}
    options = make_options(game, algorithm="muzero", inference="torch", **small)
    network = export_model(new_network(game, options), game, backend="torch", rotates=True)
    with Replay(tmp_path, game, schema=sequence_schema(game)) as replay:
        for episode in Setup(game, options, None, iteration=1).play((0, 1, 2)):
            replay.append(episode.number, episode.positions)
        chunks = choose_chunks(replay.window(100), options, 2, 30)
    job = Reanalysis(game, options, network, 1, chunks)
    found = list(workers.play(job, [(number,) for number in chunks]))
    assert content(found) == content(job.play(list(chunks)))
    assert len(found) == len(chunks) > 2


# --- workers that can die ------------------------------------------------------------------------


def test_an_episode_whose_worker_dies_three_times_is_left_out_and_named(
    other_workers, make, tmp_path
):
    found = list(other_workers.play(make(FailingSetup, failing=(6,), kills=True), CHUNKS))
    (failed,) = (each for each in found if isinstance(each, Failed))
    assert failed.number == 6
    assert "died" in failed.error
    played = [each.number for each in found if isinstance(each, Episode)]
    assert sorted(played) == [number for number in NUMBERS if number != 6]
    tried = [numbers for _, numbers in logged(tmp_path)]
    assert tried.count((4, 5, 6, 7)) == 3
    assert tried.count((6,)) == 3


def test_a_checkpoint_whose_worker_dies_is_measured_by_another_one(other_workers, tmp_path):
    game = games.nim()
    given = game, options_of(game, ladder_games=2), random_network(game), None, 3
    found = other_workers.measure(
        failing_jobs.DeadlyJob(*given, str(tmp_path)), lambda done, total: None
    )
    assert (tmp_path / "tried").exists()
    assert found["games"] == EvaluationJob(*given).measure(lambda done, total: None)["games"]


class Killer:
    """Kills one of the playing processes, every `seconds` seconds."""

    def __init__(self, folder, seconds, most):
        self.folder, self.seconds, self.most = folder, seconds, most
        self.killed = set()
        self.enough = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        rng = random.Random(0)
        while not self.enough.wait(self.seconds) and len(self.killed) < self.most:
            alive = sorted({pid for pid, _ in logged(self.folder)} - self.killed)
            if alive:
                pid = rng.choice(alive)
                os.kill(pid, signal.SIGKILL)
                self.killed.add(pid)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.enough.set()
        self.thread.join()


def test_killed_workers_lose_nothing(other_workers, make, tmp_path):
    chunks = [tuple(range(first, first + 4)) for first in range(0, 20, 4)]
    with Killer(tmp_path, 0.5, most=2) as killer:
        found = list(other_workers.play(make(seconds=0.2), chunks))
    assert len(killer.killed) == 2
    assert os.getpid() not in killer.killed
    assert sorted(each.number for each in found) == list(range(20))


@pytest.mark.slow
def test_a_worker_killed_every_five_seconds_for_two_minutes_loses_nothing(
    other_workers, make, tmp_path
):
    began = time.monotonic()
    chunks = [tuple(range(first, first + 4)) for first in range(0, 240, 4)]
    with Killer(tmp_path, 5.0, most=24) as killer:
        found = list(other_workers.play(make(seconds=1.0), chunks))
    assert time.monotonic() - began >= 120
    assert len(killer.killed) >= 20
    assert sorted(each.number for each in found) == list(range(240))


def test_closing_leaves_no_process(game, make, tmp_path):
    workers = workers_of(game, "process")
    list(workers.play(make(), CHUNKS))
    workers.close()
    for pid in {pid for pid, _ in logged(tmp_path)}:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_game_that_cannot_be_found_by_name_says_so(game, make):
    whole, made_here = games.tic_tac_toe(), {"__name__": "nowhere"}
    exec("def legal(state, actions):\n    return 0\n", made_here)
    hidden = Game(
        whole.dtype, made_here["legal"], whole.rules.step, num_players=2, num_actions=9,
        observe=whole.rules.observe, observation_shape=whole.observation_shape,
    )  # fmt: skip
    workers = workers_of(game, "process")
    with pytest.raises(BrokenGame, match=r"legal of .* cannot be sent to another process"):
        list(workers.play(make(game=hidden), CHUNKS))


def test_one_worker_plays_in_process(game):
    assert isinstance(make_workers(options_of(game)), InProcessWorker)


# --- a training and its workers ------------------------------------------------------------------

TRAIN = [
    "-m", "uctree", "train", "tic_tac_toe", "--num-simulations", "20", "--ladder-games", "0",
    "--checkpoint-interval", "1", "--episodes-per-iteration", "16", "--num-trees", "8",
    "--workers", "2",
]  # fmt: skip


def begin_training(folder, backend):
    """A training process that has written a checkpoint, and the text in its environment."""
    mark = f"UCTREE_TEST={uuid.uuid4().hex}"
    name, _, value = mark.partition("=")
    process = subprocess.Popen(
        [sys.executable, *TRAIN, "--folder", str(folder), "--backend", backend], cwd=ROOT,
        env=os.environ | {name: value}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    until = time.monotonic() + 100
    while not (folder / "checkpoints" / "000001").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until, "no checkpoint within 100 seconds"
        time.sleep(0.02)
    assert len(processes_with(mark)) >= 3, "the training and its workers"
    return process, mark


@pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="needs /proc")
@pytest.mark.parametrize("backend", ["process", SLOW_RAY])
def test_ctrl_c_in_a_terminal_ends_training_and_workers_without_a_trace(tmp_path, backend):
    process, mark = begin_training(tmp_path / "run", backend)
    os.killpg(process.pid, signal.SIGINT)
    printed, errors = process.communicate(timeout=60)
    assert "interrupted" in errors
    assert "Traceback" not in errors + printed
    assert all_ended(mark, 10)


@pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="needs /proc")
@pytest.mark.parametrize("backend", ["process", SLOW_RAY])
def test_a_killed_training_leaves_no_workers_and_an_intact_folder(tmp_path, backend):
    process, mark = begin_training(tmp_path / "run", backend)
    process.kill()
    process.communicate()
    assert all_ended(mark, 20)
    run = Run.open(tmp_path / "run")
    assert run.checkpoint() is not None
    assert all(number in run.replay for number in range(16))


@pytest.mark.slow
def test_the_error_of_a_script_without_a_guard_says_what_to_do(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from uctree import games\n"
        "from uctree.learn import train\n"
        f"train(games.tic_tac_toe(), {str(tmp_path / 'run')!r}, workers=2, num_simulations=4)\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], cwd=ROOT, capture_output=True, text=True, timeout=100,
        env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert 'call train below `if __name__ == "__main__":`' in done.stderr

"""The commands about networks: `train`, `report`, `export`, and networks in `play` and `match`."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import uctree
from uctree import cli, games
from uctree.cli import learning
from uctree.learn import Run, describe_options

torch = pytest.importorskip("torch", reason="the extra learn is not installed")
pytest.importorskip("safetensors", reason="the extra learn is not installed")

SMALL = [
    "--num-simulations", 8, "--episodes-per-iteration", 8, "--network-width", 16,
    "--network-depth", 1, "--checkpoint-interval", 1, "--ladder-games", 2, "--batch-size", 32,
]  # fmt: skip


def run(capsys, *tokens):
    """The exit status of the command and what it prints, on stdout and stderr."""
    status = cli.main([str(token) for token in tokens])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of two iterations."""
    path = tmp_path_factory.mktemp("runs") / "ttt"
    tokens = ["train", "tic_tac_toe", "--folder", path, "--max-iterations", 2, *SMALL]
    assert cli.main([str(token) for token in tokens]) == 0
    return path


# --- train ---------------------------------------------------------------------------------------


def test_training_prints_its_results_and_the_same_command_resumes(capsys, tmp_path):
    tokens = ["train", "tic_tac_toe", "--folder", tmp_path / "run", *SMALL, "--max-iterations"]
    status, out, err = run(capsys, *tokens, 1)
    assert status == 0
    assert out.startswith(f"{tmp_path / 'run'}: iteration 1\n  score ")
    assert f"write a report: uctree report {tmp_path / 'run'}\n" in out
    assert f"uctree play tic_tac_toe --run {tmp_path / 'run'}" in out
    assert "iteration 1 of 1" in err
    assert "simulations/s; losses: policy " in err
    status, out, err = run(capsys, *tokens, 2)
    assert out.startswith(f"{tmp_path / 'run'}: iteration 2\n")
    assert "iteration 1 of 2" not in err


MODEL = [
    *SMALL[:6], "--network-depth", 8, "--algorithm", "muzero", "--draws", 2, "--batch-size", 32,
    "--inference", "torch", "--ladder-games", 2, "--checkpoint-interval", 1,
]  # fmt: skip
PLAYOUTS = ["--playout-simulations", 16, "--playout-iterations", 1]


def test_a_model_is_trained_reported_exported_and_played(capsys, tmp_path):
    folder, game = tmp_path / "run", "n_in_a_row:rows=3,cols=3,length=3,num_players=3"
    tokens = ["train", game, "--folder", folder, *MODEL, *PLAYOUTS]
    status, out, err = run(capsys, *tokens, "--max-iterations", 2)
    assert status == 0, err
    assert "against rules" in out
    assert "against policy" in out
    assert run(capsys, "report", folder)[0] == 0
    assert "Is the model any good?" in (folder / "report.html").read_text()
    assert run(capsys, "export", folder, tmp_path / "model.onnx")[0] == 0
    assert {path.name for path in tmp_path.glob("*.onnx")} == {
        "model.initial.onnx", "model.recurrent.onnx",
    }  # fmt: skip
    agent = f"network('{folder}', num_simulations=4)"
    status, out, err = run(capsys, "match", game, agent, "random", "greedy", "--games", 6)
    assert status == 0, err


def test_an_environment_is_named_by_its_text(capsys, tmp_path):
    pytest.importorskip("gymnasium", reason="the extra gym is not installed")
    tokens = ["train", "gymnasium:CartPole-v1", "--folder", tmp_path / "run", *MODEL]
    status, out, err = run(capsys, *tokens, "--max-iterations", 1)
    assert status == 0, err
    assert "mean return" in out
    assert "uctree play" not in out  # nobody can play against it
    text = ["train", "gymnasium:NoSuch-v0", "--folder", tmp_path / "none", "--algorithm", "muzero"]
    status, _, err = run(capsys, *text)
    assert (status, err.count("\n")) == (2, 1)
    assert "gymnasium.make('NoSuch-v0') failed" in err
    status, _, err = run(capsys, *tokens[:2], "--folder", tmp_path / "none")
    assert (status, err.count("\n")) == (2, 1)
    assert 'use algorithm="muzero"' in err
    status, _, err = run(capsys, *tokens[:2], "--folder", tmp_path / "none", *MODEL, *PLAYOUTS)
    assert (status, err.count("\n")) == (2, 1)
    assert "playout_iterations=1: CartPole-v1 is an environment without rules" in err


def test_the_report_of_ones_own_game_needs_the_game(folder):
    text = learning._summary(Run.open(folder), "my games.py:race:goal=5")
    assert f"write a report: uctree report {folder} --game 'my games.py:race:goal=5'\n" in text


def test_every_option_is_a_flag_with_its_description(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    status, out, _ = run(capsys, "train", "--help")
    assert status == 0
    text = " ".join(out.replace("│", " ").split())
    for row in describe_options():
        assert f"--{row.name.replace('_', '-')}" in text
        assert row.description.split(";")[0] in text


def test_only_what_was_given_is_handed_on_and_none_can_be_given(capsys, tmp_path):
    tokens = ["train", "tic_tac_toe", "--folder", tmp_path / "run", "--max-iterations", 1, *SMALL]
    status, _, _ = run(capsys, *tokens, "--gradient-clip", "none", "--no-symmetries")
    assert status == 0
    options = json.loads((tmp_path / "run" / "options.json").read_text())["options"]
    assert (options["gradient_clip"], options["symmetries"]) == (None, False)
    assert options["weight_decay"] == 1e-4


def test_mistakes_in_options_are_one_line(capsys, folder, tmp_path):
    status, _, err = run(
        capsys, "train", "tic_tac_toe", "--folder", tmp_path / "a", "--num-simulations", 0
    )
    assert (status, err.count("\n")) == (2, 1)
    assert "num_simulations=0: expected an integer of at least 1" in err
    status, _, err = run(capsys, "train", "tic_tac_toe", "--folder", folder, "--c", 3)
    assert status == 2
    assert "c is 1.25 in the folder and 3.0 now" in err
    status, _, err = run(capsys, "train", "leap", "--folder", tmp_path / "b")
    assert status == 2
    assert "leap cannot be learned" in err


def test_ctrl_c_stops_a_training_and_says_how_to_resume(capsys, tmp_path):
    place, gone = tmp_path / "run", threading.Event()

    def interrupt():
        while not gone.wait(0.05):
            if (place / "checkpoints" / "000001").exists():
                os.kill(os.getpid(), signal.SIGINT)
                return

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    try:
        tokens = ["train", "tic_tac_toe", "--folder", place, *SMALL, "--max-iterations", 500]
        status, out, err = run(capsys, *tokens)
    finally:
        gone.set()
        watcher.join()
    assert (status, out) == (130, "")
    last = uctree.learn.Run.open(place).iterations()[-1]
    assert last >= 1
    assert err.splitlines()[-1] == (
        f"uctree: interrupted; the last checkpoint is of iteration {last}; the same command "
        f"resumes {place}"
    )


def without_torch(tokens, missing=("torch", "safetensors"), **more):
    """A command without the installed extra."""
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({missing!r}))\n"
        f"from uctree import cli; sys.exit(cli.main({tokens!r}))"
    )
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False,
        **more,
    )  # fmt: skip


@pytest.mark.parametrize(
    "tokens",
    [
        ["train", "tic_tac_toe", "--folder", "RUN"],
        ["play", "tic_tac_toe", "--run", "RUN"],
        ["match", "tic_tac_toe", "network('RUN')", "random"],
    ],
    ids=lambda tokens: tokens[0],
)
def test_without_the_extra_the_commands_say_what_to_install(tokens, folder):
    done = without_torch([token.replace("RUN", str(folder)) for token in tokens])
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "pip install 'uctree[learn]'" in done.stderr


def test_a_terminal_sees_bars_with_rates_losses_and_the_time_left(monkeypatch):
    from uctree.learn import Progress

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm")
    now = Progress(
        phase="learning", done=3, total=9, iteration=2, max_iterations=10, games=512,
        positions=9000, simulations=10**6, games_per_second=12.5, simulations_per_second=60_000.0,
        policy_loss=1.25, value_loss=0.5, seconds=75.0, seconds_left=3675.0,
    )  # fmt: skip
    with learning._display() as show:
        show(now)
        time.sleep(0.3)  # the bars are drawn ten times a second
    shown = screen.getvalue()
    assert "iteration 2 of 10, 1:15, 1:01:15 left; 512 games" in shown
    assert (
        "3 of 9 steps; 12.5 games/s, 60,000 simulations/s; losses: policy 1.250, value 0.500"
        in shown
    )


# --- report and export ---------------------------------------------------------------------------


def test_a_report_of_a_real_run_has_all_sections(capsys, folder):
    status, out, err = run(capsys, "report", folder)
    assert (status, out, err) == (0, "", f"uctree: wrote {folder / 'report.html'}\n")
    text = (folder / "report.html").read_text(encoding="utf-8")
    for title in (
        "Does it learn?", "Does it play optimally?", "Is the network right?", "Losses", "Speed",
        "Checkpoints", "Options",
    ):  # fmt: skip
        assert f"<h2>{title}</h2>" in text


def test_an_exported_network_gives_the_results_of_the_run(capsys, folder, tmp_path):
    path = tmp_path / "network.onnx"
    status, _, err = run(capsys, "export", folder, path)
    assert (status, err) == (0, f"uctree: wrote {path}\n")
    game = games.tic_tac_toe()
    shown = np.stack([game.observation(game.play(each), len(each) % 2) for each in ([], [4], [0])])
    again = uctree.learn.load_onnx(path, game).batch.value(shown)
    for one, other in zip(again, uctree.learn.load(folder).evaluator().batch.value(shown),
                          strict=True):  # fmt: skip
        assert one == pytest.approx(other, abs=1e-5)


def test_a_file_that_cannot_be_written_is_an_error(capsys, folder, tmp_path):
    status, _, err = run(capsys, "export", folder, tmp_path / "nowhere" / "network.onnx")
    assert status == 2
    assert "No such file or directory while writing the network" in err


def test_a_folder_that_is_no_run_is_refused(capsys, tmp_path):
    for tokens in (["report", tmp_path], ["export", tmp_path, tmp_path / "a.onnx"]):
        status, _, err = run(capsys, *tokens)
        assert status == 2
        assert "is not the folder of a run" in err


# --- networks in other commands ------------------------------------------------------------------


def test_play_searches_with_the_network_of_a_run(capsys, folder, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("5\nquit\n"))
    status, out, _ = run(
        capsys, "play", "tic_tac_toe", "--run", folder, "--num-simulations", 20, "--seed", 1
    )
    assert status == 0
    assert f"The search uses the network of {folder}, iteration 2." in out
    assert "after 20 simulations)" in out
    status, _, err = run(capsys, "play", "tic_tac_toe", "--run", folder, "--evaluator", "playout()")
    assert (status, "--run and --evaluator" in err) == (2, True)


def test_play_connect_four_uses_the_pretrained_network(capsys, monkeypatch):
    for more, is_used in (((), True), (("--solver",), False)):
        monkeypatch.setattr(sys, "stdin", io.StringIO("4\nquit\n"))
        status, out, _ = run(capsys, "play", "connect_four", "--num-simulations", 20, *more)
        assert status == 0
        assert ("The search uses the network that comes with uctree" in out) == is_used


@pytest.mark.parametrize("missing", [("torch", "safetensors"), ("torch",)])
def test_without_the_extra_play_says_so_and_searches_by_playouts(missing):
    tokens = ["play", "connect_four", "--num-simulations", "20"]
    done = without_torch(tokens, missing, input="4\nquit\n")
    assert done.returncode == 0
    assert "The pretrained network of connect_four cannot be used: " in done.stdout
    assert "pip install 'uctree[learn]'" in done.stdout
    assert "after 20 simulations)" in done.stdout


def test_a_network_can_be_watched_against_the_search(capsys, folder):
    status, out, _ = run(
        capsys, "play", "tic_tac_toe", "--against", f"network(run='{folder}')",
        "--num-simulations", 20,
    )  # fmt: skip
    assert status == 0
    assert f"The search is player 0 against network(run='{folder}')." in out
    assert "The episode is over" in out


def test_networks_of_runs_play_matches_also_in_other_processes(capsys, folder, tmp_path):
    path = tmp_path / "games.jsonl"
    agents = [f"new=network(run='{folder}')", f"network('{folder}', 20, iteration=1)"]
    tokens = ["match", "tic_tac_toe", *agents, "--games", 2, "--processes", 2, "-o", path]
    status, out, _ = run(capsys, *tokens)
    assert status == 0
    assert out.startswith("tic_tac_toe: 2 games, 1 opening, complete\n")
    header = json.loads(path.read_text().splitlines()[0])
    # The newest checkpoint of now is meant, also when the match goes on later.
    assert header["agents"]["new"] == f"network_agent(\"network(run='{folder}')\", 2)"
    status, out, _ = run(capsys, *tokens[:5], 4, *tokens[6:])
    assert out.startswith("tic_tac_toe: 4 games")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("network()", "missing a required argument: 'run'"),
        ("network('{0}', simulatons=3)", "search has no option 'simulatons'"),
        ("network('{0}', evaluator=3)", "omit evaluator="),
        ("network('{0}', iteration=7)", "7"),
        ("network('nowhere')", "nowhere is not the folder of a run"),
        ("network('{0}', selection=ucb2())", "unknown 'ucb2'"),
    ],
)
def test_mistakes_in_a_network_agent_are_errors(capsys, folder, text, message):
    status, _, err = run(
        capsys, "match", "tic_tac_toe", text.format(folder), "random", "--games", 2
    )
    assert (status, err.count("\n")) == (2, 1)
    assert message in err


def test_a_network_of_another_game_is_refused(capsys, folder):
    status, _, err = run(capsys, "match", "connect_four", f"network('{folder}')", "random")
    assert status == 2
    assert "is a run of another game than connect_four" in err

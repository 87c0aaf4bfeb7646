"""The command `uctree play`."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest

import uctree
from uctree import cli

pytestmark = pytest.mark.usefixtures("imports_are_undone")


def test_play_runs_to_the_end_and_prints_the_returns(play, file):
    output = play(f"{file}:race", "+1", "+2")  # 3 of 4 are left, so player 0 wins
    assert "You are player 0." in output
    assert "player 0, your action (+1 +2): +1\n" in output
    assert re.search(r"player 1 plays \+[12]   \(expects -\d\.\d+ after 200 simulations\)", output)
    assert output.endswith(
        "The episode is over after 3 plies.\nReturns: player 0 (you) +1, player 1 -1\n"
    )


def test_play_lets_the_search_begin(play, file):
    output = play(f"{file}:race", "+1", options=("--player", "1"))
    assert output.index("player 0 plays +1") < output.index("player 1, your action")
    assert "Returns: player 0 +1, player 1 (you) -1\n" in output


def test_an_illegal_action_is_asked_for_again(play, file):
    output = play(f"{file}:race", "+3", "", "+1", "+2")
    assert "'+3' is not a legal action here; legal: +1, +2; or hint, undo, quit\n" in output
    assert "Returns: player 0 (you) +1" in output


def test_a_hint_is_the_table_of_a_search(play, file):
    output = play(f"{file}:race", "hint", "quit")
    assert "player 0 to move: +1" in output
    assert re.search(r"action +visits +share", output)


def test_undo_goes_back_to_the_previous_decision(play, file):
    output = play(f"{file}:race", "+1", "undo", "undo", "quit")
    boards = re.findall(r"total (\d) of 4", output)
    assert boards[2:] == [boards[0], boards[0]]
    assert output.count("There is nothing to undo.") == 1


def test_undo_can_be_repeated(play, file):
    output = play(f"{file}:coins", "stake 1", "stake 2", "undo", "undo", "quit")
    assert re.findall(r"^total: (\d+)", output, re.MULTILINE) == ["0", "10", "21", "10", "0"]


@pytest.mark.parametrize("typed", [("quit",), ()], ids=["quit", "end of input"])
def test_quitting_says_good_bye(play, file, typed):
    assert play(f"{file}:race", *typed).endswith("\nGood-bye.\n")


@pytest.mark.parametrize("where", ["input", "search"])
def test_ctrl_c_leaves_the_episode(play, file, monkeypatch, where):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    if where == "input":
        monkeypatch.setattr("builtins.input", interrupt)
    else:
        monkeypatch.setattr(uctree, "search", interrupt)
    assert play(f"{file}:race", "+1", "+2").endswith("\nGood-bye.\n")


def test_a_person_can_play_vectors(play):
    output = play("leap", "2", "0.25")
    assert "your action (-1 to 1): 2\n" in output
    assert "action [2.0] is not legal; expected [-1.0] to [1.0]; or hint, undo, quit" in output
    assert "The episode is over after 2 plies." in output


def test_agents_do_not_play_vectors(refused):
    message = refused("play", "leap", "--against", "random")
    assert "the actions of leap are vectors, and agents play games with numbered actions" in (
        message
    )


def test_play_can_be_watched(play, file):
    output = play(f"{file}:race", options=("--player", "none"))
    assert "your action" not in output
    assert "player 0 plays +1" in output
    assert "Returns: player 0 +1, player 1 -1\n" in output


AGENTS = """
class Careful:
    def begin(self, game, player, seed):
        self.player, self.total = player, 0

    def watch(self, state, action):
        self.total += action + 1

    def act(self, state):
        assert self.total == state["total"]  # all actions were watched
        return 1 if self.total % 3 == 2 else 0


class Failing(Careful):
    def act(self, state):
        raise OSError("no more paper")


class Cheating(Careful):
    def act(self, state):
        return 7


class Silent(Careful):
    def act(self, state):
        return None


class Wavering(Careful):
    def act(self, state):
        return 0.5


class Noting(Careful):
    def begin(self, game, player, seed):
        self.game = game
        with open(__file__ + ".seeds", "a") as notes:
            print(player, seed, file=notes)

    def watch(self, state, action):
        pass

    def act(self, state):
        return self.game.legal(state)[0]


class Scribbling(Noting):
    def watch(self, state, action):
        state["total"] = 90

    def act(self, state):
        action = self.game.legal(state)[0]
        state["total"] = 90
        return action
"""


@pytest.fixture
def agents(tmp_path):
    path = tmp_path / "agents_here.py"
    path.write_text(AGENTS)
    return path


def test_a_person_can_play_against_an_agent(play, file, agents):
    against = f"{agents}:Careful"
    output = play(f"{file}:race", "+2", "+1", options=("--against", against, "--player", "0"))
    assert f"You are player 0 against {against}." in output
    assert f"player 1 ({against}) plays +2" in output
    assert "Returns: player 0 (you) -1, player 1 +1\n" in output


def test_an_agent_sees_an_undo(play, file, agents):
    typed = ("+1", "undo", "+2", "+1")
    output = play(
        f"{file}:race", *typed, options=("--against", f"{agents}:Careful", "--player", "0")
    )
    assert "The episode is over" in output


def test_the_search_plays_against_an_agent(play, file):
    output = play(f"{file}:race", options=("--against", "random"))
    assert "The search is player 0 against random." in output
    assert re.search(r"player 0 plays \+1   \(expects", output)
    assert "player 1 (random) plays" in output


@pytest.mark.parametrize(
    ("against", "message"),
    [
        ("Failing", "Failing failed as player 1: OSError: no more paper"),
        ("Cheating", "Cheating failed as player 1: action 7 at ply 1 is not legal; legal: [0, 1]"),
        ("Silent", "Silent failed as player 1: None at ply 1 is not an action"),
        ("Wavering", "Wavering failed as player 1: 0.5 at ply 1 is not an action"),
    ],
)
def test_an_agent_that_fails_is_reported(file, agents, capsys, against, message):
    tokens = ["play", f"{file}:race", "--against", f"{agents}:{against}", "--num-simulations", "50"]
    assert cli.main(tokens) == 2
    assert message in capsys.readouterr().err


def test_an_agent_cannot_change_the_episode_by_writing_into_a_state(play, file, agents):
    scribbled, plain = (
        play(f"{file}:race", options=("--against", f"{agents}:{name}"))
        for name in ("Scribbling", "Noting")
    )
    assert scribbled.replace("Scribbling", "Noting") == plain


def test_every_agent_has_its_own_seed(play, agents):
    play("n_in_a_row:3,3,3,3", options=("--against", f"{agents}:Noting"))
    notes = Path(f"{agents}.seeds").read_text().split()
    assert notes[::2] == ["1", "2"]
    assert len(set(notes[1::2])) == 2


def test_chance_is_drawn_with_the_seed_and_undo_does_not_draw_again(play, file):
    output = play(f"{file}:coins", "stake 2", "undo", "stake 2", "stake 1", "stake 1")
    first, again, second, third = re.findall(r"chance: (heads|tails)", output)
    assert first == again
    won = 2 * (first == "heads") + (second == "heads") + (third == "heads")
    assert f"Returns: player 0 (you) {won:+g}\n" in output


def test_play_draws_a_seed_and_says_it(run, file, monkeypatch):
    seeds = set()
    for _ in range(3):
        monkeypatch.setattr(sys, "stdin", io.StringIO(""))
        seeds.add(re.search(r"seed (\d+)", run("play", f"{file}:race"))[1])
    assert len(seeds) > 1


def test_play_takes_the_same_options(play, file):
    options = ("--selection", "ucb1(c=1)", "--solver", "--player", "none")
    assert "Returns: player 0 +1, player 1 -1\n" in play(f"{file}:race", options=options)


def test_a_learned_model_plays_with_the_options_of_its_training(play, tmp_path):
    torch = pytest.importorskip("torch", reason="the learn extra is not installed")
    from uctree import games, learn

    torch.set_num_threads(1)
    learn.train(
        games.tic_tac_toe(), tmp_path / "run", algorithm="muzero", max_iterations=1,
        episodes_per_iteration=4, num_simulations=4, playout_iterations=1, playout_simulations=8,
        ladder_games=0, draws=1, inference="torch", network_width=8, network_depth=1,
    )  # fmt: skip
    run = ("--run", str(tmp_path / "run"))
    output = play("tic_tac_toe", options=(*run, "--player", "none"))
    assert "uses the network of" in output
    assert "player 1 plays" in output


def test_people_play_all_of_a_game_with_a_window(play):
    """A person plays in a corner; the search plays in the window and is shown by its cell."""
    game = "n_in_a_row(rows=7, cols=7, length=3, num_players=2, view=3)"
    output = play(game, "a1", "quit")
    assert "player 0, your action: a1\n" in output
    assert re.search(r"player 1 plays [a-g][1-7]   \(expects", output)
    assert "Good-bye" in output

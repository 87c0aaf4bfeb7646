"""Files of matches: what they hold, and what is wrong with one that was changed."""

from __future__ import annotations

import json
import random
import subprocess
import sys

import pytest

import uctree
from tests.arena.failing import Raises
from uctree import UctreeError, games
from uctree.arena import match, play, read_games, read_match

pytestmark = pytest.mark.quick


@pytest.fixture
def path(tmp_path):
    """The file of a match of four games."""
    match("tic_tac_toe", ["random", "greedy"], num_games=4, path=tmp_path / "games.jsonl")
    return tmp_path / "games.jsonl"


def change(path, line, **values):
    """Put other values into a line of a file."""
    lines = path.read_text().splitlines()
    lines[line] = json.dumps(json.loads(lines[line]) | values)
    path.write_text("\n".join(lines) + "\n")


def test_a_record_gives_its_episode_and_its_states(path):
    record = read_games(path)[0]
    game = games.tic_tac_toe()
    assert len(record.states) == len(record.actions) + 1
    assert game.key(record.states[0]) == game.key(game.start())
    assert game.key(record.states[-1]) == game.key(game.play(record.actions))
    assert record.episode.actions == list(record.actions)
    assert record.episode.returns.tolist() == list(record.returns)
    assert record.episode.complete


def test_reading_games_keeps_no_states_until_they_are_asked_for(path):
    records = read_games(path)
    assert not any({"states", "episode", "_replayed"} & set(vars(record)) for record in records)
    assert len(records[0].states) == len(records[0].actions) + 1


def test_a_record_is_shown_ply_by_ply():
    record = play("tic_tac_toe", ["random", Raises], opening=[4])
    shown = str(record)
    assert shown.startswith("game 0 of tic_tac_toe, seed 0\nplayer 0: random\nplayer 1: Raises\n")
    assert "ply 0, opening: player 0 plays 5" in shown
    assert "player 1 (Raises) forfeits: act at ply 3: ZeroDivisionError: one over zero" in shown
    assert shown.endswith("Returns: player 0 +1, player 1 -1")


def test_chance_is_shown_as_such():
    assert "chance plays" in str(play("pig(10)", ["random", "random"]))


def test_a_users_game_has_to_be_given(tmp_path):
    plain = games.tic_tac_toe()
    game = uctree.Game(
        plain.dtype, plain.rules.legal, plain.rules.step, num_players=2, num_actions=9, name="mine"
    )
    path = tmp_path / "games.jsonl"
    match(game, ["random", "random"], num_games=2, path=path)
    with pytest.raises(UctreeError, match="was played in your game 'mine'; pass game="):
        read_games(path)
    assert len(read_games(path, game)) == 2


@pytest.mark.parametrize(
    ("line", "values", "message"),
    [
        (0, {"format": "something"}, "is not the file of a match"),
        (0, {"version": 2}, "has version 2 of the format, but this uctree reads 1"),
        (0, {"game": None}, "its header is damaged: it has no 'game'"),
        (0, {"agents": {"random": "random"}}, "its header does not name greedy"),
        (0, {"game": {"name": "x", "spec": "x(1)"}}, r"cannot make the game 'x\(1\)'"),
        (0, {"game": {"name": "nim", "spec": "nim()"}}, "was played in another game than nim"),
        (1, {"actions": [0, 0]}, "line 2, game 0: action 0 is not legal"),
        (1, {"actions": ["0"]}, r"line 2 is damaged: not a game of tic_tac_toe: actions are"),
        (1, {"actions": 3}, "line 2 is damaged"),
        (1, {"returns": [0.5, 0.5]}, "line 2, game 0: the rules pay .* but .0.5, 0.5. was stored"),
        (1, {"returns": [1.0]}, "line 2 is damaged"),
        (1, {"end": "cut"}, "the episode is over by the rules, but 'cut' was stored"),
        (1, {"end": "resigned"}, "no player is to move at the end, but 'resigned' was stored"),
        (1, {"end": "draw"}, "line 2 is damaged: .*end is 'draw'"),
        (1, {"returns": ["nan", "inf"]}, "line 2 is damaged: .*returns are"),
        (1, {"returns": [True, False]}, "line 2 is damaged: .*returns are"),
        (1, {"returns": None}, "line 2 is damaged"),
        (1, {"decisions": [1.5, 2]}, "line 2 is damaged: .*decisions are"),
        (1, {"actions": [10**30]}, "is not legal"),
        (1, {"actions": [-(2**63)]}, "is not legal"),
        (1, {"number": 1.5}, "number is 1.5"),
        (1, {"forfeiter": 9}, "forfeiter is 9"),
        (2, {"number": 0}, "line 3: game 0 occurs twice"),
    ],
)
def test_a_damaged_file_is_refused(path, line, values, message):
    change(path, line, **values)
    with pytest.raises(UctreeError, match=message):
        read_games(path)


def test_a_line_that_is_no_json_is_named(path):
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], "{nothing", *lines[3:]]) + "\n")
    with pytest.raises(UctreeError, match="line 3 is damaged"):
        read_games(path)
    with pytest.raises(UctreeError, match="line 3 is damaged"):
        match("tic_tac_toe", ["random", "greedy"], num_games=4, path=path)


@pytest.mark.parametrize(
    "value", ["NaN", "[Infinity, -Infinity]", "[1e400, 0]", "[1" + "0" * 400 + ", 0]", "[" * 50_000]
)
@pytest.mark.parametrize("line", [0, 1])
def test_numbers_that_json_does_not_have_are_refused(path, line, value):
    lines = path.read_text().splitlines()
    lines[line] = lines[line][:-1] + f', "returns": {value}' + "}"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(UctreeError, match=r"is damaged|is not the file of a match"):
        read_games(path)


def test_a_line_without_all_of_a_game_is_named(path):
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], '{"number": 0}']) + "\n")
    with pytest.raises(UctreeError, match="line 2 is damaged: expected a game with number, "):
        read_games(path)


def test_a_file_without_games_has_no_result(path):
    path.write_text(path.read_text().splitlines()[0] + "\n")
    assert read_games(path) == []
    with pytest.raises(UctreeError, match="holds no games yet"):
        read_match(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UctreeError, match="No such file"):
        read_games(tmp_path / "nothing.jsonl")


@pytest.mark.parametrize("text", ["important\nnotes\n", "important\nnotes", "notes", '{"a": 1}'])
def test_any_other_file_is_not_written_to(tmp_path, text):
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(UctreeError, match="is not the file of a match"):
        match("tic_tac_toe", ["random", "greedy"], num_games=2, path=path)
    assert path.read_text() == text


FULL = """
import resource, signal, sys
from uctree import UctreeError
from uctree.arena import match

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
try:
    match("tic_tac_toe", ["random", "greedy"], num_games=20, path=sys.argv[1])
except UctreeError as error:
    print(error)
"""


def test_a_full_disk_is_named_and_the_games_so_far_count(tmp_path):
    path, whole = tmp_path / "games.jsonl", tmp_path / "whole.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", FULL, path], capture_output=True, text=True, check=True
    )
    assert "games.jsonl: File too large; what was written so far is safe" in done.stdout
    content = path.read_bytes()
    assert len(content) == 3000  # a part of the last line, too
    match("tic_tac_toe", ["random", "greedy"], num_games=20, path=path)
    assert path.read_bytes().startswith(content[: content.rindex(b"\n") + 1])
    match("tic_tac_toe", ["random", "greedy"], num_games=20, path=whole)
    resumed, fresh = read_games(path), read_games(whole)
    assert [game.actions for game in resumed] == [game.actions for game in fresh]


def test_the_file_of_a_match_is_no_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(UctreeError, match="link is a link or not a file, and a match would be"):
        match("tic_tac_toe", ["random", "greedy"], num_games=2, path=tmp_path / "link")
    assert not (tmp_path / "target").exists()


def test_files_with_random_changes_are_refused_or_read(path):
    """Bytes are flipped, cut out, repeated or replaced by what JSON and rules do not expect."""
    content, chance = path.read_bytes(), random.Random(1)
    pieces = [b"NaN", b"-1", b"9" * 150, b"1e999", b"null", b'"', b"[", b"}", b"\xff", b"\n", b"{}"]
    num_refused = 0
    for _ in range(400):
        changed = bytearray(content)
        for _ in range(chance.randint(1, 3)):
            at, length = chance.randrange(len(changed)), chance.randint(0, 6)
            changed[at : at + length] = chance.choice(pieces)
        if chance.random() < 0.2:
            del changed[chance.randrange(len(changed)) :]
        path.write_bytes(changed)
        try:
            read_games(path)
        except UctreeError:
            num_refused += 1
    assert num_refused > 200

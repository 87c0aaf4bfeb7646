"""Programs that speak GTP: a small one with every bad habit, and the real GNU Go and GRhino."""

from __future__ import annotations

import functools
import gc
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.pressing import assert_nothing_stays, held, interrupted
from uctree import Game, UctreeError
from uctree.arena import MatchProgress, match
from uctree.arena.external import (
    FOLDERS,
    MAX_SHOWN,
    GtpAgent,
    ProgramFailed,
    Resigned,
    gnugo,
    rhino,
)
from uctree.games import connect_four, go, othello, tic_tac_toe, twenty48

HANGS = 30.0  # seconds that only a wait for a program's 60 takes, however busy the machine is

# It answers genmove by the vertices in its first argument, one after the other; a word among them
# is a habit. What it was asked goes to the file in its second argument.
PROGRAM = """
import os, sys, time

script, log = sys.argv[1].split(), open(sys.argv[2], "a")
for line in sys.stdin:
    words = line.split()
    number = words.pop(0) if words[0].isdigit() else ""
    log.write(" ".join(words) + "\\n")
    log.flush()
    if words[0] == "quit":
        print(f"={number}\\n\\n", end="", flush=True)
        break
    if words[0] == "play" and words[2].lower() == "a9":
        print(f"?{number} illegal move\\n\\n", end="", flush=True)
        continue
    if words[0] != "genmove":
        print(f"={number}\\n\\n", end="", flush=True)
        continue
    reply = script.pop(0)
    if reply == "die" or (reply == "die_once" and not os.path.exists(sys.argv[2] + ".died")):
        open(sys.argv[2] + ".died", "w").close()
        print("something broke inside", file=sys.stderr, flush=True)
        sys.exit(3)
    elif reply == "die_once":
        print(f"={number} {script.pop(0)}\\n\\n", end="", flush=True)
    elif reply == "sleep":
        time.sleep(60)
    elif reply == "stubborn":
        import signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(60)
    elif reply == "half":
        print(f"={number} E5", flush=True)  # and never an empty line
    elif reply == "chatty":
        sys.stderr.write("x" * 200_000)
        late = f"={int(number) - 1} A1"
        print(f"thinking\\n\\n=banner\\n{late}\\n\\nE5 looks good", flush=True)
        print(f"={number} E5\\r\\n\\r\\n", end="", flush=True)
    elif reply == "error":
        print(f"?{number} cannot think\\n\\n", end="", flush=True)
    else:
        print(f"={number} {reply}\\n\\n", end="", flush=True)
"""


@pytest.fixture
def program(tmp_path: Path):
    """Makes agents of the small program, which are ended after the test."""
    path, made = tmp_path / "program.py", []
    path.write_text(PROGRAM)

    def make(script: str, **options) -> GtpAgent:
        log = str(tmp_path / "log.txt")
        made.append(GtpAgent([sys.executable, "-u", str(path), script, log], **options))
        return made[-1]

    yield make
    for agent in made:
        agent.close()


def asked(tmp_path: Path) -> list[str]:
    return (tmp_path / "log.txt").read_text().splitlines()


def pid_of(agent: GtpAgent) -> int:
    assert agent._program is not None
    return agent._program._process.pid


def is_there(pid: int) -> bool:
    """Whether a process exists, be it as a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_program_receives_the_actions_of_an_episode(program, tmp_path) -> None:
    game = go(9)
    agent = program(
        "e5 PASS", setup=("boardsize {size}", "clear_board", "komi {komi}", "seed {seed}")
    )
    agent.begin(game, 1, 7)
    state = game.start()
    first = game.read_action(state, "C3")
    agent.watch(state, first)
    state, _ = game.step(state, first)
    action = agent.act(state)
    assert game.show_action(state, action) == "E5"
    agent.watch(state, action)
    state, _ = game.step(state, action)
    agent.watch(state, 81)
    state, _ = game.step(state, 81)
    assert agent.act(state) == 81
    assert asked(tmp_path) == [
        "boardsize 9", "clear_board", "komi 7.5", "seed 7", "play black C3", "genmove white",
        "play black pass", "genmove white",
    ]  # fmt: skip


def test_an_own_action_that_it_did_not_choose_is_sent(program, tmp_path) -> None:
    game = go(9)
    agent = program("")
    agent.begin(game, 0, 1)
    agent.watch(game.start(), 0)
    assert asked(tmp_path)[-1] == "play black A1"


def test_one_process_serves_many_episodes(program, tmp_path) -> None:
    game = go(5)
    agent = program("A1 B1")
    agent.begin(game, 0, 1)
    agent.act(game.start())
    process = pid_of(agent)
    agent.begin(game, 1, 2)
    agent.act(game.start())
    assert pid_of(agent) == process
    assert asked(tmp_path) == 2 * ["boardsize 5", "clear_board", "genmove black"]


def test_what_it_played_cannot_be_taken_back(program) -> None:
    game = go(9)
    agent = program("E5")
    agent.begin(game, 0, 1)
    agent.act(game.start())
    with pytest.raises(UctreeError, match="has played E5 and cannot take it back; got A1"):
        agent.watch(game.start(), 0)


def test_a_resignation_names_the_player(program) -> None:
    game = go(9)
    agent = program("resign")
    agent.begin(game, 0, 1)
    with pytest.raises(Resigned, match="player 0 resigns") as caught:
        agent.act(game.start())
    assert caught.value.player == 0


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("error", "refused 'genmove black': cannot think"),
        ("K9", "replied to 'genmove black': 'K9' is not a legal action here"),
        ("nonsense", "'nonsense' is not a legal action here"),
    ],
)
def test_replies_that_are_no_actions_are_errors(program, script: str, message: str) -> None:
    agent = program(script)
    agent.begin(go(9), 0, 1)
    with pytest.raises(ProgramFailed, match=message):
        agent.act(go(9).start())


def test_an_illegal_reply_is_an_error(program) -> None:
    game = go(9)
    agent = program("E5")
    agent.begin(game, 0, 1)
    state = game.play([40])
    agent.watch(game.start(), 40)
    with pytest.raises(ProgramFailed, match="'E5' is not a legal action here"):
        agent.act(state)


def test_an_action_that_the_program_refuses_is_an_error(program) -> None:
    game = go(9)
    agent = program("")
    agent.begin(game, 0, 1)
    with pytest.raises(ProgramFailed, match="refused 'play black A9': illegal move"):
        agent.watch(game.start(), game.read_action(game.start(), "A9"))


def test_noise_around_replies_and_on_stderr_is_ignored(program) -> None:
    game = go(9)
    agent = program("chatty chatty")
    agent.begin(game, 0, 1)
    assert agent.act(game.start()) == 40
    agent.begin(game, 0, 1)
    assert agent.act(game.start()) == 40


@pytest.mark.parametrize("habit", ["sleep", "half", "stubborn"])
def test_a_late_reply_is_an_error_and_ends_the_program(program, habit: str) -> None:
    agent = program(habit, max_seconds=0.5)
    agent.begin(go(9), 0, 1)
    process, began = pid_of(agent), time.monotonic()
    with pytest.raises(ProgramFailed, match=r"no full reply to 'genmove black' within 0.5 s"):
        agent.act(go(9).start())
    assert time.monotonic() - began < HANGS
    assert not is_there(process)


def test_a_program_that_dies_is_started_again_and_receives_the_episode(program, tmp_path) -> None:
    game = go(9)
    agent = program("die_once E5")
    agent.begin(game, 1, 1)
    agent.watch(game.start(), 0)
    assert agent.act(game.play([0])) == 40
    commands = ["boardsize 9", "clear_board", "play black A1", "genmove white"]
    assert asked(tmp_path) == 2 * commands


def test_a_program_that_dies_again_is_an_error_with_the_end_of_its_stderr(program) -> None:
    agent = program("die")
    agent.begin(go(9), 0, 1)
    with pytest.raises(ProgramFailed, match=r"status 3 after 'genmove black'.*broke inside"):
        agent.act(go(9).start())
    agent.begin(go(9), 0, 1)  # a new episode starts a new process
    assert agent.ask("name") == ""


def test_closing_leaves_no_process(program, tmp_path) -> None:
    agent = program("E5")
    agent.begin(go(9), 0, 1)
    process = pid_of(agent)
    assert is_there(process)
    agent.close()
    agent.close()
    assert not is_there(process)
    assert asked(tmp_path)[-1] == "quit"


def test_a_garbage_collected_agent_leaves_no_process(tmp_path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, str(tmp_path / "program.py"), "E5", str(tmp_path / "log.txt")]
    agent = GtpAgent(command)
    agent.begin(go(9), 0, 1)
    process = pid_of(agent)
    del agent
    gc.collect()
    assert not is_there(process)


def test_a_missing_program_is_reported_with_how_to_install_it() -> None:
    agent = GtpAgent("no_such_program --mode gtp", install="apt install no-such-program")
    with pytest.raises(
        ProgramFailed, match=r"cannot start 'no_such_program'.*apt install no-such-program"
    ):
        agent.begin(go(9), 0, 1)


@pytest.mark.parametrize(
    ("game", "setup", "message"),
    [
        (twenty48(), (), "GTP knows two players"),
        (connect_four(), ("boardsize {size}",), "GTP knows square boards"),
        (tic_tac_toe(), ("komi {komi}",), "cannot fill in 'komi {komi}' for tic_tac_toe"),
    ],
)
def test_games_it_cannot_play_are_refused(
    program, game: Game, setup: tuple[str, ...], message: str
) -> None:
    with pytest.raises(UctreeError, match=message):
        program("", setup=setup).begin(game, 0, 1)


def test_preparing_raises_the_error_that_an_episode_would_raise(program) -> None:
    program("").prepare(go(9))
    with pytest.raises(ProgramFailed, match="cannot start 'no_such_program'"):
        GtpAgent("no_such_program").prepare(go(9))


def test_an_agent_needs_an_episode() -> None:
    with pytest.raises(UctreeError, match="no episode has begun"):
        GtpAgent("gnugo").act(go(9).start())


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ("", {}, ValueError, "command is empty"),
        ("gnugo", {"setup": "boardsize 9"}, TypeError, "setup is a list of commands"),
        ("gnugo", {"max_seconds": 0}, ValueError, "max_seconds must be above 0; got 0"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, options, error, message: str) -> None:
    with pytest.raises(error, match=message):
        GtpAgent(arguments, **options)


def test_levels_of_gnu_go_begin_at_one() -> None:
    with pytest.raises(ValueError, match="level must be at least 1; got 0"):
        gnugo(level=0)


# --- programs that go astray ---------------------------------------------------------------------


def running(marker: str) -> list[str]:
    """The processes whose command line has this word."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if marker in words:
            found.append(" ".join(words))
    return found


def assert_begins(marker: str) -> None:
    until = time.monotonic() + 5.0
    while not running(marker):
        assert time.monotonic() < until
        time.sleep(0.01)


def assert_ends(marker: str, seconds: float = 5.0) -> None:
    until = time.monotonic() + seconds
    while running(marker):
        assert time.monotonic() < until, running(marker)
        time.sleep(0.02)


def test_what_a_program_has_started_ends_with_it() -> None:
    # The child keeps the streams of its parent open.
    script = "sleep 61.25 & while read -r n c; do printf '=%s\\n\\n' $n; done"
    before = held()
    agent = GtpAgent(["sh", "-c", script])
    agent.begin(go(9), 0, 1)
    assert_begins("61.25")
    began = time.monotonic()
    agent.close()
    assert time.monotonic() - began < HANGS
    assert_ends("61.25")
    assert_nothing_stays(before)


def test_a_program_that_dies_before_its_child_is_noticed_at_once() -> None:
    agent = GtpAgent(["sh", "-c", "sleep 61.5 & read -r line; exit 7"])
    began = time.monotonic()
    with pytest.raises(ProgramFailed, match="ended with status 7 after 'boardsize 9'"):
        agent.begin(go(9), 0, 1)
    assert time.monotonic() - began < HANGS
    assert_ends("61.5")


ASTRAY = {
    "lines without end": ("yes", "no full reply to 'boardsize 9' within 0.7 s"),
    "a line without end": ("cat /dev/zero", "wrote a line of over 65,536 bytes; it was ended"),
    "a reply without end": (
        "read -r line; echo '=1 yes'; yes $(head -c 9999 /dev/zero | tr '\\0' x)",
        "by over 1,048,576 characters; it was ended",
    ),
    "errors without end": ("yes >&2", "no full reply to 'boardsize 9' within 0.7 s"),
    "a closed output": ("exec >&-; sleep 61.75", "ended with status -9 after 'boardsize 9'"),
}  # fmt: skip


@pytest.mark.parametrize("habit", ASTRAY)
def test_a_program_that_goes_astray_is_ended_in_time(habit: str) -> None:
    script, message = ASTRAY[habit]
    before, began = held(), time.monotonic()
    with pytest.raises(ProgramFailed, match=message):
        GtpAgent(["sh", "-c", script, "astray"], max_seconds=0.7).begin(go(9), 0, 1)
    assert time.monotonic() - began < HANGS
    assert_ends("astray")
    assert_nothing_stays(before)


def test_only_the_end_of_stderr_is_kept() -> None:
    script = "head -c 5000000 /dev/zero | tr '\\0' x >&2; echo the end >&2; exit 3"
    with pytest.raises(ProgramFailed, match=r"stderr: x+the end$") as caught:
        GtpAgent(["sh", "-c", script]).begin(go(9), 0, 1)
    assert len(str(caught.value)) < MAX_SHOWN + 200


ORPHAN = """
import time
from uctree import games
from uctree.arena.external import GtpAgent
script = "sleep 62.25 & while read -r n c; do printf '=%s\\\\n\\\\n' $n; done; sleep 62.25"
agent = GtpAgent(["sh", "-c", script])
agent.begin(games.go(9), 0, 1)
print("ready", flush=True)
time.sleep(60)
"""


def test_a_program_ends_with_a_process_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", ORPHAN], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert_begins("62.25")
        process.send_signal(signal.SIGKILL)
    assert_ends("62.25")


def test_ctrl_c_while_a_stubborn_program_is_closed_kills_it(program) -> None:
    agent = program("stubborn", max_seconds=60)
    agent.begin(go(9), 0, 1)
    process, began = pid_of(agent), time.monotonic()
    assert interrupted(lambda: agent.act(go(9).start()), 0.3) is None
    assert is_there(process)
    assert interrupted(lambda: agent.close() or True, 0.3) is None
    assert time.monotonic() - began < HANGS
    assert not is_there(process)


PATIENT = """
import sys
for line in sys.stdin:
    number, command, *words = line.split()
    print(f"={number} {'resign' if command == 'genmove' else ''}\\n", flush=True)
"""


def press_after_two(progress: MatchProgress) -> None:
    if progress.done == 2:
        os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("num_moments", [2, pytest.param(200, marks=pytest.mark.slow)])
def test_a_match_with_programs_leaves_nothing_after_ctrl_c_at_any_moment(
    tmp_path: Path, num_moments: int
) -> None:
    path, rng = tmp_path / "patient.py", random.Random(1)
    path.write_text(PATIENT)
    agents = {"one": f"gtp('{sys.executable} -S {path}')", "other": "random"}
    play = functools.partial(match, go(5), agents, num_games=10_000, openings=0)
    before = held()
    for _ in range(num_moments):
        result = interrupted(play, rng.uniform(0.0, 0.4))
        if result is not None:
            assert result.status == "interrupted"
            assert [record.number for record in result.records] == [*range(len(result.records))]
        assert_nothing_stays(before)
        assert_ends(str(path), seconds=0.0)
    ended = play(progress=press_after_two)
    assert ended.status == "interrupted"
    assert len(ended.records) >= 2
    assert_nothing_stays(before)


# --- the real ones --------------------------------------------------------------------------------


def needs(name: str) -> None:
    path = os.pathsep.join([os.environ.get("PATH", ""), *FOLDERS])
    if shutil.which(name, path=path) is None:
        pytest.skip(f"{name} is not installed")


def play_at_random(game: Game, agent: GtpAgent, player: int, seed: int) -> np.record:
    """The end of an episode of the agent, as one player, against random actions."""
    rng = np.random.default_rng(seed)
    agent.begin(game, player, seed)
    state = game.start()
    while not game.is_over(state):
        is_asked = game.to_play(state) == player
        action = agent.act(state) if is_asked else int(rng.choice(game.legal(state)))
        agent.watch(state, action)
        state, _ = game.step(state, action)
    return state


@pytest.mark.peer
def test_gnu_go_beats_random_play_and_counts_as_we_do() -> None:
    needs("gnugo")
    game, agent = go(9), gnugo(level=1)
    for seed in range(4):
        state = play_at_random(game, agent, seed % 2, seed)
        area = state["area"][:81]
        lead = int((area == 1).sum() - (area == 2).sum()) - 7.5
        assert (lead > 0) == (seed % 2 == 0)
        if state["ply"] < game.max_plies:
            assert agent.ask("final_score") == f"{'B' if lead > 0 else 'W'}+{abs(lead):.1f}"
    agent.close()


@pytest.mark.peer
def test_gnu_go_plays_the_same_with_the_same_seed() -> None:
    needs("gnugo")
    game, agent = go(5, 0.5), gnugo(level=1)
    one, other = (play_at_random(game, agent, 0, 3) for _ in range(2))
    assert one.tobytes() == other.tobytes()
    agent.close()


@pytest.mark.peer
@pytest.mark.parametrize(
    ("game", "program"),
    [("go(size=5, komi=0.5)", "gnugo(level=1)"), ("othello(size=8)", "rhino()")],
)
def test_a_program_plays_whole_games_of_a_match(game, program, tmp_path) -> None:
    needs(program.partition("(")[0].replace("rhino", "gtp-rhino"))
    agents = {"program": program, "random": "random"}
    result = match(game, agents, num_games=2, path=tmp_path / "games.jsonl")
    assert [record.end for record in result.records] == ["over", "over"]
    assert {record.agents for record in result.records} == {
        ("program", "random"), ("random", "program"),
    }  # fmt: skip
    assert result.standings[0].agent == "program"


@pytest.mark.peer
def test_grhino_knows_when_to_pass_and_who_won() -> None:
    needs("gtp-rhino")
    game, agent = othello(), rhino()
    for seed in range(8):
        state = play_at_random(game, agent, seed % 2, seed)
        black, white = (int(stones).bit_count() for stones in state["stones"])
        winner, lead = ("B" if black > white else "W"), abs(black - white)
        # It gives empty cells to the winner, as tournaments do.
        assert agent.ask("final_score") == f"{winner}+{lead + 64 - black - white}"
    agent.close()

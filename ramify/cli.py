"""The command `ramify`: parse, call, print.

A mistake of the user's is raised as a `RamifyError`, and `main` turns it into one line on stderr
and exit status 2. Rich is loaded for a progress line and for help only, Numba when a search
compiles.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import functools
import hashlib
import importlib
import importlib.resources
import importlib.util
import inspect
import itertools
import json as json_format
import keyword
import math
import os
import random
import re
import site
import sys
import time
import traceback
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import App, CycloptsError, Parameter

import ramify
from ramify.errors import IllegalAction, RamifyError
from ramify.game import CHANCE, Game

DEFAULT_SECONDS = 1.0  # a search without a budget
MOST_WORDS = 8  # in one action of --actions
BENCH_SIMULATIONS = 10_000
BENCH_REPEATS = 3
BENCH_RULE_SECONDS = 0.1

app = App(
    name="ramify",
    version=f"ramify {ramify.__version__}",
    help="Monte Carlo tree search for games written in plain Python.\n\n"
    "GAME is a built-in name (connect_four), one with arguments (nim:heaps=(3,4,5)), or a game of "
    "your own (my_game.py:name, my_game.py:factory:rows=3).",
    help_format="plaintext",
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)


def main(tokens: Sequence[str] | None = None) -> int:
    """The exit status: 0, 1 where `check` finds an error, 2 for a mistake of the user's, 130 for
    Ctrl-C before there is a result.

    Args:
        tokens: the command line without the program's name; by default this process's.
    """
    try:
        with _short_warnings():
            status = app(
                sys.argv[1:] if tokens is None else list(tokens),
                exit_on_error=False,
                print_error=False,
            )
            sys.stdout.flush()
            return status if isinstance(status, int) else 0
    except KeyboardInterrupt:
        print("ramify: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever read the output has left; the flush at exit must not fail once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception as error:
        expected = isinstance(error, (CycloptsError, RamifyError))
        if not (expected or _place(error)):
            raise
        kind = "" if expected else f"{type(error).__name__}: "
        print(f"ramify: {_place(error)}{kind}{error}", file=sys.stderr)
        return 2
    return 0


@contextlib.contextmanager
def _short_warnings() -> Iterator[None]:
    """Warnings as one line each, without the place in ramify that gave them."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: print(
            f"ramify: warning: {message}", file=sys.stderr
        )
        yield


# --- commands ------------------------------------------------------------------------------------


@Parameter(name="*")
@dataclass(frozen=True)
class Budget:
    """How long to search."""

    simulations: int | None = None
    """end after so many simulations."""
    seconds: float | None = None
    """end after so many seconds, compilation not counted."""


NO_BUDGET = Budget()
Flag = Annotated[bool, Parameter(negative="")]


@app.command
def games() -> None:
    """A table of the built-in games."""
    rows = [["game", "players", "actions", "chance", ""]]
    for name, factory in _built_in().items():
        text = (inspect.getdoc(factory) or "").partition("\n")[0]
        rows.append([_signature(name, factory), *_facts(factory), text])
    _print_table(rows, left=(0, 4))


@app.command
def search(
    game: str,
    /,
    *,
    actions: Annotated[
        list[str] | None, Parameter(consume_multiple=True, negative_iterable="")
    ] = None,
    budget: Budget = NO_BUDGET,
    seed: int = 0,
    c: float | None = None,
    json: Flag = False,
) -> None:
    """What to do at the start of a game, or after some actions. Ctrl-C ends the search early.

    Args:
        game: built-in name, name:arguments, or file.py:name.
        actions: what was played so far, chance outcomes included, separated by commas or spaces.
        seed: the same seed and number of simulations give the same result.
        c: how much UCB1 explores (1.414 by default).
        json: print JSON instead of a table.
    """
    chosen = _game(game)
    budget = _checked(budget, Budget(seconds=DEFAULT_SECONDS))
    state = _play_actions(chosen, actions or [])
    result = _search(chosen, state, budget, seed=seed, c=c)
    print(json_format.dumps(result.to_json(), indent=2) if json else result)


@app.command
def play(
    game: str,
    /,
    *,
    player: int | None = 0,
    budget: Budget = NO_BUDGET,
    seed: int | None = None,
    c: float | None = None,
) -> None:
    """An episode in the terminal: you against the search.

    Args:
        game: built-in name, name:arguments, or file.py:name.
        player: the seat you take, from 0 on; none to watch the search play all of them.
        seed: decides chance outcomes and the search; another one each time by default.
        c: how much UCB1 explores (1.414 by default).
    """
    chosen = _game(game)
    budget = _checked(budget, Budget(seconds=DEFAULT_SECONDS))
    if player is not None and not 0 <= player < chosen.num_players:
        raise RamifyError(
            f"--player must be 0 to {chosen.num_players - 1}, or none to watch; got {player}"
        )
    if seed is None:
        seed = random.randrange(1_000_000)
    _greet(chosen, player, budget, seed)
    try:
        _play_episode(chosen, player, budget, seed, c)
    except (KeyboardInterrupt, EOFError):
        print("\nGood-bye.")


@app.command
def check(
    game: str,
    /,
    *,
    episodes: int = 200,
    seed: int = 0,
    wise: Flag = False,
    json: Flag = False,
) -> int:
    """Whether a game keeps its contract; exit status 1 where it does not.

    Args:
        game: built-in name, name:arguments, or file.py:name.
        episodes: how many random episodes to play.
        seed: of those episodes.
        wise: its random_action and playout play better than at random, on purpose.
        json: print JSON instead of a report.
    """
    report = ramify.check(_game(game), episodes=episodes, seed=seed, wise=wise)
    print(json_format.dumps(report.to_json(), indent=2) if json else report)
    return 0 if report.ok else 1


@app.command
def new(name: str, /) -> None:
    """A commented game of your own to change, NAME.py, and a test for it, test_NAME.py.

    Args:
        name: what to call it; a name as Python allows it.
    """
    if not name.isidentifier() or keyword.iskeyword(name):
        raise RamifyError(f"a game needs a name as Python allows it, like my_game; got {name!r}")
    for source, path in (("game.txt", Path(f"{name}.py")), ("test.txt", Path(f"test_{name}.py"))):
        if path.exists():
            raise RamifyError(f"{path} is there already; choose another name or remove it")
        text = importlib.resources.files("ramify").joinpath("skeleton", source).read_text("utf-8")
        path.write_text(text.replace("NAME", name), encoding="utf-8")
        print(f"wrote {path}")
    print(f"next: ramify check {name}.py, ramify play {name}.py, python -m pytest test_{name}.py")


@app.command
def bench(game: str | None = None, /, *, budget: Budget = NO_BUDGET, json: Flag = False) -> None:
    """The speed of a search from the start of a game, or of every built-in one, and of its rules.

    Three searches with different seeds are run; the table has the median of their speeds, and tree
    figures of the last. Then single rules are timed on states of random play: what takes long there
    is what makes the search slow.

    Args:
        game: built-in name, name:arguments, or file.py:name.
        json: print JSON instead of a table.
    """
    budget = _checked(budget, Budget(simulations=BENCH_SIMULATIONS))
    if game is not None:
        specs = [game]
    else:
        specs = [name for name, factory in _built_in().items() if _needs_nothing(factory)]
    figures = [_measure(spec, _game(spec), budget) for spec in specs]
    if json:
        print(json_format.dumps(figures, indent=2))
        return
    rows = [
        ["game", "compile s", "machine code", "simulations/s", "bytes/edge", "depth", "playouts/s",
         "steps/s", "legal ns", "step ns", "random_action ns", "copy ns"]
    ]  # fmt: skip
    for row in figures:
        shortcut = row["random_action_ns"]
        rows.append([
            row["game"], f"{row['compile_seconds']:.2f}", row["machine_code"],
            f"{row['simulations_per_second']:,.0f}", f"{row['bytes_per_edge']:.1f}",
            f"{row['mean_depth']:.1f}", f"{row['playouts_per_second']:,.0f}",
            f"{row['playouts_per_second'] * row['plies_per_playout']:,.0f}",
            f"{row['legal_ns']:.1f}", f"{row['step_ns']:.1f}",
            "-" if shortcut is None else f"{shortcut:.1f}", f"{row['copy_ns']:.1f}",
        ])  # fmt: skip
    _print_table(rows, left=(0, 2))


@app.command
def cache(*, clear: Flag = False) -> None:
    """The machine code that is kept on disk.

    Args:
        clear: delete all of it; the next search of a game compiles anew.
    """
    if clear:
        count = _count(ramify.clear_cache(), "entry", "entries")
        print(f"{count} deleted from {ramify.cache_folder()}")
        return
    entries = ramify.cache_entries()
    if entries:
        rows = [["entry", "size", "last used"]]
        _print_table(rows + [_cache_row(entry) for entry in entries], left=(0, 2))
    total = sum(entry.num_bytes for entry in entries)
    print(f"{_count(len(entries), 'entry', 'entries')}, {_size(total)}, in {ramify.cache_folder()}")


# --- which game ----------------------------------------------------------------------------------

_FILE = re.compile(r"(?P<path>.+?\.py)(?::(?P<name>[^:]*))?(?::(?P<arguments>.*))?", re.DOTALL)


def _game(spec: str) -> Game:
    """The game a person means by `name`, `name:arguments`, `file.py:name[:arguments]`."""
    match = _FILE.fullmatch(spec)
    if match is None:
        name, _, arguments = spec.partition(":")
        return _made(spec, name, _built_in_factory(name), arguments)
    module = _load(Path(match["path"]))
    name = match["name"] or _only_game(match["path"], module)
    if not hasattr(module, name):
        raise RamifyError(f"{match['path']} has no {name!r}; {_games_in(module)}")
    return _made(spec, name, getattr(module, name), match["arguments"] or "")


def _made(spec: str, name: str, found: Any, arguments: str) -> Game:
    """`found` itself where it is a game, else what it returns for the arguments."""
    if isinstance(found, Game):
        if arguments:
            raise RamifyError(f"{name} is a game, not a function that makes one: no arguments")
        return found
    if not inspect.isroutine(found):
        raise RamifyError(
            f"{spec}: {name} is of type {type(found).__name__}; expected a ramify.Game or a "
            "function that returns one"
        )
    positional, keywords = _arguments(spec, arguments)
    signature = _signature(name, found)
    try:
        inspect.signature(found).bind(*positional, **keywords)
        made = found(*positional, **keywords)
    except (TypeError, ValueError) as error:
        raise RamifyError(
            f"{spec}: {_place(error)}{error}; the signature is {signature}"
        ) from error
    if not isinstance(made, Game):
        raise RamifyError(f"{signature} returned {type(made).__name__}; expected a ramify.Game")
    return made


def _arguments(spec: str, text: str) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call as someone would write it in Python; literals only."""
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
            raise ValueError
        positional = [ast.literal_eval(value) for value in call.args]
        keywords = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    except (SyntaxError, ValueError):
        raise RamifyError(
            f"{spec}: cannot read the arguments {text!r}; write them as rows=3,cols=4, with "
            "numbers, tuples or quoted text as values"
        ) from None
    return positional, keywords


def _built_in() -> dict[str, Callable[..., Game]]:
    return {name: getattr(ramify.games, name) for name in sorted(ramify.games.__all__)}


def _built_in_factory(name: str) -> Callable[..., Game]:
    known = _built_in()
    if name not in known:
        close = difflib.get_close_matches(name, known, n=2)
        meant = f"did you mean {' or '.join(close)}? " if close else ""
        raise RamifyError(
            f"unknown game {name!r}; {meant}Built in: {', '.join(known)}. "
            "A game of your own is given as file.py:name"
        )
    return known[name]


def _signature(name: str, factory: Callable[..., Any]) -> str:
    """A call with its defaults, without types: connect_four(rows=6, cols=7)."""
    parameters = inspect.signature(factory).parameters.values()
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    return f"{name}{inspect.Signature(plain)}"


def _needs_nothing(factory: Callable[..., Any]) -> bool:
    """Whether a factory can be called without arguments."""
    return all(
        parameter.default is not inspect.Parameter.empty
        or parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        for parameter in inspect.signature(factory).parameters.values()
    )


def _facts(factory: Callable[..., Game]) -> list[str]:
    """Players, actions and chance of a factory's default game; dashes where it has none."""
    if not _needs_nothing(factory):
        return ["-", "-", "-"]
    made = factory()
    chance = "yes" if made.max_outcomes else "no"
    return [str(made.num_players), f"{made.num_actions:,}", chance]


def _load(path: Path) -> types.ModuleType:
    """A user's file as a module, by a name that other processes find it by where it has one."""
    if not path.is_file():
        raise RamifyError(f"there is no file {path}")
    path = path.resolve()
    _put_on_path(str(path.parent))
    name = path.stem
    if not _finds(name, path):
        # The name belongs to something else, which has to stay importable.
        name = f"{name}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise RamifyError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    _user_files.add(str(path))
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, SyntaxError):
            raise RamifyError(f"{error.filename}, line {error.lineno}: {error.msg}") from None
        raise
    return module


def _put_on_path(folder: str) -> None:
    """Let modules of a folder be imported: before installed ones, but never instead of Python's."""
    if folder not in sys.path:
        installed = [sys.path.index(each) for each in site.getsitepackages() if each in sys.path]
        sys.path.insert(min(installed, default=len(sys.path)), folder)
    importlib.invalidate_caches()


def _finds(name: str, path: Path) -> bool:
    """Whether importing `name` gives the module in this file."""
    if "." in name:
        return False
    try:
        spec = importlib.util.find_spec(name)
    except ValueError:  # a module without a specification, such as __main__
        return False
    return spec is not None and spec.origin is not None and Path(spec.origin).resolve() == path


_user_files: set[str] = set()  # so that `main` can tell their mistakes from ramify's


def _place(error: Exception) -> str:
    """The line of a user's file where an error came up, empty where it did not."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [frame for frame in frames if frame.filename in _user_files]
    if not places:
        return ""
    return f"{places[-1].filename}, line {places[-1].lineno}, in {places[-1].name}: "


def _only_game(path: str, module: types.ModuleType) -> str:
    """The name of the one game in a file; an error where there is none or a choice."""
    names = [name for name, value in vars(module).items() if isinstance(value, Game)]
    if len(names) != 1:
        raise RamifyError(f"say which game of {path}, as {path}:name; {_games_in(module)}")
    return names[0]


def _games_in(module: types.ModuleType) -> str:
    """What a file offers, in words."""
    found = [name for name, value in vars(module).items() if isinstance(value, Game)]
    for name, value in vars(module).items():
        if inspect.isfunction(value) and value.__module__ == module.__name__:
            returned = value.__annotations__.get("return")
            if returned is Game or returned in ("Game", "ramify.Game"):
                found.append(_signature(name, value))
    return f"its games: {', '.join(found)}" if found else "it holds no ramify.Game"


# --- searching -----------------------------------------------------------------------------------


def _checked(budget: Budget, default: Budget) -> Budget:
    """The budget, or the default where none was given; an error where it allows nothing."""
    if budget.simulations is not None and budget.simulations < 1:
        raise RamifyError(f"--simulations must be at least 1; got {budget.simulations}")
    if budget.seconds is not None and not budget.seconds > 0:
        raise RamifyError(f"--seconds must be above 0; got {budget.seconds:g}")
    return default if budget == NO_BUDGET else budget


def _search(
    game: Game, state: np.record, budget: Budget, *, seed: int, c: float | None = None
) -> ramify.SearchResult:
    """The result of a search, with a progress line where stderr is a terminal."""
    if c is not None and not (math.isfinite(c) and c >= 0):
        raise RamifyError(f"--c must be a number of at least 0; got {c:g}")
    selection = None if c is None else ramify.selection.ucb1(c=c)
    with _progress_line(game, budget) as progress:
        return ramify.search(
            game,
            state,
            num_simulations=budget.simulations,
            seconds=budget.seconds,
            selection=selection,
            seed=seed,
            progress=progress,
        )


@contextlib.contextmanager
def _progress_line(
    game: Game, budget: Budget
) -> Iterator[Callable[[ramify.Progress], None] | None]:
    """What to hand to a search as `progress`; None where nobody is watching."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = TextColumn("{task.description}", markup=False), BarColumn()
    bar = Bar(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(f"{game.name}: compiling", total=None)

    def show(progress: ramify.Progress) -> None:
        by_count = progress.simulations / (budget.simulations or math.inf)
        by_time = progress.seconds / (budget.seconds or math.inf)
        text = (
            f"{progress.simulations:,} simulations, "
            f"{progress.simulations / max(progress.seconds, 1e-9):,.0f}/s, "
            f"best so far {_most_visited(progress.tree)}"
        )
        bar.update(task, total=1.0, completed=max(by_count, by_time), description=text)

    with bar:
        yield show


def _most_visited(tree: ramify.Tree) -> str:
    """The most visited action at the root, for people."""
    root = tree.root
    if len(root.edges) == 0:
        return "-"
    best = int(np.argmax(tree.edges["visits"][root.edges.start : root.edges.stop]))
    return tree.game.show_action(root.state, int(tree.edges["action"][root.edges[best]]))


def _play_actions(game: Game, texts: Sequence[str]) -> np.record:
    """The state after the actions of a person, all as the game shows them or all as numbers."""
    text = " ".join(texts)
    try:
        return _play_shown(game, text)
    except RamifyError:
        # Never one by one: where a game shows action 0 as 1, a list that mixes both is a trap.
        numbers = text.replace(",", " ").split()
        if all(number.isdecimal() for number in numbers):
            with contextlib.suppress(IllegalAction):
                return game.play(map(int, numbers))
        raise


def _play_shown(game: Game, text: str) -> np.record:
    """The state after actions written as the game shows them."""
    state, ply = game.start(), 0
    while text := text.strip(" ,"):
        if game.is_over(state):
            raise RamifyError(f"--actions: the episode is over after {ply}; {text!r} is too much")
        try:
            action, text = _read_first(game, state, text)
        except IllegalAction as error:
            raise RamifyError(f"--actions, number {ply + 1}: {error}") from None
        state, _ = game.step(state, action)
        ply += 1
    return state


def _read_first(game: Game, state: np.record, text: str) -> tuple[int, str]:
    """The first of several actions in a text, and what follows it."""
    # What is shown may hold spaces and commas itself, as in "heap 1, take 2".
    shown = {game.show_action(state, action): action for action in game.legal(state)}
    for name in sorted(shown, key=len, reverse=True):
        if name and re.match(rf"{re.escape(name)}(?=[\s,]|$)", text):
            return shown[name], text[len(name) :]
    # A game may read other ways of writing an action, of one word or of several.
    for word in itertools.islice(re.finditer(r"[^\s,]+", text), MOST_WORDS):
        with contextlib.suppress(IllegalAction):
            return game.read_action(state, text[: word.end()]), text[word.end() :]
    first, _, rest = text.partition(",")
    return game.read_action(state, first), rest


# --- playing -------------------------------------------------------------------------------------

HINT, UNDO, QUIT = "hint", "undo", "quit"


@dataclass(frozen=True)
class _Ply:
    """One action of an episode."""

    state: np.record  # in which it was taken
    reward: np.ndarray  # [num_players], what it paid


def _play_episode(
    game: Game, person: int | None, budget: Budget, seed: int, c: float | None
) -> None:
    """Play to the end; EOFError or KeyboardInterrupt where the person leaves."""
    state, plies = game.start(), list[_Ply]()
    while not game.is_over(state) and len(plies) < (game.max_plies or math.inf):
        to_play, ply = game.to_play(state), len(plies)
        search_here = functools.partial(_search, game, state, budget, seed=seed + ply, c=c)
        if to_play == CHANCE:
            action = _draw_outcome(game, state, seed, ply)
        elif to_play == person:
            answer = _ask_action(game, state, search_here)
            if answer is None:
                state = _take_back(game, state, plies, person)
                continue
            action = answer
        else:
            action = _agent_action(game, state, search_here, watched=person is None)
        after, reward = game.step(state, action)
        plies.append(_Ply(state, reward))
        state = after
    _announce_end(game, person, state, plies)


def _greet(game: Game, person: int | None, budget: Budget, seed: int) -> None:
    limits = [] if budget.simulations is None else [f"{budget.simulations:,} simulations"]
    limits += [] if budget.seconds is None else [f"{budget.seconds:g} s"]
    print(f"{game.name}, {' or '.join(limits)} an action, seed {seed}")
    if person is None:
        print("The search plays for everyone.")
    else:
        print(f"You are player {person}. Type an action, {HINT}, {UNDO} or {QUIT}.")


def _draw_outcome(game: Game, state: np.record, seed: int, ply: int) -> int:
    """A chance outcome; always the same at a ply, so that `undo` does not roll again."""
    outcomes, probabilities = zip(*game.outcomes(state), strict=True)
    outcome: int = random.Random(f"{seed} {ply}").choices(outcomes, probabilities)[0]
    print(f"chance: {game.show_action(state, outcome)}")
    return outcome


def _ask_action(
    game: Game, state: np.record, search_here: Callable[[], ramify.SearchResult]
) -> int | None:
    """What the person plays; None where they want to take back; EOFError where they quit."""
    print(f"\n{game.show(state)}\n")
    legal = game.legal(state)
    listed = " ".join(game.show_action(state, action) for action in legal)
    choices = f" ({listed})" if len(listed) <= 60 else ""
    while True:
        text = _ask(f"player {game.to_play(state)}, your action{choices}: ")
        if text == QUIT:
            raise EOFError
        if text == UNDO:
            return None
        if text == HINT:
            print(f"\n{_uninterrupted(search_here())}\n")
        elif text:
            try:
                return game.read_action(state, text)
            except IllegalAction as error:
                print(f"{error}; or {HINT}, {UNDO}, {QUIT}")


def _ask(prompt: str) -> str:
    """A line from the person; EOFError where there is no more."""
    if sys.stdin.isatty():
        # Loaded, it lets `input` edit lines.
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401
        return input(prompt).strip()
    text = input(prompt).strip()
    print(text)  # so that the output reads like a session
    return text


def _take_back(game: Game, state: np.record, plies: list[_Ply], person: int) -> np.record:
    """The state of the person's previous decision; `plies` loses what came after it."""
    for ply in reversed(range(len(plies))):
        earlier = plies[ply].state
        if game.to_play(earlier) == person:
            del plies[ply:]
            return earlier
    print("There is nothing to undo.")
    return state


def _agent_action(
    game: Game, state: np.record, search_here: Callable[[], ramify.SearchResult], watched: bool
) -> int:
    """What the search plays."""
    if watched:
        print(f"\n{game.show(state)}\n")
    result = _uninterrupted(search_here())
    player = game.to_play(state)
    assert result.action is not None, "a player is to play"
    print(
        f"player {player} plays {game.show_action(state, result.action)}   "
        f"(expects {result.value[player]:+.3f} after {result.simulations:,} simulations)"
    )
    return result.action


def _uninterrupted(result: ramify.SearchResult) -> ramify.SearchResult:
    """The result; Ctrl-C during a search leaves the episode instead of hurrying it."""
    if result.status == "interrupted":
        raise KeyboardInterrupt
    return result


def _announce_end(game: Game, person: int | None, state: np.record, plies: list[_Ply]) -> None:
    """Print the last state and what everyone got."""
    returns = np.zeros(game.num_players)
    for ply, record in enumerate(plies):
        returns += game.discount**ply * record.reward
    ended = "over" if game.is_over(state) else "cut"
    shares = [
        f"player {player}{' (you)' if player == person else ''} {amount:+g}"
        for player, amount in enumerate(returns)
    ]
    print(f"\n{game.show(state)}\n")
    print(f"The episode is {ended} after {_count(len(plies), 'ply', 'plies')}.")
    print(f"Returns: {', '.join(shares)}")


# --- measuring -----------------------------------------------------------------------------------


def _measure(spec: str, game: Game, budget: Budget) -> dict[str, Any]:
    """The figures of `bench` for one game."""
    results = [_search(game, game.start(), budget, seed=seed) for seed in range(BENCH_REPEATS)]
    last = results[-1]
    tree = last.tree
    speeds = [result.simulations / max(result.seconds, 1e-9) for result in results]
    return {
        "game": spec,
        "machine_code": "from the cache" if last.cached else "compiled",
        "compile_seconds": results[0].compile_seconds,
        "simulations": last.simulations,
        "simulations_per_second": float(np.median(speeds)),
        "bytes_per_edge": tree.num_bytes / max(1, tree.num_edges),
        "mean_depth": tree.mean_depth,
        **asdict(ramify.rule_speed(game, seconds=BENCH_RULE_SECONDS)),
    }


# --- printing ------------------------------------------------------------------------------------


def _print_table(rows: list[list[str]], left: tuple[int, ...]) -> None:
    """Print rows in columns, those in `left` aligned to the left."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


def _cache_row(entry: ramify.CacheEntry) -> list[str]:
    used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
    return [entry.label, _size(entry.num_bytes), used]


def _size(num_bytes: int) -> str:
    return f"{num_bytes / 1e6:.1f} MB" if num_bytes >= 1e6 else f"{num_bytes / 1e3:.0f} kB"


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"

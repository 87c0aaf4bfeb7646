"""The command `ramify`: parse, call, print.

A mistake of the user's is raised as a `RamifyError`, and `main` turns it into one line on stderr
and exit status 2. Rich is loaded for a progress line and for help only, Numba when a search
compiles.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.resources
import inspect
import json as json_format
import keyword
import math
import os
import random
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from cyclopts import App, CycloptsError, Parameter

import ramify
from ramify import specs
from ramify.errors import IllegalAction, RamifyError
from ramify.game import CHANCE, Game

DEFAULT_SECONDS = 1.0  # a search without a budget
BENCH_SIMULATIONS = 10_000
BENCH_REPEATS = 3
BENCH_RULE_SECONDS = 0.1

app = App(
    name="ramify",
    version=f"ramify {ramify.__version__}",
    help="Monte Carlo tree search for games written in plain Python.\n\n"
    "GAME is a built-in name (connect_four), one with arguments (nim:heaps=(3,4,5)), or a game of "
    "your own (my_game.py:name, my_game.py:factory:rows=3). A rule has its arguments as in Python: "
    "\"puct(c=2, fpu='parent')\".",
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
        place = specs.place(error)
        if not (expected or place):
            raise
        kind = "" if expected else f"{type(error).__name__}: "
        print(f"ramify: {place}{kind}{error}", file=sys.stderr)
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


Flag = Annotated[bool, Parameter(negative="")]


@Parameter(name="*")
@dataclass(frozen=True)
class Method:
    """How to search."""

    c: float | None = None
    """how much UCB1 explores (1.414 by default)."""
    selection: str | None = None
    """how edges are chosen, as "puct(c=2)"."""
    root_selection: str | None = None
    """how the root's edges are chosen, if different, as "gumbel(num_considered=8)"."""
    root_noise: str | None = None
    """noise on the priors of the root, as "dirichlet()"."""
    backup: str | None = None
    """how results enter the statistics, as "maximum(min_visits=2)"."""
    widening: str | None = None
    """how many actions a node tries, as "widening(k=2)"."""
    chance: str | None = None
    """how outcomes are drawn: sample, proportional, or "outcome_widening(k=1)"."""
    open_loop: Flag = False
    """let a node stand for the actions that lead to it, whatever chance did."""
    transpositions: Flag = False
    """let equal states share one node."""
    solver: Flag = False
    """find out what is proven: values that hold whatever anyone does."""
    opponents: Literal["maxn", "paranoid"] | None = None
    """whether the others play for themselves, or all against the player to play."""
    ties: Literal["first", "random"] | None = None
    """which of equal edges is taken."""
    threads: int | None = None
    """how many threads search."""
    parallel: Literal["auto", "root", "tree"] | None = None
    """whether threads grow a tree each or one together."""
    max_memory: str | None = None
    """bytes the tree may take, as 500MB."""
    stop: Annotated[list[str] | None, Parameter(negative_iterable="")] = None
    """end before the budget is used up, as "decided()"; may be given several times."""
    choice: str | None = None
    """how the action is chosen in the end, as lcb."""


NO_BUDGET = Budget()
NO_METHOD = Method()


@app.command
def games() -> None:
    """A table of the built-in games."""
    rows = [["game", "players", "actions", "chance", ""]]
    for name, factory in specs.built_in().items():
        text = (inspect.getdoc(factory) or "").partition("\n")[0]
        rows.append([specs.signature(name, factory), *_facts(factory), text])
    _print_table(rows, left=(0, 4))


@app.command
def search(
    game: str | None = None,
    /,
    *,
    actions: Annotated[
        list[str] | None, Parameter(consume_multiple=True, negative_iterable="")
    ] = None,
    budget: Budget = NO_BUDGET,
    method: Method = NO_METHOD,
    seed: int = 0,
    tree: Path | None = None,
    save_tree: Path | None = None,
    json: Flag = False,
) -> None:
    """What to do at the start of a game, or after some actions. Ctrl-C ends the search early.

    Args:
        game: built-in name, name:arguments, or file.py:name.
        actions: what was played so far, chance outcomes included, separated by commas or spaces.
        seed: the same seed and number of simulations give the same result.
        tree: go on from the tree in this file; a built-in game need not be named then.
        save_tree: write the tree to this file.
        json: print JSON instead of a table.
    """
    options = _search_options(method)
    budget = _checked(budget, Budget(seconds=DEFAULT_SECONDS))
    if save_tree is not None:
        _check_can_save(save_tree, method)
    chosen, state, earlier = _root(game, actions or [], tree)
    result = _search(chosen, state, budget, seed=seed, options=options | {"tree": earlier})
    print(json_format.dumps(result.to_json(), indent=2) if json else result)
    if save_tree is not None:
        with _told(save_tree):
            result.tree.save(save_tree)


@app.command
def diff(first: Path, second: Path, /, *, game: str | None = None, json: Flag = False) -> None:
    """How two searches of one state differ, action by action.

    Args:
        first: a file that `ramify search --save-tree` wrote, a below.
        second: another one, b below.
        game: what they are trees of, where that is not a built-in game.
        json: print JSON instead of a table.
    """
    from ramify.comparison import compare

    chosen = None if game is None else specs.read_game(game)
    a, b = (_load_tree(path, chosen) for path in (first, second))
    comparison = compare(a, b, (str(first), str(second)))
    print(json_format.dumps(comparison.to_json(), indent=2) if json else comparison)


@app.command
def play(
    game: str,
    /,
    *,
    player: int | None = 0,
    budget: Budget = NO_BUDGET,
    method: Method = NO_METHOD,
    seed: int | None = None,
) -> None:
    """An episode in the terminal: you against the search.

    Args:
        game: built-in name, name:arguments, or file.py:name.
        player: the seat you take, from 0 on; none to watch the search play all of them.
        seed: decides chance outcomes and the search; another one each time by default.
    """
    chosen, options = specs.read_game(game), _search_options(method)
    budget = _checked(budget, Budget(seconds=DEFAULT_SECONDS))
    if player is not None and not 0 <= player < chosen.num_players:
        raise RamifyError(
            f"--player must be 0 to {chosen.num_players - 1}, or none to watch; got {player}"
        )
    if seed is None:
        seed = random.randrange(1_000_000)
    _greet(chosen, player, budget, seed)
    try:
        _play_episode(chosen, player, budget, seed, options)
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
    report = ramify.check(specs.read_game(game), episodes=episodes, seed=seed, wise=wise)
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
        names = [game]
    else:
        built_in = specs.built_in().items()
        names = [name for name, factory in built_in if specs.needs_nothing(factory)]
    figures = [_measure(name, specs.read_game(name), budget) for name in names]
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


def _facts(factory: Callable[..., Game]) -> list[str]:
    """Players, actions and chance of a factory's default game; dashes where it has none."""
    if not specs.needs_nothing(factory):
        return ["-", "-", "-"]
    made = factory()
    chance = "yes" if made.max_outcomes else "no"
    return [str(made.num_players), f"{made.num_actions:,}", chance]


# --- searching -----------------------------------------------------------------------------------


def _checked(budget: Budget, default: Budget) -> Budget:
    """The budget, or the default where none was given; an error where it allows nothing."""
    if budget.simulations is not None and budget.simulations < 1:
        raise RamifyError(f"--simulations must be at least 1; got {budget.simulations}")
    if budget.seconds is not None and not budget.seconds > 0:
        raise RamifyError(f"--seconds must be above 0; got {budget.seconds:g}")
    return default if budget == NO_BUDGET else budget


def _search_options(method: Method) -> dict[str, Any]:
    """The options of `ramify.search` that a person has set."""
    chosen = asdict(method).items()
    given = {name: value for name, value in chosen if value is not None and value is not False}
    c = given.pop("c", None)
    if c is not None and "selection" in given:
        raise RamifyError("--c is that of UCB1; give it or --selection, not both")
    if c is not None and not (math.isfinite(c) and c >= 0):
        raise RamifyError(f"--c must be a number of at least 0; got {c:g}")
    for name in [name for name in _RULES if name in given]:
        text = given[name]
        made = [_read_rule(name, each) for each in ([text] if isinstance(text, str) else text)]
        given[name] = made[0] if isinstance(text, str) else made
    if c is not None:
        given["selection"] = ramify.selection.ucb1(c=c)
    return given


# What options of `Method` are: a word, or what a function of a module makes. The functions are
# those that return such a thing, or the one of this name.
_RULES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "selection": ("selection", "Rule", ()),
    "root_selection": ("selection", "Rule", ()),
    "root_noise": ("selection", "Noise", ()),
    "backup": ("backup", "Backup", ()),
    "widening": ("selection", "widening", ()),
    "chance": ("selection", "outcome_widening", ("sample", "proportional")),
    "stop": ("stopping", "Stop", ()),
    "choice": ("choice", "Choice", ("robust", "max", "robust_max", "gumbel")),
}


def _read_rule(name: str, text: str) -> Any:
    """What an option of `Method` means."""
    module_name, kind, words = _RULES[name]
    module = importlib.import_module(f"ramify.{module_name}")
    one = {kind: getattr(module, kind)} if kind.islower() else None
    functions = one or specs.makers(module, kind)
    return specs.read_rule(text, f"--{name.replace('_', '-')}", functions, words)


def _root(
    game: str | None, actions: Sequence[str], tree: Path | None
) -> tuple[Game, np.record, ramify.Tree | None]:
    """Where to search: a game, a state of it, and the tree to go on from."""
    chosen = None if game is None else specs.read_game(game)
    if tree is not None:
        if actions:
            raise RamifyError("--tree goes on where its search began: leave --actions away")
        earlier = _load_tree(tree, chosen)
        return earlier.game, earlier.state, earlier
    if chosen is None:
        raise RamifyError("say what to search: a GAME, or --tree FILE; see ramify search --help")
    return chosen, specs.play_actions(chosen, actions), None


def _search(
    game: Game, state: np.record, budget: Budget, *, seed: int, options: dict[str, Any]
) -> ramify.SearchResult:
    """The result of a search, with a progress line where stderr is a terminal."""
    with _progress_line(game, budget) as progress:
        try:
            return ramify.search(
                game,
                state,
                num_simulations=budget.simulations,
                seconds=budget.seconds,
                seed=seed,
                progress=progress,
                **options,
            )
        except ValueError as error:
            if isinstance(error, RamifyError) or specs.place(error):
                raise
            raise RamifyError(str(error)) from error  # options that do not go together


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
    best = int(np.argmax(tree.edge_visits(root.edges)))
    return tree.game.show_action(root.state, int(tree.edges["action"][root.edges[best]]))


# --- trees as files ------------------------------------------------------------------------------


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    """What goes wrong with a file, as a mistake of the user's."""
    try:
        yield
    except OSError as error:
        raise RamifyError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise RamifyError(str(error)) from error


def _load_tree(path: Path, game: Game | None) -> ramify.Tree:
    with _told(path):
        return ramify.Tree.load(path, game=game)


def _check_can_save(path: Path, method: Method) -> None:
    """Say before a long search that its tree could not be saved after it."""
    if path.is_dir():
        raise RamifyError(f"--save-tree {path}: that is a folder; give the name of a file")
    if not path.parent.is_dir():
        raise RamifyError(f"--save-tree {path}: there is no folder {path.parent}")
    if (method.threads or 1) > 1 and method.parallel != "tree":
        raise RamifyError(
            "--save-tree writes one tree, and threads grow one each; add --parallel tree"
        )


# --- playing -------------------------------------------------------------------------------------

HINT, UNDO, QUIT = "hint", "undo", "quit"


@dataclass(frozen=True)
class _Ply:
    """One action of an episode."""

    state: np.record  # in which it was taken
    reward: np.ndarray  # [num_players], what it paid


def _play_episode(
    game: Game, person: int | None, budget: Budget, seed: int, options: dict[str, Any]
) -> None:
    """Play to the end; EOFError or KeyboardInterrupt where the person leaves."""
    state, plies = game.start(), list[_Ply]()
    while not game.is_over(state) and len(plies) < (game.max_plies or math.inf):
        to_play, ply = game.to_play(state), len(plies)
        search_here = functools.partial(
            _search, game, state, budget, seed=seed + ply, options=options
        )
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
    results = [
        _search(game, game.start(), budget, seed=seed, options={}) for seed in range(BENCH_REPEATS)
    ]
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

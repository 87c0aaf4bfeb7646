"""The description of a game in a file, and how the game is rebuilt from it."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import re
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from typing import Any

import numpy as np

from uctree.engine.fingerprint import NotFingerprintable, fingerprint, source_fingerprint
from uctree.engine.treefile import describe_dtype
from uctree.errors import BrokenGame, UctreeError
from uctree.game import Game
from uctree.specs import read_built_in

MOST_GUESSES = 1000  # at the arguments of a factory


# --- games ---------------------------------------------------------------------------------------


def describe_game(game: Game) -> dict[str, Any]:
    """The description of a game, ready for JSON.

    `spec` is the call of a function of `uctree.games` that returns the game, as
    `connect_four(rows=6, cols=7)`; None if there is none.
    """
    payoffs = game.payoff_range
    space = {} if game.action_space is None else {"action_space": str(game.action_space)}
    environment = {} if game.environment is None else {"environment": game.environment}
    return {
        **space,
        **environment,
        "name": game.name,
        "spec": find_spec(game),
        "dtype": describe_dtype(game.dtype),
        "num_players": game.num_players,
        "num_actions": game.num_actions,
        "max_outcomes": game.max_outcomes,
        "discount": game.discount,
        "zero_sum": game.zero_sum,
        "payoff_range": None if payoffs is None else payoffs.tolist(),
    }


def game_from(description: dict[str, Any]) -> Game:
    """The built-in game of a description; UctreeError if it is not a built-in one."""
    spec, name = description.get("spec"), description.get("name")
    problem = f"the tree is of the game {_short(name)}"
    advice = "pass game=, the one it was grown with (on the command line: name it as file.py:name)"
    if not isinstance(spec, str):
        raise UctreeError(f"{problem}, which is not one of uctree.games; {advice}")
    try:
        game = read_built_in(spec)
    except Exception as error:  # arguments from a file can be anything
        raise UctreeError(
            f"{problem}, and this uctree cannot make it from {_short(spec)} ({error!s:.200}); "
            f"{advice}"
        ) from error
    check_game(description, game)
    return game


def check_game(description: dict[str, Any], game: Game) -> None:
    """Raise a UctreeError with the differences if `game` is not the described one."""
    differences = game_differences(description, game, "in the file", "in the game")
    if differences:
        raise UctreeError(
            f"the tree is of the game {_short(description.get('name'))}, and {game.name:.200} "
            f"differs: {'; '.join(differences)}. Pass the game that the tree was grown with"
        )


def game_differences(description: dict[str, Any], game: Game, here: str, there: str) -> list[str]:
    """How `game` (there) differs from the described one (here), one text per difference."""
    unnamed = game.name == game.rules.step.__module__  # the default name: the module of its rules
    return [
        f"{key} is {_short(description.get(key))} {here} and {_short(value)} {there}"
        for key, value in describe_game(game).items()
        if description.get(key) != value
        and not (key == "name" and unnamed)
        and not (key == "spec" and None in (value, description.get(key)))
    ]


def rules_fingerprint(game: Game, *, by_source: bool = True) -> str | None:
    """A hash of the rules that trees depend on, with what was hashed; None if they cannot be.

    "source:..." is the same in every version of Python. Functions without a source file, as those
    of `exec`, have "Python 3.11 code:...", which is compared with hashes of that version alone.
    """
    rules = game.rules
    functions = (rules.legal, rules.step, rules.start, rules.chance, rules.bounds, rules.exact)
    extra = (game.data, game.key_fields, game.max_plies, game.repetition_value)
    with contextlib.suppress(NotFingerprintable, BrokenGame):
        if by_source:
            return f"source:{source_fingerprint(functions, *extra)[:32]}"
    with contextlib.suppress(BrokenGame):
        found = fingerprint(rules.step, {}, functions, *extra)
        if not found.unknown:
            return f"Python {sys.version_info[0]}.{sys.version_info[1]} code:{found.name[:32]}"
    return None


def are_rules_edited(found: Any, game: Game) -> bool:
    """Whether a fingerprint is that of other rules; False if the two cannot be compared."""
    if not isinstance(found, str):
        return False
    mine = rules_fingerprint(game, by_source=found.startswith("source:"))
    if mine is None or mine.partition(":")[0] != found.partition(":")[0]:
        return False
    return found != mine


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def find_spec(game: Game) -> str | None:
    """The call of a function of `uctree.games` that returns this very game; None if none does.

    Of a game with a window and of the whole game it is the same call, which returns the former.

    A guess, verified by making the game again: the rules of a game close over most arguments of the
    function that made it, and its name contains the others.

    >>> from uctree import games
    >>> find_spec(games.nim(heaps=(2, 3), misere=False))
    'nim(heaps=(2, 3), misere=False)'
    """
    wanted = game if game.view is None else game.view.windowed
    name, factory = _factory_of(game if game.view is None else game.view.game)
    if factory is None:
        return None
    reduced = None
    for arguments in itertools.islice(_guesses(game, factory), MOST_GUESSES):
        try:
            reduced = reduced or wanted.__reduce__()
            same = _same(reduced, factory(**arguments).__reduce__())
        except (ValueError, TypeError):  # refused arguments, rules without a name
            continue
        if same:
            return f"{name}({_listed(factory, arguments)})"
    return None


def _factory_of(game: Game) -> tuple[str, Any]:
    """The function of `uctree.games` in whose module the rules of a game are, and its name.

    A game may have rules in several modules; one of them has a function of its own name.
    """
    for function in vars(game.rules).values():
        module = getattr(function, "__module__", None) or ""
        package, _, name = module.rpartition(".")
        if package == "uctree.games" and name in vars(sys.modules[module]):
            return name, vars(sys.modules[module])[name]
    return "", None


def _listed(factory: Callable[..., Game], arguments: dict[str, Any]) -> str:
    """Arguments as text, without keyword-only ones that have their defaults.

    So what an argument that is new adds to a factory changes no description that is stored.
    """
    parameters = inspect.signature(factory).parameters
    return ", ".join(
        f"{key}={value!r}"
        for key, value in arguments.items()
        if parameters[key].kind is not inspect.Parameter.KEYWORD_ONLY
        or value != parameters[key].default
    )


def _guesses(game: Game, factory: Callable[..., Game]) -> Iterator[dict[str, Any]]:
    """Arguments that `factory` may have been called with."""
    closed: dict[str, Any] = {}
    for function in vars(game.rules).values():
        _collect_closed(function, closed)
    if game.view is not None:
        closed["view"] = game.view.size
    sequences = [tuple(v.tolist()) for v in closed.values() if getattr(v, "ndim", 0) == 1]
    in_name: list[Any] = [part.strip() for part in re.findall(r"[^(),]+", game.name)]
    in_name += re.findall(r"[A-Za-z_]\w*", game.name)
    for number in re.findall(r"\d+(?:\.\d+)?", game.name):
        in_name.append(float(number) if "." in number else int(number))
    defaults = {name: each.default for name, each in inspect.signature(factory).parameters.items()}
    choices = []
    for name, default in defaults.items():
        if name in closed:
            value = closed[name]
            choices.append([value.item() if isinstance(value, np.generic) else value])
            continue
        others = [True, False, *sequences, *in_name]
        choices.append([default, *(other for other in others if type(other) is type(default))])
    for values in itertools.product(*choices):
        yield dict(zip(defaults, values, strict=True))


def _collect_closed(function: Any, closed: dict[str, Any]) -> None:
    """Add the values that a function and those it calls close over, by name."""
    if not isinstance(function, types.FunctionType):
        return
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if name not in closed:
            closed[name] = cell.cell_contents
            _collect_closed(cell.cell_contents, closed)


def _same(one: Any, other: Any) -> bool:
    """Whether two reductions of games have the same content, arrays included."""
    one, other = (each.item() if isinstance(each, np.generic) else each for each in (one, other))
    if type(one) is not type(other):
        return False
    if isinstance(one, Game):
        return _same(one.__reduce__(), other.__reduce__())
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(_same, one, other))
    if is_dataclass(one):
        return _same(vars(one), vars(other))
    return bool(one == other)

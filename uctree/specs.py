"""Games, rules and actions from text: `connect_four:rows=5`, `my_games.py:race`, `puct(c=2)`.

The text is a call whose arguments are literals, and only functions that the caller allows are
called. `file.py:name` also runs the user's file.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import hashlib
import importlib
import importlib.util
import inspect
import itertools
import linecache
import math
import re
import site
import sys
import traceback
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from uctree.errors import IllegalAction, UctreeError
from uctree.game import Game

MOST_WORDS = 8  # in one action
LONGEST = 10_000  # characters of a call; a longer text is refused
LONG_NUMBER = r"\d{101}"  # Python itself refuses to print numbers of more than 4,300 digits

# --- calls ---------------------------------------------------------------------------------------


def split_call(text: str) -> tuple[str, str]:
    """The name and the arguments of `name`, `name(arguments)` or `name:arguments`.

    >>> split_call("hex(size=7)"), split_call("hex:size=7"), split_call("hex")
    (('hex', 'size=7'), ('hex', 'size=7'), ('hex', ''))
    """
    if len(text) > LONGEST:
        raise UctreeError(
            f"cannot read {_short(text)!r}: it has {len(text):,} characters, and {LONGEST:,} is "
            "the most"
        )
    ends = [place for place in (text.find(":"), text.find("(")) if place >= 0]
    if not ends:
        return text.strip(), ""
    name, rest = text[: min(ends)].strip(), text[min(ends) :]
    if rest[0] == ":":
        return name, rest[1:]
    rest = rest.rstrip()
    if not rest.endswith(")"):
        raise UctreeError(f"cannot read {_short(text)!r}; write it as a name or as name(size=7)")
    return name, rest[1:-1]


def _short(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:100]}..."


def read_arguments(
    text: str, functions: Mapping[str, Callable[..., Any]] | None = None
) -> tuple[list[Any], dict[str, Any]]:
    """The positional and keyword arguments in the text of a call: literals, and `inf`.

    Args:
        functions: those that an argument may call, by name, again with literals.

    >>> read_arguments("3, heaps=(1, 2), c=inf")
    ([3], {'heaps': (1, 2), 'c': inf})
    """
    try:
        if len(text) > LONGEST or re.search(LONG_NUMBER, text):
            raise ValueError
        call = ast.parse(f"f({text})", mode="eval").body
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
            raise ValueError
        return _values(call, functions or {})
    except UctreeError:
        raise
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise UctreeError(
            f"cannot read the arguments {_short(text)!r}; write them as rows=3,cols=4, with "
            "numbers, tuples or quoted text as values"
        ) from None


def _values(
    call: ast.Call, functions: Mapping[str, Callable[..., Any]]
) -> tuple[list[Any], dict[str, Any]]:
    keywords = {}
    for each in call.keywords:
        if each.arg is None or each.arg in keywords:
            raise ValueError(each.arg)
        keywords[each.arg] = _value(each.value, functions)
    return [_value(each, functions) for each in call.args], keywords


def _value(node: ast.expr, functions: Mapping[str, Callable[..., Any]]) -> Any:
    if isinstance(node, ast.Name) and node.id == "inf":
        return math.inf
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and functions:
        function = known(node.func.id, functions, ())
        return make(node.func.id, function, _values(node, functions))
    return ast.literal_eval(node)


def make(
    name: str, function: Callable[..., Any], arguments: tuple[list[Any], dict[str, Any]]
) -> Any:
    """What a function returns; an error in its arguments names its signature."""
    positional, keywords = arguments
    try:
        inspect.signature(function).bind(*positional, **keywords)
        return function(*positional, **keywords)
    except (TypeError, ValueError, OverflowError) as error:
        raise UctreeError(
            f"{place(error)}{error}; the signature is {signature(name, function)}"
        ) from error


def signature(name: str, function: Callable[..., Any]) -> str:
    """The signature with defaults and without types: connect_four(rows=6, cols=7)."""
    parameters = inspect.signature(function).parameters.values()
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    return f"{name}{inspect.Signature(plain)}"


def needs_nothing(function: Callable[..., Any]) -> bool:
    """Whether a function can be called without arguments."""
    return all(
        parameter.default is not inspect.Parameter.empty
        or parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        for parameter in inspect.signature(function).parameters.values()
    )


def known(name: str, functions: Mapping[str, Callable[..., Any]], words: Iterable[str]) -> Any:
    """The function of this name; for an unknown name an error that lists the possible ones."""
    if name in functions:
        return functions[name]
    calls = [signature(each, function) for each, function in functions.items()]
    raise UctreeError(
        f"unknown {name!r}; {meant(name, [*words, *functions])}"
        f"possible: {', '.join([*words, *calls])}"
    )


def meant(name: str, known: Iterable[str], most: int = 2) -> str:
    """The question "did you mean ...?" with the closest known names; empty if none is close."""
    close = difflib.get_close_matches(name, known, n=most)
    return f"did you mean {' or '.join(close)}? " if close else ""


def no_option(name: str, possible: Sequence[str]) -> str:
    """The message for an option that a search does not have.

    >>> no_option("second", ["seconds", "seed"])
    "search has no option 'second'; did you mean seconds? It has seconds, seed"
    """
    hint = meant(name, possible, most=1)
    return f"search has no option {name!r}; {hint}It has {', '.join(possible)}"


# --- rules ---------------------------------------------------------------------------------------


def makers(module: types.ModuleType, kind: str) -> dict[str, Callable[..., Any]]:
    """The public functions of a module that make a `kind` of what can be written, by name."""
    return {
        name: value
        for name, value in vars(module).items()
        if inspect.isfunction(value)
        and not name.startswith(("_", "as_"))
        and value.__module__ == module.__name__
        and value.__annotations__.get("return") == kind
        and all(map(_is_written, inspect.signature(value).parameters.values()))
    }


def _is_written(parameter: inspect.Parameter) -> bool:
    """Whether an argument may be omitted or is a number, not a function or another object."""
    is_number = any(kind in str(parameter.annotation) for kind in ("int", "float"))
    return parameter.default is not inspect.Parameter.empty or is_number


def read_rule(
    text: str,
    option: str,
    functions: Mapping[str, Callable[..., Any]],
    words: Iterable[str] = (),
) -> Any:
    """The result of the call in `text` of one of `functions`, or `text` if it is one of `words`.

    Args:
        option: the option that `text` is the value of, for messages: "--selection".
        functions: by name.

    >>> read_rule("range(2, 5)", "--steps", {"range": lambda low, high: list(range(low, high))})
    [2, 3, 4]
    >>> read_rule("all", "--steps", {}, words=("all", "none"))
    'all'
    """
    words = tuple(words)
    try:
        name, arguments = split_call(text)
        if name in words and name == text.strip():
            return name
        function = known(name, functions, words)
        return make(name, function, read_arguments(arguments, functions))
    except UctreeError as error:
        raise UctreeError(f"{option} {_short(text)}: {error}") from error


# Options of a search whose values are rules: the module with the functions that make them, the type
# that those functions return (or the names of the functions), and words that are valid as well.
RULES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "selection": ("selection", "Rule", ()),
    "root_selection": ("selection", "Rule", ()),
    "root_noise": ("selection", "Noise", ()),
    "backup": ("backup", "Backup", ()),
    "evaluator": ("evaluators", "playout", ()),
    "widening": ("selection", "widening adaptive_widening", ()),
    "proposal": ("continuous.proposals", "Proposal", ()),
    "refine": ("continuous.refine", "Refinement", ()),
    "chance": ("selection", "outcome_widening", ("sample", "proportional")),
    "stop": ("stopping", "Stop", ()),
    "choice": ("choice", "Choice", ("robust", "max", "robust_max", "gumbel")),
}


def rule_functions(name: str) -> dict[str, Callable[..., Any]]:
    """The functions that make values of an option in `RULES`, by name."""
    module_name, kind, _ = RULES[name]
    module = importlib.import_module(f"uctree.{module_name}")
    if not kind.islower():
        return makers(module, kind)
    return {function: getattr(module, function) for function in kind.split()}


def read_option(name: str, text: str) -> Any:
    """The value of an option in `RULES`, as `search` takes it.

    >>> read_option("widening", "widening(k=3)").parameters
    (3, 0.5, 0.0)
    """
    return read_rule(text, f"--{name.replace('_', '-')}", rule_functions(name), RULES[name][2])


# --- games ---------------------------------------------------------------------------------------

_FILE = re.compile(r"(?P<path>.+?\.py)(?::(?P<call>.*))?", re.DOTALL)


def read_game(text: str) -> Game:
    """The game of a text: `name`, `name:arguments` or `file.py:name[:arguments]`."""
    match = _FILE.fullmatch(text)
    if match is None:
        return read_built_in(text)
    module = load_file(Path(match["path"]))
    name, arguments = split_call(match["call"] or "")
    name = name or _only_game(match["path"], module)
    if not hasattr(module, name):
        raise UctreeError(f"{match['path']} has no {name!r}; {_games_in(module)}")
    return _made(text, name, getattr(module, name), arguments)


def is_file(text: str) -> bool:
    """Whether the text of a game names one of a user's file.

    >>> is_file("my_game.py:race"), is_file("connect_four(rows=5)")
    (True, False)
    """
    return _FILE.fullmatch(text) is not None


def file_of(text: str) -> Path:
    """The file that the text of a game names.

    >>> file_of("games/my_game.py:race").name
    'my_game.py'
    """
    match = _FILE.fullmatch(text)
    if match is None:
        raise UctreeError(f"{_short(text)!r} names no file; write it as file.py:name")
    return Path(match["path"])


def forget_file(path: Path) -> None:
    """Let the next `load_file` run a file again, because it has changed."""
    path = path.resolve()
    for name, module in list(sys.modules.items()):
        if getattr(module, "__file__", None) == str(path) and str(path) in user_files:
            del sys.modules[name]
    # Python takes byte code for current if the file has the same size and the same second.
    Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)
    linecache.checkcache(str(path))


def as_game(game: Game | str) -> Game:
    """The game itself, or the one that a text names, as in `read_game`.

    >>> as_game("tic_tac_toe").num_actions
    9
    """
    if isinstance(game, Game):
        return game
    if isinstance(game, str):
        return read_game(game)
    got = f"the function {game.__name__}; call it" if inspect.isfunction(game) else repr(game)
    raise TypeError(f"expected a uctree.Game or its name, as 'connect_four'; got {got}")


def read_built_in(text: str) -> Game:
    """The game of `uctree.games` of a text: `name`, `name:arguments` or `name(arguments)`.

    >>> read_built_in("connect_four(rows=4, cols=5)").num_actions
    5
    """
    name, arguments = split_call(text)
    known = built_in()
    if name not in known:
        raise UctreeError(
            f"unknown game {name!r}; {meant(name, known)}Built in: {', '.join(known)}. "
            "A game of your own is given as file.py:name"
        )
    return _made(text, name, known[name], arguments)


def built_in() -> dict[str, Callable[..., Game]]:
    """The functions of `uctree.games`, by name."""
    from uctree import games

    return {name: getattr(games, name) for name in sorted(games.__all__)}


def _made(text: str, name: str, found: Any, arguments: str) -> Game:
    """`found` itself if it is a game, else what it returns for the arguments."""
    if isinstance(found, Game):
        if arguments:
            raise UctreeError(
                f"{name} is a game, not a function that returns one; omit the arguments"
            )
        return found
    if not inspect.isroutine(found):
        raise UctreeError(
            f"{text}: {name} is of type {type(found).__name__}; expected a uctree.Game or a "
            "function that returns one"
        )
    try:
        made = make(name, found, read_arguments(arguments))
    except UctreeError as error:
        raise UctreeError(f"{_short(text)}: {error}") from error
    if not isinstance(made, Game):
        raise UctreeError(
            f"{signature(name, found)} returned {type(made).__name__}; expected a uctree.Game"
        )
    return made


def load_file(path: Path) -> types.ModuleType:
    """A user's file as a module; its name is importable in other processes if possible."""
    if not path.is_file():
        raise UctreeError(f"there is no file {path}")
    path = path.resolve()
    _put_on_path(str(path.parent))
    name = path.stem
    if not _finds(name, path):
        # The name belongs to another module, which has to stay importable.
        name = f"{name}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UctreeError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    user_files.add(str(path))
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, SyntaxError):
            raise UctreeError(f"{error.filename}, line {error.lineno}: {error.msg}") from None
        raise
    return module


def _put_on_path(folder: str) -> None:
    """Add a folder to sys.path: before installed packages, but after the standard library."""
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


user_files: set[str] = set()  # paths; errors that come from them are the user's


def place(error: Exception) -> str:
    """The line of a user's file that raised an error, for a message; empty if none did."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [frame for frame in frames if frame.filename in user_files]
    if not places:
        return ""
    return f"{places[-1].filename}, line {places[-1].lineno}, in {places[-1].name}: "


def reason(error: Exception) -> str:
    """The text of an error; with its type, unless that is a ValueError or a TypeError.

    >>> reason(ValueError("too large")), reason(KeyError("x"))
    ('too large', "KeyError: 'x'")
    """
    is_plain = isinstance(error, (ValueError, TypeError))
    return str(error) if is_plain else f"{type(error).__name__}: {error}"


def _only_game(path: str, module: types.ModuleType) -> str:
    """The name of the only game in a file; an error if there is none or more than one."""
    names = [name for name, value in vars(module).items() if isinstance(value, Game)]
    if len(names) != 1:
        raise UctreeError(f"say which game of {path}, as {path}:name; {_games_in(module)}")
    return names[0]


def _games_in(module: types.ModuleType) -> str:
    """The games of a file and the functions that return one, for a message."""
    found = [name for name, value in vars(module).items() if isinstance(value, Game)]
    for name, value in vars(module).items():
        if inspect.isfunction(value) and value.__module__ == module.__name__:
            returned = value.__annotations__.get("return")
            if returned is Game or returned in ("Game", "uctree.Game"):
                found.append(signature(name, value))
    return f"its games: {', '.join(found)}" if found else "it holds no uctree.Game"


# --- actions -------------------------------------------------------------------------------------


def play_actions(game: Game, texts: Sequence[str], option: str = "--actions") -> np.record:
    """The state after the actions of a text, as in `read_actions`."""
    return game.play(read_actions(game, texts, option))


def read_actions(game: Game, texts: Sequence[str], option: str = "--actions") -> list[Any]:
    """The actions of a text, from the start on: all as the game shows them, or all as numbers.

    Vectors are written as their coordinates, with or without brackets.

    Args:
        option: the option that the text is the value of, for messages.
    """
    text = " ".join(texts)
    try:
        return _read_shown(game, text, option)
    except UctreeError:
        # All or none: if a game shows action 0 as 1, a list that mixes both is ambiguous.
        numbers = text.replace(",", " ").split()
        if all(number.isdecimal() and len(number) < 20 for number in numbers):
            with contextlib.suppress(IllegalAction):
                actions = [int(number) for number in numbers]
                game.play(actions)
                return actions
        raise


def _read_shown(game: Game, text: str, option: str) -> list[Any]:
    """Actions written as the game shows them."""
    state, actions = game.start(), list[Any]()
    while text := text.strip(" ,"):
        if game.is_over(state):
            raise UctreeError(
                f"{option}: the episode is over after {len(actions)} actions; remove {text!r}"
            )
        try:
            action, text = _read_first(game, state, text)
        except IllegalAction as error:
            raise UctreeError(f"{option}, number {len(actions) + 1}: {error}") from None
        state, _ = game.step(state, action)
        actions.append(action)
    return actions


def _read_first(game: Game, state: np.record, text: str) -> tuple[Any, str]:
    """The first of several actions in a text, and the rest of the text."""
    # The text of one action may hold spaces and commas, as in "heap 1, take 2".
    legal = [] if game.is_continuous else game.legal(state)
    shown = {game.show_action(state, action): action for action in legal}
    for name in sorted(shown, key=len, reverse=True):
        if name and re.match(rf"{re.escape(name)}(?=[\s,]|$)", text):
            return shown[name], text[len(name) :]
    # A game may accept other texts of an action, of one word or several.
    most = max(MOST_WORDS, game.dim)
    for word in itertools.islice(re.finditer(r"[^\s,]+", text), most):
        with contextlib.suppress(IllegalAction):
            return game.read_action(state, text[: word.end()]), text[word.end() :]
    first, _, rest = text.partition(",")
    return game.read_action(state, first), rest

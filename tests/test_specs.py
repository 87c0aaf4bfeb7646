"""Text to games, rules and actions: what is read, and how a mistake is reported."""

from __future__ import annotations

import importlib
import inspect
import math
import pickle
import sys
import types
from pathlib import Path

import pytest

import uctree
from uctree import UctreeError, specs

pytestmark = pytest.mark.quick

RACE = '''
import numpy as np
import uctree

Position = np.dtype([("total", np.int16), ("to_play", np.int8)])


def race(goal=4, steps=(1, 2)) -> uctree.Game:
    """Add 1 or 2 in turn; who reaches the goal wins."""

    def legal(state, actions):
        actions[0], actions[1] = 0, 1
        return 2

    def step(state, action, reward):
        player = state.to_play
        state.total += steps[action]
        state.to_play = 1 - player
        if state.total >= goal:
            reward[player], reward[1 - player] = 1, -1
            state.to_play = uctree.OVER

    def show(state):
        return f"total {state.total} of {goal}"

    return uctree.Game(Position, legal, step, num_players=2, num_actions=2, name="race", show=show)


short = race(2)
'''


@pytest.fixture
def file(tmp_path) -> str:
    path = tmp_path / "user_races.py"
    path.write_text(RACE)
    return str(path)


pytestmark = pytest.mark.usefixtures("imports_are_undone")


def goal(game: uctree.Game) -> str:
    return game.show(game.start()).split()[-1]


# --- calls ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ([], {})),
        ("3", ([3], {})),
        ("-1.5, 'a', x=None", ([-1.5, "a"], {"x": None})),
        ("heaps=(3,4,5), misere=False", ([], {"heaps": (3, 4, 5), "misere": False})),
        ("[1, {2: 3}]", ([[1, {2: 3}]], {})),
        ("c=inf", ([], {"c": math.inf})),
        ("\n c = 2 ,\n", ([], {"c": 2})),
    ],
)
def test_arguments_are_literals(text, expected):
    assert specs.read_arguments(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "rows=six",
        "rows=(6",
        "1)+f(2",
        "1)(2",
        "*[1]",
        "**{'rows': 6}",
        "open('x')",
        "().__class__",
        "lambda: 1",
        "[x for x in (1, 2)]",
        "{[]: 1}",
        "2**99",
        "f'{1}'",
        "x=1, x=2",
        "1, x=2, 3",
        "\0",
        "(" * 5000,
        "-" * 5000 + "1",
        "1," * 10_000,
        "rows=" + "9" * 5000,
        "rows=" + "9" * 200,
        "nan",
    ],
    ids=range(22),
)
def test_what_is_not_a_literal_is_refused(text):
    with pytest.raises(UctreeError, match=r"cannot read the arguments .*rows=3,cols=4"):
        specs.read_arguments(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hex", ("hex", "")),
        ("hex:", ("hex", "")),
        ("hex()", ("hex", "")),
        ("hex:size=7", ("hex", "size=7")),
        (" hex (size=7) ", ("hex", "size=7")),
        ("a:b:c", ("a", "b:c")),
        ("a({1: 2})", ("a", "{1: 2}")),
    ],
)
def test_a_call_is_written_with_brackets_or_a_colon(text, expected):
    assert specs.split_call(text) == expected


def test_a_text_that_is_too_long_is_refused_before_it_is_read():
    for text in (" " * 10**6 + "x(", "x" * 10**6, "(" * 10_001, "hex(" + "1," * 5000):
        for read in (specs.split_call, specs.read_game, specs.read_built_in):
            with pytest.raises(UctreeError, match="characters, and 10,000 is the most") as caught:
                read(text)
            assert len(str(caught.value)) < 1000
        with pytest.raises(UctreeError, match="10,000 is the most") as caught:
            specs.read_rule(text, "--x", {"f": len})
        assert len(str(caught.value)) < 1000
    for text in (" " * 9000 + "x(", " " * 9000 + "x" + " " * 900 + "("):
        with pytest.raises(UctreeError, match="cannot read"):
            specs.split_call(text)


@pytest.mark.parametrize("text", ["hex(size=7", "hex(7) + 1", "f(1)(2", "(7"])
def test_a_call_that_is_not_one_is_refused(text):
    with pytest.raises(UctreeError, match="cannot read"):
        specs.read_rule(text, "--x", {"hex": specs.read_built_in, "f": len})


# --- rules ---------------------------------------------------------------------------------------

MODULE = types.ModuleType("colours")
exec(
    """
from __future__ import annotations
from math import sqrt

def red(strength: float = 1.0, *, over: Colour = None) -> Colour:
    if strength < 0:
        raise ValueError(f"strength must be at least 0; got {strength}")
    return ("red", strength, over)

def blue() -> Colour:
    return ("blue",)

def _hidden() -> Colour: ...
def other(x: float) -> float: ...
""",
    vars(MODULE),
)
COLOURS = specs.makers(MODULE, "Colour")


def test_the_functions_that_make_a_thing_are_found_by_what_they_return():
    assert list(COLOURS) == ["red", "blue"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("red", ("red", 1.0, None)),
        ("red()", ("red", 1.0, None)),
        ("red(2)", ("red", 2, None)),
        ("red:strength=3", ("red", 3, None)),
        ("red(strength=inf)", ("red", math.inf, None)),
        ("red(2, over=red(3, over=blue()))", ("red", 2, ("red", 3, ("blue",)))),
        ("grey", "grey"),
    ],
)
def test_a_rule_is_a_call_or_a_word(text, expected):
    assert specs.read_rule(text, "--colour", COLOURS, words=("grey",)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "gren",
            r"unknown 'gren'; did you mean green or grey\? possible: grey, green, red\(strength=",
        ),
        ("_hidden()", r"unknown '_hidden'; possible: grey, green, red\(strength=1.0, \*, over="),
        ("grey()", r"unknown 'grey'; did you mean grey"),
        ("sqrt(2)", "unknown 'sqrt'"),
        ("red(strenght=2)", r"argument 'strenght'; the signature is red\(strength=1\.0"),
        ("red(-1)", r"strength must be at least 0; got -1; the signature is red\("),
        ("red(over=sqrt(2))", "unknown 'sqrt'"),
        ("red(over=red(x=1))", "argument 'x'; the signature is red"),
        ("red(over=other(1))", "unknown 'other'"),
        ("red(over=MODULE.red())", "cannot read the arguments"),
        ("red(over=(red)()())", "cannot read the arguments"),
        ("", "unknown ''"),
    ],
)
def test_a_mistaken_rule_is_explained_with_what_is_possible(text, message):
    with pytest.raises(UctreeError, match=message) as caught:
        specs.read_rule(text, "--colour", COLOURS, words=("grey", "green"))
    assert str(caught.value).startswith(f"--colour {text}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("module", "kind", "some"),
    [
        ("selection", "Rule", {"ucb1", "puct"}),
        ("backup", "Backup", {"mean"}),
    ],
)
def test_the_rules_of_uctree_are_found(module, kind, some):
    module = importlib.import_module(f"uctree.{module}")
    functions = specs.makers(module, kind)
    assert some <= functions.keys()
    for name in some:
        assert type(specs.read_rule(name, "--x", functions)).__name__ == kind


# --- games ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["connect_four:rows=5,cols=6", "connect_four(rows=5, cols=6)", "connect_four:5,6"],
)
def test_a_built_in_game_has_arguments_either_way(text):
    assert specs.read_game(text).num_actions == 6


@pytest.mark.parametrize("call", ["race:goal=5", "race(goal=5)", "race(5)", "race:5,(1, 2)"])
def test_a_game_of_a_file_has_arguments_either_way(file, call):
    assert goal(specs.read_game(f"{file}:{call}")) == "5"


def test_the_only_game_of_a_file_needs_no_name(file):
    assert goal(specs.read_game(file)) == goal(specs.read_game(f"{file}:short")) == "2"


def test_a_built_in_game_is_never_looked_for_in_a_file(file):
    with pytest.raises(UctreeError, match="unknown game"):
        specs.read_built_in(f"{file}:race")


def test_a_game_of_a_file_can_be_pickled_by_its_module(file):
    game = specs.read_game(f"{file}:race:goal=5")
    assert game.rules.step.__module__ == "user_races"
    assert Path(file).parent in map(Path, sys.path)
    assert goal(pickle.loads(pickle.dumps(game))) == "5"


def test_files_of_one_name_in_two_folders_are_told_apart(file, tmp_path):
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "user_races.py"
    other.write_text(RACE.replace("goal=4", "goal=9"))
    games = [specs.read_game(f"{path}:race") for path in (file, other, file, other)]
    assert [goal(game) for game in games] == ["4", "9", "4", "9"]


def test_a_file_named_as_a_module_of_python_does_not_replace_it(monkeypatch, tmp_path):
    path = tmp_path / "colorsys.py"
    path.write_text(RACE)
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    assert specs.read_game(f"{path}:race").num_players == 2
    assert hasattr(importlib.import_module("colorsys"), "rgb_to_hsv")


def test_the_place_of_a_mistake_is_known_in_files_of_users_only(file):
    with pytest.raises(UctreeError) as caught:
        specs.read_game(f"{file}:race:goal=5,steps=3,x=2")
    assert specs.place(caught.value) == ""
    game = specs.read_game(f"{file}:race(steps=3)")
    with pytest.raises(TypeError) as caught:
        game.step(game.start(), 0)
    assert specs.place(caught.value).startswith(f"{file}, line 17, in step: ")


# --- actions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("written", "actions"), [("1,2,7", [0, 1, 6]), ("1,0,2", [1, 0, 2])])
def test_actions_are_all_as_shown_or_else_all_numbers(written, actions):
    rules = uctree.games.connect_four()
    game = uctree.Game(
        rules.dtype, rules.rules.legal, rules.rules.step, num_players=2, num_actions=7,
        show_action=lambda state, action: str(action + 1),
        read_action=lambda state, text: int(text) - 1,
    )  # fmt: skip
    assert specs.play_actions(game, [written]) == game.play(actions)


def test_a_shown_action_may_hold_a_comma():
    game = uctree.games.connect_four()
    game = uctree.Game(
        game.dtype, game.rules.legal, game.rules.step, num_players=2, num_actions=7,
        show_action=lambda state, action: f"{action}, from above",
    )  # fmt: skip
    assert specs.play_actions(game, ["3, from above, 2, from above"]) == game.play([3, 2])
    assert specs.play_actions(game, ["3, 2"]) == game.play([3, 2])


@pytest.mark.parametrize("written", ["(1, 0, 0), (2, 1, -1)", "1 0 0 2 1 -1", "1,0,0, (2 1 -1)"])
def test_vectors_are_read_one_after_the_other(written):
    game = uctree.games.loss_game(3)
    state = specs.play_actions(game, [written])
    assert state == game.play([(1, 0, 0), (2, 1, -1)])


def test_a_mistaken_vector_is_told_by_its_number():
    game = uctree.games.loss_game()
    with pytest.raises(UctreeError, match=r"--actions, number 2: action \[7.0\] is not legal"):
        specs.play_actions(game, ["-0.2, 7"])
    with pytest.raises(UctreeError, match=r"--actions, number 1: 'left' is no action; write 1 num"):
        specs.play_actions(game, ["left"])


def test_a_mistaken_action_is_told_by_its_number():
    with pytest.raises(UctreeError, match="--moves, number 2: '9' is not a legal action"):
        specs.play_actions(uctree.games.connect_four(), ["1", "9"], option="--moves")


# Where public functions are, and which, if not all; that of `openspiel_bot` is of OpenSpiel.
PUBLIC = {
    "uctree": None,
    "uctree.continuous": None,
    "uctree.continuous.regret": [
        "measure",
        "stage_regret",
        "open_loop_regret",
        "sampled_gap",
        "sampled_equilibrium",
    ],
    "uctree.continuous.budgets": ["run", "study"],
    "uctree.principle": None,
    "uctree.adapters": ["to_gymnasium", "to_openspiel", "to_pettingzoo"],
    "uctree.arena": None,
    "uctree.learn": None,
    "uctree.learn.exact": ["exact_positions"],
    "uctree.learn.ladder": ["measure"],
    "uctree.learn.replies": ["try_all"],
    "uctree.engine.driver": ["BatchedSearch"],
}
AGENTS = {"agents": ["random", "random"]}
ARGUMENTS = {"match": AGENTS, "play": AGENTS}


def of_games(name):
    """The public functions of a module whose first argument is `game`, and their other ones."""
    space = importlib.import_module(name)
    for each in PUBLIC[name] or space.__all__:
        found = getattr(space, each)
        if not each.startswith("_") and (inspect.isfunction(found) or each in CLASSES):
            parameters = inspect.signature(found).parameters.values()
            kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)
            required = [p.name for p in parameters if p.default is p.empty and p.kind in kinds]
            if required[:1] == ["game"]:
                yield each, found, required[1:]


CLASSES = ("BatchedSearch", "Searcher")


@pytest.mark.parametrize("module", PUBLIC)
def test_every_function_that_takes_a_game_takes_its_text(module):
    found = list(of_games(module))
    assert len(found) >= len(PUBLIC[module] or [1])
    for name, function, others in found:
        arguments = [ARGUMENTS.get(name, {}).get(each) for each in others]
        with pytest.raises(UctreeError, match=r"unknown game 'no_such_game'"):
            function("no_such_game", *arguments)
        other = r"expected a uctree\.Game or its name|plan takes a uctree\.Problem"  # so does check
        with pytest.raises(TypeError, match=other):
            function(7, *arguments)

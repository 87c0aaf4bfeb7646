"""Descriptions of games in files, and the games rebuilt from them."""

from __future__ import annotations

import json
import linecache
import pickle
import re

import numpy as np
import pytest

import uctree
from uctree import games
from uctree.engine import treefile
from uctree.engine.identity import (
    are_rules_edited,
    check_game,
    describe_game,
    find_spec,
    game_from,
    rules_fingerprint,
)

pytestmark = pytest.mark.quick

SPECS = [
    "backgammon(pays='wins', hyper=True)",
    "breakthrough(rows=5, cols=6)",
    "checkers(quiet=30)",
    "chess(start=518, fen='4k2r/8/8/8/8/8/P7/4K2R w Kk - 95 1', playouts='heuristic')",
    "chess(start=17, fen='', playouts='uniform')",
    "connect_four(rows=5, cols=7, playouts='heuristic')",
    "dots_and_boxes(rows=2, cols=3, pays='boxes')",
    "dots_and_boxes(rows=2, cols=3, pays='win')",
    "go(size=5, komi=6.5, playouts='heuristic')",
    "go(size=5, komi=0, playouts='uniform')",
    "hex(size=7)",
    "kalah(pits=4, seeds=3)",
    "leap()",
    "loss_game(dim=3)",
    "n_in_a_row(rows=4, cols=5, length=3, num_players=3)",
    "n_in_a_row(rows=4, cols=5, length=3, num_players=3, view=3, rewards='placement')",
    "nim(heaps=(2, 3), misere=True)",
    "nim(heaps=(1, 3, 5, 7), misere=False)",
    "othello(size=6)",
    "point_mass(stages=4)",
    "pig(target=50, num_players=3)",
    "tic_tac_toe()",
    "twenty48(max_tile=512)",
    "ultimate_tic_tac_toe()",
]


def through_json(game: uctree.Game) -> dict[str, object]:
    return json.loads(json.dumps(describe_game(game)))


def test_the_games_tried_here_are_all_there_are():
    assert {spec.partition("(")[0] for spec in SPECS} == set(games.__all__)


@pytest.mark.parametrize("spec", SPECS)
def test_a_built_in_game_is_made_again_from_its_description(spec):
    game = eval(spec, vars(games).copy())
    description = through_json(game)
    assert description["spec"] == spec
    made = game_from(description)
    assert pickle.dumps(made) == pickle.dumps(game)
    check_game(description, game)


@pytest.mark.parametrize("name", games.__all__)
def test_a_built_in_game_with_its_defaults_is_known(name):
    assert describe_game(getattr(games, name)())["spec"].startswith(f"{name}(")


def test_arguments_of_numpy_are_written_as_plain_ones():
    game = games.connect_four(rows=np.int64(5))
    assert find_spec(game) == "connect_four(rows=5, cols=7, playouts='uniform')"


def test_the_description_says_what_there_is_to_know():
    description = describe_game(games.pig(target=20))
    assert description == {
        "name": "pig(20, 2 players)",
        "spec": "pig(target=20, num_players=2)",
        "dtype": treefile.describe_dtype(games.pig().dtype),
        "num_players": 2,
        "num_actions": 2,
        "max_outcomes": 6,
        "discount": 1.0,
        "zero_sum": description["zero_sum"],
        "payoff_range": description["payoff_range"],
    }


def own_game(**options):
    rules = games.connect_four()
    options = {"num_players": 2, "num_actions": 7, "name": "mine"} | options
    return uctree.Game(rules.dtype, rules.rules.legal, rules.rules.step, **options)


@pytest.mark.parametrize(
    "options", [{}, {"show_action": lambda state, action: "x"}, {"name": "connect_four"}]
)
def test_a_game_that_no_built_in_function_makes_has_to_be_passed(options):
    game = own_game(**options)
    description = through_json(game)
    assert description["spec"] is None
    with pytest.raises(ValueError, match=r"of the game '(mine|connect_four)', .* pass game="):
        game_from(description)
    check_game(description, game)


@pytest.mark.parametrize(
    "spec",
    [
        "__import__('os').system('true')",
        "connect_four(rows=__import__('os').getpid())",
        "connect_four(rows=(lambda: 6)())",
        "os.getcwd()",
        "connect_four.__class__(6)",
        "connect_four(rows=6)(7)",
        "my_games.py:race",
        "connect_four(rows='six')",
        "connect_four(rows=10**9)",
        "connect_four(rows=1000000000)",
        "loss_game(dim=20000000)",
        "nim(heaps=(" + "9" * 5000 + ",))",
        "connect_four(**{'rows': 6})",
        "nim(heaps=({},))",
        "nim(heaps=" + "(" * 9000 + ")" * 9000 + ")",
        "nim(heaps=(" + "1, " * 20000 + "))",
        "__init__(name='x')",
        "__getattr__(name='hex')",
        "hex.hex(size=5)",
        "connect_four",
        "\0",
        "",
        7,
        ["connect_four()"],
        {"a": 1},
    ],
    ids=lambda spec: repr(spec)[:60],
)
def test_a_spec_from_a_file_can_do_nothing_but_make_a_built_in_game(spec):
    description = through_json(games.connect_four()) | {"spec": spec, "num_players": 9}
    with pytest.raises(ValueError, match="the tree is of the game 'connect_four'") as error:
        game_from(description)
    assert len(str(error.value)) < 5000


def test_a_game_whose_rules_changed_since_is_not_made_again():
    description = through_json(games.connect_four()) | {"num_actions": 8}
    with pytest.raises(ValueError, match="num_actions is 8 in the file and 7 in the game"):
        game_from(description)


@pytest.mark.parametrize(
    ("game", "message"),
    [
        (games.connect_four(rows=5), r"spec is .connect_four\(rows=6.* in the file and .*rows=5"),
        (games.connect_four(cols=6), "num_actions is 7 in the file and 6 in the game"),
        (games.tic_tac_toe(), "name is 'connect_four' in the file and 'tic_tac_toe' in the game"),
        (own_game(), "name is 'connect_four' in the file and 'mine'"),
        (own_game(name="connect_four", discount=0.5), "discount is 1.0 in the file and 0.5"),
        (own_game(name="connect_four", zero_sum=True), r"payoff_range is \[\[-1.0, 1.0\], "),
    ],
)
def test_another_game_is_refused_with_what_differs(game, message):
    description = through_json(games.connect_four())
    with pytest.raises(ValueError, match=f"and .* differs: .*{message}.* Pass the game"):
        check_game(description, game)


def test_a_game_without_a_name_is_told_apart_by_the_rest():
    # It is called after its module, which is another one in the script that defines it.
    game = own_game(name=None)
    check_game(through_json(game) | {"name": "__main__"}, game)
    with pytest.raises(ValueError, match=r"discount is 1\.0"):
        check_game(through_json(game), own_game(name=None, discount=0.5))


# --- the rules -----------------------------------------------------------------------------------


RULES = """
import numpy as np
from uctree import OVER, Game

GOAL = {goal}

def legal(state, actions):
    {comment}
    actions[0], actions[1] = 1, {second}
    return 2

def step(state, action, reward{annotation}):
    state.total += action
    if state.total >= GOAL:
        reward[0], state.to_play = 1.0, OVER

dtype = np.dtype([("total", np.int32), ("to_play", np.int8)])
race = Game(dtype, legal, step, num_players=1, num_actions=3, max_plies=50, name="race")
"""


def race(tmp_path, **changes):
    """A game of a file, which replaces the one of an earlier call."""
    parts = {"goal": 10, "comment": '"""Two steps."""', "second": 2, "annotation": ""} | changes
    path = tmp_path / "race.py"
    path.write_text(RULES.format(**parts))
    linecache.checkcache(str(path))
    names: dict[str, object] = {"__name__": "race"}
    exec(compile(path.read_text(), str(path), "exec", dont_inherit=True), names)
    return names["race"]


def test_rules_have_the_same_fingerprint_until_their_code_is_edited(tmp_path):
    found = rules_fingerprint(race(tmp_path))
    assert found.startswith("source:")
    for changes in ({}, {"comment": "# Or three."}, {"annotation": ": object"}):
        assert rules_fingerprint(race(tmp_path, **changes)) == found
    for changes in ({"goal": 11}, {"second": 0}):
        game = race(tmp_path, **changes)
        assert rules_fingerprint(game) != found
        assert are_rules_edited(found, game)


def test_a_source_that_is_not_the_running_code_is_not_taken_for_it(tmp_path):
    game = race(tmp_path)
    (tmp_path / "race.py").write_text(RULES.format(goal=10, comment="", second=0, annotation=""))
    linecache.checkcache(str(tmp_path / "race.py"))
    assert re.fullmatch(r"Python 3\.\d+ code:\w{32}", rules_fingerprint(game))


def test_hashes_of_other_things_are_not_compared(tmp_path):
    game = race(tmp_path)
    for found in (None, 7, "", "Python 3.9 code:1234"):
        assert not are_rules_edited(found, game)


@pytest.mark.parametrize("name", games.__all__)
def test_the_rules_of_built_in_games_are_known_by_their_source(name):
    assert rules_fingerprint(getattr(games, name)()).startswith("source:")


def test_a_tree_of_edited_rules_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    game, path = race(tmp_path), tmp_path / "race.tree"
    tree = uctree.search(game, num_simulations=30).tree
    tree.save(path)
    edited = race(tmp_path, second=0)
    with pytest.raises(ValueError, match=r"race\.tree was grown by other rules of race: .* edited"):
        uctree.Tree.load(path, edited)
    with pytest.raises(ValueError, match="their rules differ"):
        uctree.search(edited, num_simulations=5, tree=tree)
    # The actions are compared as well, but rewards and states cannot be.
    with pytest.raises(ValueError, match=r"the actions \[2\], which are not legal"):
        uctree.Tree.load(path, edited, check_rules=False)
    longer = race(tmp_path, goal=11)
    assert uctree.Tree.load(path, longer, check_rules=False).simulations == 30

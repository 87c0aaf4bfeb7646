"""Descriptions of games in files, and the games rebuilt from them."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

import uctree
from uctree import games, treefile
from uctree.identity import check_game, describe_game, find_spec, game_from

SPECS = [
    "breakthrough(rows=5, cols=6)",
    "connect_four(rows=5, cols=7, playouts='heuristic')",
    "dots_and_boxes(rows=2, cols=3, pays='boxes')",
    "dots_and_boxes(rows=2, cols=3, pays='win')",
    "go(size=5, komi=6.5, playouts='heuristic')",
    "go(size=5, komi=0, playouts='uniform')",
    "hex(size=7)",
    "leap()",
    "loss_game(dim=3)",
    "n_in_a_row(rows=4, cols=5, length=3, num_players=3)",
    "nim(heaps=(2, 3), misere=True)",
    "nim(heaps=(1, 3, 5, 7), misere=False)",
    "othello(size=6)",
    "point_mass(stages=4)",
    "pig(target=50, num_players=3)",
    "tic_tac_toe()",
    "twenty48(max_tile=512)",
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
        "connect_four(**{'rows': 6})",
        "nim(heaps=({},))",
        "nim(heaps=" + "(" * 9000 + ")" * 9000 + ")",
        "nim(heaps=(" + "1, " * 20000 + "))",
        "connect_four",
        "\0",
        "",
        7,
        ["connect_four()"],
        {"a": 1},
    ],
    ids=repr,
)
def test_a_spec_from_a_file_can_do_nothing_but_make_a_built_in_game(spec):
    description = through_json(games.connect_four()) | {"spec": spec, "num_players": 9}
    with pytest.raises(ValueError, match="the tree is of the game 'connect_four'"):
        game_from(description)


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

"""Results as pages: their content, their security, and the files they are saved to."""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import os
import re
import sys

import numpy as np
import pytest

import uctree
from tests.pages.results import (
    SCRIPT,
    SEARCHES,
    Reader,
    hostile_game,
    numbers,
    read,
    result_of,
    rising,
    search,
    ten_thousand,
)
from uctree import evaluators, games
from uctree.pages import result_page as page
from uctree.pages.outline import outline

# --- what is on the page -------------------------------------------------------------------------


def test_a_page_has_a_row_per_action_with_its_numbers():
    result = search()
    reader, _ = read(result)
    rows = [row for row in reader.all("tr") if "data-action" in row]
    order = np.argsort(-result.edges["visits"], kind="stable")
    assert [int(row["data-action"]) for row in rows] == result.edges["action"][order].tolist()
    assert rows[0]["class"] == "chosen"
    texts = reader.texts["td"]
    for row in result.edges:
        assert f"{row['visits']:,}" in texts
        assert f"{row['q'][0]:+.3f}".replace("-", "\u2212") in texts


@pytest.mark.parametrize("num_simulations", [3, 200])
def test_every_cell_has_a_number_to_sort_by(num_simulations):
    result = search(num_simulations=num_simulations)
    reader, _ = read(result)
    keys = [cell["data-key"] for cell in reader.all("td") if "data-key" in cell]
    assert len(keys) >= 7 * len(result.edges)
    for key in keys:
        assert key.endswith("Infinity") or re.fullmatch(r"-?[\d.]+(e-?\d+)?", key)
        assert not np.isnan(float(key))


def test_actions_are_laid_over_the_cells_they_are_about():
    result = search(actions=[3, 3])
    reader, _ = read(result)
    spots = [g for g in reader.all("g") if "data-action" in g]
    assert {int(spot["data-action"]) for spot in spots} == set(result.edges["action"].tolist())
    assert all("of the visits" in spot["aria-label"] for spot in spots)


def test_a_game_without_a_board_is_shown_as_text():
    result = search("pig")
    reader, _ = read(result)
    assert reader.all("svg") == []
    assert result.game.show(result.state) in reader.texts["pre"]


def test_the_tree_of_the_page_is_the_tree_of_the_search():
    result = search(solver=True)
    _, data = read(result)
    tree = data["tree"]
    visits, parents = numbers(tree["visits"], "<f8"), numbers(tree["parent"], "<i4")
    actions, texts = numbers(tree["action"], "<i4"), numbers(tree["text"], "<i4")
    assert tree["size"] == len(visits) == len(numbers(tree["q"], "<f4")) // 2
    first = np.flatnonzero(parents == 0)
    assert dict(zip(actions[first].tolist(), visits[first].tolist(), strict=True)) == dict(
        zip(result.edges["action"].tolist(), result.edges["visits"].tolist(), strict=True)
    )
    shown = [data["texts"][i] for i in texts[1:].tolist()]
    assert shown == [str(action + 1) for action in actions[1:].tolist()]


def test_states_shown_with_nodes_are_those_the_path_leads_to():
    result = search("othello")
    _, data = read(result)
    parents, actions = (numbers(data["tree"][name], "<i4") for name in ("parent", "action"))
    assert len(data["tree"]["known"]) > 50
    for node, board, who in data["tree"]["known"]:
        path, at = [], node
        while at:
            path.append(int(actions[at]))
            at = parents[at]
        state = result.game.play(path[::-1])
        assert data["boards"][board] == result.game.show(state)
        assert who == f"player {result.game.to_play(state)}"


def test_an_action_whose_text_depends_on_the_state_is_a_number_where_the_state_is_unknown(
    monkeypatch,
):
    monkeypatch.setattr(page, "MOST_STATES", 3)
    result = search("breakthrough", actions=(), num_simulations=3_000)
    _, data = read(result)
    tree, game = data["tree"], result.game
    parents, actions, texts = (numbers(tree[n], "<i4") for n in ("parent", "action", "text"))
    for node in range(1, tree["size"]):
        path, at = [], parents[node]
        while at:
            path.append(int(actions[at]))
            at = parents[at]
        if texts[node] >= 0 and len(path) < 3:
            state = game.play(path[::-1])
            assert data["texts"][texts[node]] == game.show_action(state, int(actions[node]))


def test_variations_say_how_they_were_completed():
    result = search()
    _, data = read(result)
    line = data["lines"][str(result.action)]
    assert "at random" in line["note"]
    assert line["note"].endswith("to the end of the episode.")
    assert len(line["words"]) == len(line["boards"]) > line["treeDepth"]
    players = [word.partition(":")[0] for word in line["words"]]
    assert players[:3] == ["P0", "P1", "P0"]
    final = result.game.play([int(word.partition(":")[2]) - 1 for word in line["words"]])
    assert result.game.is_over(final)
    assert data["boards"][line["boards"][-1]] == result.game.show(final)


def test_variations_may_be_left_where_the_tree_stops():
    result = search()
    _, data = read(result, complete=None)
    line = data["lines"][str(result.action)]
    assert len(line["words"]) == line["treeDepth"]
    assert "where it stops" in line["note"]


def test_variations_may_be_completed_by_a_function():
    result = search()

    def leftmost(state):
        return result.game.legal(state)[0]

    _, data = read(result, complete=leftmost)
    assert "leftmost" in data["lines"][str(result.action)]["note"]


def test_charts_have_the_history_of_the_most_visited_actions():
    result = search("hex")
    _, data = read(result)
    curves = data["history"]
    assert curves["simulations"] == result.history["simulations"].tolist()
    assert len(curves["actions"]) == page.MOST_CURVES
    rows = [result.edges["action"].tolist().index(action) for action in curves["actions"]]
    assert curves["visits"][-1] == result.edges["visits"][rows].tolist()


# --- visits still needed -------------------------------------------------------------------------


def test_visits_needed_are_the_gap_and_one_more():
    result = search()
    visits, chosen = result.edges["visits"], result.edges["action"] == result.action
    needed = page.visits_needed(result)
    assert needed[chosen].tolist() == [0]
    np.testing.assert_array_equal(needed[~chosen], visits.max() - visits[~chosen] + 1)


def test_with_the_visits_needed_another_action_is_chosen_and_with_less_it_is_not():
    result = search()
    needed = page.visits_needed(result)
    for row in np.flatnonzero(needed > 0).tolist():
        for more, is_other in ((needed[row], True), (needed[row] - 2, False)):
            visits = result.edges["visits"].copy()
            visits[row] += int(more)
            best = uctree.choice.robust_choice(visits, result.edges["q"][:, 0])
            assert (best == row) == is_other


def test_what_is_proven_to_be_worse_is_never_chosen():
    result = search("tic_tac_toe", [0, 4, 8], solver=True, num_simulations=20_000)
    assert result.solved.tolist() == [0, 0]
    needed = dict(zip(result.edges["action"].tolist(), page.visits_needed(result), strict=True))
    assert needed[2] == needed[6] == np.inf  # the corners lose
    assert all(np.isfinite(needed[action]) for action in (1, 3, 5, 7) if action in needed)
    assert read(result)[0].texts["td"].count("never") >= 2


@pytest.mark.parametrize("choice", ["max", "robust_max", "lcb", "temperature"])
def test_choices_that_visits_do_not_decide_leave_it_unknown(choice):
    result = search(choice=choice)
    needed = page.visits_needed(result)
    assert np.isnan(needed[result.edges["action"] != result.action]).all()
    reader, _ = read(result)
    assert "unknown" in reader.texts["td"]
    assert any(f"with choice '{choice}'" in text for text in reader.texts["dd"])


# --- every kind of search ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SEARCHES)
def test_every_kind_of_search_gives_a_page(kind, tmp_path, monkeypatch):
    result = result_of(kind, monkeypatch)
    reader, data = read(result)
    assert data["chosen"] == result.action
    assert data["players"] == result.game.num_players
    rows = [row for row in reader.all("tr") if "data-action" in row]
    assert len(rows) == min(len(result.edges), page.MOST_ROWS)
    assert (data["tree"] is None) == (result.status == "terminal")
    Reader(result._repr_html_())
    result.save(tmp_path / "a.html")


def test_a_game_of_many_actions_says_what_is_left_out():
    reader, data = read(ten_thousand(5_000))
    assert any("4,800 less visited ones" in text for text in reader.texts["p"])
    assert len(data["lines"]) == page.MOST_LINES
    assert all("1 from the tree, where it stops" in line["note"] for line in data["lines"].values())


def test_a_large_tree_says_which_nodes_it_shows(monkeypatch):
    result = search()
    monkeypatch.setattr(page, "outline", lambda result: outline(result, most=100))
    reader, data = read(result)
    assert data["tree"]["size"] <= 100
    assert any(re.search(r"visited at least \d+ times", text) for text in reader.texts["p"])


def test_states_stop_where_the_page_has_text_enough(monkeypatch):
    monkeypatch.setattr(page, "MOST_BOARD_CHARACTERS", 300)
    _, data = read(search())
    assert 300 < sum(map(len, data["boards"])) < 500
    assert any(board == -1 for _, board, _ in data["tree"]["known"])


# --- nothing gets out ----------------------------------------------------------------------------


def test_texts_of_a_game_are_never_markup():
    game = hostile_game()
    result = uctree.search(game, game.start(), num_simulations=500, seed=1)
    for text in (page.page(result), result._repr_html_()):
        assert SCRIPT not in text
        reader = Reader(text)
        assert not any("onclick" in attributes for _, attributes in reader.elements)
        assert reader.all("b") == []
    scripts = Reader(page.page(result)).all("script")
    assert [script.get("type") for script in scripts] == ["application/json", None]
    _, data = read(result)
    assert all(SCRIPT in text for text in data["texts"])


def test_the_policy_allows_the_script_of_the_page_alone():
    text = page.page(search())
    reader = Reader(text)
    (policy,) = [m["content"] for m in reader.all("meta") if "http-equiv" in m]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")
    script = re.search(r"<script>(.*?)</script>", text, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    links = [a for _, attributes in reader.elements for a in attributes if a in ("src", "srcset")]
    assert links == []
    assert [a["href"] for a in reader.all("a")] == ["#actions"]
    assert "url(" not in text
    assert "@import" not in text


def test_a_fragment_has_no_scripts_and_no_names_that_could_clash():
    reader = Reader(search()._repr_html_())
    names = {name for name, _ in reader.elements}
    assert not names & {"script", "style", "link", "iframe", "img"}
    assert not any("id" in attributes for _, attributes in reader.elements)
    assert {"svg", "table"} <= names


# --- files ---------------------------------------------------------------------------------------


def test_a_result_is_saved_as_its_name_says(tmp_path):
    result = search()
    result.save(tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text("utf-8").startswith("<!doctype html>")
    result.save(str(tmp_path / "a.json"))
    assert json.loads((tmp_path / "a.json").read_text()) == result.to_json()
    assert sorted(os.listdir(tmp_path)) == ["a.html", "a.json"]


def test_the_same_search_gives_the_same_tree_and_variations(tmp_path):
    first, second = (read(search())[1] for _ in range(2))
    for name in ("tree", "texts", "lines", "boards"):
        assert first[name] == second[name]


@pytest.mark.parametrize("name", ["a.txt", "a", "a.pdf"])
def test_other_names_are_refused_with_what_is_possible(tmp_path, name):
    with pytest.raises(ValueError, match=r"page \(\.html\) or numbers \(\.json\).*tree\.save"):
        search().save(tmp_path / name)


def test_a_folder_that_is_missing_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*missing; make it first"):
        search().save(tmp_path / "missing" / "a.html")
    (tmp_path / "b.html").mkdir()
    with pytest.raises(IsADirectoryError, match="that is a folder; give the name of a file"):
        search().save(tmp_path / "b.html")


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder nobody can write to")
def test_a_place_that_cannot_be_written_to_is_named():
    with pytest.raises(OSError, match=r"could not be written, and nothing was changed.*a\.html"):
        search().save("/proc/self/a.html")


@pytest.mark.parametrize("name", ["a.html", "a.json"])
@pytest.mark.parametrize("where", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_page_and_nothing_else(tmp_path, monkeypatch, name, where):
    target = tmp_path / name
    target.write_text("old")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, where, full)
        with pytest.raises(OSError, match="nothing was changed: No space left on device"):
            search().save(target)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert target.read_text() == "old"


def test_a_page_that_cannot_be_made_leaves_the_old_one(tmp_path):
    target = tmp_path / "a.html"
    target.write_text("old")

    def broken(state):
        raise KeyError("no idea")

    with pytest.raises(KeyError):
        search().save(target, complete=broken)
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.html"]


def test_importing_uctree_does_not_load_the_page():
    import subprocess

    code = "import sys, uctree; print('uctree.pages.result_page' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_evaluators_complete_variations_too():
    result = search(evaluator=rising, num_simulations=64)
    _, data = read(result, complete=evaluators.compiled(rising))
    assert "rising" in data["lines"][str(result.action)]["note"]


def test_a_game_of_vectors_is_shown_as_text():
    game = games.loss_game(1)
    result = uctree.search(game, game.start(), num_simulations=100)
    assert result._repr_html_().startswith("<pre>")
    with pytest.raises(ValueError, match=r"are vectors.*ends in \.json"):
        result.save("search.html")

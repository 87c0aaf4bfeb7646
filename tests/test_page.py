"""Results as pages: what is on them, what cannot get out, and how they work in a browser."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import json
import os
import re
import shutil
import sys

import numpy as np
import pytest

import uctree
from uctree import evaluators, games, page, selection
from uctree.outline import outline

SCRIPT = "</script><script>alert(1)</script>"


def search(name="connect_four", actions=(), **options):
    game = getattr(games, name)()
    given = {"num_simulations": 1_000, "seed": 1} | options
    return uctree.search(game, game.play(actions), **given)


def hostile_game():
    """Tic-tac-toe whose every text tries to break out of the page."""
    source = games.tic_tac_toe()
    return uctree.Game(
        source.dtype, source.rules.legal, source.rules.step, num_players=2, num_actions=9,
        name=f"{{{{script}}}}{SCRIPT}", payoff_range=(-1, 1), geometry=("grid", 3, 3),
        show=lambda state: "<b> & .\n. . .\n. . ." + SCRIPT,
        show_action=lambda state, action: f'{SCRIPT}" onclick="alert({action})',
    )  # fmt: skip


Choosing = np.dtype([("picked", np.int32, 2), ("ply", np.int8), ("to_play", np.int8)])


def many_actions_game():
    """Each player names a number below 10,000; the larger one wins."""

    def legal(state, actions):
        for action in range(10_000):
            actions[action] = action
        return 10_000

    def step(state, action, reward):
        state.picked[state.to_play] = action
        state.ply += 1
        state.to_play = uctree.OVER if state.ply == 2 else 1
        if state.ply == 2 and state.picked[0] != state.picked[1]:
            best = 0 if state.picked[0] > state.picked[1] else 1
            reward[best], reward[1 - best] = 1, -1

    return uctree.Game(
        Choosing, legal, step, num_players=2, num_actions=10_000, payoff_range=(-1, 1)
    )


class Reader(html.parser.HTMLParser):
    """The elements of a page, and whether they are closed in the order they were opened."""

    EMPTY = ("meta", "input", "br", "img")

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.texts = [], [], {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def read(result, **options):
    """The elements of a result's page, and what its script reads."""
    reader = Reader(page.page(result, **options))
    (data,) = [text for text in reader.texts["script"] if text.startswith("{")]
    return reader, json.loads(data)


def numbers(text, dtype):
    return np.frombuffer(base64.b64decode(text), dtype)


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
    final = result.game.play([int(word) - 1 for word in line["words"]])
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


def rising(state, values, priors):
    for action in range(7):
        priors[action] = 1.0 + action


SEARCHES = {
    "seconds": lambda: search(num_simulations=None, seconds=0.05),
    "one simulation": lambda: search(num_simulations=1),
    "threads": lambda: search(threads=2, parallel="root"),
    "threads in one tree": lambda: search(threads=2, parallel="tree"),
    "solver": lambda: search("tic_tac_toe", [0, 4], solver=True, num_simulations=20_000),
    "chance": lambda: search("pig"),
    "chance at the root": lambda: search("pig", [0]),
    "2048": lambda: search("twenty48", games.twenty48().random_episode(1).actions[:6]),
    "open loop": lambda: search("pig", open_loop=True),
    "transpositions": lambda: search("othello", transpositions=True),
    "transpositions and threads": lambda: search(transpositions=True, threads=2, parallel="root"),
    "over": lambda: search("tic_tac_toe", [0, 3, 1, 4, 2]),
    "three players": lambda: three_players(),
    "priors": lambda: search(evaluator=rising),
    "Gumbel": lambda: search(
        evaluator=rising, root_selection=selection.gumbel(num_considered=4), num_simulations=64
    ),
    "widening": lambda: search("hex", widening=selection.widening()),
    "paranoid": lambda: three_players(opponents="paranoid"),
    "little memory": lambda: search(max_memory="60kB", num_simulations=20_000),
    "from a tree": lambda: search(tree=search().tree),
    "10,000 actions": lambda: ten_thousand(),
}


def three_players(**options):
    game = games.n_in_a_row(rows=4, cols=4, length=3, num_players=3)
    return uctree.search(game, game.start(), num_simulations=2_000, seed=1, **options)


def ten_thousand(num_simulations=12_000):
    game = many_actions_game()
    return uctree.search(game, game.start(), num_simulations=num_simulations, seed=1)


@pytest.mark.parametrize("kind", SEARCHES)
def test_every_kind_of_search_gives_a_page(kind, tmp_path):
    result = SEARCHES[kind]()
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

    code = "import sys, uctree; print('uctree.page' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "False\n"


# --- in a browser --------------------------------------------------------------------------------

ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def show(browser, tmp_path):
    """Opens the page of a result; afterwards nothing went wrong and nothing was asked for."""
    opened = []

    def opener(result, **options):
        target = tmp_path / "result.html"
        result.save(target)
        tab = browser.new_page(**options)
        trouble, requests = [], []
        tab.on("pageerror", lambda error: trouble.append(str(error)))
        tab.on("console", lambda message: trouble.append(message.text))
        tab.on("dialog", lambda dialog: (trouble.append(dialog.message), dialog.dismiss()))
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto(target.as_uri())
        tab.wait_for_selector("html[data-ready]")
        opened.append((tab, target.as_uri(), trouble, requests))
        return tab

    yield opener
    for tab, address, trouble, requests in opened:
        assert trouble == []
        assert requests == [address]
        tab.close()


def selected_row(tab):
    return tab.eval_on_selector_all("tr.selected", "rows => rows.map(r => r.dataset.action)")


def selected_node(tab):
    return tab.eval_on_selector("#canvas", "canvas => canvas.dataset.selected")


def shown_nodes(tab):
    tab.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    return int(tab.eval_on_selector("#canvas", "canvas => canvas.dataset.shown"))


@pytest.mark.peer
def test_a_click_on_the_board_selects_the_action_everywhere(show):
    result = search(actions=[3, 3])
    tab = show(result)
    assert selected_row(tab) == [str(result.action)]
    tab.click('.spot[data-action="6"]')
    assert selected_row(tab) == ["6"]
    assert selected_node(tab) == "7"
    assert "7: " in tab.text_content("#line-note")
    assert tab.get_attribute('#legend button[aria-pressed="true"]', "type") == "button"
    assert tab.text_content('#legend button[aria-pressed="true"]') == "7"
    tab.focus('tr[data-action="2"]')
    tab.keyboard.press("Enter")
    assert selected_row(tab) == ["2"]
    assert tab.locator(".spot.selected").get_attribute("data-action") == "2"


@pytest.mark.peer
def test_the_table_is_sorted_by_any_column(show):
    result = search()
    tab = show(result)

    def order():
        return [
            int(action)
            for action in tab.eval_on_selector_all(
                "#actions tbody tr", "rows => rows.map(row => row.dataset.action)"
            )
        ]

    tab.click("#actions th:nth-child(4) button")
    q = result.edges["q"][:, 0]
    assert [q[a] for a in order()] == sorted(q.tolist(), reverse=True)
    assert tab.get_attribute("#actions th:nth-child(4)", "aria-sort") == "descending"
    tab.click("#actions th:nth-child(1) button")
    tab.click("#actions th:nth-child(1) button")
    assert order() == list(range(7))
    for column in range(2, tab.locator("#actions th button").count() + 1):
        head = f"#actions th:nth-child({column})"
        for falling in (True, False):
            tab.click(f"{head} button")
            keys = tab.eval_on_selector_all(
                f"#actions tbody td:nth-child({column})",
                "cells => cells.map(cell => String(Number(cell.dataset.key)))",
            )
            numbers = [float(key) for key in keys]
            assert numbers == sorted(numbers, reverse=falling)
            assert tab.get_attribute(head, "aria-sort") == (
                "descending" if falling else "ascending"
            )
    share = result.edges["visits"] / result.edges["visits"].sum() - result.edges["prior"]
    heads = [head.strip() for head in tab.locator("#actions th").all_inner_texts()]
    vs_prior = heads.index("vs prior")
    tab.click(f"#actions th:nth-child({vs_prior + 1}) button")
    assert [share[a] for a in order()] == sorted(share.tolist(), reverse=True)


@pytest.mark.peer
def test_the_tree_is_walked_by_keys(show):
    result = search("tic_tac_toe")
    tab = show(result)
    tab.focus("#canvas")
    tab.keyboard.press("Home")
    assert selected_node(tab) == ""
    tab.click("#close-all")
    assert shown_nodes(tab) == 10
    tab.focus("#canvas")
    tab.keyboard.press("ArrowRight")
    most = result.game.show_action(result.state, result.action)
    assert selected_node(tab) == most
    tab.keyboard.press("ArrowRight")  # opens it
    assert shown_nodes(tab) == 18
    tab.keyboard.press("ArrowRight")
    assert selected_node(tab).startswith(f"{most} > ")
    tab.keyboard.press("ArrowLeft")
    tab.keyboard.press("ArrowLeft")  # closes it
    assert selected_node(tab) == most
    assert shown_nodes(tab) == 10
    tab.keyboard.press("ArrowDown")
    second = selected_node(tab)
    assert second != most
    assert selected_row(tab) == [str(int(second) - 1)]
    tab.keyboard.press("ArrowUp")
    tab.keyboard.press("Enter")
    assert shown_nodes(tab) == 18
    assert "player 1" in tab.text_content("#node")
    tab.keyboard.press("/")
    assert tab.evaluate("document.activeElement.id") == "find"


@pytest.mark.peer
def test_nodes_are_found_by_action_and_by_path(show):
    tab = show(search("tic_tac_toe"))
    tab.fill("#find", "5 > 1 > 9")
    tab.press("#find", "Enter")
    assert selected_node(tab) == "5 > 1 > 9"
    assert tab.text_content("#found") == "1 of 1"
    tab.fill("#find", "5 1")  # no action is called so: it is a path
    tab.press("#find", "Enter")
    assert selected_node(tab) == "5 > 1"
    tab.fill("#find", "3")
    tab.press("#find", "Enter")
    assert selected_node(tab).split(" > ")[-1] == "3"
    first = selected_node(tab)
    tab.press("#find", "Enter")
    assert selected_node(tab) != first
    tab.fill("#find", "nowhere")
    tab.press("#find", "Enter")
    assert tab.text_content("#found") == "nothing found"


@pytest.mark.peer
def test_the_tree_is_opened_by_clicks_and_moved_by_the_mouse(show):
    tab = show(search("tic_tac_toe"), viewport={"width": 1200, "height": 2600})
    tab.click("#close-all")
    box = tab.locator("#canvas").bounding_box()
    tab.mouse.click(box["x"] + 190 + 30, box["y"] + 12 + 24 + 12)  # the second action
    second = selected_node(tab)
    assert second not in ("", "root")
    tab.mouse.click(box["x"] + 190 + 30, box["y"] + 12 + 24 + 12)
    assert shown_nodes(tab) > 10
    tab.click("#open-all")
    many = shown_nodes(tab)
    assert many > 500
    tab.mouse.move(box["x"] + 300, box["y"] + 300)
    before = tab.evaluate("document.getElementById('canvas').toDataURL()")
    tab.mouse.wheel(0, 400)
    tab.wait_for_function("b => document.getElementById('canvas').toDataURL() !== b", arg=before)
    before = tab.evaluate("document.getElementById('canvas').toDataURL()")
    tab.mouse.down()
    tab.mouse.move(box["x"] + 200, box["y"] + 200, steps=4)
    tab.mouse.up()
    tab.wait_for_function("b => document.getElementById('canvas').toDataURL() !== b", arg=before)
    tab.click("#fit")
    assert shown_nodes(tab) == many


@pytest.mark.peer
def test_a_variation_is_stepped_through(show):
    result = search()
    tab = show(result)
    line = result._line("playout", begin=result.action)
    assert tab.locator("#line li").count() == line.depth
    assert tab.text_content("#line-board") == result.game.show(result.game.play(line.actions[:1]))
    tab.click("#line-on")
    assert tab.text_content("#line-board") == result.game.show(result.game.play(line.actions[:2]))
    tab.click("#line li:last-child button")
    assert tab.text_content("#line-board") == result.game.show(result.game.play(line.actions))
    tab.click("#line-back")
    assert f"after {line.depth - 1} of" in tab.text_content("#line-place")


@pytest.mark.peer
def test_charts_are_drawn_for_the_player_that_is_picked(show):
    tab = show(search(num_simulations=10_000))
    assert tab.locator("#visits-chart polyline").count() == 7
    points = "document.querySelector('#value-chart polyline').getAttribute('points')"
    before = tab.evaluate(points)
    tab.select_option("#player", "1")
    assert tab.evaluate(points) != before
    tab.check("#log-axis")
    assert tab.locator("#value-chart polyline.selected").count() == 1


@pytest.mark.peer
def test_a_repeated_node_leads_to_where_it_is_expanded(show):
    result = search("tic_tac_toe", transpositions=True, num_simulations=3_000)
    _, data = read(result)
    same = numbers(data["tree"]["sameAs"], "<i4")
    parents, actions = (numbers(data["tree"][name], "<i4") for name in ("parent", "action"))

    def path(node):
        words = []
        while node:
            words.append(str(actions[node] + 1))
            node = parents[node]
        return " > ".join(reversed(words))

    node = int(np.flatnonzero(same >= 0)[0])
    tab = show(result)
    tab.fill("#find", path(node))
    tab.press("#find", "Enter")
    assert selected_node(tab) == path(node)
    tab.click("#node button")
    assert selected_node(tab) == path(int(same[node]))


@pytest.mark.peer
def test_texts_of_a_game_do_nothing_in_a_browser(show):
    game = hostile_game()
    tab = show(uctree.search(game, game.start(), num_simulations=500, seed=1))
    tab.click("#open-all")
    tab.fill("#find", "<script>")
    tab.press("#find", "Enter")
    assert SCRIPT in tab.text_content("#node h3")
    assert tab.locator("#node script").count() == 0


@pytest.mark.peer
@pytest.mark.parametrize("kind", SEARCHES)
def test_every_kind_of_page_works_in_a_browser(show, kind):
    tab = show(SEARCHES[kind]())
    assert tab.locator("h1").count() == 1


@pytest.mark.peer
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_colour_schemes_and_on_narrow_screens(show, scheme):
    tab = show(search("hex"), color_scheme=scheme, viewport={"width": 360, "height": 700})
    ink, paper = (
        tab.evaluate(f"getComputedStyle(document.body).{name}")
        for name in ("color", "backgroundColor")
    )
    luminance = [sum(map(int, re.findall(r"\d+", color)[:3])) / 3 for color in (ink, paper)]
    assert abs(luminance[0] - luminance[1]) > 150
    assert (luminance[1] > 128) == (scheme == "light")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.peer
def test_a_tree_of_many_nodes_is_painted_only_where_it_is_seen(show):
    result = search(num_simulations=100_000)
    tab = show(result)
    tab.click("#open-all")
    many = shown_nodes(tab)
    assert many > 50_000
    painted = int(tab.eval_on_selector("#canvas", "canvas => canvas.dataset.painted"))
    assert 0 < painted < 2_000
    tab.click("#fit")
    assert shown_nodes(tab) == many
    assert int(tab.eval_on_selector("#canvas", "canvas => canvas.dataset.painted")) < many


def test_evaluators_complete_variations_too():
    result = search(evaluator=rising, num_simulations=64)
    _, data = read(result, complete=evaluators.compiled(rising))
    assert "rising" in data["lines"][str(result.action)]["note"]


def test_a_game_of_vectors_is_told_as_text():
    game = games.loss_game(1)
    result = uctree.search(game, game.start(), num_simulations=100)
    assert result._repr_html_().startswith("<pre>")
    with pytest.raises(ValueError, match=r"are vectors.*ends in \.json"):
        result.save("search.html")

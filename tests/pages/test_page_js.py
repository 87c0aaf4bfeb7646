"""The script of a result page, in a browser."""

from __future__ import annotations

import re

import numpy as np
import pytest

import uctree
from tests.pages.browsers import Noted, chromium
from tests.pages.results import SCRIPT, SEARCHES, hostile_game, numbers, read, result_of, search


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture
def show(browser, tmp_path):
    """Opens the page of a result; at the end there were no errors and no requests."""
    opened = []

    def opener(result, **options):
        target = tmp_path / "result.html"
        result.save(target)
        tab = browser.new_page(**options)
        noted = Noted(tab)
        tab.goto(target.as_uri())
        tab.wait_for_selector("html[data-ready]")
        opened.append((tab, target.as_uri(), noted))
        return tab

    yield opener
    for tab, address, noted in opened:
        assert noted.errors == []
        assert noted.requests == [address]
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
def test_charts_are_drawn_for_the_selected_player(show):
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
def test_every_kind_of_page_works_in_a_browser(show, kind, monkeypatch):
    tab = show(result_of(kind, monkeypatch))
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

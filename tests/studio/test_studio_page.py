"""The studio in a browser."""

from __future__ import annotations

import pytest

from tests.pages.browsers import Noted, chromium
from tests.studio.servers import running
from tests.studio.test_workshop import BAD, GOOD
from uctree import games

pytestmark = pytest.mark.peer

HOSTILE = """
import uctree
from uctree import games

BAD = "</script><script>alert(1)</script><img/src=x/onerror=alert(2)>"
source = games.tic_tac_toe()
hostile = uctree.Game(
    source.dtype, source.rules.legal, source.rules.step, num_players=2, num_actions=9,
    name=BAD, payoff_range=(-1, 1), geometry=("grid", 3, 3),
    show=lambda state: source.show(state._record) + "\\n" + BAD,
    show_action=lambda state, action: f'{BAD}" onclick="alert({action})',
)
"""


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def studio():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_DISABLE_JIT", "1")
        with running() as started:
            yield started


@pytest.fixture
def visit(browser, studio):
    """Opens the studio; at the end there were no errors, and no requests to anywhere else."""
    opened = []

    def visitor(at=studio, link="", **options):
        tab = browser.new_page(**options)
        tab.set_default_timeout(20_000)
        noted = Noted(tab)
        tab.goto(at.url + link)
        tab.wait_for_selector("html[data-ready]")
        opened.append((tab, noted, at.url))
        return tab

    yield visitor
    for tab, noted, address in opened:
        assert noted.errors == []
        assert all(url.startswith(address) for url in noted.requests)
        tab.close()


def link(game, actions="", seats="person,search", **settings):
    given = {"seconds": None, "num_simulations": 20, "options": "", "by_hand": False} | settings
    import json
    from urllib.parse import urlencode

    return "#" + urlencode(
        {"game": game, "actions": actions, "seats": seats, "settings": json.dumps(given)}
    )


def wait_for_ply(tab, ply, of=None):
    """Wait until a ply is shown."""
    text = f"ply {ply} of {ply if of is None else of}"
    tab.wait_for_function("text => document.getElementById('ply').textContent === text", arg=text)


def test_a_whole_episode_is_played_against_the_search_by_clicks(visit):
    tab = visit(link=link("connect_four:rows=5,cols=5"))
    ply = 0
    while "The episode is over" not in tab.text_content("#turn"):
        assert tab.text_content("#turn").startswith("Player 0 (person) to move")
        tab.locator("#board .spot").first.click()
        ply += 2
        tab.wait_for_function(
            "ply => document.getElementById('turn').textContent.includes('is over')"
            " || document.getElementById('ply').textContent === `ply ${ply} of ${ply}`",
            arg=ply,
        )
    words = tab.locator("#plies li").all_inner_texts()
    game = games.connect_four(rows=5, cols=5)
    state = game.play([int(word.partition(":")[2]) - 1 for word in words])
    assert game.is_over(state)
    tab.click("#undo")
    tab.wait_for_selector("#board .spot")


def test_the_board_is_played_by_keys_and_by_typing(visit):
    tab = visit(link=link("tic_tac_toe", seats="person,person"))
    tab.focus('#board .spot[data-action="4"]')
    tab.keyboard.press("Enter")
    wait_for_ply(tab, 1)
    tab.fill("#say", "1")
    tab.keyboard.press("Enter")
    wait_for_ply(tab, 2)
    assert tab.locator("#plies li").all_inner_texts() == ["P0:5", "P1:1"]
    tab.click("#to-back")
    wait_for_ply(tab, 1, of=2)
    assert "in an earlier state" in tab.text_content("#turn")
    tab.fill("#say", "77")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#problem:not([hidden])")
    assert "'77' is not a legal action" in tab.text_content("#problem")


def test_dice_are_rolled_and_three_players_play(visit):
    tab = visit(link=link("pig:target=30,num_players=3", seats="person,search,search"))
    tab.click('#choice button[data-action="0"]')
    wait_for_ply(tab, 2)
    assert "chance:" in tab.locator("#plies li").nth(1).inner_text()
    assert tab.locator("#seats select").count() == 3


def test_vectors_are_played_by_a_slider(visit):
    tab = visit(link=link("leap"))
    tab.fill("#vector input[type=number]", "0.5")
    assert tab.input_value("#vector input[type=range]") == "0.5"
    tab.click("#vector button")
    tab.wait_for_function("() => document.getElementById('turn').textContent.includes('is over')")
    assert tab.locator("#plies li").first.inner_text() == "P0:0.5"


def test_a_search_is_watched_on_the_board_in_the_table_and_in_the_tree(visit):
    tab = visit(link=link("tic_tac_toe", seats="person,person"))
    tab.click("#grow")
    tab.click("#think")
    tab.wait_for_selector("#candidates tr[data-action]")
    frames = "Number(document.documentElement.dataset.frames)"
    before = tab.evaluate(frames)
    tab.wait_for_function(f"before => {frames} > before + 3", arg=before)
    assert tab.locator("#candidates tr.chosen").count() == 1
    tab.wait_for_function("() => Number(document.getElementById('canvas').dataset.shown) > 9")
    tab.focus("#canvas")
    tab.keyboard.press("ArrowRight")
    chosen = tab.get_attribute("#canvas", "data-selected")
    seen = tab.text_content("#node")
    tab.wait_for_function("seen => document.getElementById('node').textContent !== seen", arg=seen)
    assert tab.get_attribute("#canvas", "data-selected") == chosen  # while the tree grows
    tab.hover("#candidates tr[data-action='8']")
    tab.wait_for_selector("#board.preview")
    tab.mouse.move(0, 0)
    tab.wait_for_selector("#board:not(.preview) .spot")
    tab.wait_for_function("() => document.querySelector('#board .percent').textContent !== ''")
    assert tab.locator("#value-chart polyline").count() > 1
    tab.click("#think")
    tab.wait_for_function("() => document.documentElement.dataset.searching === 'no'")
    assert tab.locator("#line li").count() >= 1


def test_it_is_explained_why_an_action_is_taken(visit):
    tab = visit(link=link("tic_tac_toe", seats="person,person", num_simulations=300))
    tab.click("#why-open")
    tab.click("#hint")
    tab.wait_for_selector("#why-table tr.chosen")
    tab.wait_for_function("() => document.documentElement.dataset.searching === 'no'")
    tab.wait_for_selector("#why-time:not([hidden])")
    assert "is taken next: value" in tab.text_content("#why-text")
    tab.locator("#why-table tbody tr").last.locator("td").first.click()
    assert "is not taken now" in tab.text_content("#why-text")
    assert "simulations that pass it by" in tab.text_content("#why-text")
    tab.fill("#why-moment", "0")
    tab.wait_for_function("() => document.getElementById('why-when').textContent !== 'now'")
    tab.locator("#why-table tbody th button").first.click()
    tab.wait_for_function("() => document.querySelectorAll('#why-path li').length === 2")
    assert tab.text_content("#why-note").startswith("player 1 to move")


def test_a_search_is_steered_compared_and_saved(visit, tmp_path):
    tab = visit(link=link("tic_tac_toe", seats="person,person"))
    tab.click("#hint")
    tab.click('#candidates tr[data-action="4"]')
    tab.click("#without")
    tab.wait_for_selector("#excluded:not([hidden])")
    assert tab.text_content("#excluded") == "without 5"
    tab.click("#hint")
    tab.wait_for_function(
        "() => document.querySelectorAll('#candidates tr[data-action]').length === 8"
    )
    tab.click("#keep")
    tab.wait_for_selector('#keep[aria-pressed="true"]')
    tab.check("#even")
    tab.click("#settings button")
    tab.wait_for_function("() => !document.getElementById('candidates').tBodies[0].rows.length")
    tab.click("#hint")
    tab.wait_for_selector("#comparison:not([hidden])")
    assert "even visits, without 5" in tab.text_content("#comparison-text")
    with tab.expect_download() as download:
        tab.click("#save-page")
    download.value.save_as(tmp_path / "saved.html")
    assert "A search of tic_tac_toe" in (tmp_path / "saved.html").read_text()


def test_an_episode_is_reviewed_and_mistakes_are_found(visit, tmp_path):
    tab = visit(
        link=link(
            "tic_tac_toe", "0,3,1,4,8,5", "person,person", num_simulations=60,
        )
    )  # fmt: skip
    tab.click("#review")
    tab.wait_for_selector("#next-mistake:not([disabled])")
    tab.wait_for_selector('#review[aria-pressed="false"]')
    tab.click("#next-mistake")
    tab.wait_for_function("() => document.getElementById('judgement').textContent.includes('lost')")
    assert tab.locator("#plies button.mistake").count() >= 1
    with tab.expect_download() as download:
        tab.click("#save-review")
    download.value.save_as(tmp_path / "review.html")
    assert "A review of tic_tac_toe" in (tmp_path / "review.html").read_text()


def test_the_address_holds_the_episode_and_the_settings(visit):
    tab = visit(link=link("hex:size=5", seats="person,person", options="selection=puct(c=2)"))
    tab.locator("#board .spot").nth(3).click()
    wait_for_ply(tab, 1)
    again = visit(link="#" + tab.url.partition("#")[2])
    wait_for_ply(again, 1)
    assert (
        again.locator("#plies li").all_inner_texts() == tab.locator("#plies li").all_inner_texts()
    )
    assert again.input_value("#options") == "selection=puct(c=2)"


def test_a_bug_in_a_file_is_found_shown_mended_and_played(visit, tmp_path, imports_are_undone):
    file = tmp_path / "race_on_a_page.py"
    file.write_text(BAD)
    with running(f"{file}:race") as studio:
        tab = visit(studio)
        tab.wait_for_selector("#findings li.error")
        assert "payoff-range" in tab.text_content("#findings")
        tab.click("#findings button")
        tab.wait_for_function("() => document.getElementById('turn').textContent.includes('over')")
        assert "returns" in tab.text_content("#turn")
        file.write_text(GOOD)
        tab.wait_for_selector('#doctor[data-version="2"][data-checked="yes"]')
        assert tab.text_content("#doctor-text").startswith("race: ok")
        assert tab.locator("#findings li").count() == 0
        tab.click("#open-form button")
        tab.click('#choice button[data-action="1"]')
        wait_for_ply(tab, 1)
        tab.close()


def test_texts_of_a_game_do_nothing(visit, tmp_path):
    file = tmp_path / "hostile_studio_game.py"
    file.write_text(HOSTILE)
    with running(f"{file}:hostile") as studio:
        tab = visit(studio)
        tab.click("#grow")
        tab.click("#hint")
        tab.wait_for_selector("#candidates tr[data-action]")
        tab.wait_for_function("() => document.documentElement.dataset.searching === 'no'")
        assert tab.locator("main script, main img").count() == 0
        assert "<img/src=x" in tab.text_content("#candidates")
        tab.locator("#board .spot").first.click()
        tab.wait_for_function(
            "() => document.getElementById('ply').textContent.startsWith('ply 2')"
        )
        tab.close()


def test_the_page_goes_on_after_the_server_was_away(browser):
    with running() as studio:
        port = studio.port
        tab = browser.new_page()
        tab.goto(studio.url + link("tic_tac_toe", "4,0", seats="person,person"))
        wait_for_ply(tab, 2)
    tab.wait_for_selector("#connection.lost")
    with running(port=port):
        tab.wait_for_selector("#connection:not(.lost)")
        tab.locator("#board .spot").first.click()
        wait_for_ply(tab, 3)
        tab.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_on_a_narrow_screen(visit, scheme):
    tab = visit(color_scheme=scheme, viewport={"width": 360, "height": 700})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360

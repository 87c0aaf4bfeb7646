"""Sessions: an episode that is played and searched by messages, in plain Python."""

from __future__ import annotations

import base64
import json
import random
import time

import pytest

import uctree
from tests.studio.tabs import tab
from tests.studio.test_workshop import GOOD
from uctree import games
from uctree.studio import session as session_module

pytestmark = pytest.mark.quick

LONG = {"seconds": None, "num_simulations": 1_000_000}


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    monkeypatch.setattr(session_module, "SECONDS_OF_A_ROLL", 0.0)


def test_the_search_replies_until_the_episode_is_over():
    with tab("tic_tac_toe") as page:
        game, position = games.tic_tac_toe(), page.wait_for_ply(0)
        while not position["over"]:
            ply = position["ply"]
            assert position["toPlay"] == 0
            page.send("act", ply=ply, action=position["actions"][0][0])
            position = page.wait(
                "position", lambda each, ply=ply: each["over"] or each["ply"] == ply + 2
            )
        final = game.play(position["episode"])
        assert game.is_over(final)
        assert position["text"] == game.show(final)
        assert position["returns"] == game.replay(position["episode"]).returns.tolist()
        assert all(len(value) == 2 for value in position["values"][1::2] if value is not None)


def test_a_person_may_take_every_seat_or_none():
    with tab("n_in_a_row:rows=5,cols=5,length=3,num_players=3", seats=["person"] * 3) as page:
        for ply, action in enumerate([0, 1, 2]):
            assert page.wait_for_ply(ply)["toPlay"] == ply
            page.send("act", ply=ply, action=action)
        page.wait_for_ply(3)
        page.send("sit", seats=["search"] * 3)
        assert page.wait("position", lambda each: each["over"])["words"][3].startswith("P0:")


def test_chance_is_rolled_or_chosen_by_hand():
    with tab("pig:target=30", seats=["person", "person"]) as page:
        page.send("act", ply=0, action=0)
        position = page.wait_for_ply(2)
        assert position["words"][1].startswith("chance:")
        settings = {"seconds": 1.0, "num_simulations": None, "options": "", "by_hand": True}
        page.send("configure", settings=settings)
        page.send("open", seats=["person", "person"], settings=settings)
        page.wait_for_ply(0)
        page.send("act", ply=0, action=0)
        position = page.wait_for_ply(1)
        assert position["who"] == "chance"
        assert len(position["chances"]) == 6
        page.send("act", ply=1, action=5)
        assert page.wait_for_ply(2)["words"] == ["P0:roll", "chance:6"]


def test_vectors_are_actions_too():
    with tab("leap", seats=["person", "search"]) as page:
        position = page.wait_for_ply(0)
        assert position["box"] == [[-1.0], [1.0]]
        page.send("act", ply=0, action=3)
        assert "is a list of numbers" in page.wait("problem")["text"]
        page.send("act", ply=0, action=[0.5])
        position = page.wait("position", lambda each: each["over"])
        assert position["episode"][0] == [0.5]


def test_undo_goes_back_to_the_last_decision_of_a_person():
    with tab("tic_tac_toe") as page:
        page.send("act", ply=0, action=4)
        page.wait_for_ply(2)
        page.send("undo")
        position = page.wait_for_ply(0)
        assert position["words"] == []
        page.send("undo")
        assert "no earlier decision" in page.wait("problem")["text"]


def test_an_earlier_state_is_looked_at_and_played_from():
    with tab("tic_tac_toe", actions=[0, 4, 8, 1], seats=["person", "search"]) as page:
        page.send("jump", ply=1)
        position = page.wait_for_ply(1)
        assert position["paused"]
        assert len(position["words"]) == 4
        page.send("act", ply=1, action=8)
        position = page.wait_for_ply(2)
        assert position["episode"] == [0, 8]


def test_who_resigns_has_ended_the_episode_until_it_is_undone():
    with tab("tic_tac_toe", seats=["person", "person"]) as page:
        page.send("act", ply=0, action=0)
        page.wait_for_ply(1)
        page.send("resign")
        assert page.wait("position", lambda each: each["over"])["resigned"] == 1
        page.send("act", ply=1, action=1)
        assert "has resigned" in page.wait("problem")["text"]
        page.send("undo")
        assert page.wait("position", lambda each: not each["over"])["ply"] == 1


def test_a_click_that_comes_too_late_changes_nothing():
    with tab("tic_tac_toe", seats=["person", "person"]) as page:
        page.send("act", ply=0, action=0)
        page.send("act", ply=0, action=1)
        page.send("act", ply=1, action=0)  # taken
        assert "action 0 is not legal" in page.wait("problem")["text"]
        assert page.wait_for_ply(1)["episode"] == [0]


def test_actions_are_typed_as_the_game_shows_them():
    with tab("tic_tac_toe", seats=["person", "person"]) as page:
        page.send("say", ply=0, text="5")
        assert page.wait_for_ply(1)["episode"] == [4]
        page.send("say", ply=1, text="5")
        assert "'5' is not a legal action" in page.wait("problem")["text"]


# --- watching ------------------------------------------------------------------------------------


def test_a_search_is_watched_while_it_runs_and_ends_when_it_is_told_to():
    with tab("tic_tac_toe", seats=["person", "person"]) as page:
        page.send("think", on=True)
        first = page.wait("frame", lambda frame: frame["status"] == "running")
        later = page.wait("frame", lambda frame: frame["simulations"] > first["simulations"])
        assert sum(row["visits"] for row in later["rows"]) <= later["simulations"]
        assert {row["action"] for row in later["rows"]} <= set(range(9))
        history = page.wait("history")["history"]
        assert len(history["actions"]) == len(history["visits"][-1]) == 8  # the most visited ones
        assert 0 < sum(history["visits"][-1]) <= history["simulations"][-1]
        page.send("think", on=False)
        stopped = page.wait("frame", lambda frame: frame["status"] == "studio")
        page.send("think", on=True)
        again = page.wait("frame", lambda frame: frame["status"] == "running")
        assert again["simulations"] >= stopped["simulations"]  # with the same tree


def test_variations_and_the_tree_are_shown_without_ending_the_search():
    with tab("tic_tac_toe", seats=["person", "person"], settings=LONG) as page:
        page.send("hint")
        page.wait("frame", lambda frame: len(frame["rows"]) == 9 and frame["status"] == "running")
        page.send("follow", action=7)
        line = page.wait("line", lambda message: message["line"]["action"] == 7)["line"]
        assert line["words"][0] == "P0:8"
        assert line["texts"][0] == games.tic_tac_toe().show(games.tic_tac_toe().play([7]))
        assert line["drawings"][0].startswith("<svg")
        page.send("grow", on=True)
        small = page.wait("tree")["nodes"]
        assert page.wait("tree", lambda tree: tree["nodes"] > small)["tree"]["size"] > small
        assert page.latest["frame"]["status"] == "running"


def test_scores_are_explained_now_deeper_and_earlier():
    with tab("tic_tac_toe", seats=["person", "person"], settings=LONG) as page:
        page.send("explain", actions=[])
        page.send("hint")
        now = page.wait("why", lambda message: len(message["why"]["edges"]) == 9)
        taken = [edge for edge in now["why"]["edges"] if edge["taken"]]
        assert taken[0]["score"] == max(edge["score"] for edge in now["why"]["edges"])
        page.send("explain", actions=[taken[0]["action"]])
        deeper = page.wait("why", lambda message: message["why"]["path"])
        assert deeper["why"]["path"] == [[taken[0]["action"], f"P0:{taken[0]['text']}"]]
        assert deeper["why"]["who"] == "player 1"
        page.send("explain", actions=[], simulations=page.wait("why")["moments"][0])
        earlier = page.wait("why", lambda message: message["moment"] is not None)
        assert earlier["why"]["visits"] == earlier["moment"]
        assert page.latest["frame"]["status"] == "running"
        page.send("explain")


def test_a_hint_ends_by_itself_and_the_person_still_decides():
    with tab("tic_tac_toe", seats=["person", "person"], actions=[0, 3, 1, 4]) as page:
        page.send("hint")
        frame = page.wait("frame", lambda frame: frame["status"] == "simulations")
        assert frame["chosen"] == 2
        assert frame["simulations"] == 20
        assert page.latest["position"]["ply"] == 4


def test_actions_are_excluded_and_allowed_again():
    with tab("tic_tac_toe", seats=["person", "person"]) as page:
        page.send("restrict", excluded=[4, 0])
        position = page.wait("position", lambda each: each["excluded"])
        assert position["excluded"] == [0, 4]
        page.send("hint")
        frame = page.wait("frame", lambda each: each["status"] == "simulations")
        assert {row["action"] for row in frame["rows"]} == {1, 2, 3, 5, 6, 7, 8}
        page.send("restrict", excluded=[])
        page.send("hint")
        page.wait("frame", lambda each: len(each["rows"]) == 9)
        page.send("restrict", excluded=list(range(9)))
        assert "not all of them" in page.wait("problem")["text"]


def test_actions_are_not_excluded_from_trees_that_would_be_wrong():
    settings = {"seconds": None, "num_simulations": 20, "options": "solver=True"}
    with tab("tic_tac_toe", seats=["person", "person"], settings=settings) as page:
        page.send("restrict", excluded=[4])
        page.send("hint")
        assert "only be dropped from a plain tree" in page.wait("problem")["text"]


def test_visits_are_even_if_that_is_asked_for():
    settings = {"seconds": None, "num_simulations": 90, "even": True}
    with tab("tic_tac_toe", seats=["person", "person"], settings=settings) as page:
        page.send("hint")
        frame = page.wait("frame", lambda each: each["status"] == "simulations")
        assert {row["visits"] for row in frame["rows"]} == {10}


def test_an_episode_is_reviewed_while_another_state_is_looked_at():
    settings = {"seconds": None, "num_simulations": 60}
    with tab(
        "tic_tac_toe", seats=["person"] * 2, actions=[0, 3, 1, 4, 8, 5], settings=settings
    ) as page:
        page.send("review", on=True)
        page.send("jump", ply=2)
        position = page.wait("position", lambda each: len(each["judgements"]) == 6)
        assert position["ply"] == 2
        mistakes = [each["ply"] for each in position["judgements"] if each["is_mistake"]]
        assert 4 in mistakes  # a win was there
        page.send("save", what="review")
        page.wait("file", lambda each: each["name"] == "tic_tac_toe.html")
        page.send("save", what="sgf")
        assert "SGF is for go" in page.wait("problem")["text"]


def test_a_person_is_asked_again_after_a_mistake():
    settings = {"seconds": None, "num_simulations": 60, "teach": True}
    with tab("tic_tac_toe", seats=["person"] * 2, actions=[0, 3, 1, 4], settings=settings) as page:
        page.send("act", ply=4, action=8)
        lesson = page.wait("position", lambda each: "loses" in each["lesson"])
        assert lesson["lesson"].startswith("9 loses 2.00 against the best action")
        assert lesson["episode"] == [0, 3, 1, 4]
        page.send("act", ply=4, action=2)
        assert page.wait_for_ply(5)["over"]


def test_two_searches_are_compared():
    with tab("tic_tac_toe", seats=["person", "person"]) as page:
        page.send("keep", on=True)
        assert "no search of this state to keep" in page.wait("problem")["text"]
        page.send("hint")
        kept = page.wait("frame", lambda each: each["status"] == "simulations")
        page.send("keep", on=True)
        page.send(
            "configure",
            settings={"num_simulations": 60, "seconds": None, "options": "selection=puct()"},
        )
        page.send("hint")
        found = page.wait("comparison", lambda each: each["comparison"]["simulations"][1] == 60)
        comparison = found["comparison"]
        assert comparison["names"] == ["default options", "selection=puct()"]
        assert comparison["simulations"] == [20, 60]
        visits = {row["text"]: row["visits"][0] for row in comparison["rows"]}
        assert visits == {row["text"]: row["visits"] for row in kept["rows"]}


def test_a_search_is_saved_as_a_page_and_as_a_tree(tmp_path):
    with tab("tic_tac_toe", seats=["person", "person"]) as page:
        page.send("hint")
        page.wait("frame", lambda each: each["status"] == "simulations")
        page.send("save", what="page")
        file = page.wait("file")
        assert file["name"] == "tic_tac_toe.html"
        assert base64.b64decode(file["content"]).startswith(b"<!doctype html>")
        page.send("save", what="tree")
        file = page.wait("file", lambda each: each["name"] == "tic_tac_toe.tree")
        path = tmp_path / "a.tree"
        path.write_bytes(base64.b64decode(file["content"]))
        assert uctree.Tree.load(path).simulations == 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("selection=pukt()", "did you mean puct"),
        ("debug=True", "the studio sets debug= itself"),
        ("threads=1000", "threads=1000, and this machine has"),
        ("evaluator=playout(num_playouts=1000000)", "at most 1,000"),
        ("), x=(1", "cannot read the options"),
        ("second=1", "did you mean seconds"),
        ("root_selection=gumbel()", "needs priors"),
    ],
)
def test_options_that_a_search_cannot_have_are_refused(options, message):
    with tab("tic_tac_toe", seats=["person", "person"]) as page:
        page.send("configure", settings={"options": options})
        assert message in page.wait("problem")["text"]
        page.send("configure", settings={"options": "selection=puct(c=2), solver=True"})
        settings = page.wait("position", lambda each: each["settings"]["options"])["settings"]
        assert settings["options"] == "selection=puct(c=2), solver=True"


# --- what must not happen ------------------------------------------------------------------------


def test_closing_a_tab_ends_its_search_within_a_second():
    with tab("tic_tac_toe", seats=["person", "person"]) as page:
        page.send("think", on=True)
        page.wait("frame")
        began = time.perf_counter()
        page.close()
        assert not page.thread.is_alive()
        assert time.perf_counter() - began < 1.0


def test_a_tab_that_reads_nothing_keeps_the_latest_message_of_each_kind_alone():
    with tab("tic_tac_toe", seats=["person", "person"]) as page:
        page.send("grow", on=True)
        page.send("think", on=True)
        page.wait("frame")
        time.sleep(0.5)
        kinds = [json.loads(each)["kind"] for each in page.outbox.take()]
        assert len(kinds) == len(set(kinds)) <= 6


def hostile_messages(seed, number):
    """Messages that no page sends: broken, of wrong types, out of range, huge."""
    rng = random.Random(seed)
    kinds = ["open", "act", "say", "jump", "sit", "configure", "think", "follow", "grow", "x", None]
    values = [None, -1, 10**30, 1e308, "", "x" * 500, [], [[]], True, ["person"] * 200,
              "__import__('os').system('true')", "<script>alert(1)</script>", "\u0000",
              "../../x.py:y", {"options": "x.py:y", "seconds": -1}]  # fmt: skip
    names = ["kind", "ply", "action", "actions", "text", "seats", "settings", "game", "on"]
    for _ in range(number):
        content = {name: rng.choice(values) for name in rng.sample(names, rng.randrange(1, 5))}
        content["kind"] = rng.choice(kinds)
        if content["kind"] == "open":
            content["game"] = "no such game"
        text = json.dumps(content)
        if rng.random() < 0.3:
            place = rng.randrange(len(text))
            text = (
                text[:place] + rng.choice(["", "\\", '"', "\ud800", "[" * 100]) + text[place + 1 :]
            )
        yield text.encode("utf-8", "replace") if rng.random() < 0.5 else text


def test_ten_thousand_hostile_messages_change_nothing():
    with tab("tic_tac_toe", seats=["person", "person"], actions=[4]) as page:
        before = page.wait_for_ply(1)
        answers = 0
        for message in hostile_messages(seed=1, number=10_000):
            page.session.receive(message)
            answers += page.read().count("problem")
        assert answers > 1_000
        assert page.thread.is_alive()
        while page.session._inbox:
            time.sleep(0.01)
        page.read()
        page.send("think", on=False)
        page.wait("position", lambda each: not each["thinking"])
        page.send("act", ply=1, action=0)
        after = page.wait_for_ply(2)
        assert after["episode"] == [4, 0]
        assert after["seats"] == before["seats"]
        assert after["settings"] == before["settings"]


def test_a_saved_file_replaces_the_game_and_the_episode_goes_on(tmp_path, imports_are_undone):
    file = tmp_path / "race_of_a_session.py"
    file.write_text(GOOD)
    with tab(f"{file}:race", seats=["person", "person"], actions=[0, 1]) as page:
        workshop = page.session.library.workshop
        workshop.changed = page.session.reload
        file.write_text(GOOD.replace("state.total >= 5", "state.total >= 3"))
        workshop.look()
        position = page.wait("position", lambda each: each["over"])
        assert position["episode"] == [0, 1]
        file.write_text(GOOD.replace("return 2", "return 2 // abs(state.total - 1)"))
        workshop.look()
        assert "the next action, 1, fails" in page.wait("problem")["text"]
        doctor = page.wait("doctor", lambda each: each["version"] == 3 and not each["checking"])
        assert doctor["findings"][0]["rule"] == "raises"
        page.send("open", actions=[0], partly=True, seats=["person", "person"])
        broken = page.wait("position", lambda each: each["fault"])
        assert "ZeroDivisionError" in broken["fault"]
        assert "total: 1" in broken["text"]
        page.send("think", on=True)  # there is nothing to search
        assert page.wait("position", lambda each: each["thinking"])["fault"]

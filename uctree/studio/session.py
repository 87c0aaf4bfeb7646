"""A session: one tab, its episode, and a thread that plays and searches for it.

The event loop puts messages into the inbox. The thread takes them one by one; without a message it
moves for the seats of the search, draws outcomes of chance, or searches the state that is looked
at. A message ends a running search within a piece of some hundredths of a second, and the search
continues with its tree afterwards if the state is still the same. So nothing is locked but the
inbox.
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from typing import Any

import numpy as np

from uctree import specs
from uctree.arena.dice import draw_outcome
from uctree.errors import UctreeError
from uctree.game import CHANCE, Game
from uctree.pages.outline import MOST_NODES
from uctree.result import SearchResult
from uctree.studio import frames, messages
from uctree.studio.episode import StudioEpisode
from uctree.studio.library import Library
from uctree.studio.messages import MOST_SIMULATIONS, Message, Settings, read_message
from uctree.studio.outbox import Outbox
from uctree.studio.review import Review, found_by, is_go, judged, review_page, sgf
from uctree.studio.thinking import Thinking, options_of

MOST_WAITING = 100  # messages in an inbox
SECONDS_OF_A_ROLL = 0.4  # before an outcome of chance is drawn, so that it can be seen
NODES_WHILE_SEARCHING, STATES_WHILE_SEARCHING = 3_000, 40
STATES_AT_REST = 300


class Session:
    """One tab. `receive` may be called by any thread; all else happens in the thread of `run`."""

    def __init__(self, library: Library, outbox: Outbox) -> None:
        self.library, self.outbox = library, outbox
        self._inbox: deque[Message | messages.Reload] = deque()
        self._ready = threading.Condition()
        self._is_closed = False
        self.rng = random.Random()
        self.settings, self.options = Settings(), dict[str, Any]()
        self.is_thinking = self.is_hinting = self.is_paused = self.grows = False
        self.is_reviewing = False
        self.review = Review()
        self._tried: Any = None  # an action of a person that is judged before it is taken
        self._lesson = ""  # what is said about the last one
        self._least_visits = 1  # of the nodes that the tab was shown
        self._is_whole = False  # whether the tab was shown all of the tree
        self._is_at_rest = False  # the search of this state has nothing left to do
        self.excluded: frozenset[int] = frozenset()  # actions of this state
        self.kept: tuple[SearchResult, str] | None = None  # to compare with, and its settings
        self._followed: int | None = None  # the action whose variation is shown
        self._explained = messages.Explain()  # the node whose scores are shown
        self.thinking = Thinking(self._is_undisturbed, self._watch)
        self._serial = 0  # of the state that is looked at
        self._paces = {
            "frame": frames.Pace(0.1, share=0.01), "history": frames.Pace(0.5, share=0.005),
            "line": frames.Pace(0.5, share=0.02), "comparison": frames.Pace(0.5, share=0.005),
            "why": frames.Pace(1.0, share=0.01),
            "tree": frames.Pace(1.0, share=0.015),
        }  # fmt: skip
        self._rates: deque[tuple[float, int]] = deque(maxlen=12)
        self.text = library.first
        self._is_open = False  # the first message opens a game, and sets these:
        self.game: Game
        self.episode: StudioEpisode
        self.seats: list[messages.Seat] = []
        self.view: frames.View
        self.outbox.put("hello", {"games": library.about(), "first": library.first})
        if library.workshop is not None:
            self.reload()

    # The thread, and what reaches it from outside.

    def receive(self, raw: bytes | str) -> None:
        """Take a message of the tab."""
        try:
            message = read_message(raw)
        except UctreeError as error:
            self._complain(str(error))
            return
        with self._ready:
            if len(self._inbox) < MOST_WAITING:
                self._inbox.append(message)
                self._ready.notify()
                return
        self._complain(
            f"{MOST_WAITING} messages wait for an answer, and more are not taken; wait for a moment"
        )

    def reload(self) -> None:
        """Let the thread take the game of the file as it is now."""
        with self._ready:
            self._inbox.append(messages.Reload())
            self._ready.notify()

    def close(self) -> None:
        """Let the thread end: its search stops after the current piece."""
        with self._ready:
            self._is_closed = True
            self._ready.notify()

    def run(self) -> None:
        """Serve the tab until `close`."""
        while not self._is_closed:
            if not self._has_work() and not self._inbox:
                self._show_whole_tree()
            message = self._take(None if self._has_work() else self._forever)
            if message is not None:
                self._attempt(message)
            elif not self._is_closed and self._has_work():
                try:
                    self._work()
                except Exception as error:  # rules of a user may fail in any way
                    self._complain(described(error))
                    self._stop_searching()

    _forever = 3600.0  # seconds; a message or `close` ends the wait

    def _take(self, wait: float | None) -> Message | messages.Reload | None:
        """The next message; None if none comes within `wait` seconds."""
        with self._ready:
            if wait is not None and not self._inbox and not self._is_closed:
                self._ready.wait(wait)
            return self._inbox.popleft() if self._inbox and not self._is_closed else None

    def _is_undisturbed(self) -> bool:
        """Whether a search may go on: no message waits, or one that is answered while it runs."""
        if self._is_closed:
            return False
        return not self._inbox or isinstance(self._inbox[0], messages.DURING_A_SEARCH)

    def _attempt(self, message: Message | messages.Reload) -> None:
        """Do what a message says; if that fails, nothing has changed, and the tab is told why."""
        try:
            if not (self._is_open or isinstance(message, (messages.Open, messages.Reload))):
                raise UctreeError("no game is open yet; send open first")
            self._handle(message)
        except Exception as error:  # rules of a user may fail in any way
            self._complain(described(error))
            if not self._is_open and message != messages.Open():
                self._attempt(messages.Open())

    def _complain(self, text: str) -> None:
        self.outbox.put("problem", {"text": text[:4_000]})

    # Messages.

    def _handle(self, message: Message | messages.Reload) -> None:
        """Do what a message says."""
        match message:
            case messages.Open():
                self._open(message)
            case messages.Reload():
                self._reload()
            case messages.Act() | messages.Say():
                self._act(message)
            case messages.Undo():
                persons = {i for i, seat in enumerate(self.seats) if seat == "person"}
                self.episode.undo(persons)
                self.review.forget_after(self.episode.ply)
                self._change()
            case messages.Jump():
                self.episode.jump(message.ply)
                self.is_paused = not self.episode.is_at_end or self.is_paused
                self._change()
            case messages.Resign():
                self._resign()
            case messages.Sit():
                self._sit(message.seats)
            case messages.Configure():
                self.options = options_of(self.game, message.settings)
                self.settings = message.settings
                self._renew()
            case messages.Pause():
                self.is_paused = message.on
                self._show_position()
            case messages.Think():
                self.is_thinking = message.on
                self._show_position()
            case messages.Hint():
                self.is_hinting = True
            case messages.Restrict():
                self._restrict(message.excluded)
            case messages.Keep():
                self._keep(message.on)
            case messages.Review():
                self.is_reviewing = message.on
                self._show_position()
            case messages.Save():
                self._save(message.what)
            case messages.Follow():
                self._followed = message.action
                self._paces["line"].hurry()
                self._show_line()
            case messages.Explain():
                self._explained = message
                self._paces["why"].hurry()
                self._show_reasons()
            case messages.Grow():
                self.grows, self._is_whole = message.on, False
                self._paces["tree"].hurry()

    def _open(self, message: messages.Open) -> None:
        text = self.text if message.game is None else message.game
        game = self.library.game(text)
        episode = StudioEpisode(game)
        for action in message.actions:
            if self._is_closed:
                return
            try:
                episode.take(_given(game, action))
            except Exception as error:
                if not message.partly:
                    raise
                self._complain(f"the next action, {action}, fails: {described(error)}")
                break
        settings = self.settings if message.settings is None else message.settings
        if message.settings is None and text != self.text:
            settings = Settings()
        options = options_of(game, settings)
        seats = _default_seats(game.num_players) if message.seats is None else message.seats
        if len(seats) != game.num_players:
            raise UctreeError(f"{text} has {game.num_players} seats; got {len(seats)}")
        self.text, self.game, self.episode = text, game, episode
        self.settings, self.options, self.seats = settings, options, list(seats)
        self.is_thinking = self.is_hinting = self.is_paused = self.is_reviewing = False
        self.review = Review()
        self._is_open = True
        self._change()

    def _reload(self) -> None:
        """Take the game of the file as it is now, and replay the episode as far as it goes."""
        workshop = self.library.workshop
        if workshop is None:
            return
        self.outbox.put("doctor", {"file": str(workshop.path), **workshop.version.content()})
        if self._is_open and self.text == workshop.text and workshop.version.game is not self.game:
            self._open(
                messages.Open(
                    workshop.text, self.episode.numbers(), self.seats, self.settings, partly=True
                )
            )
            self.is_paused = True
            self._show_position()

    def _act(self, message: messages.Act | messages.Say) -> None:
        """Take the action of a message, unless it was meant for another state."""
        episode = self.episode
        if message.ply != episode.ply:
            return  # a click that came too late: the state has changed, and the tab knows
        if isinstance(message, messages.Say):
            action = self.game.read_action(episode.state, message.text)
        else:
            action = _given(self.game, message.action)
        player = episode.to_play
        if self.settings.teach and player >= 0 and self.seats[player] == "person":
            self.game.step(episode.state, action)  # an illegal action is refused at once
            self._tried = action
            self._lesson = f"looking at {self.game.show_action(episode.state, action)}"
            self._show_position()
            return
        self._play(action)

    def _play(self, action: Any) -> None:
        """Take an action, and look at the state after it."""
        self.review.forget_after(self.episode.ply)
        self.episode.take(action)
        self.is_paused = False
        self._change()

    def _resign(self) -> None:
        if self.episode.to_play < 0 or self.episode.is_over:
            raise UctreeError("only a player who is to move can resign")
        self.episode.resigned = self.episode.to_play
        self._change()

    def _sit(self, seats: list[messages.Seat]) -> None:
        if len(seats) != self.game.num_players:
            raise UctreeError(f"{self.text} has {self.game.num_players} seats; got {len(seats)}")
        self.seats, self.is_paused = list(seats), False
        self._show_position()

    def _restrict(self, actions: list[int]) -> None:
        excluded = frozenset(actions)
        legal = frozenset() if self.game.is_continuous else frozenset(self.view.actions)
        if excluded - legal or (excluded and excluded == legal) or self.episode.to_play < 0:
            raise UctreeError("only legal actions of a player can be excluded, and not all of them")
        self.excluded = excluded
        self._renew()

    def _keep(self, on: bool) -> None:
        """Keep the latest search; those that follow begin with an empty tree."""
        result = self.thinking.result
        if on and (result is None or len(result.edges) == 0):
            raise UctreeError("there is no search of this state to keep; let it think first")
        self.kept = (result, self._label()) if on and result is not None else None
        self._renew()

    def _label(self) -> str:
        """The settings of the search in a few words."""
        words = [self.settings.options or "default options"]
        words += ["even visits"] if self.settings.even else []
        words += [f"without {self.view.actions[each]}" for each in sorted(self.excluded)]
        return ", ".join(words)

    def _save(self, what: str) -> None:
        if what in ("review", "sgf"):
            judgements = self.review.judgements(self.episode)
            text = sgf(self.episode) if what == "sgf" else review_page(self.episode, judgements)
            name, content = frames.file_of(self.game, "sgf" if what == "sgf" else "html", text)
        else:
            result = self.thinking.result
            if result is None or result.status == "terminal":
                raise UctreeError("there is no search of this state to save; let it think first")
            name, content = frames.saved(result, what)
        self.outbox.put("file", {"name": name, "content": content})

    def _change(self) -> None:
        """Show the state that is looked at, which is another one."""
        self.excluded, self.kept = frozenset(), None
        self._tried, self._lesson = None, ""
        self._renew()

    def _renew(self) -> None:
        """Show the state that is looked at, and search it anew."""
        self.thinking.forget()
        self.is_hinting = False
        self._followed = None
        if self._explained.actions is not None:
            self._explained = messages.Explain([])
        self._rates.clear()
        self._serial += 1
        self._is_at_rest, self._least_visits = False, 1
        for kind in ("frame", "history", "line", "why", "comparison", "tree"):
            self.outbox.drop(kind)
        self.view = frames.view_of(self.game, self.episode.state)
        self._show_position()

    # What the thread does by itself.

    def _has_work(self) -> bool:
        if not self._is_open or self.view.fault:
            return False
        if self.is_reviewing:
            return True
        if self.episode.is_over:
            return False
        if self._tried is not None:
            return True
        episode = self.episode
        if episode.to_play == CHANCE:
            return not (self.settings.by_hand or self.is_paused) or self._searches_for_a_person()
        return self._searches_for_a_seat() or self._searches_for_a_person()

    def _searches_for_a_seat(self) -> bool:
        player = self.episode.to_play
        return player >= 0 and self.seats[player] == "search" and not self.is_paused

    def _searches_for_a_person(self) -> bool:
        return (self.is_thinking or self.is_hinting) and not self._is_at_rest

    def _work(self) -> None:
        if self.is_reviewing:
            self._review()
        elif self._tried is not None:
            self._judge()
        elif self.episode.to_play == CHANCE and not (self.settings.by_hand or self.is_paused):
            self._roll()
        elif self._searches_for_a_seat():
            result = self._search(self.settings.num_simulations, self.settings.seconds)
            if result.status != "studio":
                self.review.note(self.episode.ply, result)
                self._play(result.action)
        elif self.is_thinking:
            result = self._search(None, None)
            self._is_at_rest = result.status != "studio"
        else:
            result = self._search(self.settings.num_simulations, self.settings.seconds)
            self.is_hinting = result.status == "studio"

    def _review(self) -> None:
        """Search the next state of the episode that is not known yet."""
        ply = self.review.next_ply(self.episode)
        if ply is None:
            self.is_reviewing = False
        else:
            result = self._look_at(self.episode.states[ply])
            if result is None:
                return
            self.review.note(ply, result)
            self.episode.values[ply] = [float(value) for value in result.value]
        self._show_position()

    def _judge(self) -> None:
        """Take the action that a person tried, unless it is a mistake."""
        episode, action = self.episode, self._tried
        before = self._look_at(episode.state)
        after, _ = self.game.step(episode.state, action)
        behind = None if self.game.is_over(after) else self._look_at(after)
        if before is None or (behind is None and not self.game.is_over(after)):
            return  # a message comes first
        found = None if behind is None else found_by(behind)
        judgement = judged(self.game, episode.ply, episode.state, action, found_by(before), found)
        if not judgement.is_mistake:
            self._play(action)
            return
        self._tried = None
        self._lesson = (
            f"{judgement.text} loses {judgement.loss:.2f} against the best action; try another "
            "one, or turn off asking again after mistakes"
        )
        self._show_position()

    def _look_at(self, state: np.record) -> SearchResult | None:
        """The result of a search of a state that is not shown; None if a message ended it."""
        thinking = Thinking(self._is_undisturbed, lambda result: self._answer_at_once())
        result = thinking.search(
            self.game, state, self.options, seed=self.rng.getrandbits(62),
            num_simulations=self.settings.num_simulations, seconds=self.settings.seconds,
        )  # fmt: skip
        return None if result.status == "studio" else result

    def _roll(self) -> None:
        """Draw an outcome of chance, unless a message comes first."""
        with self._ready:
            if self._ready.wait_for(lambda: self._inbox or self._is_closed, SECONDS_OF_A_ROLL):
                return
        self._play(draw_outcome(self.game, self.episode.state, self.rng))

    def _search(self, num_simulations: int | None, seconds: float | None) -> SearchResult:
        """Search the state, and show what was found."""
        self.outbox.put("busy", {"serial": self._serial})
        for name in ("frame", "line"):
            self._paces[name].hurry()
        self._is_whole = False
        result = self.thinking.search(
            self.game, self.episode.state, self.options, seed=self.rng.getrandbits(62),
            num_simulations=num_simulations, seconds=seconds, excluded=self.excluded,
        )  # fmt: skip
        for name in ("frame", "history", "line", "why", "comparison"):
            self._paces[name].hurry()
        self._show_search(result)
        return result

    def _stop_searching(self) -> None:
        """After an error: nothing is searched again before a message says so."""
        self.is_thinking = self.is_hinting = self.is_reviewing = False
        self.is_paused, self._tried = True, None
        self._show_position()

    # What the tab is shown.

    def _watch(self, result: SearchResult) -> None:
        """Called by the search between two pieces."""
        self._answer_at_once()
        self._show_search(result)

    def _answer_at_once(self) -> None:
        """Answer messages that do not end a search."""
        while self._inbox and isinstance(self._inbox[0], messages.DURING_A_SEARCH):
            self._attempt(self._inbox.popleft())

    def _show_search(self, result: SearchResult) -> None:
        """Show the parts of a search that are due."""
        self._show_frame(result)
        self._show_history(result)
        self._show_line()
        self._show_reasons()
        self._show_comparison(result)
        self._show_tree()

    def _show_position(self) -> None:
        self._is_at_rest = False
        self.outbox.put("position", {
            "serial": self._serial, "game": self.text, "name": self.game.name,
            "seats": self.seats, "settings": self.settings, "thinking": self.is_thinking,
            "paused": self.is_paused, "reviewing": self.is_reviewing, "lesson": self._lesson,
            "judgements": self.review.judgements(self.episode), "isGo": is_go(self.game),
            "excluded": sorted(self.excluded),
            "kept": None if self.kept is None else self.kept[1], "episode": self.episode.numbers(),
            **frames.episode_content(self.episode), **self.view.content(),
        })  # fmt: skip

    def _show_frame(self, result: SearchResult) -> None:
        pace = self._paces["frame"]
        if not pace.is_due():
            return
        simulations = self.thinking.simulations
        self._rates.append((time.perf_counter(), simulations))
        (began, first), (now, last) = self._rates[0], self._rates[-1]
        rate = (last - first) / (now - began) if now > began else 0.0
        self.episode.values[self.episode.ply] = [float(value) for value in result.value]
        self.outbox.put("frame", {
            "serial": self._serial, "status": result.status,
            "simulations": simulations, "most": MOST_SIMULATIONS, "rate": rate,
            "bytes": sum(tree.num_bytes for tree in result.trees),
            "depth": result.tree.mean_depth, **frames.candidates(result, self.view),
        })  # fmt: skip
        pace.done()

    def _show_history(self, result: SearchResult) -> None:
        pace = self._paces["history"]
        if pace.is_due() and len(result.edges):
            rows = frames.curves(result)
            texts = [frames.text_of(result, self.view, row) for row in rows]
            history = self.thinking.history(np.array(rows)) | {"texts": texts}
            self.outbox.put("history", {"serial": self._serial, "history": history})
            pace.done()

    def _show_line(self) -> None:
        """Show the variation of the action that the tab follows, or of the one to play."""
        result, pace = self.thinking.result, self._paces["line"]
        if result is None or not pace.is_due():
            return
        name = self._followed
        if name is None and result.action is not None:
            name = frames.name_of(result, result.action)
        line = None if name is None else frames.variation(result, self.view, name)
        if line is not None:
            self.outbox.put("line", {"serial": self._serial, "line": line})
        pace.done()

    def _show_reasons(self) -> None:
        """Show the terms of the scores at the node that the tab asks about."""
        result, pace, asked = self.thinking.result, self._paces["why"], self._explained
        if result is None or asked.actions is None or not pace.is_due():
            return
        samples = self.thinking.samples()
        earlier = [sample for number, sample in samples if number <= (asked.simulations or 0)]
        sample = earlier[-1] if earlier and not asked.actions else None
        content = frames.reasons(result, self.options, asked.actions, sample, self.thinking.before)
        moments = [number for number, _ in samples]
        now = None if sample is None else moments[len(earlier) - 1]
        self.outbox.put("why", {
            "serial": self._serial, "moments": moments, "moment": now, "why": content,
        })  # fmt: skip
        pace.done()

    def _show_comparison(self, result: SearchResult) -> None:
        """Show how the search differs from the one that was kept."""
        pace = self._paces["comparison"]
        if self.kept is not None and pace.is_due() and len(result.edges):
            content = frames.comparison(*self.kept, result, self._label())
            self.outbox.put("comparison", {"serial": self._serial, "comparison": content})
            pace.done()

    def _show_tree(self) -> None:
        """Show the most visited nodes of the tree, if the tab wants to see it grow."""
        pace = self._paces["tree"]
        if self.grows and pace.is_due():
            self._send_tree(NODES_WHILE_SEARCHING, STATES_WHILE_SEARCHING, self._least_visits)
            pace.done()

    def _show_whole_tree(self) -> None:
        """Show all nodes that a page can hold, once nothing is searched any more."""
        if self._is_open and self.grows and not self._is_whole:
            self._is_whole = True
            self._send_tree(MOST_NODES, STATES_AT_REST)

    def _send_tree(
        self, most_nodes: int, most_states: int, least_visits: int | None = None
    ) -> None:
        result = self.thinking.result
        if result is None or self.game.is_continuous or len(result.edges) == 0:
            return
        content = frames.tree_content(result, most_nodes, most_states, least_visits)
        self._least_visits = content["leastVisits"]
        self.outbox.put("tree", {"serial": self._serial, "toPlay": self.episode.to_play} | content)


def described(error: Exception) -> str:
    """The text of an error for a person, with the line of the user's file that raised it."""
    return f"{specs.place(error)}{specs.reason(error)}"


def _default_seats(num_players: int) -> list[messages.Seat]:
    """A person, and the search for all others."""
    return ["person", *(["search"] * (num_players - 1))]  # type: ignore[list-item]


def _given(game: Game, action: int | list[float]) -> Any:
    """An action of a message; UctreeError if it is of the wrong kind."""
    if isinstance(action, int) == game.is_continuous:
        kind = "a list of numbers" if game.is_continuous else "a number"
        raise UctreeError(f"an action of {game.name} is {kind}; got {str(action)[:100]}")
    return action

"""Results of all kinds of searches, and a reader of their pages."""

from __future__ import annotations

import base64
import html.parser
import json

import numpy as np

import uctree
from uctree import games, selection
from uctree.pages import result_page

SCRIPT = "</script><script>alert(1)</script>"


def search(name="connect_four", actions=(), **options):
    game = getattr(games, name)()
    given = {"num_simulations": 1_000, "seed": 1} | options
    return uctree.search(game, game.play(actions), **given)


def hostile_game():
    """Tic-tac-toe whose texts all try to break out of the page."""
    source = games.tic_tac_toe()
    return uctree.Game(
        source.dtype, source.rules.legal, source.rules.step, num_players=2, num_actions=9,
        name=f"{{{{script}}}}{SCRIPT}", payoff_range=(-1, 1), geometry=("grid", 3, 3),
        show=lambda state: "<b> & .\n. . .\n. . ." + SCRIPT,
        show_action=lambda state, action: f'{SCRIPT}" onclick="alert({action})',
    )  # fmt: skip


Choosing = np.dtype([("chosen", np.int32, 2), ("ply", np.int8), ("to_play", np.int8)])


def many_actions_game():
    """Each player chooses a number below 10,000; the larger one wins."""

    def legal(state, actions):
        for action in range(10_000):
            actions[action] = action
        return 10_000

    def step(state, action, reward):
        state.chosen[state.to_play] = action
        state.ply += 1
        state.to_play = uctree.OVER if state.ply == 2 else 1
        if state.ply == 2 and state.chosen[0] != state.chosen[1]:
            best = 0 if state.chosen[0] > state.chosen[1] else 1
            reward[best], reward[1 - best] = 1, -1

    return uctree.Game(
        Choosing, legal, step, num_players=2, num_actions=10_000, payoff_range=(-1, 1)
    )


class Reader(html.parser.HTMLParser):
    """The elements of a page; checks that they are closed in the right order."""

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
    """The elements of a result's page, and the data of its script."""
    reader = Reader(result_page.page(result, **options))
    (data,) = [text for text in reader.texts["script"] if text.startswith("{")]
    return reader, json.loads(data)


def numbers(text, dtype):
    return np.frombuffer(base64.b64decode(text), dtype)


def rising(state, values, priors):
    for action in range(7):
        priors[action] = 1.0 + action


FEW = {"num_simulations": 60}  # plain Python is enough
SEARCHES = {
    "seconds": lambda: search(num_simulations=None, seconds=0.05),
    "one simulation": lambda: search(num_simulations=1),
    "threads": lambda: search(threads=2, parallel="root"),
    "threads in one tree": lambda: search(threads=2, parallel="tree"),
    "solver": lambda: search("tic_tac_toe", [0, 4], solver=True, num_simulations=20_000),
    "chance": lambda: search("pig"),
    "chance at the root": lambda: search("pig", [0]),
    "2048": lambda: search("twenty48", games.twenty48().random_episode(1).actions[:6], **FEW),
    "open loop": lambda: search("pig", open_loop=True, **FEW),
    "transpositions": lambda: search("othello", transpositions=True, **FEW),
    "transpositions and threads": lambda: search(transpositions=True, threads=2, parallel="root"),
    "over": lambda: search("tic_tac_toe", [0, 3, 1, 4, 2]),
    "three players": lambda: three_players(**FEW),
    "priors": lambda: search(evaluator=rising),
    "Gumbel": lambda: search(
        evaluator=rising, root_selection=selection.gumbel(num_considered=4), num_simulations=64
    ),
    "widening": lambda: search("hex", widening=selection.widening(), **FEW),
    "paranoid": lambda: three_players(opponents="paranoid", **FEW),
    "little memory": lambda: search(max_memory="60kB", num_simulations=20_000),
    "from a tree": lambda: search(tree=search().tree),
    "10,000 actions": lambda: ten_thousand(),
}


IN_PYTHON = {
    "2048", "open loop", "transpositions", "three players", "Gumbel", "widening", "paranoid",
}  # fmt: skip


def result_of(kind, monkeypatch):
    """The result of a search of this kind; in plain Python if it needs a kernel of its own."""
    if kind in IN_PYTHON:
        monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    return SEARCHES[kind]()


def three_players(**options):
    game = games.n_in_a_row(rows=4, cols=4, length=3, num_players=3)
    return uctree.search(game, game.start(), seed=1, **options)


def ten_thousand(num_simulations=12_000):
    game = many_actions_game()
    return uctree.search(game, game.start(), num_simulations=num_simulations, seed=1)

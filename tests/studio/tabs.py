"""A tab without a browser: a session in its thread, and what it was sent."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager

from uctree.studio.library import Library
from uctree.studio.outbox import Outbox
from uctree.studio.session import Session

PATIENCE = 30.0  # seconds


class Tab:
    """Sends messages to a session and keeps the latest one of each kind that it sent back."""

    def __init__(self, game=None):
        self._something = threading.Event()
        self.outbox = Outbox(self._something.set)
        self.session = Session(Library(game), self.outbox)
        self.thread = threading.Thread(target=self.session.run, daemon=True)
        self.thread.start()
        self.latest = {}

    def send(self, kind, **content):
        self.session.receive(json.dumps({"kind": kind, **content}))

    def read(self):
        """Take what has come; the kinds of it."""
        messages = [json.loads(each) for each in self.outbox.take()]
        self.latest |= {each["kind"]: each for each in messages}
        return [each["kind"] for each in messages]

    def wait(self, kind, condition=lambda message: True):
        """The first message of a kind from now on, or the latest one, for which something holds."""
        deadline = time.monotonic() + PATIENCE
        while True:
            arrived = self.read()
            message = self.latest.get(kind)
            if message is not None and condition(message):
                return message
            problem = self.latest.get("problem", {}).get("text")
            assert kind == "problem" or "problem" not in arrived, problem
            assert time.monotonic() < deadline, f"no such {kind}; {problem}"
            self._something.wait(0.05)
            self._something.clear()

    def wait_for_ply(self, ply):
        return self.wait("position", lambda position: position["ply"] == ply)

    def close(self):
        self.session.close()
        self.thread.join(PATIENCE)


@contextmanager
def tab(game=None, **opened):
    """A tab with an episode; searches are short unless `settings` say otherwise."""
    made = Tab(game)
    given = {"settings": {"seconds": None, "num_simulations": 20}} | opened
    made.send("open", **({} if game is None else {"game": game}) | given)
    try:
        made.wait("position")
        yield made
    finally:
        made.close()

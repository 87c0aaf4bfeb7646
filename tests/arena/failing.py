"""Agents that fail, each in its own way; below them some that are only slow."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time

from uctree.arena import RandomAgent
from uctree.arena.external import Resigned

FAILING = "tests/arena/failing.py"  # this file, as the text of an agent names it


class _Fails(RandomAgent):
    """Plays at random until it has acted `after` times in one game, then fails."""

    def __init__(self, after=1):
        self.after = after

    def begin(self, game, player, seed):
        super().begin(game, player, seed)
        self.acted = 0

    def act(self, state):
        self.acted += 1
        return self.fail(state) if self.acted > self.after else super().act(state)


class Raises(_Fails):
    def fail(self, state):
        raise ZeroDivisionError("one over zero")


class Leaves(_Fails):
    def fail(self, state):
        raise SystemExit(3)


class Cheats(_Fails):
    def fail(self, state):
        return 10_000


class Babbles(_Fails):
    def fail(self, state):
        return "the middle"


class Resigns(_Fails):
    """Resigns. `made` counts its instances in this process."""

    made = 0

    def __init__(self, after=1):
        super().__init__(after)
        Resigns.made += 1

    def fail(self, state):
        raise Resigned(self.game.to_play(state))


class Dies(_Fails):
    def fail(self, state):
        os.kill(os.getpid(), signal.SIGKILL)


class Hangs(_Fails):
    def fail(self, state):
        time.sleep(600)


class Dawdles(_Fails):
    def fail(self, state):
        time.sleep(0.3)
        return self.game.legal(state)[0]


class Scribbles(_Fails):
    """Writes into the states that it receives."""

    def fail(self, state):
        action = self.game.legal(state)[0]
        state["to_play"] = 1 - state["to_play"]
        return action

    def watch(self, state, action):
        state["to_play"] = 7


class NeverBegins(RandomAgent):
    def begin(self, game, player, seed):
        raise OSError("no such program")


class LooksAway(RandomAgent):
    def watch(self, state, action):
        raise RuntimeError("cannot look")


class Interrupts(_Fails):
    """Raises KeyboardInterrupt in its third game."""

    begun = 0

    def begin(self, game, player, seed):
        super().begin(game, player, seed)
        Interrupts.begun += 1

    def act(self, state):
        if Interrupts.begun == 3:
            raise KeyboardInterrupt
        return RandomAgent.act(self, state)


class Slow(RandomAgent):
    """Sleeps before each action, and writes its process id to a folder."""

    def __init__(self, seconds=0.02, folder=None):
        self.seconds = seconds
        if folder is not None:
            open(os.path.join(folder, str(os.getpid())), "w").close()

    def act(self, state):
        time.sleep(self.seconds)
        return super().act(state)


class Warms(RandomAgent):
    """Sleeps before an episode only."""

    def begin(self, game, player, seed):
        super().begin(game, player, seed)
        time.sleep(0.6)


class Stumbles(RandomAgent):
    def prepare(self, game):
        raise OSError("no such file")


class Sulks:
    """Refuses games of more than two players."""

    def prepare(self, game):
        if game.num_players > 2:
            raise ValueError("two players at most")

    def begin(self, game, player, seed):
        self.game = game

    def act(self, state):
        return self.game.legal(state)[0]


class Watches(RandomAgent):
    """Records all calls of `watch`."""

    def begin(self, game, player, seed):
        super().begin(game, player, seed)
        self.player, self.seen, self.closed = player, [], False

    def watch(self, state, action):
        self.seen.append((self.game.key(state), action))

    def close(self):
        self.closed = True


class Multiplies(RandomAgent):
    """Starts another process for each action."""

    def act(self, state):
        thinker = multiprocessing.get_context("spawn").Process(target=os.getpid)
        thinker.start()
        thinker.join()
        return super().act(state)


class NoAgent:
    pass

"""The doctor for problems: whether a world of Python objects keeps the contract of `Problem`.

It walks through the problem at random, calls everything twice, and compares states before and
after. `check` in `checkup.py` calls it for everything that is no `Game`.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from uctree.doctor.contract import ERROR, PROBLEM_RULES, Finding, Report
from uctree.errors import BrokenGame
from uctree.game import CHANCE
from uctree.planning.images import difference, image
from uctree.planning.problem import (
    Problem,
    Question,
    as_actions,
    as_outcomes,
    as_value,
    fresh_proposals,
    is_awaitable,
    values_of,
)
from uctree.planning.world import World
from uctree.result import described_action

MOST_PLIES = 60  # of an episode
MOST_CALLS = 20_000  # of functions, in all


def check_problem(world: World, episodes: int, seed: int) -> Report:
    """The report on a problem, from random episodes."""
    began = time.perf_counter()
    walk = _Walk(world.problem)
    rng, played = random.Random(seed), 0
    try:
        for _ in range(episodes):
            played += 1
            walk.episode(world.start, world.to_play, rng)
            if walk.num_calls > MOST_CALLS:
                break
        walk.look_at_ends()
    except _Enough:
        pass
    finally:
        walk.loop.close()
    order = {rule: i for i, rule in enumerate(PROBLEM_RULES)}
    findings = sorted(walk.findings.values(), key=lambda f: (f.severity != ERROR, order[f.rule]))
    return Report(
        world.problem.name, tuple(findings), _rules_for(world.problem), played, walk.num_plies,
        None, time.perf_counter() - began,
    )  # fmt: skip


def _rules_for(problem: Problem) -> tuple[str, ...]:
    """The rules that are checked in this problem."""
    conditions = {
        "outcomes": problem.chance is not None,
        "value-form": problem.value is not None or problem.values is not None,
        "key-holds": problem.key is not None,
        "dump-and-load": problem.dump is not None,
        "last-mover-wins": problem.num_players > 1,
        "every-player-moves": problem.num_players > 1,
    }
    return tuple(rule for rule in PROBLEM_RULES if conditions.get(rule, True))


class _Enough(Exception):
    """Nothing further can be checked."""


class _Walk:
    """Random episodes, and what was found in them."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.loop = problem, asyncio.new_event_loop()
        self.findings: dict[str, Finding] = {}
        self.num_calls = self.num_plies = self.num_ended = 0
        self.path: list[Any] = []
        self.movers: set[int] = set()
        self.winners: list[tuple[int, int]] = []  # who won, and who moved last
        self.by_key: dict[Any, tuple[Any, ...]] = {}
        self.has_paid = False

    def found(self, rule: str, message: str) -> None:
        """Add a finding, unless a shorter path showed it before."""
        severity, _, cure = PROBLEM_RULES[rule]
        before = self.findings.get(rule)
        if before is None or len(self.path) < len(before.actions):
            actions = tuple(described_action(action) for action in self.path)
            self.findings[rule] = Finding(rule, severity, message, actions, cure)

    @contextmanager
    def noted(self, rule: str) -> Iterator[None]:
        """Turn an exception into a finding, and end the walk: what follows has no basis."""
        try:
            yield
        except _Enough:
            raise
        except Exception as error:
            is_ours = isinstance(error, BrokenGame)
            self.found(rule, str(error) if is_ours else f"{type(error).__name__}: {error}")
            raise _Enough from error

    def call(self, name: str, *arguments: Any) -> Any:
        """What a function of the problem returns, async or not."""
        self.num_calls += 1
        with self.noted("raises"):
            given = getattr(self.problem, name)(*arguments)
            return self.loop.run_until_complete(_awaited(given)) if is_awaitable(given) else given

    def episode(self, state: Any, to_play: int, rng: random.Random) -> None:
        """Play at random to the end, or for some plies."""
        self.path, returns = [], np.zeros(self.problem.num_players)
        kept = [(state, image(state))]
        last = to_play
        for _ in range(MOST_PLIES):
            self.movers.add(to_play)
            choices, weights = self.choices(state, to_play)
            if to_play >= 0:
                self.look_at_value(state)
                self.look_at_dump(state, to_play, choices)
            if not choices:
                break
            action = rng.choices(choices, weights)[0]
            after = self.step(state, action, to_play)
            self.look_at_key(state, to_play, choices, action, after)
            self.path.append(action)
            self.num_plies += 1
            self.look_at_states(kept)
            last = to_play if to_play >= 0 else last
            state, reward, to_play, over = after
            returns += reward
            self.has_paid |= bool(np.any(reward))
            if over:
                break
            kept = [*kept[-4:], (state, image(state))]
        else:
            return
        self.num_ended += 1
        best = np.flatnonzero(returns == returns.max())
        if len(best) == 1 and self.problem.num_players > 1:
            self.winners.append((int(best[0]), last))

    def choices(self, state: Any, to_play: int) -> tuple[tuple[Any, ...], Any]:
        """The actions or outcomes of a state, asked for twice."""
        before, problem = image(state), self.problem
        found: list[tuple[Any, Any]] = []
        name = "chance" if to_play == CHANCE else "actions" if problem.actions else "propose"
        if name == "chance" and problem.chance is None:
            self.found("outcomes", "to_play is CHANCE, and the Problem has no chance=")
            raise _Enough
        arguments = (state, (), 1) if name == "propose" else (state,)
        for _ in range(2):
            given = self.call(name, *arguments)
            with self.noted("outcomes" if name == "chance" else "actions-form"):
                if name == "chance":
                    found.append(as_outcomes(given))
                elif name == "actions":
                    found.append((as_actions(given, problem.priors)[0], None))
                else:
                    asked = Question(0, 0, 0, state, tried=(), wanted=1)
                    found.append((fresh_proposals(given, asked), None))
        if name != "propose" and found[0] != found[1]:
            self.found("same-again", f"{name} returned {found[0]}, and then {found[1]}")
        self.compare(before, state, f"{name} changed the state that it was given")
        return found[0]

    def step(self, state: Any, action: Any, to_play: int) -> tuple[Any, ...]:
        """What a step leads to, made twice."""
        before, images, found = image(state), [], []
        for _ in range(2):
            given = self.call("step", state, action)
            with self.noted("step-form"):
                asked = Question(0, 0, 0, state, action, to_play=to_play)
                found.append(self.problem.checked_step(given, asked))
            images.append((image(found[-1][0]), *found[-1][1:]))
            if found[-1][0] is state and image(state) != before:
                self.found(
                    "keeps-its-argument", f"step(state, {action!r}) changed the state and returned "
                    "it; it must return another one",
                )  # fmt: skip
                raise _Enough
            self.compare(before, state, f"step(state, {action!r}) changed the state it was given")
        if images[0] != images[1]:
            self.found("same-again", f"two calls of step(state, {action!r}) differ: "
                       f"{difference(*images)}")  # fmt: skip
        return found[0]

    def compare(self, before: Any, state: Any, message: str) -> None:
        after = image(state)
        if before != after:
            self.found("keeps-its-argument", f"{message}: {difference(before, after)}")
            raise _Enough

    def look_at_states(self, kept: list[tuple[Any, Any]]) -> None:
        """Check that earlier states are as they were."""
        for state, before in kept:
            if image(state) != before:
                self.found("shares-nothing", "a later step changed an earlier state: "
                           f"{difference(before, image(state))}")  # fmt: skip
                raise _Enough

    def look_at_value(self, state: Any) -> None:
        problem, found = self.problem, []
        if problem.value is None and problem.values is None:
            return
        before = image(state)
        for _ in range(2):
            if problem.value is not None:
                given = self.call("value", state)
            else:
                several = self.call("values", [state])
                with self.noted("value-form"):
                    given = values_of(several, 1)[0]
            with self.noted("value-form"):
                found.append(as_value(given, problem.num_players))
        self.compare(before, state, "value changed the state that it was given")
        if found[0] != found[1]:
            self.found("same-again", f"the value is {found[0]}, and then {found[1]}")
        if problem.payoff_range is not None:
            span = np.broadcast_to(np.asarray(problem.payoff_range, float),
                                   (problem.num_players, 2))  # fmt: skip
            for value, (low, high) in zip(found[0], span.tolist(), strict=True):
                if not low <= value <= high:
                    self.found("value-in-range", f"a value is {value}; payoff_range is "
                               f"{low} to {high}")  # fmt: skip

    def look_at_key(
        self, state: Any, to_play: int, choices: Any, action: Any, after: tuple[Any, ...]
    ) -> None:
        """Compare what is known of states with the same key."""
        if self.problem.key is None or to_play < 0:
            return
        with self.noted("key-holds"):
            key = self.problem.key_of(state)
            if hash(key) != hash(self.problem.key_of(state)):
                self.found("key-holds", f"the key of a state is {key!r}, and then another one")
        now = to_play, list(choices)
        before = self.by_key.setdefault((key, "state"), now)
        if before != now:
            self.found("key-holds", f"two states with the key {key!r} differ: to_play and actions "
                       f"are {before} and {now}")  # fmt: skip
        led = (tuple(after[1]), after[2], after[3], None if after[3] else self._key_text(after[0]))
        known = self.by_key.setdefault((key, action), led)
        if known != led:
            self.found("key-holds", f"in two states with the key {key!r}, {action!r} leads to "
                       f"{known} and to {led} (reward, to_play, over, key)")  # fmt: skip

    def _key_text(self, state: Any) -> str:
        with self.noted("key-holds"):
            return repr(self.problem.key_of(state))
        raise AssertionError("unreachable")

    def look_at_dump(self, state: Any, to_play: int, choices: Any) -> None:
        """Write a state as JSON and read it back."""
        problem = self.problem
        if problem.dump is None or problem.load is None:
            return
        with self.noted("dump-and-load"):
            data = problem.dump(state)
            text = json.dumps(data, allow_nan=False)
            again = problem.load(json.loads(text))
            twice = json.dumps(problem.dump(again), allow_nan=False)
        if twice != text:
            self.found("dump-and-load", f"a state is written as {text:.200}, and after load= as "
                       f"{twice:.200}")  # fmt: skip
        if problem.actions is not None:
            with self.noted("dump-and-load"):
                listed, _ = self.choices(again, to_play)
            if listed != choices:
                self.found("dump-and-load", f"a state has the actions {choices}, and after load= "
                           f"{listed}")  # fmt: skip

    def look_at_ends(self) -> None:
        """What all episodes together show."""
        self.path = []
        if self.num_ended == 0:
            self.found("ends", f"none of the episodes ended within {MOST_PLIES} actions")
        if self.num_ended and not self.has_paid:
            self.found("pays", "no step paid anybody anything")
        never = set(range(self.problem.num_players)) - self.movers
        if never and self.problem.num_players > 1:
            self.found("every-player-moves", f"players {sorted(never)} were never to move")
        if len(self.winners) >= 5 and all(winner != last for winner, last in self.winners):
            self.found(
                "last-mover-wins", f"in {len(self.winners)} episodes, the player who moved last "
                "was never the one who was paid most",
            )  # fmt: skip


async def _awaited(given: Any) -> Any:
    return await given

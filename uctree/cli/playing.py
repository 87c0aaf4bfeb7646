"""The command `play`: an episode in the terminal."""

from __future__ import annotations

import contextlib
import functools
import math
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

import uctree
from uctree import specs
from uctree.cli import app as shared
from uctree.cli.app import (
    NO_BUDGET,
    NO_METHOD,
    Budget,
    Method,
    app,
    checked_budget,
    count,
    search_options,
    search_shown,
)
from uctree.cli.learning import agent_source, kept_network, load_network
from uctree.errors import IllegalAction, UctreeError
from uctree.game import CHANCE, Game

HINT, UNDO, QUIT = "hint", "undo", "quit"


@app.command
def play(
    game: str,
    /,
    *,
    player: int | Literal["none"] | None = None,
    against: str | None = None,
    run: Path | None = None,
    budget: Budget = NO_BUDGET,
    method: Method = NO_METHOD,
    seed: int | None = None,
) -> None:
    """An episode in the terminal: you against the search, or the search against another program.

    Args:
        game: built-in name, name:arguments, or file.py:name.
        player: the seat you take, from 0 on; none to watch. 0 by default, or none with --against.
        against: who has the other seats instead of the search: an agent as in `uctree match`, say
            gnugo, random or my_agents.py:Clever. If you do not play, the search has seat 0.
        run: the folder of a run; its network values the leaves of the search. A network comes with
            connect_four, which is used where nothing is said of the search.
        seed: decides chance outcomes and the search; another one each time by default.
    """
    chosen, options = specs.read_game(game), search_options(method)
    learned = None
    if run is not None:
        if "evaluator" in options:
            raise UctreeError("--run and --evaluator both say what a leaf is worth; give one")
        learned = load_network(run, chosen)
    elif method == NO_METHOD:
        learned = kept_network(chosen)
    if learned is not None:
        options["evaluator"], iteration = learned
    budget = checked_budget(budget, Budget(seconds=shared.DEFAULT_SECONDS))
    if player is None:
        player = 0 if against is None else "none"
    person = None if player == "none" else player
    if person is not None and not 0 <= person < chosen.num_players:
        raise UctreeError(
            f"--player must be 0 to {chosen.num_players - 1}, or none to watch; got {person}"
        )
    if seed is None:
        seed = random.randrange(1_000_000)
    with contextlib.closing(_Guests(chosen, against, person or 0, seed)) as guests:
        _greet(chosen, person, guests, budget, seed)
        if learned is not None:
            source = "that comes with uctree" if run is None else f"of {run}"
            print(f"The search asks the network {source}, iteration {iteration}.")
        try:
            _play_episode(chosen, person, guests, budget, seed, options)
        except (KeyboardInterrupt, EOFError):
            print("\nGood-bye.")


class _Guests:
    """The agents of `--against`, one for each seat but one; none where nobody was asked."""

    def __init__(self, game: Game, against: str | None, other: int, seed: int) -> None:
        self.game, self.text, self.seed = game, against, seed
        self.agents: dict[int, Any] = {}
        if against is not None:
            from uctree.arena import make_agent
            from uctree.arena.episodes import refuse_vectors

            refuse_vectors(game)
            seats = [seat for seat in range(game.num_players) if seat != other]
            source = agent_source(against, game)
            self.agents = {seat: make_agent(source) for seat in seats}
        self.begin([])

    def begin(self, plies: list[_Ply]) -> None:
        """Let them know of an episode so far, from its start."""
        from uctree.arena.agents import derived_seed

        for seat, agent in self.agents.items():
            self._ask(seat, agent.begin, self.game, seat, derived_seed(self.seed, seat))
        for ply in plies:
            self.watch(ply.state, ply.action)

    def watch(self, state: np.record, action: Any) -> None:
        for seat, agent in self.agents.items():
            watch = getattr(agent, "watch", lambda *_: None)
            self._ask(seat, watch, self.game.copy(state), action)

    def action(self, state: np.record, ply: int) -> int:
        """What the one to play takes; EOFError where it resigns."""
        from uctree.arena.episodes import checked_action
        from uctree.arena.external import Resigned

        seat = self.game.to_play(state)
        try:
            answer = self._ask(seat, self.agents[seat].act, self.game.copy(state))
        except Resigned:
            print(f"player {seat} ({self.text}) resigns")
            raise EOFError from None
        try:
            action = checked_action(self.game, state, answer, ply)
        except IllegalAction as error:
            raise UctreeError(f"{self.text} failed as player {seat}: {error}") from None
        print(f"player {seat} ({self.text}) plays {self.game.show_action(state, action)}")
        return action

    def close(self) -> None:
        for agent in self.agents.values():
            getattr(agent, "close", lambda: None)()

    def _ask(self, seat: int, function: Callable[..., Any], *arguments: Any) -> Any:
        from uctree.arena.external import Resigned

        try:
            return function(*arguments)
        except (UctreeError, Resigned):
            raise
        except Exception as error:
            kind = type(error).__name__
            raise UctreeError(f"{self.text} failed as player {seat}: {kind}: {error}") from error


@dataclass(frozen=True)
class _Ply:
    """One action of an episode."""

    state: np.record  # in which it was taken
    action: Any
    reward: np.ndarray  # [num_players], what it paid


def _play_episode(
    game: Game, person: int | None, guests: _Guests, budget: Budget, seed: int,
    options: dict[str, Any],
) -> None:  # fmt: skip
    """Play to the end; EOFError or KeyboardInterrupt where someone leaves."""
    state, plies = game.start(), list[_Ply]()
    while not game.is_over(state) and len(plies) < (game.max_plies or math.inf):
        to_play, ply = game.to_play(state), len(plies)
        search_here = functools.partial(
            search_shown, game, state, budget, seed=seed + ply, options=options
        )
        if to_play == CHANCE:
            action = _draw_outcome(game, state, seed, ply)
        elif to_play == person:
            answer = _ask_action(game, state, search_here)
            if answer is None:
                state = _take_back(game, state, plies, person)
                guests.begin(plies)
                continue
            action = answer
        else:
            if person is None:
                print(f"\n{game.show(state)}\n")
            is_guest = to_play in guests.agents
            action = guests.action(state, ply) if is_guest else _searched(game, state, search_here)
        after, reward = game.step(state, action)
        plies.append(_Ply(state, action, reward))
        guests.watch(state, action)
        state = after
    _announce_end(game, person, state, plies)


def _greet(game: Game, person: int | None, guests: _Guests, budget: Budget, seed: int) -> None:
    limits = [] if budget.simulations is None else [f"{budget.simulations:,} simulations"]
    limits += [] if budget.seconds is None else [f"{budget.seconds:g} s"]
    print(f"{game.name}, {' or '.join(limits)} an action, seed {seed}")
    if person is not None:
        against = f" against {guests.text}" if guests.agents else ""
        print(f"You are player {person}{against}. Type an action, {HINT}, {UNDO} or {QUIT}.")
    elif guests.agents:
        print(f"The search is player 0 against {guests.text}.")
    else:
        print("The search plays for everyone.")


def _draw_outcome(game: Game, state: np.record, seed: int, ply: int) -> int:
    """A chance outcome; always the same at a ply, so that `undo` does not roll again."""
    from uctree.arena.dice import draw_outcome

    outcome = draw_outcome(game, state, random.Random(f"{seed} {ply}"))
    print(f"chance: {game.show_action(state, outcome)}")
    return outcome


def _ask_action(
    game: Game, state: np.record, search_here: Callable[[], uctree.SearchResult]
) -> Any:
    """What the person plays; None where they want to take back; EOFError where they quit."""
    print(f"\n{game.show(state)}\n")
    if game.is_continuous:
        listed = " to ".join(game.show_action(state, corner) for corner in game.box(state))
    else:
        listed = " ".join(game.show_action(state, action) for action in game.legal(state))
    choices = f" ({listed})" if len(listed) <= 60 else ""
    while True:
        text = _ask(f"player {game.to_play(state)}, your action{choices}: ")
        if text == QUIT:
            raise EOFError
        if text == UNDO:
            return None
        if text == HINT:
            print(f"\n{_uninterrupted(search_here())}\n")
        elif text:
            try:
                return game.read_action(state, text)
            except IllegalAction as error:
                print(f"{error}; or {HINT}, {UNDO}, {QUIT}")


def _ask(prompt: str) -> str:
    """A line from the person; EOFError where there is no more."""
    if sys.stdin.isatty():
        # Loaded, it lets `input` edit lines.
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401
        return input(prompt).strip()
    text = input(prompt).strip()
    print(text)  # so that the output reads like a session
    return text


def _take_back(game: Game, state: np.record, plies: list[_Ply], person: int) -> np.record:
    """The state of the person's previous decision; `plies` loses what came after it."""
    for ply in reversed(range(len(plies))):
        earlier = plies[ply].state
        if game.to_play(earlier) == person:
            del plies[ply:]
            return earlier
    print("There is nothing to undo.")
    return state


def _searched(game: Game, state: np.record, search_here: Callable[[], uctree.SearchResult]) -> int:
    """What the search plays."""
    result = _uninterrupted(search_here())
    player = game.to_play(state)
    assert result.action is not None, "a player is to play"
    print(
        f"player {player} plays {game.show_action(state, result.action)}   "
        f"(expects {result.value[player]:+.3f} after {result.simulations:,} simulations)"
    )
    return result.action


def _uninterrupted(result: uctree.SearchResult) -> uctree.SearchResult:
    """The result; Ctrl-C during a search leaves the episode instead of hurrying it."""
    if result.status == "interrupted":
        raise KeyboardInterrupt
    return result


def _announce_end(game: Game, person: int | None, state: np.record, plies: list[_Ply]) -> None:
    """Print the last state and what everyone got."""
    returns = np.zeros(game.num_players)
    for ply, record in enumerate(plies):
        returns += game.discount**ply * record.reward
    ended = "over" if game.is_over(state) else "cut"
    shares = [
        f"player {player}{' (you)' if player == person else ''} {amount:+g}"
        for player, amount in enumerate(returns)
    ]
    print(f"\n{game.show(state)}\n")
    print(f"The episode is {ended} after {count(len(plies), 'ply', 'plies')}.")
    print(f"Returns: {', '.join(shares)}")

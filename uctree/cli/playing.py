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
from typing import TYPE_CHECKING, Any, Literal

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
    search_with_progress,
)
from uctree.cli.learning import agent_source, load_network, load_pretrained, needing_extras
from uctree.errors import IllegalAction, UctreeError
from uctree.game import CHANCE, Game
from uctree.views import local, whole

if TYPE_CHECKING:
    from uctree.learn import Learned

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
    """Play an episode in the terminal against the search, or let the search play another program.

    Args:
        game: built-in name, name:arguments, or file.py:name.
        player: the seat you take, from 0; none to watch. 0 by default, or none with --against.
        against: the agent of the other seats instead of the search, as in `uctree match`, for
            example gnugo, random or my_agents.py:Clever. If you do not play, the search has seat 0.
        run: the folder of a run whose network evaluates the leaves of the search, or in whose
            learned model it searches. connect_four has a pretrained network, which is used if no
            option of the search is given.
        seed: determines chance outcomes and the search; a new one each time by default.
    """
    # People play all of a game with a window, in which the search acts.
    chosen, options = whole(specs.read_game(game)), search_options(method)
    learned = None
    if run is not None:
        if "evaluator" in options:
            raise UctreeError("--run and --evaluator both set the evaluator; give one of them")
        learned = load_network(run, chosen)
    elif method == NO_METHOD:
        learned = load_pretrained(chosen)
    if learned is not None:
        options |= _with_network(learned, options)
        iteration = learned.checkpoint.iteration
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
    with contextlib.closing(_Opponents(chosen, against, person or 0, seed)) as opponents:
        _greet(chosen, person, opponents, budget, seed)
        if learned is not None:
            source = "that comes with uctree" if run is None else f"of {run}"
            print(f"The search uses the network {source}, iteration {iteration}.")
        try:
            _play_episode(chosen, person, opponents, budget, seed, options)
        except (KeyboardInterrupt, EOFError):
            print("\nGood-bye.")


def _with_network(learned: Learned, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a search with a network, or of one in a learned model."""
    if not learned.is_model:
        with needing_extras():
            return {"evaluator": learned.evaluator()}
    if options:
        raise UctreeError(
            f"a search in a learned model has the options of its training: omit "
            f"{', '.join(options)}"
        )
    return {"model": learned}


class _Opponents:
    """The agents of `--against`, one for each seat but one; none without `--against`."""

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
        """Start an episode and pass its plies so far to the agents."""
        from uctree.arena.agents import derived_seed

        for seat, agent in self.agents.items():
            self._call(seat, agent.begin, self.game, seat, derived_seed(self.seed, seat))
        for ply in plies:
            self.watch(ply.state, ply.action)

    def watch(self, state: np.record, action: Any) -> None:
        for seat, agent in self.agents.items():
            watch = getattr(agent, "watch", lambda *_: None)
            self._call(seat, watch, self.game.copy(state), action)

    def action(self, state: np.record, ply: int) -> int:
        """The action of the agent to move; EOFError if it resigns."""
        from uctree.arena.episodes import checked_action
        from uctree.arena.external import Resigned

        seat = self.game.to_play(state)
        try:
            returned = self._call(seat, self.agents[seat].act, self.game.copy(state))
        except Resigned:
            print(f"player {seat} ({self.text}) resigns")
            raise EOFError from None
        try:
            action = checked_action(self.game, state, returned, ply)
        except IllegalAction as error:
            raise UctreeError(f"{self.text} failed as player {seat}: {error}") from None
        print(f"player {seat} ({self.text}) plays {self.game.show_action(state, action)}")
        return action

    def close(self) -> None:
        for agent in self.agents.values():
            getattr(agent, "close", lambda: None)()

    def _call(self, seat: int, function: Callable[..., Any], *arguments: Any) -> Any:
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

    state: np.record  # before the action
    action: Any
    reward: np.ndarray  # [num_players]


def _search_result(
    game: Game, state: np.record, budget: Budget, *, seed: int, options: dict[str, Any]
) -> uctree.SearchResult:
    """The result of a search, in a learned model if `options` have one."""
    if "model" not in options:
        return search_with_progress(local(game), state, budget, seed=seed, options=options)
    found: uctree.SearchResult = options["model"].search(
        state, num_simulations=budget.num_simulations, seed=seed
    )
    return found


def _play_episode(
    game: Game, person: int | None, opponents: _Opponents, budget: Budget, seed: int,
    options: dict[str, Any],
) -> None:  # fmt: skip
    """Play to the end; EOFError or KeyboardInterrupt if the person quits or an agent resigns."""
    state, plies = game.start(), list[_Ply]()
    while not game.is_over(state) and len(plies) < (game.max_plies or math.inf):
        to_play, ply = game.to_play(state), len(plies)
        run_search = functools.partial(
            _search_result, game, state, budget, seed=seed + ply, options=options
        )
        if to_play == CHANCE:
            action = _draw_outcome(game, state, seed, ply)
        elif to_play == person:
            chosen = _ask_action(game, state, run_search)
            if chosen is None:
                state = _take_back(game, state, plies, person)
                opponents.begin(plies)
                continue
            action = chosen
        else:
            if person is None:
                print(f"\n{game.show(state)}\n")
            is_opponent = to_play in opponents.agents
            action = (
                opponents.action(state, ply) if is_opponent else _searched(game, state, run_search)
            )
        after, reward = game.step(state, action)
        plies.append(_Ply(state, action, reward))
        opponents.watch(state, action)
        state = after
    _announce_end(game, person, state, plies)


def _greet(
    game: Game, person: int | None, opponents: _Opponents, budget: Budget, seed: int
) -> None:
    limits = [] if budget.num_simulations is None else [f"{budget.num_simulations:,} simulations"]
    limits += [] if budget.seconds is None else [f"{budget.seconds:g} s"]
    print(f"{game.name}, {' or '.join(limits)} an action, seed {seed}")
    if person is not None:
        against = f" against {opponents.text}" if opponents.agents else ""
        print(f"You are player {person}{against}. Type an action, {HINT}, {UNDO} or {QUIT}.")
    elif opponents.agents:
        print(f"The search is player 0 against {opponents.text}.")
    else:
        print("The search plays for everyone.")


def _draw_outcome(game: Game, state: np.record, seed: int, ply: int) -> int:
    """A chance outcome, determined by seed and ply, so that `undo` does not change it."""
    from uctree.arena.dice import draw_outcome

    outcome = draw_outcome(game, state, random.Random(f"{seed} {ply}"))
    print(f"chance: {game.show_action(state, outcome)}")
    return outcome


def _ask_action(game: Game, state: np.record, run_search: Callable[[], uctree.SearchResult]) -> Any:
    """The action that the person types; None for undo, EOFError for quit."""
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
            print(f"\n{_uninterrupted(run_search())}\n")
        elif text:
            try:
                return game.read_action(state, text)
            except IllegalAction as error:
                print(f"{error}; or {HINT}, {UNDO}, {QUIT}")


def _ask(prompt: str) -> str:
    """A line that the person types; EOFError at the end of the input."""
    if sys.stdin.isatty():
        # Importing readline lets `input` edit lines.
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


def _searched(game: Game, state: np.record, run_search: Callable[[], uctree.SearchResult]) -> int:
    """The action of the search, which is printed."""
    result = _uninterrupted(run_search())
    player = game.to_play(state)
    assert result.action is not None, "a player is to move"
    action = result.action if game.view is None else game.view.to_whole(state, result.action)
    print(
        f"player {player} plays {game.show_action(state, action)}   "
        f"(expects {result.value[player]:+.3f} after {result.simulations:,} simulations)"
    )
    return action


def _uninterrupted(result: uctree.SearchResult) -> uctree.SearchResult:
    """The result; KeyboardInterrupt if Ctrl-C ended the search, so that it ends the episode."""
    if result.status == "interrupted":
        raise KeyboardInterrupt
    return result


def _announce_end(game: Game, person: int | None, state: np.record, plies: list[_Ply]) -> None:
    """Print the last state and the returns."""
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

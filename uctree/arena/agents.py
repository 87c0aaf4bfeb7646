"""Agents, which play one seat of an episode, and the text that names them.

random · greedy · search(num_simulations=1000, selection=puct(c=2), reuse=True, choice=lcb)
search(seconds=1) · gnugo(level=10) · gtp('gnugo --mode gtp') · my_agents.py:Clever(depth=3)
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from uctree import specs
from uctree.errors import BrokenGame, UctreeError
from uctree.game import ENDLESS, Game
from uctree.mcts import Searcher, search


class Agent(Protocol):
    """A program that plays one seat of an episode; its constructor takes its settings.

    Three methods are optional. `watch(state, action)` is called for every action and chance outcome
    of the episode, including its own and those of the opening. `prepare(game)` is called once
    before a match, to refuse settings that do not work with the game. `close()` is called when the
    match is over.
    """

    def begin(self, game: Game, player: int, seed: int) -> None:
        """Called when an episode begins at `game.start()`, in which this agent is `player`."""

    def act(self, state: np.record) -> int:
        """The action that the agent takes in `state`."""


AgentSource = str | Callable[[], Agent] | Agent


def derived_seed(*parts: int | str) -> int:
    """A seed computed from all of `parts`; the same on every machine.

    >>> derived_seed(7, "opening", 0) == derived_seed(7, "opening", 0) != derived_seed(7, 1, 0)
    True
    """
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:7], "big")


# --- built-in agents -----------------------------------------------------------------------------


class RandomAgent:
    """Takes a random legal action, all with the same probability."""

    def begin(self, game: Game, player: int, seed: int) -> None:
        self.game, self.rng = game, random.Random(seed)

    def act(self, state: np.record) -> int:
        return self.rng.choice(self.game.legal(state))


class GreedyAgent:
    """Looks one ply ahead: the largest reward, plus the game's heuristic if it has one."""

    def begin(self, game: Game, player: int, seed: int) -> None:
        self.game, self.player, self.rng = game, player, random.Random(seed)

    def act(self, state: np.record) -> int:
        values = {action: self._value(state, action) for action in self.game.legal(state)}
        best = max(values.values())
        return self.rng.choice([action for action, value in values.items() if value == best])

    def _value(self, state: np.record, action: int) -> float:
        after, reward = self.game.step(state, action)
        value = float(reward[self.player])
        if not self.game.is_over(after):
            value += self.game.discount * float(self.game.estimate(after)[self.player])
        return value


# Options of `search` that an agent sets itself, or that have no meaning in a match.
_NOT_OPTIONS = ("game", "state", "num_simulations", "seconds", "seed", "progress", "tree")
_FEW_SIMULATIONS, _FEW_SECONDS = 32, 0.001  # enough to find out whether a search runs


def search_options() -> list[str]:
    """The names of the options of a search, without its budget."""
    return [name for name in inspect.signature(search).parameters if name not in _NOT_OPTIONS]


class SearchAgent:
    """Takes the action that `uctree.search` finds.

    The seed of each search is computed from the seed of the episode and the ply.
    """

    def __init__(
        self,
        num_simulations: int | None = None,
        seconds: float | None = None,
        *,
        reuse: bool = False,
        **options: Any,
    ) -> None:
        """
        Args:
            num_simulations, seconds: the budget of each search.
            reuse: reuse the tree from ply to ply, as `uctree.Searcher` does.
            options: as in `uctree.search`.
        """
        known = ["num_simulations", "seconds", "reuse", *search_options()]
        for name in options:
            if name not in known:
                raise TypeError(specs.no_option(name, known))
        if num_simulations is None and seconds is None:
            raise ValueError("a search needs a budget: num_simulations=1000, or seconds=1")
        self.num_simulations, self.seconds = num_simulations, seconds
        self.reuse, self.options = reuse, options

    def prepare(self, game: Game) -> None:
        """Compile the search, so that options which exclude each other are refused at once."""
        few = self.num_simulations and min(self.num_simulations, _FEW_SIMULATIONS)
        brief = None if self.seconds is None else min(self.seconds, _FEW_SECONDS)
        state = _first_decision(game)
        if self.reuse:
            Searcher(game, **self.options)
        search(game, state, num_simulations=few, seconds=brief, **self.options)

    def begin(self, game: Game, player: int, seed: int) -> None:
        self.game, self.seed, self.ply = game, seed, 0
        self.searcher = Searcher(game, **self.options) if self.reuse else None

    def act(self, state: np.record) -> int:
        seed = derived_seed(self.seed, self.ply)
        if self.searcher is not None:
            result = self.searcher.search(
                state, num_simulations=self.num_simulations, seconds=self.seconds, seed=seed
            )
        else:
            result = search(
                self.game, state, num_simulations=self.num_simulations, seconds=self.seconds,
                seed=seed, **self.options,
            )  # fmt: skip
        if result.status == "interrupted":  # Ctrl-C ends the match, not only this search
            raise KeyboardInterrupt
        assert result.action is not None, "a player is to move"
        return result.action

    def watch(self, state: np.record, action: int | None) -> None:
        """Note an action; None for one that the game of the search does not have."""
        self.ply += 1
        if self.searcher is not None and action is None:
            self.searcher = Searcher(self.game, **self.options)
        elif self.searcher is not None:
            self.searcher.advance(action)


def _first_decision(game: Game) -> np.record:
    """The first state of the game in which a player is to move."""
    state = game.start()
    for _ in range(game.max_plies or ENDLESS):
        if game.to_play(state) >= 0 or game.is_over(state):
            return state
        state, _ = game.step(state, game.legal(state)[0])
    raise BrokenGame(
        f"{game.name}: no player is to move in the first {game.max_plies or ENDLESS:,} plies, "
        "which are all chance; print uctree.check(game)"
    )


# --- text to agents ------------------------------------------------------------------------------


def make_agent(source: AgentSource) -> Agent:
    """The agent that a text names, or that a class or function makes; an agent is itself.

    >>> make_agent("search(num_simulations=50, choice=lcb)").options
    {'choice': Choice(name='lcb', parameters=(5.0, 0.15))}
    """
    agent: Any = source
    if isinstance(source, str):
        agent = _read_agent(source)
    elif callable(source):
        agent = source()
    missing = [name for name in ("begin", "act") if not callable(getattr(agent, name, None))]
    if missing:
        raise UctreeError(
            f"agent {name_of(source)!r} is of type {type(agent).__name__}, which has no "
            f"{' and no '.join(missing)}; an agent has begin(game, player, seed) and act(state)"
        )
    return agent


def name_of(source: AgentSource) -> str:
    """The name of an agent that was given without one.

    >>> name_of(" random "), name_of(RandomAgent), name_of(functools.partial(SearchAgent, 50))
    ('random', 'RandomAgent', 'SearchAgent(50)')
    """
    if isinstance(source, str):
        return source.strip()
    if isinstance(source, functools.partial):
        listed = [repr(value) for value in source.args]
        listed += [f"{key}={value!r}" for key, value in source.keywords.items()]
        return f"{source.func.__name__}({', '.join(listed)})"
    return str(getattr(source, "__name__", type(source).__name__))


def _read_agent(text: str) -> Any:
    path, colon, call = text.strip().partition(".py:")
    try:
        if colon:
            return _from_file(Path(f"{path}.py"), call)
        name, arguments = specs.split_call(text)
        if name == "search":
            return specs.make("search", SearchAgent, ([], read_search_options(arguments)))
    except UctreeError as error:
        raise UctreeError(f"agent {text}: {error}") from error
    return specs.read_rule(text, "agent", _makers())


def _makers() -> dict[str, Callable[..., Any]]:
    """Functions and classes that make agents from literals, by their name in text."""
    from uctree.arena import external

    return {
        "random": RandomAgent,
        "greedy": GreedyAgent,
        "search": SearchAgent,
        "gtp": external.GtpAgent,
        "gnugo": external.gnugo,
        "rhino": external.rhino,
    }


def _from_file(path: Path, call: str) -> Any:
    """The agent that a class or function of a user's file makes."""
    module = specs.load_file(path)
    name, arguments = specs.split_call(call)
    maker = getattr(module, name, None)
    if not callable(maker):
        found = [
            key
            for key, value in vars(module).items()
            if inspect.isclass(value) and hasattr(value, "act")
        ]
        raise UctreeError(
            f"{path} has no class or function {name!r}; its agents: {', '.join(found) or 'none'}"
        )
    return specs.make(name, maker, specs.read_arguments(arguments))


def read_search_options(arguments: str) -> dict[str, Any]:
    """The options in `search(...)`, rules as in Python, words with or without quotes."""
    try:
        call = ast.parse(f"f({arguments})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        call = None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
        raise UctreeError(
            f"cannot read the options {arguments!r}; write them as "
            "search(num_simulations=1000, selection=puct(c=2))"
        )
    options: dict[str, Any] = {}
    for each in call.keywords:
        if each.arg is None or each.arg in options:
            raise UctreeError(f"cannot read the options {arguments!r}; name each of them once")
        options[each.arg] = _read_value(each.arg, each.value)
    return options


def _read_value(option: str, node: ast.expr) -> Any:
    text = ast.unparse(node)
    if isinstance(node, (ast.List, ast.Tuple)) and option == "stop":
        return [_read_value(option, each) for each in node.elts]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        text = node.value
    is_none = isinstance(node, ast.Constant) and node.value is None
    if option in specs.RULES and not is_none:
        return specs.read_rule(text, option, specs.rule_functions(option), specs.RULES[option][2])
    if isinstance(node, ast.Name) and node.id != "inf":
        return node.id
    _, values = specs.read_arguments(f"{option}={ast.unparse(node)}")
    return values[option]

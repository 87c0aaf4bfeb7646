"""OpenSpiel in and out: its games with perfect information as worlds, and a bot for its players."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import lru_cache, partial
from operator import methodcaller
from typing import Any

from uctree.adapters.objects import cloning_problem, library
from uctree.game import CHANCE, Game
from uctree.mcts import search
from uctree.planning.calls import plan
from uctree.planning.playouts import SeededPlayout
from uctree.planning.world import World


def _pyspiel() -> Any:
    return library("pyspiel", "spiel")


def from_openspiel(
    thing: Any,
    *,
    num_playouts: int = 1,
    value: Callable[[Any], Any] | None = None,
    key: Callable[[Any], Any] | None = None,
) -> World:
    """The world of a game or state of OpenSpiel with perfect information.

    States are those of OpenSpiel, actions are its numbers.

    Args:
        thing: a `pyspiel.State`, a `pyspiel.Game`, or the name of a game such as `"chess"` or
            `"go(board_size=9)"`.
        num_playouts: how many playouts the value of a state is the mean of. They run in C++.
        value: the value of a state, one number per player, instead of playouts.
        key: as in `Problem`; `str` if the text of a state says all about it.
    """
    if num_playouts < 1:
        raise ValueError(f"num_playouts must be at least 1; got {num_playouts}")
    state = _state_of(thing)
    game = state.get_game()
    _check_fits(game)
    if state.is_terminal():
        raise ValueError(f"this episode of {game.get_type().short_name} has ended: nothing to plan")
    pays_at_end = game.get_type().reward_model == _pyspiel().GameType.RewardModel.TERMINAL
    name = game.get_type().short_name
    copied = _replayed if name in _BROKEN_CLONES else methodcaller("clone")
    evaluation: dict[str, Any] = {"value": value}
    if value is None:
        evaluation = {"playout": _compiled_playout(game, num_playouts, copied, pays_at_end)}
    problem = cloning_problem(
        actions=methodcaller("legal_actions"), clone=copied, over=methodcaller("is_terminal"),
        change=lambda state, action: state.apply_action(action), returns=methodcaller("returns"),
        to_play=methodcaller("current_player"), pays_at_end=pays_at_end, chance=_chance(game),
        num_players=game.num_players(), horizon=game.max_game_length() + 1,
        payoff_range=_payoff_range(game) if pays_at_end else None, key=key,
        show=str, show_action=_show_action, name=name,
        dump=lambda state: state.serialize(), load=lambda text: game.deserialize_state(text),
        **evaluation,
    )  # fmt: skip
    return World(problem, copied(state), state.current_player())


def _state_of(thing: Any) -> Any:
    pyspiel = _pyspiel()
    if isinstance(thing, str):
        short_name = thing.partition("(")[0]
        types = {each.short_name: each for each in pyspiel.registered_games()}
        if short_name not in types:
            raise ValueError(f"OpenSpiel has no game {short_name!r}; it has {', '.join(types)}")
        if short_name == thing:
            _check_loadable(types[short_name])
        thing = pyspiel.load_game(thing)
    if isinstance(thing, pyspiel.Game):
        _check_fits(thing)
        thing = thing.new_initial_state()
    if not isinstance(thing, pyspiel.State):
        raise TypeError(
            "from_openspiel takes the name of a game, a pyspiel.Game or a pyspiel.State; got "
            f"{type(thing).__name__}"
        )
    return thing


# The copies of these states point into their originals, which may be gone (OpenSpiel 2.0.2).
_BROKEN_CLONES = {"morpion_solitaire"}


def _replayed(state: Any) -> Any:
    """A copy that is made by the actions which led to a state."""
    twin = state.get_game().new_initial_state()
    for action in state.history():
        twin.apply_action(action)
    return twin


def _check_loadable(kind: Any) -> None:
    if not kind.default_loadable:
        raise ValueError(
            f"{kind.short_name} cannot be loaded by its name alone, it needs parameters such as a "
            f"file or another game: {list(kind.parameter_specification)}; pass a pyspiel.Game"
        )


def _check_fits(game: Any) -> None:
    """Refuse games that a tree of states does not describe."""
    kinds, kind = _pyspiel().GameType, game.get_type()
    reason = None
    if kind.dynamics == kinds.Dynamics.SIMULTANEOUS:
        reason = "players act at the same time, and a tree would show the second what the first did"
    elif kind.dynamics != kinds.Dynamics.SEQUENTIAL:
        reason = "it is a mean field game, whose states are distributions"
    elif kind.information != kinds.Information.PERFECT_INFORMATION:
        reason = "it has hidden information, which a search of its states would see"
    elif kind.chance_mode == kinds.ChanceMode.SAMPLED_STOCHASTIC:
        reason = "it draws its chance inside a step, without saying the probabilities"
    if reason is not None:
        raise ValueError(f"{kind.short_name} cannot be searched: {reason}")


def _chance(game: Any) -> Callable[[Any], Any] | None:
    kinds = _pyspiel().GameType.ChanceMode
    if game.get_type().chance_mode == kinds.DETERMINISTIC:
        return None
    return _outcomes


def _outcomes(state: Any) -> list[tuple[int, float]]:
    """The outcomes of a chance state; rounding in OpenSpiel's probabilities is taken out."""
    pairs = state.chance_outcomes()
    total = sum(probability for _, probability in pairs)
    return [(outcome, probability / total) for outcome, probability in pairs]


def _constant_sum(game: Any) -> float | None:
    """What the returns of two players always add up to; None if they do not."""
    kinds = _pyspiel().GameType.Utility
    if game.num_players() != 2 or game.get_type().utility not in (
        kinds.ZERO_SUM, kinds.CONSTANT_SUM,
    ):  # fmt: skip
        return None
    return float(game.utility_sum() or 0.0)


def _payoff_range(game: Any) -> tuple[float, float] | None:
    low, high = game.min_utility(), game.max_utility()
    return (low, high) if -1e100 < low < high < 1e100 else None


def _show_action(state: Any, action: int) -> str:
    return str(state.action_to_string(state.current_player(), action))


def _compiled_playout(
    game: Any, num_playouts: int, copied: Callable[[Any], Any], pays_at_end: bool
) -> SeededPlayout:
    """Playouts in C++, by bots of OpenSpiel that take random actions.

    Half of the time of a playout from a seed is the making of generators, so playouts whose order
    is certain share one.
    """
    sums = _constant_sum(game)
    if pays_at_end and (game.num_players() == 1 or sums is not None):
        begin = partial(_by_search, game, num_playouts, sums)
    else:
        begin = partial(_by_play, game.num_players(), num_playouts, copied)

    def playout(state: Any, seed: int) -> list[float]:
        return begin(seed)(state)

    return SeededPlayout(playout, begin)


def _by_search(
    game: Any, num_playouts: int, sums: float | None, seed: int
) -> Callable[[Any], list[float]]:
    """Returns of playouts: what OpenSpiel's own search knows of its root after one simulation."""
    pyspiel = _pyspiel()
    evaluator = pyspiel.RandomRolloutEvaluator(num_playouts, seed >> 33)  # 31 bits are left
    search = pyspiel.MCTSBot(game, evaluator, 1.0, 1, 1, False, 0, False).mcts_search

    def play(state: Any) -> list[float]:
        root = search(state)
        total: float = root.total_reward
        if sums is None:
            return [total]
        return [total, sums - total] if root.player == 0 else [sums - total, total]

    return play


def _by_play(
    num_players: int, num_playouts: int, copied: Callable[[Any], Any], seed: int
) -> Callable[[Any], list[float]]:
    """Returns of playouts: of episodes between bots, for any number of players and any rewards."""
    pyspiel, numbers = _pyspiel(), random.Random(seed)
    bots = [
        pyspiel.make_uniform_random_bot(player, numbers.getrandbits(31))
        for player in range(num_players)
    ]

    def play(state: Any) -> list[float]:
        total = [0.0] * num_players
        for _ in range(num_playouts):  # the last seed is that of chance
            returns = pyspiel.evaluate_bots(copied(state), bots, numbers.getrandbits(31))
            total = [one + other for one, other in zip(total, returns, strict=True)]
        before = state.returns()
        return [one / num_playouts - other for one, other in zip(total, before, strict=True)]

    return play


# --- out -----------------------------------------------------------------------------------------


def openspiel_bot(game: Any, *, rules: Game | None = None, seed: int = 0, **options: Any) -> Any:
    """A `pyspiel.Bot` that plays a game of OpenSpiel with our search.

    It answers for whichever player is to move, so one bot can take all seats.

    Args:
        game: a `pyspiel.Game`, or the name of one.
        rules: the same game as a `uctree.Game` whose actions have the same numbers; it is then
            compiled and searched with `search`, which is much faster than OpenSpiel's states.
        seed: the search of ply n uses `seed + n`.
        options: as in `plan`, or `search` if `rules` are given; a limit such as `num_simulations`.
    """
    if isinstance(game, str):
        game = _state_of(game).get_game()
    _check_fits(game)
    if not {"num_simulations", "seconds", "stop"} & set(options):
        raise ValueError("a bot needs a limit: give num_simulations= or seconds=")
    return _bot_class()(game, rules, seed, options)


@lru_cache(maxsize=1)
def _bot_class() -> type:
    """The class of our bots; made on first use, since it inherits from one of OpenSpiel."""
    pyspiel = _pyspiel()

    class SearchBot(pyspiel.Bot):  # type: ignore[misc, name-defined]
        def __init__(self, game: Any, rules: Game | None, seed: int, options: Any) -> None:
            super().__init__()
            self.game, self.rules, self.seed, self.options = game, rules, seed, options

        def search(self, state: Any) -> Any:
            """The result of the search from a state."""
            if state.is_terminal() or state.current_player() == CHANCE:
                raise ValueError("a bot acts for a player; nobody is to move in this state")
            seed = self.seed + state.move_number()
            if self.rules is not None:
                ours = self.rules.play(state.history())
                return search(self.rules, ours, seed=seed, **self.options)
            return plan(from_openspiel(state), seed=seed, **self.options)

        def step(self, state: Any) -> int:
            return int(self.search(state).action)

        def provides_policy(self) -> bool:
            return True

        def step_with_policy(self, state: Any) -> tuple[list[tuple[int, float]], int]:
            result = self.search(state)
            return _policy(result, state), int(result.action)

        def get_policy(self, state: Any) -> list[tuple[int, float]]:
            return _policy(self.search(state), state)

        # A search begins at the state it is given, so there is nothing to keep up to date.

        def restart(self) -> None:
            pass

        def restart_at(self, state: Any) -> None:
            pass

        def inform_action(self, state: Any, player: int, action: int) -> None:
            pass

        def inform_actions(self, state: Any, actions: list[int]) -> None:
            pass

    return SearchBot


def _policy(result: Any, state: Any) -> list[tuple[int, float]]:
    """The share of visits of each legal action."""
    label, root = result.game.label, result.state
    visits = {int(label(root, edge["action"])): int(edge["visits"]) for edge in result.edges}
    total = sum(visits.values())
    return [(action, visits.get(action, 0) / total) for action in state.legal_actions()]

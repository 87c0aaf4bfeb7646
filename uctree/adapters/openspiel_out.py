"""OpenSpiel out: a game registered there, so that its algorithms and bots can play it."""

from __future__ import annotations

from typing import Any

import numpy as np

from uctree import specs
from uctree.adapters.episodes import check_finite
from uctree.adapters.objects import library
from uctree.errors import BrokenGame
from uctree.game import CHANCE, OVER, Game

_registered: dict[str, Game] = {}
LONGEST = 10_000  # plies, for games that state no `max_plies`


def to_openspiel(game: Game | str, name: str | None = None, *, pays_at_end: bool = False) -> Any:
    """A `pyspiel.Game` of a game, registered as `uctree_` and its name.

    Its states are Python objects, so it serves OpenSpiel's algorithms, not speed.
    `pyspiel.load_game` of the same name gives it again.

    Args:
        name: what it is registered as; OpenSpiel keeps a name for as long as the process lives.
        pays_at_end: whether only the last step of an episode pays, which OpenSpiel's MCTS and some
            other algorithms require.
    """
    game = specs.as_game(game)
    pyspiel = library("pyspiel", "spiel")
    check_finite(game, "to_openspiel")
    if game.payoff_range is None:
        raise ValueError(
            f"{game.name} states no payoff_range, which OpenSpiel needs: give it to the Game"
        )
    name = f"uctree_{game.name}" if name is None else name
    if name not in _registered:
        if name in {each.short_name for each in pyspiel.registered_games()}:
            raise ValueError(f"OpenSpiel has a game {name!r} already: give another name=")
        _registered[name] = game
        kind = _type_of(game, name, pays_at_end)
        pyspiel.register_game(kind, _class_of(game, kind, pays_at_end))
    elif _registered[name] is not game:
        raise ValueError(f"another game is registered as {name!r}: give another name=")
    return pyspiel.load_game(name)


def _type_of(game: Game, name: str, pays_at_end: bool) -> Any:
    kinds = library("pyspiel", "spiel").GameType
    has_chance = game.rules.chance is not None
    return kinds(
        short_name=name, long_name=game.name, dynamics=kinds.Dynamics.SEQUENTIAL,
        chance_mode=(
            kinds.ChanceMode.EXPLICIT_STOCHASTIC if has_chance else kinds.ChanceMode.DETERMINISTIC
        ),
        information=kinds.Information.PERFECT_INFORMATION,
        utility=kinds.Utility.ZERO_SUM if game.zero_sum else kinds.Utility.GENERAL_SUM,
        reward_model=kinds.RewardModel.TERMINAL if pays_at_end else kinds.RewardModel.REWARDS,
        max_num_players=game.num_players,
        min_num_players=game.num_players, provides_information_state_string=True,
        provides_information_state_tensor=False, provides_observation_string=True,
        provides_observation_tensor=False, parameter_specification={},
    )  # fmt: skip


def _info_of(game: Game) -> Any:
    pyspiel = library("pyspiel", "spiel")
    bounds = np.array(game.payoff_range)
    return pyspiel.GameInfo(
        num_distinct_actions=game.num_actions,
        max_chance_outcomes=game.max_outcomes if game.rules.chance is not None else 0,
        num_players=game.num_players, min_utility=float(bounds[..., 0].min()),
        max_utility=float(bounds[..., 1].max()), utility_sum=0.0 if game.zero_sum else None,
        max_game_length=game.max_plies or LONGEST,
    )  # fmt: skip


def _class_of(game: Game, kind: Any, pays_at_end: bool) -> type:
    """The class of the game for OpenSpiel, and of its states; `game` is shared by their copies."""
    pyspiel = library("pyspiel", "spiel")
    info = _info_of(game)

    class SpielState(pyspiel.State):  # type: ignore[misc, name-defined]
        def __init__(self, owner: Any) -> None:
            super().__init__(owner)
            self.record = game.start()
            self.paid = np.zeros(game.num_players)  # by the last action
            self.total = np.zeros(game.num_players)

        def current_player(self) -> int:
            to_play = int(self.record["to_play"])
            return int(pyspiel.PlayerId.TERMINAL) if to_play == OVER else to_play

        def _legal_actions(self, player: int) -> list[int]:
            return sorted(int(action) for action in game.legal(self.record))

        def chance_outcomes(self) -> list[tuple[int, float]]:
            return [(int(outcome), float(p)) for outcome, p in game.outcomes(self.record)]

        def _apply_action(self, action: int) -> None:
            self.record, reward = game.step(self.record, action)
            self.paid = np.array(reward, float)
            self.total = self.total + self.paid
            if pays_at_end and self.paid.any() and not self.is_terminal():
                raise BrokenGame(
                    f"action {action} of {game.name} paid {self.paid.tolist()} before the end; "
                    "register it without pays_at_end=True"
                )

        def _action_to_string(self, player: int, action: int) -> str:
            if player == CHANCE:
                return f"outcome {action}"
            return game.show_action(self.record, action)

        def is_terminal(self) -> bool:
            return int(self.record["to_play"]) == OVER

        def rewards(self) -> list[float]:
            return self.paid.tolist()

        def returns(self) -> list[float]:
            return self.total.tolist()

        def __str__(self) -> str:
            return game.show(self.record)

    class SpielGame(pyspiel.Game):  # type: ignore[misc, name-defined]
        def __init__(self, params: Any = None) -> None:
            super().__init__(kind, info, params or {})

        def new_initial_state(self, state: Any = None) -> Any:
            return SpielState(self)

    return SpielGame

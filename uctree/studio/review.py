"""A review of an episode: what each action lost against the best one that a search finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uctree.errors import UctreeError
from uctree.game import Game
from uctree.pages.chart import Series, line_chart
from uctree.pages.document import document, heading, paragraph, preformatted, table
from uctree.result import SearchResult
from uctree.studio.episode import StudioEpisode

MISTAKE = 0.1  # of the range of payoffs: an action that loses more is a mistake


@dataclass(frozen=True)
class Found:
    """What a search found in a state."""

    action: Any  # the best one; None at chance, and at the end
    text: str  # of that action
    # Per player, if the best action is taken: it is not lowered by the simulations of others.
    value: np.ndarray


def found_by(result: SearchResult) -> Found:
    """What the search of a state found."""
    if result.action is None:
        return Found(None, "", result.value)
    same = result.edges["action"] == result.action
    row = int(np.flatnonzero(same if same.ndim == 1 else same.all(axis=1))[0])
    value = result.value if result.solved is not None else result.edges["q"][row]
    return Found(result.action, result.game.show_action(result.state, result.action), value)


@dataclass(frozen=True)
class Judgement:
    """An action of a player against the best one."""

    ply: int
    player: int
    text: str  # of the action
    best: str  # the text of the best action
    loss: float  # how much less the player can expect after the action, at least 0
    is_mistake: bool


def judged(
    game: Game, ply: int, state: np.record, action: Any, before: Found, after: Found | None
) -> Judgement:
    """The judgement of an action.

    Args:
        before: what a search found in `state`.
        after: what it found in the state after the action; None if the episode is over there.
    """
    player = game.to_play(state)
    _, reward = game.step(state, action)
    value = float(reward[player])
    if after is not None:
        value += game.discount * float(after.value[player])
    values = [before.value] if after is None else [before.value, after.value]
    is_best = np.array_equal(np.asarray(action), np.asarray(before.action))
    loss = 0.0 if is_best else max(0.0, float(before.value[player]) - value)
    return Judgement(
        ply, player, game.show_action(state, action), before.text, loss,
        loss > MISTAKE * payoff_span(game, player, values),
    )  # fmt: skip


def payoff_span(game: Game, player: int, seen: Sequence[np.ndarray]) -> float:
    """The range of a player's payoffs, or of the values seen if the game does not state one.

    >>> from uctree.games import tic_tac_toe
    >>> payoff_span(tic_tac_toe(), 0, [])
    2.0
    """
    if game.payoff_range is not None:
        low, high = game.payoff_range[player]
        return float(high - low)
    return max((abs(float(value[player])) for value in seen), default=0.0)


class Review:
    """The states of an episode that were searched, and what its actions lost."""

    def __init__(self) -> None:
        self._found: dict[int, Found] = {}  # by ply

    def forget_after(self, ply: int) -> None:
        """Forget the states after a ply, because the episode continues in another way."""
        self._found = {known: found for known, found in self._found.items() if known <= ply}

    def note(self, ply: int, result: SearchResult) -> None:
        """Note what a search of the state after `ply` actions found."""
        self._found[ply] = found_by(result)

    def next_ply(self, episode: StudioEpisode) -> int | None:
        """The next state to search; None if all that matter are known."""
        game = episode.game
        for ply, state in enumerate(episode.states):
            if ply not in self._found and not game.is_over(state):
                return ply
        return None

    def judgements(self, episode: StudioEpisode) -> list[Judgement]:
        """The judgements of all actions of players whose states are known."""
        game, found = episode.game, []
        for ply, action in enumerate(episode.actions):
            state, after = episode.states[ply], self._found.get(ply + 1)
            is_over = game.is_over(episode.states[ply + 1])
            if game.to_play(state) < 0 or ply not in self._found:
                continue
            if after is not None or is_over:
                found.append(judged(game, ply, state, action, self._found[ply], after))
        return found


def review_page(episode: StudioEpisode, judgements: Sequence[Judgement]) -> str:
    """A page of a review: the values by ply, the actions with what they lost, the mistakes."""
    game = episode.game
    if not judgements:
        raise UctreeError("there is no review to save yet; press review and wait for it")
    plies = [ply for ply, value in enumerate(episode.values) if value is not None]
    chart = line_chart(
        [
            Series(f"player {player}", plies, [(episode.values[p] or [])[player] for p in plies])
            for player in range(game.num_players)
        ],
        title="value by ply", x_label="ply", y_label="value",
    )  # fmt: skip
    rows = [["ply", "player", "action", "loss", "best", ""]]
    rows += [
        [str(each.ply + 1), str(each.player), each.text, f"{each.loss:.3f}", each.best,
         "mistake" if each.is_mistake else ""]
        for each in judgements
    ]  # fmt: skip
    mistakes = [each for each in judgements if each.is_mistake]
    parts = [
        paragraph(
            f"{len(episode.actions)} plies, {len(mistakes)} mistakes. A loss is how much less the "
            "player can expect than after the best action found."
        ),
        chart,
        table(rows),
    ]
    for each in mistakes:
        parts.append(heading(f"Ply {each.ply + 1}: player {each.player} played {each.text}"))
        parts.append(paragraph(f"It lost {each.loss:.3f}; the search prefers {each.best}."))
        parts.append(preformatted(game.show(episode.states[each.ply])))
    return document(f"A review of {game.name}", parts)


def sgf(episode: StudioEpisode) -> str:
    """An episode of go as SGF.

    >>> from uctree.games import go
    >>> episode = StudioEpisode(go(5))
    >>> for action in (12, 25):
    ...     episode.take(action)
    >>> sgf(episode)
    '(;GM[1]FF[4]CA[UTF-8]SZ[5];B[cc];W[])'
    """
    game = episode.game
    if not is_go(game):
        raise UctreeError(f"SGF is for go; {game.name} is saved as a page")
    _, size, _ = game.geometry or ("", 0, 0)
    moves = []
    for ply, action in enumerate(episode.actions):
        row, col = divmod(action, size)
        point = "" if action == size * size else f"{chr(97 + col)}{chr(97 + size - 1 - row)}"
        moves.append(f";{'BW'[ply % 2]}[{point}]")
    return f"(;GM[1]FF[4]CA[UTF-8]SZ[{size}]{''.join(moves)})"


def is_go(game: Game) -> bool:
    """Whether a game is the go of `uctree.games`."""
    return game.name.startswith("go(") and game.rules.step.__module__ == "uctree.games.go"

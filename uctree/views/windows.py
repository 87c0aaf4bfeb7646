"""A game on a large grid as one with few actions: those of a window that follows the stones.

`windowed` makes two games of one, with the same states, which know where the window is. In the
windowed game an action is a cell of the window; search and training play it. In the whole game an
action is what it was; people and other agents play it, outside the window as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from uctree.errors import BrokenGame, IllegalAction
from uctree.game import Game, State, StateView, board_symmetries, from_portable, portable
from uctree.views.frames import NOWHERE, Frame, cell_at
from uctree.views.rules import Hook, Rules

MOST_SHOWN = 2_500  # cells of a board that is shown as a whole
SYMBOLS = ".XOABCDEFGHIJKLMNPQRSTUVWYZ"  # of an empty cell, and of the stones of each player


def windowed(
    game: Game, size: int, *, stone: Hook | None = None, is_legal: Hook | None = None,
    threat: Hook | None = None,
) -> Game:  # fmt: skip
    """The game with a window of `size` x `size` cells, whose cells are its actions.

    The window lies around all stones: its centre is the middle of the box around them, moved so far
    that the window is on the board. If no action is legal in it, it moves to the nearest place
    where one is. Actions of the game that are no cells, as a pass, follow those of the window.

    `game.view.whole` is the game for people and other agents: with the same states, and all
    actions. What is observed is the window, then the whole board in as many cells: for the player
    to move and each next one their stones, and the empty cells, as means over parts of the board.

    Args:
        game: one whose actions are cells, `row * cols + col`, by its `geometry`; then others.
        stone: `stone(state, row, col)` is 0 for an empty cell and player + 1 for a stone; by
            default the field `board`, [rows, cols] or [rows * cols].
        is_legal: `is_legal(state, action)`; without it all legal actions are listed in every state.
        threat: `threat(state, player, row, col)` is a cell in which the player would win, if any;
            of several the one with the least `rank`; else NOWHERE. The window then contains one for
            the player to move, or else that of the next player in turn who has one.
    """
    rows, cols = _grid(game)
    frame = Frame(rows, cols, size)
    hooks = (stone, is_legal, threat)
    view = View(game, frame, hooks)
    rules = Rules(game, frame, *hooks)
    view.center = rules.center
    view.whole = _whole_game(game, view, rules)
    view.windowed = _windowed_game(game, view, rules)
    view.whole.view = view.windowed.view = view
    return view.windowed


def whole(game: Game) -> Game:
    """The game that people and other agents play: all of it, if the game has a window."""
    found: Game = game if game.view is None else game.view.whole
    return found


def local(game: Game) -> Game:
    """The game that search and training play: with the actions of a window, if the game has one."""
    found: Game = game if game.view is None else game.view.windowed
    return found


class View:
    """A game with a window: its two forms, and actions of one as those of the other."""

    whole: Game  # with all actions
    windowed: Game  # with those of the window
    # `center(state, data)` moves the window to where it belongs; a rule.
    center: Callable[..., None]

    def __init__(self, game: Game, frame: Frame, hooks: tuple[Hook | None, ...]) -> None:
        self.game = game  # as it was, without a window
        self.frame = frame
        self.hooks = hooks
        self.num_cells = frame.rows * frame.cols
        self.num_extra = game.num_actions - self.num_cells  # actions that are no cells

    @property
    def size(self) -> int:
        """The rows and columns of the window."""
        return self.frame.size

    def center_of(self, state: State) -> tuple[int, int]:
        """The row and column of the window's centre in a state."""
        return int(state["view_row"]), int(state["view_col"])

    def to_whole(self, state: State, action: int) -> int:
        """The action of the whole game that an action of the window stands for in a state."""
        return self.whole_action(action, self.center_of(state))

    def whole_action(self, action: int, center: tuple[int, int]) -> int:
        """The action of the whole game that one of the window around `center` stands for."""
        frame, num_local = self.frame, self.frame.size**2
        if not 0 <= action < num_local + self.num_extra:
            raise IllegalAction(
                f"action {action} is none of the {num_local + self.num_extra} of the window"
            )
        if action >= num_local:
            return self.num_cells + action - num_local
        cell = cell_at(action, *center, frame.rows, frame.cols, frame.size)
        if cell == NOWHERE:
            raise IllegalAction(f"action {action} of the window is not on the board")
        return cell

    def to_local(self, state: State, action: int) -> int | None:
        """The action of the window that one of the whole game is in a state; None outside."""
        found = int(self.local_actions(np.array(action), np.array(self.center_of(state))))
        return None if found == NOWHERE else found

    def local_actions(self, actions: np.ndarray, centers: np.ndarray) -> np.ndarray:
        """Actions of the whole game as those of windows, [...]; NOWHERE for those outside.

        Args:
            actions: [...], of the whole game.
            centers: [..., 2], those of the windows.
        """
        size, half = self.frame.size, self.frame.size // 2
        i = actions // self.frame.cols - centers[..., 0] + half
        j = actions % self.frame.cols - centers[..., 1] + half
        is_inside = (i >= 0) & (i < size) & (j >= 0) & (j < size)
        found = np.where(is_inside, i * size + j, NOWHERE)
        extra = actions - self.num_cells
        return np.where(extra >= 0, size**2 + extra, np.where(actions < 0, NOWHERE, found))

    def state(self, state: State) -> np.record:
        """A state of the game without a window as one with it."""
        found = np.zeros(1, np.dtype((np.record, self.whole.dtype)))[0]
        for name in self.game.dtype.names or ():
            found[name] = state[name]
        with np.errstate(over="ignore"):
            self.center(StateView(found), self.game.data)
        return found

    def reduced(self, game: Game) -> tuple[Any, ...]:
        """How one of the two games is made again, for pickle."""
        hooks = tuple(portable(hook) for hook in self.hooks)
        return _rebuilt, (self.game, self.frame.size, hooks, game is self.whole)


def _rebuilt(game: Game, size: int, hooks: Sequence[Any], is_whole: bool) -> Game:
    stone, is_legal, threat = (from_portable(hook) for hook in hooks)
    made = windowed(game, size, stone=stone, is_legal=is_legal, threat=threat)
    return whole(made) if is_whole else made


# --- the two games -------------------------------------------------------------------------------


def _windowed_game(game: Game, view: View, rules: Rules) -> Game:
    size, inner = view.size, game.rules
    return Game(
        rules.dtype, rules.legal, rules.step, num_actions=size**2 + view.num_extra,
        name=f"{game.name}, view {size}", observe=rules.observe,
        observation_shape=(2 * (game.num_players + 1), size, size),
        symmetries=_symmetries(game, view.frame), show_action=_shown_in(view),
        read_action=_read_in(view), **_common(game, view, rules), playout=inner.playout,
    )  # fmt: skip


def _whole_game(game: Game, view: View, rules: Rules) -> Game:
    inner, symmetries = game.rules, cast(Any, game.symmetries)
    return Game(
        rules.dtype, inner.legal, rules.step_anywhere, num_actions=game.num_actions,
        name=f"{game.name}, view {view.size}, whole", observe=inner.observe,
        observation_shape=game.observation_shape, symmetries=symmetries,
        random_action=inner.random_action, priors=rules.priors, show_action=inner.show_action,
        read_action=inner.read_action, **_common(game, view, rules), playout=inner.playout,
    )  # fmt: skip


def _common(game: Game, view: View, rules: Rules) -> dict[str, Any]:
    """What both games have of the one without a window."""
    inner = game.rules
    show = inner.show if view.num_cells <= MOST_SHOWN else _drawn(view, rules.stone)
    return {
        "num_players": game.num_players, "start": rules.start, "data": game.data,
        "heuristic": inner.heuristic, "exact": inner.exact, "invariant": inner.invariant,
        "payoff_range": None if game.payoff_range is None else game.payoff_range.tolist(),
        "zero_sum": game.zero_sum, "discount": game.discount, "max_plies": game.max_plies,
        "repetition_value": game.repetition_value, "key_fields": game.key_fields,
        "symmetric_seats": game.symmetric_seats, "geometry": game.geometry, "show": show,
    }  # fmt: skip


def _drawn(view: View, stone: Hook) -> Callable[[Any], str]:
    """How a board that is too large to be read is shown: the window, and all of it as a thumbnail.

    A line of the window begins and ends with the names of its first and last cell. A cell of the
    thumbnail shows the player with the most stones there.
    """
    frame, size, data = view.frame, view.size, view.game.data
    (tops, lefts), name = frame.edges(), view.game.rules.show_action

    def show(state: Any) -> str:
        center = state.view_row, state.view_col
        board = np.array([
            [stone(state, row, col, data) for col in range(frame.cols)]
            for row in range(frame.rows)
        ])  # fmt: skip
        text = [f"window of {size} x {size} (+), and all of {frame.rows} x {frame.cols} cells"]
        for i in range(size):
            cells = [frame.cell(i * size + j, center) for j in range(size)]
            inside = [cell for cell in cells if cell is not None]
            names = [named(state, cell) for cell in (inside[0], inside[-1])] if inside else ["", ""]
            line = "".join(f" {SYMBOLS[board[cell]]}" if cell else "  " for cell in cells)
            small = "".join(f" {thumbnail(board, center, i, j)}" for j in range(size))
            text.append(f"{names[0]:>5}{line} {names[1]:<5} {small}".rstrip())
        return "\n".join(text)

    def named(state: Any, cell: tuple[int, int]) -> str:
        action = cell[0] * frame.cols + cell[1]
        return str(action) if name is None else name(state, action)

    def thumbnail(board: np.ndarray, center: tuple[int, int], i: int, j: int) -> str:
        part = board[tops[i] : tops[i + 1], lefts[j] : lefts[j + 1]]
        stones = part[part > 0]
        if len(stones):
            return SYMBOLS[int(np.bincount(stones).argmax())]
        row, col = center[0] - size // 2, center[1] - size // 2  # the first of the window
        overlaps = tops[i] < row + size and row < tops[i + 1]
        overlaps &= lefts[j] < col + size and col < lefts[j + 1]
        empty = "+" if overlaps else "."
        return empty if part.size else " "

    return show


def _shown_in(view: View) -> Callable[..., str]:
    """How an action of the window is shown: as that of the whole game."""
    own = view.game.rules.show_action

    def show_action(state: Any, action: int) -> str:
        taken = view.whole_action(action, (state.view_row, state.view_col))
        return str(taken) if own is None else own(state, taken)

    return show_action


def _read_in(view: View) -> Callable[..., int]:
    """How an action of the window is read: as that of the whole game."""
    own = view.game.rules.read_action

    def read_action(state: Any, text: str) -> int:
        action = int(text) if own is None else own(state, text)
        center = np.array([state.view_row, state.view_col])
        return int(view.local_actions(np.array(action), center))

    return read_action


def _symmetries(game: Game, frame: Frame) -> tuple[np.ndarray, np.ndarray] | None:
    """The turns and reflections of the board that are symmetries of the game, for the window.

    A turned board has its window on the turned cells, up to one cell by which the middle of the
    stones is rounded: what is learned from turned windows is what happens on turned boards. Not
    if the board is smaller than the window, because padding is on one side.
    """
    if game.symmetries is None or min(frame.rows, frame.cols) < frame.size:
        return None
    num_cells = frame.rows * frame.cols
    num_extra = game.num_actions - num_cells
    boards = [np.arange(num_cells).reshape(frame.rows, frame.cols)]
    boards += [
        np.rot90(flip, turn) for turn in range(4) for flip in (boards[0], boards[0][:, ::-1])
    ]
    windows, _ = board_symmetries(frame.size, frame.size, num_extra)
    known = {actions.tobytes() for actions in np.asarray(game.symmetries[0], np.int64)}
    extra = num_cells + np.arange(num_extra)
    found = [
        row for turned, row in zip(boards[1:], windows, strict=True)
        if turned.shape == boards[0].shape
        and np.concatenate([np.argsort(turned.ravel()), extra]).astype(np.int64).tobytes() in known
    ]  # fmt: skip
    actions = np.array(found)
    return actions, actions[:, : frame.size**2]


def _grid(game: Game) -> tuple[int, int]:
    """The rows and columns of the board of a game; BrokenGame for one that cannot have a window."""
    if game.view is not None:
        raise BrokenGame(f"{game.name} has a window; take game.view.game, the game without it")
    if game.geometry is None or game.is_continuous:
        raise BrokenGame(
            f"a window needs a game on a grid, whose actions are numbered; {game.name} has "
            f"geometry={game.geometry}, action_space={game.action_space}"
        )
    if game.rules.chance is not None:
        raise BrokenGame(f"{game.name} has chance outcomes, and games with a window have none")
    _, rows, cols = game.geometry
    if game.num_actions < rows * cols:
        raise BrokenGame(
            f"a window needs one action for each cell of the board, row * cols + col; {game.name} "
            f"has {game.num_actions} actions on {rows} x {cols} cells"
        )
    return rows, cols

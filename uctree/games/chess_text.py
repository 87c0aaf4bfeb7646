"""Chess as text: positions as FEN, actions as SAN and as UCI writes them, the board for people."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from uctree.game import OVER, State, StateView
from uctree.games.chess_rules import (
    KING,
    KNIGHT,
    MOST_QUIET,
    NUM_ACTIONS,
    OFFSETS,
    PAWN,
    PLANES,
    QUEEN,
    Position,
    allowed_squares,
    can_act,
    legal,
    look_at_king,
    make,
    reached,
    set_up,
    turn,
)

LETTERS = "pnbrqk"
FILE_NAMES = "abcdefgh"
MOST_MOVES = 10_000  # the largest number of a move in a FEN
PAIRS = ((0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4))

# --- positions -----------------------------------------------------------------------------------


def from_fen(fen: str) -> np.record:
    """The state of a position in FEN; rights to castle also as files (`HAha`), as in Chess960."""
    parts = fen.split()
    if not 1 <= len(parts) <= 6:
        raise ValueError(_wrong(fen, f"it has up to 6 parts; got {len(parts)}"))
    missing = ["", "w", "-", "-", "0", "1"][len(parts) :]
    board, side, castling, passant, clock, number = parts + missing
    if side not in ("w", "b"):
        raise ValueError(_wrong(fen, f'the side to move is "w" or "b"; got {side!r}'))
    squares = _squares(fen, board)
    for what, text in (("clock", clock), ("number of the move", number)):
        if not (text.isascii() and text.isdigit() and len(text) < 9):
            raise ValueError(_wrong(fen, f"the {what} is a whole number; got {text!r}"))
    if int(number) > MOST_MOVES:
        raise ValueError(_wrong(fen, f"moves are counted up to {MOST_MOVES:,}; got {number}"))
    black = int(side == "b")
    words = _words(squares, black)
    words[8] = _rights(fen, castling, squares, black)
    words[9] = _passant_square(fen, passant, squares, black)
    ply = 2 * (max(1, int(number)) - 1) + black
    state = np.zeros(1, np.dtype((np.record, Position)))[0]
    with np.errstate(over="ignore"):
        set_up(StateView(state), words, min(int(clock), MOST_QUIET), ply)
    _check_kings(fen, state)
    return state


def _wrong(fen: str, what: str) -> str:
    return f"{fen!r} is no position in FEN: {what}"


def _squares(fen: str, board: str) -> dict[int, str]:
    """The letter on each square that is taken, by `8 * rank + file`."""
    ranks = board.split("/")
    if len(ranks) != 8:
        raise ValueError(_wrong(fen, f"a board has 8 ranks; got {len(ranks)}"))
    squares = {}
    for rank, text in zip(range(7, -1, -1), ranks, strict=True):
        file = 0
        for letter in text:
            if letter in "12345678":
                file += int(letter)
            elif letter.lower() in LETTERS:
                squares[8 * rank + file] = letter
                file += 1
            else:
                raise ValueError(_wrong(fen, f"no piece is called {letter!r}"))
        if file != 8:
            raise ValueError(_wrong(fen, f"a rank has 8 squares; got {file} in {text!r}"))
    for king in "Kk":
        if sum(letter == king for letter in squares.values()) != 1:
            raise ValueError(_wrong(fen, "each side has one king"))
    if any(letter in "Pp" and square // 8 in (0, 7) for square, letter in squares.items()):
        raise ValueError(_wrong(fen, "no pawn stands on the first or the last rank"))
    return squares


def _words(squares: dict[int, str], black: int) -> np.ndarray:
    """The fields `own` to `kings` of a position, and two zeros."""
    words = [0] * 10
    for square, letter in squares.items():
        bit = 1 << (square ^ 56 * black)
        words[0 if letter.islower() == bool(black) else 1] |= bit
        words[2 + LETTERS.index(letter.lower())] |= bit
    return np.array(words, np.uint64)


def _rights(fen: str, castling: str, squares: dict[int, str], black: int) -> np.uint64:
    """The squares of the rooks that may castle."""
    found = 0
    for letter in "" if castling == "-" else castling:
        first = 0 if letter.isupper() else 56
        king, rook = ("K", "R") if letter.isupper() else ("k", "r")
        places = [place - first for place, piece in squares.items() if piece == king]
        rooks = [place - first for place in range(first, first + 8) if squares.get(place) == rook]
        if letter.lower() in FILE_NAMES:
            rooks = [place for place in rooks if place == FILE_NAMES.index(letter.lower())]
        elif letter.lower() in "kq":
            right = letter.lower() == "k"
            rooks = [place for place in rooks if (place > places[0]) == right]
            rooks = rooks[-1:] if right else rooks[:1]
        else:
            raise ValueError(_wrong(fen, f"no right to castle is called {letter!r}"))
        if not (rooks and 0 <= places[0] < 8):
            raise ValueError(_wrong(fen, f"no king and rook can castle as {letter!r} says"))
        found |= 1 << ((rooks[0] + first) ^ 56 * black)
    for first in (0, 56):  # one right for each side of the king at most
        place = next(square for square, piece in squares.items() if piece == "Kk"[first // 56])
        rights = [rook for rook in range(first, first + 8) if found >> (rook ^ 56 * black) & 1]
        if sum(rook > place for rook in rights) > 1 or sum(rook < place for rook in rights) > 1:
            raise ValueError(_wrong(fen, f"two rights to castle to the same side in {castling!r}"))
    return np.uint64(found)


def _passant_square(fen: str, passant: str, squares: dict[int, str], black: int) -> np.uint64:
    """The square behind a pawn that has just gone two steps; the empty set for none."""
    if passant == "-":
        return np.uint64(0)
    if not re.fullmatch("[a-h][36]", passant):
        raise ValueError(_wrong(fen, f"no pawn can be captured in passing on {passant!r}"))
    square = _square(passant)
    rank, pawn, back = (5, "p", 8) if black == 0 else (2, "P", -8)
    empty = square not in squares and square + back not in squares
    if square // 8 != rank or squares.get(square - back) != pawn or not empty:
        raise ValueError(_wrong(fen, f"no pawn has just passed {passant}"))
    return np.uint64(1 << (square ^ 56 * black))


def _check_kings(fen: str, state: np.record) -> None:
    """Raise ValueError if the player who is not to move is in check."""
    after = StateView(state.copy())
    with np.errstate(over="ignore"):
        turn(after)
        look_at_king(after)
    if after.checkers != 0:
        raise ValueError(_wrong(fen, "the side that is not to move is in check"))


def to_fen(state: State) -> str:
    """The position in FEN, as python-chess writes it."""
    board = board_of(state)
    ranks = ("".join(board.letters[8 * rank : 8 * rank + 8]) for rank in range(7, -1, -1))
    passant = int(state.passant)
    return " ".join(
        [
            re.sub(r"\.+", lambda empty: str(len(empty[0])), "/".join(ranks)),
            "wb"[board.black],
            _castling_text(board),
            _name((passant.bit_length() - 1) ^ 56 * board.black) if passant else "-",
            str(int(state.clock)),
            str(int(state.ply) // 2 + 1),
        ]
    )


class Board(NamedTuple):
    """A position as white sees it; squares are `8 * rank + file`."""

    letters: list[str]  # by square, upper case for white's pieces, "." for none
    black: int  # whether black is to move
    rooks: list[int]  # the squares of those that may castle


def board_of(state: State) -> Board:
    """The pieces of a state as letters."""
    black = int(state.ply) & 1
    letters = ["."] * 64
    own = int(state.own)
    for kind, field in enumerate(("pawns", "knights", "bishops", "rooks", "queens", "kings")):
        for square in _bits(int(getattr(state, field))):
            is_black = bool(own >> square & 1) == bool(black)
            letter = LETTERS[kind]
            letters[square ^ 56 * black] = letter if is_black else letter.upper()
    return Board(letters, black, [square ^ 56 * black for square in _bits(int(state.castling))])


def _bits(squares: int) -> Iterator[int]:
    while squares:
        yield (squares & -squares).bit_length() - 1
        squares &= squares - 1


def _castling_text(board: Board) -> str:
    text = ""
    for first, king, rook in ((0, "K", "R"), (56, "k", "r")):
        line = board.letters[first : first + 8]
        for file in range(7, -1, -1):
            if first + file in board.rooks:
                right = file > line.index(king)
                beyond = line[file + 1 :] if right else line[:file]
                letter = FILE_NAMES[file] if rook in beyond else "qk"[right]
                text += letter.upper() if first == 0 else letter
    return text or "-"


def start_960(number: int) -> str:
    """The FEN of a start position of Chess960; 518 is the usual one."""
    if not 0 <= number < 960:
        raise ValueError(f"start positions of Chess960 are numbered from 0 to 959; got {number}")
    rest, light = divmod(number, 4)
    rest, dark = divmod(rest, 4)
    knights, queen = divmod(rest, 6)
    row = {2 * light + 1: "b", 2 * dark: "b"}
    free = [file for file in range(8) if file not in row]
    row[free.pop(queen)] = "q"
    for place in reversed(PAIRS[knights]):
        row[free.pop(place)] = "n"
    row |= dict(zip(free, "rkr", strict=True))
    text = "".join(row[file] for file in range(8))
    return f"{text}/pppppppp/8/8/8/8/PPPPPPPP/{text.upper()} w KQkq - 0 1"


# --- actions -------------------------------------------------------------------------------------


def _square(name: str) -> int:
    return 8 * (int(name[1]) - 1) + FILE_NAMES.index(name[0])


def _name(square: int) -> str:
    return f"{FILE_NAMES[square % 8]}{square // 8 + 1}"


def _copy(state: State) -> StateView:
    """A state that may be changed."""
    record = np.zeros(1, np.dtype((np.record, Position)))[0]
    for field in Position.names or ():
        record[field] = getattr(state, field)
    return StateView(record)


class Move(NamedTuple):
    """What an action does, as white sees it."""

    square: int
    goal: int  # that of the rook if it is castling
    becomes: int  # the kind that a pawn becomes; PAWN if it becomes nothing
    castles: bool


def move_of(board: Board, action: int) -> Move:
    """The move that an action stands for."""
    square, plane = divmod(int(action), PLANES)
    goal = square + int(OFFSETS[plane])
    flip = 56 * board.black
    letter = board.letters[square ^ flip].lower()
    taken = board.letters[goal ^ flip]
    is_own = taken != "." and taken.islower() == bool(board.black)
    if letter == "k" and (is_own or 2 <= abs(goal - square) <= 6):
        right = goal > square
        rooks = [rook for rook in board.rooks if rook // 8 == 7 * board.black]
        rook = next(rook for rook in rooks if (rook % 8 > square % 8) == right)
        return Move(square ^ flip, rook, int(PAWN), True)
    becomes = int(PAWN)
    if letter == "p" and goal >= 56:
        becomes = int(QUEEN) if plane < 64 else int(KNIGHT) + (plane - 64) % 3
    return Move(square ^ flip, goal ^ flip, becomes, False)


def to_san(state: State, action: int) -> str:
    """An action in standard algebraic notation, such as `Nbd7`, `exd8=Q+` or `O-O`."""
    board = board_of(state)
    move = move_of(board, action)
    if move.castles:
        return _castling_name(move) + _ending(state, action)
    letter = board.letters[move.square].lower()
    captures = board.letters[move.goal] != "."
    captures |= letter == "p" and move.square % 8 != move.goal % 8
    if letter == "p":
        text = FILE_NAMES[move.square % 8] if captures else ""
    else:
        text = letter.upper() + _distinction(state, board, move)
    text += ("x" if captures else "") + _name(move.goal)
    text += f"={LETTERS[move.becomes].upper()}" if move.becomes != PAWN else ""
    return text + _ending(state, action)


def _castling_name(move: Move) -> str:
    return "O-O" if move.goal > move.square else "O-O-O"


def _distinction(state: State, board: Board, move: Move) -> str:
    """The file or rank that tells a piece from others of its kind with the same goal."""
    letter = board.letters[move.square]
    kind = LETTERS.index(letter.lower())
    flip = 56 * board.black
    others = []
    with np.errstate(over="ignore"):
        allowed = allowed_squares(state)
        for square, other in enumerate(board.letters):
            if other == letter and square != move.square and kind != KING:
                if int(reached(state, kind, square ^ flip, allowed)) >> (move.goal ^ flip) & 1:
                    others.append(square)
    if not others:
        return ""
    same_file = any(other % 8 == move.square % 8 for other in others)
    same_rank = any(other // 8 == move.square // 8 for other in others)
    file, rank = tuple(_name(move.square))
    return (file if same_rank or not same_file else "") + (rank if same_file else "")


def _ending(state: State, action: int) -> str:
    """The sign of mate, of check, or none."""
    after = _copy(state)
    with np.errstate(over="ignore"):
        make(after, action)
        if after.checkers == 0:
            return ""
        return "+" if can_act(after) else "#"


def to_uci(state: State, action: int, chess960: bool = False) -> str:
    """An action as UCI writes it, such as `e7e8q`; in Chess960 a king castles to its rook."""
    move = move_of(board_of(state), action)
    goal = move.goal
    if move.castles and not chess960:
        goal = (goal & 56) + (6 if goal > move.square else 2)
    return _name(move.square) + _name(goal) + (LETTERS[move.becomes] if move.becomes else "")


MOVE = re.compile(
    "(?P<piece>[NBRQK]?)(?P<file>[a-h]?)(?P<rank>[1-8]?)[x:-]?(?P<goal>[a-h][1-8])"
    "(?:=?(?P<becomes>[NBRQnbrq]))?"
)


def read_move(state: State, text: str) -> int:
    """The legal action that a text in SAN or UCI stands for; -1 if it is none or ambiguous."""
    text = text.strip().rstrip("+#!?")
    match = MOVE.fullmatch(text)
    board = board_of(state)
    found = []
    for action in _legal(state):
        move = move_of(board, action)
        if move.castles:
            names = {_castling_name(move), to_uci(state, action, chess960=True)}
            usual = to_uci(state, action)
            # A king of Chess960 may step to where it also castles to; that is a step then.
            if abs(FILE_NAMES.index(usual[2]) - move.square % 8) > 1:
                names.add(usual)
            is_meant = text in names or text.replace("0", "O").upper() in names
        else:
            is_meant = match is not None and _fits(match, board.letters[move.square], move)
        if is_meant:
            found.append(action)
    return found[0] if len(found) == 1 else -1


def _legal(state: State) -> list[int]:
    if state.to_play == OVER:
        return []
    actions = np.zeros(NUM_ACTIONS, np.int32)
    with np.errstate(over="ignore"):
        return actions[: legal(state, actions)].tolist()


def _fits(match: re.Match[str], letter: str, move: Move) -> bool:
    """Whether a text that looks like a move stands for this one."""
    is_uci = not match["piece"] and bool(match["file"]) and bool(match["rank"])
    wanted = PAWN if match["becomes"] is None else LETTERS.index(match["becomes"].lower())
    file, rank = tuple(_name(move.square))
    return (
        (is_uci or letter.upper() == (match["piece"] or "P"))
        and _name(move.goal) == match["goal"]
        and match["file"] in ("", file)
        and match["rank"] in ("", rank)
        and move.becomes == wanted
    )


# --- the board -----------------------------------------------------------------------------------


def show(state):
    letters = board_of(state).letters
    text = [f"{rank + 1} {' '.join(letters[8 * rank : 8 * rank + 8])}" for rank in range(7, -1, -1)]
    return "\n".join([*text, "  " + " ".join(FILE_NAMES), to_fen(state)])

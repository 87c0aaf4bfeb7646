"""Episodes of self-play on disk, and batches for training drawn from the last of them.

    replay/
      layout.json       the game, and the dtype of a position; sealed
      episodes.index    one ENTRY per episode: its id, where its positions are, their SHA-256
      000000.positions  positions one after the other, each a record of `position_dtype`
      000001.positions  ...

Positions are numbered as they are appended, and keep their numbers. An episode is there from the
moment its entry is: what a killed process left of the next one is cut off. A position keeps its
state, not what a network is shown of it; observations are made when a batch is drawn.
"""

from __future__ import annotations

import hashlib
import math
import os
import weakref
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np

from uctree import evaluators, treefile
from uctree._compile import UNBOUND, Kernel, compile_kernel, interpreted
from uctree.errors import BrokenGame, UctreeError
from uctree.evaluators import GUARD
from uctree.game import Game, State, StateViews
from uctree.learn import files
from uctree.learn.options import check_learnable
from uctree.learn.targets import mixed_values, symmetries_of

# Bound when a kernel is composed.
legal = observe = UNBOUND
NUM_ACTIONS = GUARD_AT = UNBOUND

FORMAT = "uctree replay"
VERSION = 1
POLICY_SLOTS = 256  # a policy keeps at most so many actions, those with the largest shares
SHARD_BYTES = 64 << 20
NONE = -1  # the action of a slot that is not used

ENTRY = np.dtype([
    ("episode", "<u8"),  # its id
    ("first", "<u8"),  # the number of its first position
    ("count", "<u4"),  # of its positions
    ("shard", "<u4"),  # the file they are in
    ("place", "<u4"),  # how many positions are before them in that file
    ("sha256", "u1", 32),  # of their bytes
    ("crc32", "<u4"),  # of what comes before in this entry
])  # fmt: skip

UNSEEN, WHOLE, DAMAGED = range(3)  # what is known of an episode's positions

# --- positions -----------------------------------------------------------------------------------


def position_dtype(game: Game) -> np.dtype:
    """One position of an episode as it is stored.

    `policy_actions` and `policy_shares` are the actions of the policy by falling share; a slot that
    is not used has the action -1. `returns` and `search_values` are in the frame of the player to
    play: me, next, ..., previous. `weight` says how often the position is drawn, `policy_weight`
    how much its policy counts in the loss.
    """
    check_learnable(game)
    slots = min(game.num_actions, POLICY_SLOTS)
    return np.dtype([
        ("state", game.dtype), ("policy_actions", "<i4", slots), ("policy_shares", "<f4", slots),
        ("returns", "<f4", game.num_players), ("search_values", "<f4", game.num_players),
        ("weight", "<f4"), ("policy_weight", "<f4"), ("ply", "<i4"),
    ])  # fmt: skip


def make_positions(
    game: Game, states: np.ndarray, policies: Any, returns: Any, *, search_values: Any = None,
    weights: Any = 1.0, policy_weights: Any = 1.0, plies: Any = None,
) -> np.ndarray:  # fmt: skip
    """The positions of an episode, ready to be appended.

    A policy with more actions than a position has slots keeps those with the largest shares, which
    then add up to 1 again.

    Args:
        states: one record per position, each with a player to play.
        policies: [num_positions, num_actions], or for each position a pair (actions, shares).
        returns: [num_positions, num_players], in the frame of the player to play.
        search_values: the same for what the search expected; `returns` where it is None.
        plies: 0, 1, ... where it is None.
    """
    positions = np.zeros(len(states), position_dtype(game))
    positions["state"] = states
    positions["policy_actions"] = NONE
    for position, policy in zip(positions, policies, strict=True):
        actions, shares = _largest(policy, positions.dtype["policy_actions"].shape[0])
        position["policy_actions"][: len(actions)] = actions
        position["policy_shares"][: len(actions)] = shares
    positions["returns"] = returns
    positions["search_values"] = returns if search_values is None else search_values
    positions["weight"] = weights
    positions["policy_weight"] = policy_weights
    positions["ply"] = np.arange(len(states)) if plies is None else plies
    return positions


def _largest(policy: Any, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Actions and shares of a policy by falling share, at most so many, none of them 0."""
    if isinstance(policy, tuple):
        actions, shares = np.asarray(policy[0]), np.asarray(policy[1], float)
    else:
        shares = np.asarray(policy, float)
        actions = np.arange(len(shares))
    order = np.argsort(-shares, kind="stable")
    order = order[: min(most, np.count_nonzero(shares))]
    kept = shares[order]
    if len(order) < np.count_nonzero(shares):
        kept = kept / kept.sum()
    return actions[order], kept


def _check_positions(game: Game, positions: Any) -> None:
    """Raise UctreeError where positions cannot be trained on."""
    dtype = position_dtype(game)
    if not isinstance(positions, np.ndarray) or positions.dtype != dtype or positions.ndim != 1:
        raise UctreeError(
            f"an episode is an array of positions of {game.name}, as make_positions gives them; "
            f"got {type(positions).__name__} of dtype {getattr(positions, 'dtype', None)}"
        )
    if len(positions) == 0:
        raise UctreeError("an episode has at least one position; got none")
    actions, shares = positions["policy_actions"], positions["policy_shares"]
    players = positions["state"]["to_play"]
    sums = np.where(actions >= 0, shares, 0.0).sum(axis=1)
    finite = [
        np.isfinite(positions[name]).all()
        for name in ("returns", "search_values", "policy_shares", "weight", "policy_weight")
    ]
    wrong = {
        "a state where nobody is to play": (players < 0) | (players >= game.num_players),
        "an action that is not there": ((actions < NONE) | (actions >= game.num_actions)).any(1),
        "a policy that does not add up to 1": (abs(sums - 1.0) > 1e-3)
        & (positions["policy_weight"] > 0),
        "a share or a weight below 0": (shares < 0).any(1)
        | (positions["weight"] < 0)
        | (positions["policy_weight"] < 0),
        "a number that is not finite": np.full(len(positions), not all(finite)),
    }
    for what, where in wrong.items():
        if where.any():
            raise UctreeError(
                f"position {int(np.argmax(where))} of the episode has {what}: "
                f"{str(positions[int(np.argmax(where))])[:300]}"
            )


# --- the files -----------------------------------------------------------------------------------


class Replay:
    """The episodes of a run: appended whole, each once, and drawn from by `window`."""

    def __init__(
        self, folder: str | os.PathLike[str], game: Game, *, read_only: bool = False,
        shard_bytes: int = SHARD_BYTES, report: Callable[[str], object] | None = None,
    ) -> None:  # fmt: skip
        """
        Args:
            read_only: change nothing, not even what a killed process left.
            shard_bytes: a file that would grow beyond this is followed by another.
            report: gets each of the `warnings` as it comes up.
        """
        self.folder = Path(folder)
        self.game = game
        self.dtype = position_dtype(game)
        self.read_only = read_only
        self.warnings: list[str] = []  # what is damaged and left out, in words
        self._report = report
        self._shard_bytes = max(shard_bytes, self.dtype.itemsize)
        self._maps: dict[int, np.ndarray] = {}
        self._index_file: IO[bytes] | None = None
        self._shard_file: IO[bytes] | None = None
        with files.told(self.folder, "opening the replay"):
            if not read_only:
                self.folder.mkdir(parents=True, exist_ok=True)
                files.sweep(self.folder)
            self._first_shard = self._open_layout()
            self._entries, size = self._read_index()
            self._rows = {int(id): row for row, id in enumerate(self._entries["episode"])}
            self._num_rows = len(self._entries)
            self._looks = np.full(self._num_rows, UNSEEN, np.uint8)
            self._weights = np.zeros(self.end, np.float32)  # 0 where nothing whole is known
            if not read_only:
                try:
                    self._open_files(size)
                except BaseException:
                    self.close()
                    raise

    def _warn(self, text: str) -> None:
        self.warnings.append(text)
        if self._report is not None:
            self._report(text)

    # Opening.

    def _open_layout(self) -> int:
        """Hold the layout against that of the game; the first shard that was not dropped."""
        path = self.folder / "layout.json"
        do = f"restore it, or move {self.folder} away to go on without its episodes"
        try:
            layout = files.read_sealed(path)
        except FileNotFoundError:
            if self._index_path.exists():
                raise UctreeError(f"{path} is missing; {do}") from None
            if not self.read_only:
                self._write_layout(0)
            return 0
        except UctreeError as error:
            raise UctreeError(f"{error}; {do}") from None
        if layout.get("format") != FORMAT or layout.get("version") != VERSION:
            raise UctreeError(
                f"{path} has the format {layout.get('format')!r}, version "
                f"{layout.get('version')!r}; this uctree reads {FORMAT!r}, version {VERSION}"
            )
        differences = treefile.game_differences(
            layout["game"], self.game, "in the folder", "in the game"
        )
        if layout["dtype"] != treefile.describe_dtype(self.dtype):
            differences.append("positions are laid out in another way")
        if differences:
            raise UctreeError(
                f"{self.folder} has episodes of another game than {self.game.name}: "
                f"{'; '.join(differences)}. Give another folder, or the game they were played with"
            )
        return int(layout["first_shard"])

    def _write_layout(self, first_shard: int) -> None:
        files.write_sealed(self.folder / "layout.json", {
            "format": FORMAT, "version": VERSION, "game": treefile.describe_game(self.game),
            "dtype": treefile.describe_dtype(self.dtype), "first_shard": first_shard,
        })  # fmt: skip

    @property
    def _index_path(self) -> Path:
        return self.folder / "episodes.index"

    def _shard_path(self, shard: int) -> Path:
        return self.folder / f"{shard:06}.positions"

    def _read_index(self) -> tuple[np.ndarray, int]:
        """The entries that are whole, and the bytes of the index up to the last of them."""
        try:
            content = self._index_path.read_bytes()
        except FileNotFoundError:
            return np.zeros(0, ENTRY), 0
        entries = np.frombuffer(content, ENTRY, count=len(content) // ENTRY.itemsize)
        good = [row for row, entry in enumerate(entries) if _crc(entry) == entry["crc32"]]
        kept, seen, end = [], set[int](), 0
        for row in good:
            entry = entries[row]
            if entry["first"] < end or int(entry["episode"]) in seen or entry["count"] == 0:
                continue
            kept.append(row)
            seen.add(int(entry["episode"]))
            end = int(entry["first"]) + int(entry["count"])
        num_rows = kept[-1] + 1 if kept else 0
        if len(kept) < num_rows:
            self._warn(
                f"{self._index_path} is damaged: {num_rows - len(kept)} of its {num_rows} entries "
                "are left out, and the episodes they told of"
            )
        if len(content) > num_rows * ENTRY.itemsize:
            self._warn(
                f"{self._index_path} ends with {len(content) - num_rows * ENTRY.itemsize} bytes "
                "that tell of no whole episode; they are left out"
            )
        return entries[kept].copy(), num_rows * ENTRY.itemsize

    def _open_files(self, index_bytes: int) -> None:
        """Open what is appended to, and cut off what belongs to no episode."""
        self._index_file, self._index_bytes = _opened(self._index_path, index_bytes), index_bytes
        last = int(self._entries["shard"][-1]) if len(self._entries) else self._first_shard
        for path in self.folder.glob("*.positions"):
            number = path.name.partition(".")[0]
            if number.isdigit() and not self._first_shard <= int(number) <= last:
                path.unlink()
        place = self._end_in_shard(last)
        path = self._shard_path(last)
        size = path.stat().st_size if path.exists() else 0
        if size < place * self.dtype.itemsize:
            # It was cut off: what is left of it stays as it is, and another one follows.
            last, place = last + 1, 0
        self._open_shard(last, place)

    def _end_in_shard(self, shard: int) -> int:
        """How many positions a shard has by the index."""
        inside = self._entries[self._entries["shard"] == shard]
        return int((inside["place"] + inside["count"]).max(initial=0))

    def _open_shard(self, shard: int, place: int) -> None:
        if self._shard_file is not None:
            os.fsync(self._shard_file.fileno())
            self._shard_file.close()
        self._shard, self._place = shard, place
        self._shard_file = _opened(self._shard_path(shard), place * self.dtype.itemsize)
        files.sync_folder(self.folder)

    # What there is.

    def __contains__(self, episode: int) -> bool:
        return episode in self._rows

    @property
    def num_episodes(self) -> int:
        """How many episodes were appended and are known."""
        return self._num_rows

    @property
    def end(self) -> int:
        """The number that the next position gets: the cursor that a checkpoint keeps."""
        if self._num_rows == 0:
            return 0
        return self._end_of_row(self._num_rows - 1)

    def end_of(self, episode: int) -> int:
        """The number after the last position of an episode."""
        return self._end_of_row(self._row(episode))

    def _end_of_row(self, row: int) -> int:
        return int(self._entries["first"][row]) + int(self._entries["count"][row])

    def _row(self, episode: int) -> int:
        if episode not in self._rows:
            raise UctreeError(f"{self.folder} has no episode {episode}")
        return self._rows[episode]

    def positions(self, episode: int) -> np.ndarray:
        """The positions of an episode, as they were appended."""
        row = self._row(episode)
        self._look(np.array([row]))
        if self._looks[row] != WHOLE:
            raise UctreeError(
                f"the positions of episode {episode} are damaged, or were dropped: "
                f"{self._shard_path(int(self._entries['shard'][row]))}"
            )
        first = int(self._entries["first"][row])
        return self._gather(self._entries[row : row + 1], np.arange(first, self._end_of_row(row)))

    # Appending.

    def append(self, episode: int, positions: np.ndarray) -> bool:
        """Store an episode; False, and nothing is done, where one of this id is there already."""
        if self._index_file is None or self._shard_file is None:
            raise UctreeError(f"{self.folder} was opened to be read only, or is closed")
        if not 0 <= episode < 1 << 63:
            raise UctreeError(f"the id of an episode is at least 0 and below 2^63; got {episode}")
        if episode in self._rows:
            return False
        _check_positions(self.game, positions)
        content = positions.tobytes()
        with files.told(self.folder, f"storing episode {episode}"):
            if self._place and self._place * self.dtype.itemsize + len(content) > self._shard_bytes:
                self._open_shard(self._shard + 1, 0)
            entry = self._entry(episode, len(positions), content)
            files.write_at(self._shard_file, self._place * self.dtype.itemsize, content)
            files.write_at(self._index_file, self._index_bytes, entry.tobytes())
        self._index_bytes += entry.nbytes
        self._note(entry, positions["weight"])
        return True

    def _entry(self, episode: int, count: int, content: bytes) -> np.ndarray:
        entry = np.zeros((), ENTRY)
        entry["episode"], entry["first"], entry["count"] = episode, self.end, count
        entry["shard"], entry["place"] = self._shard, self._place
        entry["sha256"] = np.frombuffer(hashlib.sha256(content).digest(), np.uint8)
        entry["crc32"] = _crc(entry)
        return entry

    def _note(self, entry: np.ndarray, weights: np.ndarray) -> None:
        """Take an episode that is on disk into what is known."""
        row, start = self._num_rows, self.end
        stop = start + len(weights)
        self._entries = _roomy(self._entries, row + 1)
        self._looks = _roomy(self._looks, row + 1)
        self._weights = _roomy(self._weights, stop)
        self._entries[row], self._looks[row], self._weights[start:stop] = entry, WHOLE, weights
        self._rows[int(entry["episode"])] = row
        self._num_rows += 1
        self._place += len(weights)

    def sync(self) -> None:
        """Make all that was appended outlive a power cut."""
        with files.told(self.folder, "storing episodes"):
            for file in (self._shard_file, self._index_file):
                if file is not None:
                    os.fsync(file.fileno())

    def drop_before(self, position: int) -> None:
        """Delete the files whose positions all come before this one; their ids stay known."""
        if self._index_file is None:
            raise UctreeError(f"{self.folder} was opened to be read only, or is closed")
        entries = self._entries[: self._num_rows]
        kept = entries["shard"][entries["first"] + entries["count"] > position]
        first_shard = min(self._shard, int(kept.min(initial=self._shard)))
        if first_shard <= self._first_shard:
            return
        with files.told(self.folder, "dropping old episodes"):
            self._write_layout(first_shard)  # first, so that what is gone is known to be dropped
            for shard in range(self._first_shard, first_shard):
                self._maps.pop(shard, None)
                self._shard_path(shard).unlink(missing_ok=True)
        self._first_shard = first_shard
        gone = np.flatnonzero(entries["shard"] < first_shard)
        self._looks[gone] = DAMAGED
        self._weights[: self._end_of_row(int(gone[-1]))] = 0.0

    def close(self) -> None:
        """Append no more; what is there can still be drawn from."""
        for file in (self._shard_file, self._index_file):
            if file is not None:
                file.close()
        self._shard_file = self._index_file = None

    def __enter__(self) -> Replay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()

    # Reading.

    def _look(self, rows: np.ndarray) -> None:
        """Hold episodes that are seen for the first time against their hashes."""
        damaged: dict[int, list[int]] = {}
        for row in rows[self._looks[rows] == UNSEEN]:
            entry = self._entries[row]
            shard = int(entry["shard"])
            positions = self._positions_at(shard, int(entry["place"]), int(entry["count"]))
            if positions is not None and _sha256(positions) == entry["sha256"].tobytes():
                self._looks[row] = WHOLE
                self._weights[int(entry["first"]) : self._end_of_row(row)] = positions["weight"]
                continue
            self._looks[row] = DAMAGED
            if shard >= self._first_shard:  # others were dropped
                damaged.setdefault(shard, []).append(int(entry["episode"]))
        for shard, episodes in damaged.items():
            path = self._shard_path(shard)
            listed = ", ".join(map(str, episodes[:10])) + ("..." if len(episodes) > 10 else "")
            how = "is damaged or cut off" if path.exists() else "is missing"
            self._warn(f"{path} {how}: {len(episodes)} of its episodes are left out ({listed})")

    def _positions_at(self, shard: int, place: int, count: int) -> np.ndarray | None:
        """Positions of a shard, not copied; None where the file has not got them."""
        if len(self._maps.get(shard, ())) < place + count:
            path = self._shard_path(shard)
            try:
                size = path.stat().st_size // self.dtype.itemsize
                if size < place + count:
                    return None
                mapped = np.memmap(path, self.dtype, mode="r", shape=(size,))
            except OSError:
                return None
            self._maps[shard] = mapped.view(np.ndarray)
        return self._maps[shard][place : place + count]

    def _gather(self, entries: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Copies of positions by their numbers, all of them of whole episodes among `entries`."""
        firsts = entries["first"].astype(np.int64)
        rows = np.searchsorted(firsts, numbers, side="right") - 1
        chosen = entries[rows]
        shards = chosen["shard"]
        places = chosen["place"] + (numbers - firsts[rows])
        # As plain bytes they are copied in one go, and not field by field.
        plain = np.dtype((np.void, self.dtype.itemsize))
        positions = np.empty(len(numbers), plain)
        for shard in np.unique(shards):
            here = shards == shard
            inside = places[here]
            mapped = self._positions_at(int(shard), int(inside.max()), 1)
            if mapped is None:
                raise UctreeError(
                    f"{self._shard_path(int(shard))} was whole before, and is cut off or missing "
                    "now; open the run again to go on without it"
                )
            positions[here] = self._maps[int(shard)].view(plain)[inside]
        return positions.view(self.dtype)

    def window(self, num_positions: int, end: int | None = None) -> Window:
        """The last so many positions before `end`, a cursor of before; before all that comes."""
        end = self.end if end is None else min(end, self.end)
        start = max(0, end - num_positions)
        entries = self._entries[: self._num_rows]
        ends = entries["first"] + entries["count"]
        rows = np.flatnonzero((ends > start) & (entries["first"] < end))
        self._look(rows)
        whole = rows[self._looks[rows] == WHOLE]
        lows = np.maximum(entries["first"][whole].astype(np.int64), start)
        highs = np.minimum(ends[whole].astype(np.int64), end)
        cumulative = np.cumsum(self._weights[start:end], dtype=np.float64)
        return Window(self, start, end, int((highs - lows).sum()), entries[whole], cumulative)


def _crc(entry: np.ndarray) -> int:
    return zlib.crc32(entry.tobytes()[: ENTRY.fields["crc32"][1]])  # type: ignore[index]


def _sha256(positions: np.ndarray) -> bytes:
    return hashlib.sha256(np.ascontiguousarray(positions).view(np.uint8).data).digest()


def _opened(path: Path, size: int) -> IO[bytes]:
    """A file open for writing, new or cut to this size."""
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b", buffering=0)
    file.truncate(size)
    return file


def _roomy(array: np.ndarray, size: int) -> np.ndarray:
    """The array, or a longer one that begins with it, where it has not got `size` elements."""
    if size <= len(array):
        return array
    longer = np.zeros(max(size, 2 * len(array), 1024), array.dtype)
    longer[: len(array)] = array
    return longer


# --- batches -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Batch:
    """Positions as a network is trained on them."""

    observations: np.ndarray  # [n, *observation_shape], float32
    policy: np.ndarray  # [n, num_actions], float32
    values: np.ndarray  # [n, num_players], float32, in the frame of the player to play
    policy_weights: np.ndarray  # [n], float32
    legal: np.ndarray  # [n, num_actions], bool


@dataclass(frozen=True, eq=False)
class Window:
    """A range of positions to draw from; what is appended later does not change it."""

    replay: Replay
    start: int
    end: int
    num_positions: int  # without those that are damaged
    entries: np.ndarray  # of the episodes they are of
    cumulative: np.ndarray  # [end - start], the weights added up

    def draw(
        self, rng: np.random.Generator, batch_size: int, *, value_mix: float = 0.0,
        symmetries: bool = True,
    ) -> Batch:  # fmt: skip
        """A batch of positions, each drawn by its weight, with replacement.

        Args:
            value_mix: how much of the values is what the search expected; the rest is returns.
            symmetries: whether each position is turned by a random symmetry of the game, if any.
        """
        positions = self.draw_positions(rng, batch_size)
        game = self.replay.game
        choices = np.zeros(batch_size, np.int64)
        if symmetries and game.symmetries is not None:
            choices = rng.integers(len(symmetries_of(game)[0]), size=batch_size)
        return make_batch(game, positions, choices, value_mix)

    def draw_positions(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Positions drawn by their weights, as they were stored."""
        total = self.cumulative[-1] if len(self.cumulative) else 0.0
        if not total > 0:
            raise UctreeError(
                f"{self.replay.folder} has no position to draw from {self.start} to {self.end}: "
                f"{self.num_positions} are there, and none has a weight above 0"
            )
        drawn = np.searchsorted(self.cumulative, rng.random(count) * total, side="right")
        last = np.searchsorted(self.cumulative, total)  # rounding may lead beyond it
        return self.replay._gather(self.entries, self.start + np.minimum(drawn, last))


def observed(game: Game, states: Sequence[State]) -> Batch:
    """States as a network is shown them, and what is legal there."""
    positions = np.zeros(len(states), position_dtype(game))
    for place, state in enumerate(states):
        positions["state"][place] = state
    positions["policy_actions"] = -1
    return make_batch(game, positions, np.zeros(len(states), np.int64))


def make_batch(
    game: Game, positions: np.ndarray, choices: np.ndarray, value_mix: float = 0.0
) -> Batch:
    """What a network is shown of positions, and taught, each after a symmetry of the game."""
    count, shape = len(positions), game.observation_shape or ()
    action_table, cell_table = _tables(game)
    num_cells = cell_table.shape[1]
    states = np.ascontiguousarray(positions["state"])
    planes = np.empty((count, math.prod(shape) // num_cells, num_cells), np.float32)
    policy = np.zeros((count, game.num_actions), np.float32)
    mask = np.zeros((count, game.num_actions), np.bool_)
    scratch = np.zeros(shape, np.float32)
    arguments = (
        StateViews(states) if interpreted() else states,
        np.ascontiguousarray(positions["policy_actions"]),
        np.ascontiguousarray(positions["policy_shares"]), np.asarray(choices, np.int64),
        action_table, cell_table, scratch, scratch.reshape(planes.shape[1:]), planes, policy, mask,
        evaluators.action_room(game), game.data,
    )  # fmt: skip
    status = _kernel(game, arguments).call(*arguments)
    if status < 0:
        raise BrokenGame(
            f"legal of {game.name} is wrong in a state of the replay; uctree check says how"
        )
    values = mixed_values(positions["returns"], positions["search_values"], value_mix)
    return Batch(
        planes.reshape(count, *shape), policy, values.astype(np.float32),
        positions["policy_weight"].copy(), mask,
    )  # fmt: skip


# Compiled code and tables by game, as long as the game is alive.
_known: weakref.WeakKeyDictionary[Game, Kernel] = weakref.WeakKeyDictionary()


def _kernel(game: Game, arguments: tuple[Any, ...]) -> Kernel:
    """The kernel that makes batches of a game, from memory, from disk, or compiled now."""
    if game not in _known:
        bound = {
            "legal": evaluators.rule(game, "legal"),
            "observe": evaluators.rule(game, "observe"),
            "NUM_ACTIONS": game.num_actions,
            "GUARD_AT": max(game.num_actions, game.max_outcomes),
        }
        label = f"{game.name}: batches"
        _known[game] = compile_kernel(fill_batch, bound, arguments, label=label)
    return _known[game]


def _tables(game: Game) -> tuple[np.ndarray, np.ndarray]:
    """The symmetries of actions and of cells; the identity alone where the game has none."""
    if game.symmetries is None:
        num_cells = math.prod(game.observation_shape or ())
        return np.arange(game.num_actions)[None], np.arange(num_cells)[None]
    actions, cells = symmetries_of(game)
    return np.ascontiguousarray(actions, np.int64), np.ascontiguousarray(cells, np.int64)


def fill_batch(
    states: Any, policy_actions: np.ndarray, policy_shares: np.ndarray, choices: np.ndarray,
    action_table: np.ndarray, cell_table: np.ndarray, observation: np.ndarray,
    cells: np.ndarray, planes: np.ndarray, policy: np.ndarray, mask: np.ndarray,
    actions: np.ndarray, data: Any,
) -> int:  # fmt: skip
    """Write observations, policies and legal actions of states; negative where `legal` is wrong.

    `observation` and `cells` are the same numbers: as the game writes them, and by plane and cell.
    """
    for i in range(planes.shape[0]):
        choice = choices[i]
        for plane in range(planes.shape[1]):
            for cell in range(planes.shape[2]):
                cells[plane, cell] = 0.0
        observe(states[i], np.int64(states[i].to_play), observation, data)
        for plane in range(planes.shape[1]):
            for cell in range(planes.shape[2]):
                planes[i, plane, cell_table[choice, cell]] = cells[plane, cell]
        for slot in range(policy_actions.shape[1]):
            if policy_actions[i, slot] >= 0:
                action = action_table[choice, policy_actions[i, slot]]
                policy[i, action] = policy_shares[i, slot]
        count = np.int64(legal(states[i], actions, data))
        if count < 1 or count > NUM_ACTIONS or actions[GUARD_AT] != GUARD:
            return -1
        for j in range(count):
            mask[i, action_table[choice, actions[j]]] = True
    return 0

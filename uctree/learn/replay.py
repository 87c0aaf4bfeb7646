"""Episodes of self-play on disk, and training batches drawn from the newest positions.

    replay/
      layout.json       the game and the dtype of a position, with a checksum
      episodes.index    one ENTRY per episode: its id, where its positions are, their SHA-256
      000000.positions  a shard: positions one after the other, records of `position_dtype`
      000001.positions  ...

Positions are numbered in the order in which they are appended, and keep their numbers. An episode
is stored once its entry is written; an incomplete one that a killed process leaves is cut off. A
position stores its state, not the observation, which is computed when a batch is drawn. If states
are large, it stores the action instead; see `uctree.learn.moves`.
"""

from __future__ import annotations

import functools
import hashlib
import math
import os
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np

from uctree.engine import interrupts, treefile
from uctree.engine.bindings import action_array, bound_rule
from uctree.engine.compile import Kernel, compile_kernel, interpreted
from uctree.engine.identity import describe_game, game_differences
from uctree.engine.recent import table_of
from uctree.errors import UctreeError
from uctree.game import Game, State, StateViews
from uctree.learn import files, moves
from uctree.learn.filling import CHOICE, NONE, fill_batch
from uctree.learn.moves import Paths, Retracer, players_of
from uctree.learn.options import check_learnable
from uctree.learn.targets import mixed_values, symmetries_of

FORMAT = "uctree replay"
VERSION = 1
POLICY_SLOTS = 256  # the most actions of a stored policy, those with the largest shares
SHARD_BYTES = 64 << 20
MOST_POSITIONS = 1 << 60
MOST_LOST = 10_000_000  # positions without their shard that are left out, not an error

ENTRY = np.dtype([
    ("episode", "<u8"),  # its id
    ("first", "<u8"),  # the number of its first position
    ("count", "<u4"),  # the number of positions
    ("shard", "<u4"),  # the number of the file
    ("offset", "<u4"),  # of its first position in the file, in positions
    ("sha256", "u1", 32),  # of the bytes of its positions
    ("crc32", "<u4"),  # of the fields above
])  # fmt: skip

UNVERIFIED, INTACT, DAMAGED = range(3)  # of an episode's positions

# --- positions -----------------------------------------------------------------------------------


def position_dtype(game: Game) -> np.dtype:
    """The dtype of a stored position.

    `policy_actions` and `policy_shares` are the actions of the policy by falling share; an unused
    slot has the action -1. `returns` and `search_values` begin with the player to move: me, next,
    ..., previous. `weight` says how often the position is drawn, `policy_weight` how much its
    policy counts in the loss.

    If states are large, `action` and `to_play` take the place of `state`, every ply of an episode
    has a position, and a policy may leave out a part, which is spread over all other legal actions.
    """
    check_learnable(game)
    return np.dtype([
        *moves.state_fields(game), *moves.policy_fields(game, POLICY_SLOTS),
        ("returns", "<f4", game.num_players), ("search_values", "<f4", game.num_players),
        ("weight", "<f4"), ("policy_weight", "<f4"), ("ply", "<i4"),
    ])  # fmt: skip


def make_positions(
    game: Game, states: np.ndarray, policies: Any, returns: Any, *, search_values: Any = None,
    weights: Any = 1.0, policy_weights: Any = 1.0, plies: Any = None, actions: Any = (),
) -> np.ndarray:  # fmt: skip
    """The positions of an episode, ready for `Replay.append`.

    A policy with more actions than a position has slots is cut to the largest shares, scaled to
    add up to 1 unless what is left out can be spread.

    Args:
        states: one record per position, each with a player to move. If actions are stored, only
            `to_play` is read.
        actions: [num_positions], those that were taken, of the whole game; needed if they are
            stored. The first position is then the start of the game.
        policies: [num_positions, num_actions], or for each position a pair (actions, shares).
        returns: [num_positions, num_players], the player to move first.
        search_values: the values of the search, like `returns`; None: the same as `returns`.
        plies: None: 0, 1, ...
    """
    positions = np.zeros(len(states), position_dtype(game))
    moves.write_states(positions, states, actions)
    write_policies(positions, policies)
    positions["returns"] = returns
    positions["search_values"] = returns if search_values is None else search_values
    positions["weight"] = weights
    positions["policy_weight"] = policy_weights
    positions["ply"] = np.arange(len(states)) if plies is None else plies
    return positions


def write_policies(positions: np.ndarray, policies: Any) -> None:
    """Write the policy of each position; what does not fit into its slots is left out."""
    positions["policy_actions"] = NONE
    slots, has_rest = positions.dtype["policy_actions"].shape[0], moves.has_rest(positions)
    for position, policy in zip(positions, policies, strict=True):
        actions, shares = _top_actions(policy, slots, has_rest)
        position["policy_actions"][: len(actions)] = actions
        position["policy_shares"][: len(actions)] = shares


def _top_actions(policy: Any, most: int, has_rest: bool) -> tuple[np.ndarray, np.ndarray]:
    """At most `most` actions of a policy and their shares, by falling share, without zeros."""
    if isinstance(policy, tuple):
        actions, shares = np.asarray(policy[0]), np.asarray(policy[1], float)
    else:
        shares = np.asarray(policy, float)
        actions = np.arange(len(shares))
    order = np.argsort(-shares, kind="stable")
    order = order[: min(most, np.count_nonzero(shares))]
    largest = shares[order]
    if not has_rest and len(order) < np.count_nonzero(shares):
        largest = largest / largest.sum()
    return actions[order], largest


def _check_positions(game: Game, positions: Any) -> None:
    """Raise UctreeError if positions cannot be trained on."""
    check_array(game, positions, position_dtype(game))
    check_numbers(positions, ("returns", "search_values", "policy_shares"))
    refuse_where(positions, faults_of(game, positions))
    moves.check_moves(game, positions)


def check_array(game: Game, positions: Any, dtype: np.dtype) -> None:
    """Raise UctreeError unless this is an array of at least one position."""
    if not isinstance(positions, np.ndarray) or positions.dtype != dtype or positions.ndim != 1:
        raise UctreeError(
            f"an episode is an array of positions of {game.name}, made by make_positions; got "
            f"{type(positions).__name__} of dtype {getattr(positions, 'dtype', None)}"
        )
    if len(positions) == 0:
        raise UctreeError("an episode has at least one position; got none")


def check_numbers(positions: np.ndarray, names: Sequence[str]) -> None:
    """Raise UctreeError if a field of these, or a weight, has a number that is not finite."""
    finite = [np.isfinite(positions[name]).all() for name in (*names, "weight", "policy_weight")]
    what = "a number that is not finite"
    refuse_where(positions, {what: np.full(len(positions), not all(finite))})


def faults_of(game: Game, positions: np.ndarray) -> dict[str, np.ndarray]:
    """What can be wrong with the states, policies and weights of positions, and where it is."""
    actions, shares = positions["policy_actions"], positions["policy_shares"]
    players = players_of(positions)
    sums = np.where(actions >= 0, shares, 0.0).sum(axis=1, dtype=float)
    is_wrong = abs(sums - 1.0) > 1e-3
    if moves.has_rest(positions):
        is_wrong = (sums <= 0.0) | (sums > 1.01)
    return {
        "a state without a player to move": (players < 0) | (players >= game.num_players),
        "an action out of range": ((actions < NONE) | (actions >= game.num_actions)).any(1),
        "a policy that does not add up to 1": is_wrong & (positions["policy_weight"] > 0),
        "a share or a weight below 0": (shares < 0).any(1)
        | (positions["weight"] < 0)
        | (positions["policy_weight"] < 0),
    }


def refuse_where(positions: np.ndarray, faults: dict[str, np.ndarray]) -> None:
    """Raise UctreeError for the first fault that some position has."""
    for what, where in faults.items():
        if where.any():
            raise UctreeError(
                f"position {int(np.argmax(where))} of the episode has {what}: "
                f"{str(positions[int(np.argmax(where))])[:300]}"
            )


# --- the files -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Schema:
    """What a replay stores: the dtype of a position, and a check that raises UctreeError."""

    dtype: np.dtype
    check: Callable[[Any], None]


def positions_schema(game: Game) -> Schema:
    """The schema of positions that are learned from one by one."""
    return Schema(position_dtype(game), functools.partial(_check_positions, game))


class Replay:
    """The episodes of a run: `append` stores one, `window` gives positions to draw from."""

    def __init__(
        self, folder: str | os.PathLike[str], game: Game, *, schema: Schema | None = None,
        read_only: bool = False, shard_bytes: int = SHARD_BYTES,
        report: Callable[[str], object] | None = None,
    ) -> None:  # fmt: skip
        """
        Args:
            schema: that of `position_dtype` by default.
            read_only: change no file, not even to cut off an incomplete episode.
            shard_bytes: the size at which a new shard begins.
            report: called with each of the `warnings` when it arises.
        """
        self.folder = Path(folder)
        self.game = game
        schema = positions_schema(game) if schema is None else schema
        self.dtype, self._check = schema.dtype, schema.check
        self.read_only = read_only
        self.warnings: list[str] = []  # messages about damaged episodes that are left out
        self._report = report
        self._shard_bytes = max(shard_bytes, self.dtype.itemsize)
        self._maps: dict[int, np.ndarray] = {}
        self._retracer: Retracer | None = None
        self._index_file: IO[bytes] | None = None
        self._shard_file: IO[bytes] | None = None
        with files.explain_os_errors(self.folder, "opening the replay"):
            if not read_only:
                files.check_own_folder(self.folder)
                self.folder.mkdir(parents=True, exist_ok=True)
                files.delete_temporaries(self.folder)
            self._first_shard = self._open_layout()
            self._entries, size = self._read_index()
            self._rows = {int(id): row for row, id in enumerate(self._entries["episode"])}
            self._num_rows = len(self._entries)
            self._integrity = np.full(self._num_rows, UNVERIFIED, np.uint8)
            self._base = self._first_stored()
            # Of the positions from `base` on; 0 for episodes that are not intact.
            self._weights = np.zeros(self.end - self._base, np.float32)
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
        """The first shard that was not dropped; UctreeError if the layout is of another game."""
        path = self.folder / "layout.json"
        do = f"restore it, or move {self.folder} away to continue without its episodes"
        try:
            layout = files.read_json(path)
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
        described, first_shard = layout.get("game"), layout.get("first_shard")
        if not isinstance(described, dict) or type(first_shard) is not int or first_shard < 0:
            raise UctreeError(f"{path} has no game or no first_shard; {do}")
        differences = game_differences(described, self.game, "in the folder", "in the game")
        if layout.get("dtype") != treefile.describe_dtype(self.dtype):
            differences.append("positions have another dtype")
        if differences:
            raise UctreeError(
                f"{self.folder} has episodes of another game than {self.game.name}: "
                f"{'; '.join(differences)}. Choose another folder, or pass the game of the episodes"
            )
        return first_shard

    def _write_layout(self, first_shard: int) -> None:
        files.write_json(self.folder / "layout.json", {
            "format": FORMAT, "version": VERSION, "game": describe_game(self.game),
            "dtype": treefile.describe_dtype(self.dtype), "first_shard": first_shard,
        })  # fmt: skip

    @property
    def _index_path(self) -> Path:
        return self.folder / "episodes.index"

    def _shard_path(self, shard: int) -> Path:
        return self.folder / f"{shard:06}.positions"

    def _read_index(self) -> tuple[np.ndarray, int]:
        """The intact entries, and the size in bytes of the index up to the last of them."""
        try:
            content = files.read_own(self._index_path)
        except FileNotFoundError:
            return np.zeros(0, ENTRY), 0
        entries = np.frombuffer(content, ENTRY, count=len(content) // ENTRY.itemsize)
        good = [row for row, entry in enumerate(entries) if _crc(entry) == entry["crc32"]]
        valid, seen, end = [], set[int](), 0
        for row in good:
            entry = entries[row]
            if entry["first"] < end or int(entry["episode"]) in seen or entry["count"] == 0:
                continue
            if entry["first"] > MOST_POSITIONS:
                continue
            valid.append(row)
            seen.add(int(entry["episode"]))
            end = int(entry["first"]) + int(entry["count"])
        num_rows = valid[-1] + 1 if valid else 0
        if len(valid) < num_rows:
            self._warn(
                f"{self._index_path} is damaged: {num_rows - len(valid)} of its {num_rows} entries "
                "and their episodes are left out"
            )
        if len(content) > num_rows * ENTRY.itemsize:
            self._warn(
                f"{self._index_path} ends with {len(content) - num_rows * ENTRY.itemsize} bytes "
                "that are no complete entry; they are left out"
            )
        return entries[valid].copy(), num_rows * ENTRY.itemsize

    def _first_stored(self) -> int:
        """The number of the first position that was not dropped.

        UctreeError if the index counts far more positions than there can be in the shards.
        """
        stored = self._entries["shard"] >= self._first_shard
        if not stored.any():
            return self.end
        base = int(self._entries["first"][int(np.argmax(stored))])
        shards = [path for path in self.folder.glob("*.positions") if path.exists()]
        num_bytes = sum(path.stat().st_size for path in shards)
        if self.end - base > 4 * (num_bytes // self.dtype.itemsize) + MOST_LOST:
            raise UctreeError(
                f"{self._index_path} counts {self.end - base:,} positions, and the shards beside "
                f"it have {num_bytes:,} bytes; restore it, or move {self.folder} away to continue "
                "without its episodes"
            )
        return base

    def _open_files(self, index_bytes: int) -> None:
        """Open the files to append to, and cut off bytes that belong to no episode."""
        self._index_file, self._index_bytes = _open_at(self._index_path, index_bytes), index_bytes
        last = int(self._entries["shard"][-1]) if len(self._entries) else self._first_shard
        for path in self.folder.glob("*.positions"):
            number = path.name.partition(".")[0]
            if number.isdigit() and not self._first_shard <= int(number) <= last:
                path.unlink()
        offset = self._shard_length(last)
        path = self._shard_path(last)
        size = path.stat().st_size if path.exists() else 0
        if size < offset * self.dtype.itemsize:
            # The shard is truncated: it stays as it is, and a new one begins.
            last, offset = last + 1, 0
        self._open_shard(last, offset)

    def _shard_length(self, shard: int) -> int:
        """The number of positions of a shard, by the index."""
        inside = self._entries[self._entries["shard"] == shard]
        return int((inside["offset"].astype(np.int64) + inside["count"]).max(initial=0))

    def _open_shard(self, shard: int, offset: int) -> None:
        if self._shard_file is not None:
            os.fsync(self._shard_file.fileno())
            self._shard_file.close()
        self._shard, self._offset = shard, offset
        self._shard_file = _open_at(self._shard_path(shard), offset * self.dtype.itemsize)
        files.sync_folder(self.folder)

    # Contents.

    def __contains__(self, episode: int) -> bool:
        return episode in self._rows

    @property
    def num_episodes(self) -> int:
        """The number of episodes in the index."""
        return self._num_rows

    @property
    def end(self) -> int:
        """The number of the next position; checkpoints store it as their cursor."""
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
        self._verify(np.array([row]))
        if self._integrity[row] != INTACT:
            raise UctreeError(
                f"the positions of episode {episode} are damaged or were dropped: "
                f"{self._shard_path(int(self._entries['shard'][row]))}"
            )
        first = int(self._entries["first"][row])
        return self.gather(self._entries[row : row + 1], np.arange(first, self._end_of_row(row)))

    @property
    def base(self) -> int:
        """The number of the first position that was not dropped when the replay was opened."""
        return self._base

    def entries_between(self, start: int, end: int) -> np.ndarray:
        """The index entries of the episodes whose positions lie between two numbers."""
        entries = self._entries[: self._num_rows]
        firsts = entries["first"].astype(np.int64)
        return entries[(firsts >= start) & (firsts + entries["count"] <= end)].copy()

    def intact_positions(self, entry: np.ndarray) -> np.ndarray | None:
        """The positions of an entry; None if they are damaged or were dropped."""
        row = self._row(int(entry["episode"]))
        self._verify(np.array([row]))
        if self._integrity[row] != INTACT:
            return None
        return self.positions(int(entry["episode"]))

    # Appending.

    def append(self, episode: int, positions: np.ndarray) -> bool:
        """Store an episode; False if one with this id is already stored, which is not changed."""
        if self._index_file is None or self._shard_file is None:
            raise UctreeError(f"{self.folder} was opened read only, or is closed")
        if not 0 <= episode < 1 << 63:
            raise UctreeError(f"the id of an episode is at least 0 and below 2^63; got {episode}")
        if episode in self._rows:
            return False
        self._check(positions)
        content = positions.tobytes()
        storing = files.explain_os_errors(self.folder, f"storing episode {episode}")
        with interrupts.postponed(), storing:
            size = self._offset * self.dtype.itemsize
            if self._offset and size + len(content) > self._shard_bytes:
                self._open_shard(self._shard + 1, 0)
            entry = self._entry(episode, len(positions), content)
            files.write_at(self._shard_file, self._offset * self.dtype.itemsize, content)
            files.write_at(self._index_file, self._index_bytes, entry.tobytes())
        self._index_bytes += entry.nbytes
        self._register(entry, positions["weight"])
        return True

    def _entry(self, episode: int, count: int, content: bytes) -> np.ndarray:
        entry = np.zeros((), ENTRY)
        entry["episode"], entry["first"], entry["count"] = episode, self.end, count
        entry["shard"], entry["offset"] = self._shard, self._offset
        entry["sha256"] = np.frombuffer(hashlib.sha256(content).digest(), np.uint8)
        entry["crc32"] = _crc(entry)
        return entry

    def _register(self, entry: np.ndarray, weights: np.ndarray) -> None:
        """Add an episode that was written to the arrays in memory."""
        row, start = self._num_rows, self.end
        stop = start + len(weights)
        self._entries = _grown(self._entries, row + 1)
        self._integrity = _grown(self._integrity, row + 1)
        inside = slice(start - self._base, stop - self._base)
        self._weights = _grown(self._weights, inside.stop)
        self._entries[row], self._integrity[row], self._weights[inside] = entry, INTACT, weights
        self._rows[int(entry["episode"])] = row
        self._num_rows += 1
        self._offset += len(weights)

    def sync(self) -> None:
        """Make all appended episodes survive a power cut."""
        with files.explain_os_errors(self.folder, "storing episodes"):
            for file in (self._shard_file, self._index_file):
                if file is not None:
                    os.fsync(file.fileno())

    def drop_before(self, position: int) -> None:
        """Delete the shards with earlier positions only; the ids of their episodes stay known."""
        if self._index_file is None:
            raise UctreeError(f"{self.folder} was opened read only, or is closed")
        entries = self._entries[: self._num_rows]
        needed = entries["shard"][entries["first"] + entries["count"] > position]
        first_shard = min(self._shard, int(needed.min(initial=self._shard)))
        if first_shard <= self._first_shard:
            return
        with files.explain_os_errors(self.folder, "dropping old episodes"):
            self._write_layout(first_shard)  # first, so that missing shards are not taken as damage
            for shard in range(self._first_shard, first_shard):
                self._maps.pop(shard, None)
                self._shard_path(shard).unlink(missing_ok=True)
        self._first_shard = first_shard
        dropped = np.flatnonzero(entries["shard"] < first_shard)
        self._integrity[dropped] = DAMAGED
        self._weights[: max(0, self._end_of_row(int(dropped[-1])) - self._base)] = 0.0

    def close(self) -> None:
        """Close the files; positions can still be drawn."""
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

    def _verify(self, rows: np.ndarray) -> None:
        """Check the hashes of episodes that were not checked before."""
        damaged: dict[int, list[int]] = {}
        for row in rows[self._integrity[rows] == UNVERIFIED]:
            entry = self._entries[row]
            shard = int(entry["shard"])
            positions: Any = self._positions_at(shard, int(entry["offset"]), int(entry["count"]))
            is_stored = shard >= self._first_shard and positions is not None
            if is_stored and self._is_intact(entry, positions):
                self._integrity[row] = INTACT
                first = int(entry["first"]) - self._base
                self._weights[first : first + int(entry["count"])] = positions["weight"]
                continue
            self._integrity[row] = DAMAGED
            if shard >= self._first_shard:  # others were dropped
                damaged.setdefault(shard, []).append(int(entry["episode"]))
        for shard, episodes in damaged.items():
            path = self._shard_path(shard)
            listed = ", ".join(map(str, episodes[:10])) + ("..." if len(episodes) > 10 else "")
            problem = "is damaged or truncated" if path.exists() else "is missing"
            self._warn(f"{path} {problem}: {len(episodes)} of its episodes are left out ({listed})")

    def _is_intact(self, entry: np.ndarray, positions: np.ndarray) -> bool:
        """Whether the positions of an entry have its hash, and can be trained on."""
        if _sha256(positions) != entry["sha256"].tobytes():
            return False
        try:
            self._check(positions)
        except UctreeError:
            return False
        return True

    def _positions_at(self, shard: int, offset: int, count: int) -> np.ndarray | None:
        """A view of positions of a shard; None if the file does not have them."""
        if len(self._maps.get(shard, ())) < offset + count:
            path = self._shard_path(shard)
            try:
                size = path.stat().st_size // self.dtype.itemsize
                if size < offset + count:
                    return None
                with interrupts.postponed():
                    mapped = np.memmap(path, self.dtype, mode="r", shape=(size,))
            except OSError:
                return None
            self._maps[shard] = mapped.view(np.ndarray)
        return self._maps[shard][offset : offset + count]

    def _lost(self, shard: int) -> UctreeError:
        return UctreeError(
            f"{self._shard_path(shard)} was intact before, and is truncated or missing now; open "
            "the run again to continue without it"
        )

    def gather(self, entries: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Copies of positions by their numbers, all of them of intact episodes in `entries`."""
        firsts = entries["first"].astype(np.int64)
        rows = np.searchsorted(firsts, numbers, side="right") - 1
        chosen = entries[rows]
        shards = chosen["shard"]
        offsets = chosen["offset"] + (numbers - firsts[rows])
        # A copy of plain bytes is faster than one field by field.
        plain = np.dtype((np.void, self.dtype.itemsize))
        positions = np.empty(len(numbers), plain)
        for shard in np.unique(shards):
            is_inside = shards == shard
            inside = offsets[is_inside]
            mapped = self._positions_at(int(shard), int(inside.max()), 1)
            if mapped is None:
                raise self._lost(int(shard))
            positions[is_inside] = self._maps[int(shard)].view(plain)[inside]
        return positions.view(self.dtype)

    def actions_of(self, entry: np.ndarray) -> np.ndarray:
        """The stored actions of an intact episode, those of the whole game."""
        positions = self._positions_at(
            int(entry["shard"]), int(entry["offset"]), int(entry["count"])
        )
        if positions is None:
            raise self._lost(int(entry["shard"]))
        actions: np.ndarray = positions["action"]
        return actions

    @property
    def retracer(self) -> Retracer:
        """What reaches states again by their actions, if actions are stored."""
        if self._retracer is None:
            self._retracer = Retracer(self)
        return self._retracer

    def states(self, entries: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """The states of positions by their numbers, all of them of intact episodes in `entries`."""
        if moves.is_walked(self.game):
            return self.retracer.states(entries, numbers)
        found: np.ndarray = self.gather(entries, numbers)["state"].copy()
        return found

    def window(self, num_positions: int, end: int | None = None) -> Window:
        """The last `num_positions` positions before the cursor `end`, by default the newest."""
        end = self.end if end is None else min(end, self.end)
        start = max(self._base, end - num_positions)
        end = max(start, end)
        entries = self._entries[: self._num_rows]
        ends = entries["first"] + entries["count"]
        rows = np.flatnonzero((ends > start) & (entries["first"] < end))
        self._verify(rows)
        intact = rows[self._integrity[rows] == INTACT]
        lows = np.maximum(entries["first"][intact].astype(np.int64), start)
        highs = np.minimum(ends[intact].astype(np.int64), end)
        cumulative = np.cumsum(
            self._weights[start - self._base : end - self._base], dtype=np.float64
        )
        return Window(self, start, end, int((highs - lows).sum()), entries[intact], cumulative)


def _crc(entry: np.ndarray) -> int:
    return zlib.crc32(entry.tobytes()[: ENTRY.fields["crc32"][1]])  # type: ignore[index]


def _sha256(positions: np.ndarray) -> bytes:
    return hashlib.sha256(np.ascontiguousarray(positions).view(np.uint8).data).digest()


def _open_at(path: Path, size: int) -> IO[bytes]:
    """A file open for writing, new or truncated to this size."""
    file = files.open_own(path, os.O_RDWR | os.O_CREAT, "r+b")
    file.truncate(size)
    return file


def _grown(array: np.ndarray, size: int) -> np.ndarray:
    """The array, or a longer copy if it has fewer than `size` elements."""
    if size <= len(array):
        return array
    longer = np.zeros(max(size, 2 * len(array), 1024), array.dtype)
    longer[: len(array)] = array
    return longer


# --- batches -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Batch:
    """Inputs and targets of one training step."""

    observations: np.ndarray  # [n, *observation_shape], float32
    policy: np.ndarray  # [n, num_actions], float32
    values: np.ndarray  # [n, num_players], float32, the player to move first
    policy_weights: np.ndarray  # [n], float32
    legal: np.ndarray  # [n, num_actions], bool
    windows: np.ndarray  # [n, 2], the centres of the states' own windows; 0 without windows


@dataclass(frozen=True, eq=False)
class Window:
    """A range of positions to draw from; episodes appended later do not change it."""

    replay: Replay
    start: int
    end: int
    num_positions: int  # without damaged ones
    entries: np.ndarray  # the index entries of their episodes
    cumulative: np.ndarray  # [end - start], cumulative weights

    def draw(
        self, rng: np.random.Generator, batch_size: int, *, value_mix: float = 0.0,
        symmetries: bool = True,
    ) -> Batch:  # fmt: skip
        """A batch of positions, each drawn by its weight, with replacement.

        Args:
            value_mix: the share of the search's values in the value targets; the rest is returns.
            symmetries: whether a random symmetry of the game, if any, transforms each position.
        """
        numbers = self.draw_numbers(rng, batch_size)
        game = self.replay.game
        positions = self.replay.gather(self.entries, numbers)
        paths = self.paths(numbers[:, None])
        choices = np.zeros(batch_size, np.int64)
        if symmetries and game.symmetries is not None:
            choices = rng.integers(len(symmetries_of(game)[0]), size=batch_size)
        return make_batch(game, positions, choices, value_mix, paths=paths)

    def paths(self, numbers: np.ndarray) -> Paths | None:
        """How the states of positions are reached, [n, k] as in `Retracer.paths`; None: stored."""
        is_walked = moves.is_walked(self.replay.game)
        return self.replay.retracer.paths(self.entries, numbers) if is_walked else None

    def draw_positions(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Positions drawn by their weights, as they were stored."""
        return self.replay.gather(self.entries, self.draw_numbers(rng, count))

    def draw_numbers(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """The numbers of positions that are drawn by their weights."""
        total = self.cumulative[-1] if len(self.cumulative) else 0.0
        if not total > 0:
            raise UctreeError(
                f"{self.replay.folder} has no position to draw from {self.start} to {self.end}: "
                f"of {self.num_positions} positions none has a weight above 0"
            )
        drawn = np.searchsorted(self.cumulative, rng.random(count) * total, side="right")
        last = np.searchsorted(self.cumulative, total)  # rounding may exceed it
        numbers: np.ndarray = self.start + np.minimum(drawn, last)
        return numbers


def observe_states(game: Game, states: Sequence[State] | np.ndarray) -> Batch:
    """The observations and legal actions of states; its targets are empty."""
    count = len(states)
    records = states
    if not isinstance(records, np.ndarray):
        records = np.zeros(count, game.dtype)
        for index, state in enumerate(states):
            records[index] = state
    planes, policy, legal = _filled(
        game, records, np.full((count, 1), NONE, np.int32), np.zeros((count, 1), np.float32),
        np.zeros(count, np.int64),
    )  # fmt: skip
    values = np.zeros((count, game.num_players), np.float32)
    windows = np.zeros((count, 2), np.int64)
    return Batch(planes, policy, values, np.zeros(count, np.float32), legal, windows)


def make_batch(
    game: Game, positions: np.ndarray, choices: np.ndarray, value_mix: float = 0.0, *,
    with_values: bool = True, paths: Paths | None = None,
) -> Batch:  # fmt: skip
    """Observations and targets of positions, each transformed by a symmetry of the game.

    Args:
        with_values: whether positions have value targets; else those of the batch are empty.
        paths: how the states are reached, if positions do not have them.
    """
    policy_weights = positions["policy_weight"].copy()
    windows = np.zeros((len(positions), 2), np.int64)
    if paths is None:
        planes, policy, legal = _filled(
            game, np.ascontiguousarray(positions["state"]),
            np.ascontiguousarray(positions["policy_actions"]),
            np.ascontiguousarray(positions["policy_shares"]), np.asarray(choices, np.int64),
        )  # fmt: skip
    else:
        paths.rows[:, CHOICE] = choices
        walked = moves.fill(game, paths, positions, _tables(game))
        planes = walked.planes.reshape(-1, *(game.observation_shape or ()))
        policy, legal, windows = walked.policy, walked.legal, walked.windows
        policy_weights *= walked.taken > 0
    values = np.zeros((len(positions), 0))
    if with_values:
        values = mixed_values(positions["returns"], positions["search_values"], value_mix)
    return Batch(planes, policy, values.astype(np.float32), policy_weights, legal, windows)


def _filled(
    game: Game, states: np.ndarray, policy_actions: np.ndarray, policy_shares: np.ndarray,
    choices: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Observations, policies and legal actions of states under symmetries."""
    count, shape = len(states), game.observation_shape or ()
    action_table, cell_table = _tables(game)
    num_cells = cell_table.shape[1]
    planes = np.empty((count, math.prod(shape) // num_cells, num_cells), np.float32)
    policy = np.zeros((count, game.num_actions), np.float32)
    mask = np.zeros((count, game.num_actions), np.bool_)
    scratch = np.zeros(shape, np.float32)
    arguments = (
        StateViews(states) if interpreted() else states, policy_actions, policy_shares, choices,
        action_table, cell_table, scratch, scratch.reshape(planes.shape[1:]), planes, policy, mask,
        action_array(game), game.data,
    )  # fmt: skip
    if _kernel(game, arguments).run(*arguments) < 0:
        raise moves.wrong_legal(game)
    return planes.reshape(count, *shape), policy, mask


def _kernel(game: Game, arguments: tuple[Any, ...]) -> Kernel:
    """The compiled `fill_batch` of a game, from memory, from the disk cache, or compiled now."""
    known, key = table_of(game, "batches", 2), interpreted()
    kernel: Kernel | None = known.get(key)
    if kernel is None or kernel.is_stale:
        bound = {
            "legal": bound_rule(game, "legal"),
            "observe": bound_rule(game, "observe"),
            "NUM_ACTIONS": game.num_actions,
            "GUARD_AT": max(game.num_actions, game.max_outcomes),
        }
        label = f"{game.name}: batches"
        kernel = compile_kernel(fill_batch, bound, arguments, label=label)
        known.put(key, kernel)
    return kernel


def _tables(game: Game) -> tuple[np.ndarray, np.ndarray]:
    """The symmetries of actions and of cells; the identity alone if the game has none."""
    if game.symmetries is None:
        num_cells = math.prod(game.observation_shape or ())
        return np.arange(game.num_actions)[None], np.arange(num_cells)[None]
    actions, cells = symmetries_of(game)
    return np.ascontiguousarray(actions, np.int64), np.ascontiguousarray(cells, np.int64)

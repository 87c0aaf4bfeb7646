"""Connect four: drop stones into columns, four in a row win."""

from __future__ import annotations

import numpy as np

from uctree.bits import nth_bit, popcount
from uctree.game import OVER, Game, mirrored_cells, random_below

ENDING = 12  # free cells; each further one at least doubles the time of a playout
UNKNOWN = 2


def connect_four(rows: int = 6, cols: int = 7, playouts: str = "uniform") -> Game:
    """Connect four on a board of any size whose `cols * (rows + 1)` is at most 62; action `col`.

    Args:
        playouts: "uniform", any legal action is as likely as any other; "heuristic", both sides win
            if they can, else block, else do not play below a cell where the other side would win,
            and the last `ENDING` free cells are played perfectly. `solver=True` then takes states
            with at most `ENDING` free cells as proven.
    """
    if playouts not in ("uniform", "heuristic"):
        hint = ', which is now called "heuristic"' if playouts == "wise" else ""
        raise ValueError(f'playouts must be "uniform" or "heuristic"; got {playouts!r}{hint}')
    is_heuristic = playouts == "heuristic"
    height = rows + 1  # bits of a column; the one above the top stays empty and ends lines
    if rows < 1 or cols < 1 or cols * height > 62:
        raise ValueError(f"cols * (rows + 1) must be at most 62; got rows={rows}, cols={cols}")
    # Bit `col * height + row`. `own`: stones of the player to move, `taken`: stones of both.
    # 62 bits leave the sign bit of an int64 unused.
    fields: list[tuple] = [("own", np.int64), ("taken", np.int64), ("to_play", np.int8)]
    if is_heuristic:
        # The stack of `best_result`: boards, cells to try, and the best result so far.
        fields += [(name, np.int64, ENDING) for name in ("line_own", "line_taken", "line_cells")]
        fields += [("line_best", np.int64, ENDING)]
    position = np.dtype(fields)
    column = (1 << rows) - 1
    full = sum(column << (col * height) for col in range(cols))
    top_row = sum(1 << (col * height + rows - 1) for col in range(cols))
    bottom_row = sum(1 << (col * height) for col in range(cols))
    middle_first = np.array(sorted(range(cols), key=lambda col: abs(2 * col - cols + 1)))

    def legal(state, actions):
        taken = state.taken
        if taken & top_row == 0:
            # The common case, without a dependence on the board.
            for col in range(cols):
                actions[col] = col
            return cols
        count = 0
        for col in range(cols):
            # Always written, counted if free: a branch would be mispredicted half of the time.
            actions[count] = col
            count += (taken >> (col * height + rows - 1)) & 1 == 0
        return count

    def step(state, action, reward):
        player = state.to_play
        taken = state.taken
        # Adding 1 at the bottom of a column carries up to its lowest free cell.
        stone = (taken + (1 << (action * height))) & ~taken
        own = state.own | stone
        state.own ^= taken
        taken |= stone
        state.taken = taken
        vertical = own & (own >> 1)
        flat = own & (own >> height)
        up = own & (own >> (height + 1))
        down = own & (own >> (height - 1))
        four = vertical & (vertical >> 2)
        four |= flat & (flat >> (2 * height))
        four |= up & (up >> (2 * height + 2))
        four |= down & (down >> (2 * height - 2))
        if four != 0:
            reward[player] = 1.0
            reward[1 - player] = -1.0
            state.to_play = OVER
        elif taken == full:
            state.to_play = OVER
        else:
            state.to_play = 1 - player

    def random_action(state, rng):
        _, cells = look_ahead(state.own, state.taken)
        return nth_bit(cells, random_below(rng, popcount(cells))) // height

    def look_ahead(own, taken):
        """1 if the player to move wins at once, -1 if it loses next, else UNKNOWN; cells to try."""
        cells = (taken + bottom_row) & full  # the lowest free cell of each column
        wins = fourths(own) & cells
        if wins != 0:
            return 1, wins
        threats = fourths(own ^ taken) & ~taken
        blocks = threats & cells
        tried = blocks if blocks != 0 else cells
        quiet = tried & ~(threats >> 1)  # not below a cell where the other side would win
        if quiet == 0 or blocks & (blocks - 1) != 0:
            return -1, tried
        return UNKNOWN, quiet

    def fourths(stones):
        """Cells that complete a line of four with three of these stones, occupied or not."""
        found = (stones << 1) & (stones << 2) & (stones << 3)
        for i in range(-1, 2):
            by = height + i
            pair = (stones << by) & (stones << (2 * by))
            found |= pair & ((stones << (3 * by)) | (stones >> by))
            pair = (stones >> by) & (stones >> (2 * by))
            found |= pair & ((stones >> (3 * by)) | (stones << by))
        return found & full

    def playout(state, rng, reward):
        while state.to_play != OVER and popcount(full & ~state.taken) > ENDING:
            step(state, random_action(state, rng), reward)
        if state.to_play != OVER:
            player, result = state.to_play, best_result(state)
            reward[player] += result
            reward[1 - player] -= result
            state.to_play = OVER

    def exact(state, values):
        if popcount(full & ~state.taken) > ENDING:
            return False
        values[state.to_play] = best_result(state)
        values[1 - state.to_play] = -values[state.to_play]
        return True

    def best_result(state):
        """The payoff of the player to move under perfect play: 1, 0 or -1.

        Alpha-beta with its stack in the state instead of recursion.
        """
        own, taken = state.own, state.taken
        depth = 0
        while True:
            result, cells = look_ahead(own, taken)
            if is_dead(own, taken):
                result = 0
            elif result == UNKNOWN:
                state.line_own[depth], state.line_taken[depth] = own, taken
                state.line_cells[depth], state.line_best[depth] = cells, -1
                depth += 1
            # Back up the result as long as no cell is left to try at the parent.
            while result != UNKNOWN:
                if depth == 0:
                    return result
                result = max(state.line_best[depth - 1], -result)
                state.line_best[depth - 1] = result
                enough = 1 if depth == 1 else -state.line_best[depth - 2]
                if result < enough and state.line_cells[depth - 1] != 0:
                    break
                depth -= 1
            cells = state.line_cells[depth - 1]
            stone = cells & -cells
            for i in range(cols):
                middle = cells & (column << (middle_first[i] * height))
                if middle != 0:
                    stone = middle
                    break
            state.line_cells[depth - 1] = cells ^ stone
            own = state.line_own[depth - 1] ^ state.line_taken[depth - 1]
            taken = state.line_taken[depth - 1] | stone

    def is_dead(own, taken):
        """Whether neither player can complete a line, even with all free cells."""
        free = full & ~taken
        return not (has_four(own | free) or has_four((own ^ taken) | free))

    def has_four(stones):
        pair = stones & (stones >> 1)
        four = pair & (pair >> 2)
        for i in range(-1, 2):
            by = height + i
            pair = stones & (stones >> by)
            four |= pair & (pair >> (2 * by))
        return four != 0

    def owner(state, row, col):
        """The player whose stone is on a cell, row 0 at the bottom; -1 for an empty cell."""
        bit = col * height + row
        if (state.taken >> bit) & 1 == 0:
            return -1
        next_player = 0  # from the number of stones, so that it also holds after the end
        for other in range(cols * height):
            next_player ^= (state.taken >> other) & 1
        return next_player if (state.own >> bit) & 1 else 1 - next_player

    def observe(state, player, planes):
        for row in range(rows):
            for col in range(cols):
                stone = owner(state, row, col)
                planes[0, rows - 1 - row, col] = stone == player
                planes[1, rows - 1 - row, col] = stone == 1 - player

    def show(state):
        text = []
        for row in reversed(range(rows)):
            text.append(" ".join(".XO"[owner(state, row, col) + 1] for col in range(cols)))
        text.append(" ".join(str((col + 1) % 10) for col in range(cols)))
        return "\n".join(text)

    def show_action(state, action):
        return str(action + 1)

    def read_action(state, text):
        return int(text) - 1

    size = "" if (rows, cols) == (6, 7) else f"{rows}x{cols}"
    variant = ", ".join(word for word in (size, "heuristic" if is_heuristic else "") if word)
    return Game(
        position,
        legal,
        step,
        num_players=2,
        num_actions=cols,
        name=f"connect_four({variant})" if variant else "connect_four",
        random_action=random_action if is_heuristic else None,
        playout=playout if is_heuristic else None,
        exact=exact if is_heuristic else None,
        observe=observe,
        observation_shape=(2, rows, cols),
        payoff_range=(-1, 1),
        zero_sum=True,
        max_plies=rows * cols,
        symmetric_seats=True,
        key_fields=("own", "taken", "to_play") if is_heuristic else None,
        symmetries=mirror(rows, cols),
        geometry=("grid", rows, cols),
        show=show,
        show_action=show_action,
        read_action=read_action,
    )


def mirror(rows, cols):
    """The identity and the reflection of the columns, for actions and for cells of observations."""
    return mirrored_cells(1, cols), mirrored_cells(rows, cols)

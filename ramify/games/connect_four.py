"""Connect four: drop stones into columns, four in a row win."""

from __future__ import annotations

import numpy as np

from ramify.game import OVER, Game


def connect_four(rows: int = 6, cols: int = 7) -> Game:
    """Connect four on a board of any size whose `cols * (rows + 1)` is at most 62; action `col`."""
    height = rows + 1  # bits of a column: one above the top stays empty, so that lines end there
    if rows < 1 or cols < 1 or cols * height > 62:
        raise ValueError(f"cols * (rows + 1) must be at most 62; got rows={rows}, cols={cols}")
    # Bit `col * height + row`. `own` are the stones of who is to play, `taken` those of both.
    # 62 bits fit into int64, so no sign gets in the way.
    position = np.dtype([("own", np.int64), ("taken", np.int64), ("to_play", np.int8)])
    column = (1 << rows) - 1
    full = sum(column << (col * height) for col in range(cols))
    top_row = sum(1 << (col * height + rows - 1) for col in range(cols))

    def legal(state, actions):
        taken = state.taken
        if taken & top_row == 0:
            # Mostly no column is full, and then nothing below has to wait for the board.
            for col in range(cols):
                actions[col] = col
            return cols
        count = 0
        for col in range(cols):
            # Written always and counted if free: a branch here would be a coin toss.
            actions[count] = col
            count += (taken >> (col * height + rows - 1)) & 1 == 0
        return count

    def step(state, action, reward):
        player = state.to_play
        taken = state.taken
        # Adding one at the bottom of a column carries up to its lowest free cell.
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

    def owner(state, row, col):
        """The player whose stone is on a cell, row 0 at the bottom; -1 where there is none."""
        bit = col * height + row
        if (state.taken >> bit) & 1 == 0:
            return -1
        next_player = 0  # players take turns, so this holds after the end as well
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

    return Game(
        position,
        legal,
        step,
        num_players=2,
        num_actions=cols,
        name="connect_four" if (rows, cols) == (6, 7) else f"connect_four({rows}x{cols})",
        observe=observe,
        observation_shape=(2, rows, cols),
        payoff_range=(-1, 1),
        zero_sum=True,
        max_plies=rows * cols,
        symmetries=mirror(rows, cols),
        geometry=("grid", rows, cols),
        show=show,
        show_action=show_action,
        read_action=read_action,
    )


def mirror(rows, cols):
    """The identity and the reflection of the columns, for actions and for cells of observations."""
    columns = np.arange(cols)
    cells = np.arange(rows * cols).reshape(rows, cols)
    return np.array([columns, columns[::-1]]), np.array([cells.ravel(), cells[:, ::-1].ravel()])

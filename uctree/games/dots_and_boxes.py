"""Dots and boxes: draw lines between dots; a player who closes a box owns it and draws again."""

from __future__ import annotations

import numpy as np

from uctree.game import OVER, Game, random_below

DOTS = "abcdefghijklmnopqrstuvwxyz"  # the columns of dots


def dots_and_boxes(rows: int = 2, cols: int = 2, pays: str = "boxes") -> Game:
    """Dots and boxes on up to 25 x 25 boxes; actions are horizontal, then vertical lines.

    The line above box (row, col) is `row * cols + col`, the one left of it is
    `(rows + 1) * cols + row * (cols + 1) + col`. With `pays="boxes"` a player who closes a box gets
    1 at once; with `pays="win"` the player with more boxes at the end gets 1, the other -1.
    """
    if not (1 <= rows <= 25 and 1 <= cols <= 25):
        raise ValueError(f"rows and cols must be from 1 to 25; got rows={rows}, cols={cols}")
    if pays not in ("boxes", "win"):
        raise ValueError(f'pays must be "boxes" or "win"; got {pays!r}')
    pays_boxes = pays == "boxes"
    boxes = rows * cols
    across = (rows + 1) * cols  # the number of horizontal lines
    lines = across + rows * (cols + 1)
    boxes_of = box_table(rows, cols)
    position = np.dtype(
        [
            ("drawn", np.int8, lines),  # 1 for a line that is drawn
            ("score", np.int16, 2),  # the boxes of each player
            ("to_play", np.int8),
            ("ply", np.int16),
            ("owner", np.int8, boxes + 1),  # player + 1 of a closed box, 0 of an open one
            # The rest is derived from the lines, for speed.
            ("sides", np.int16, boxes + 1),  # the lines around a box; the last box is the outside
            ("free", np.uint16, lines),  # the lines to draw are the first `lines - ply` of these
            ("where", np.uint16, lines),  # the index of a line in `free`
        ]
    )

    def start(state):
        state.sides[boxes] = 4  # it only grows, so that the outside is never closed
        for line in range(lines):
            state.free[line] = line
            state.where[line] = line

    def legal(state, actions):
        count, free = lines - state.ply, state.free
        for i in range(count):
            actions[i] = free[i]
        return count

    def step(state, action, reward):
        player = state.to_play
        state.drawn[action] = 1
        state.ply += 1
        # The last free line moves to the index of the one that is drawn.
        last = state.free[lines - state.ply]
        state.free[state.where[action]] = last
        state.where[last] = state.where[action]
        closed = 0
        for i in range(2):
            box = boxes_of[action, i]
            state.sides[box] += 1
            if state.sides[box] == 4:
                state.owner[box] = player + 1
                closed += 1
        state.score[player] += closed
        if pays_boxes:
            reward[player] += closed
        if state.ply == lines:
            if not pays_boxes:
                pay(state.score[0] - state.score[1], reward)
            state.to_play = OVER
        elif closed == 0:
            state.to_play = 1 - player

    def pay(lead, reward):
        """Pay a win or a loss to player 0, and the opposite to player 1."""
        if lead != 0:
            reward[0] += 1.0 if lead > 0 else -1.0
            reward[1] += -1.0 if lead > 0 else 1.0

    def random_action(state, rng):
        return np.int64(state.free[random_below(rng, lines - state.ply)])

    def playout(state, rng, reward):
        # As `random_action` and `step`, without the fields that are not read after the end.
        player, lead, free, sides = state.to_play, 0, state.free, state.sides
        open_boxes = boxes - state.score[0] - state.score[1]
        state.to_play = OVER
        for count in range(lines - state.ply, 0, -1):
            i = random_below(rng, count)
            line = free[i]
            free[i] = free[count - 1]
            one, other = boxes_of[line, 0], boxes_of[line, 1]
            sides[one] += 1
            sides[other] += 1
            closed = np.int64(sides[one] == 4) + np.int64(sides[other] == 4)
            # Without a branch, which would be mispredicted half of the time.
            lead += closed * (1 - 2 * player)
            player ^= closed == 0
        if pays_boxes:
            reward[0] += (open_boxes + lead) // 2
            reward[1] += (open_boxes - lead) // 2
        else:
            pay(lead + state.score[0] - state.score[1], reward)

    def observe(state, player, planes):
        for line in range(across):
            planes[0, line // cols, line % cols] = state.drawn[line]
        for line in range(lines - across):
            planes[1, line // (cols + 1), line % (cols + 1)] = state.drawn[across + line]
        lead = state.score[player] - state.score[1 - player]
        for row in range(rows + 1):
            for col in range(cols + 1):
                planes[2, row, col] = state.to_play == player
                if not pays_boxes:
                    planes[3, row, col] = lead / boxes

    def show(state):
        margin = len(str(rows + 1))
        text = []
        for row in range(rows + 1):
            above = ["---" if state.drawn[row * cols + col] else "   " for col in range(cols)]
            text.append(f"{rows + 1 - row:>{margin}} +" + "".join(f"{line}+" for line in above))
            if row < rows:
                beside = state.drawn[across + row * (cols + 1) :][: cols + 1]
                owners = [" XO"[state.owner[row * cols + col]] for col in range(cols)] + [""]
                cells = [
                    f"{'|' if line else ' '} {owner} "
                    for line, owner in zip(beside, owners, strict=True)
                ]
                text.append((" " * (margin + 1) + "".join(cells)).rstrip())
        text.append(" " * (margin + 1) + "   ".join(DOTS[: cols + 1]))
        return "\n".join(text)

    def dots(action):
        """The row and column of the two dots of a line, rows from the top."""
        if action < across:
            row, col = divmod(action, cols)
            return (row, col), (row, col + 1)
        row, col = divmod(action - across, cols + 1)
        return (row, col), (row + 1, col)

    def show_action(state, action):
        return "-".join(f"{DOTS[col]}{rows + 1 - row}" for row, col in dots(action))

    def read_action(state, text):
        ends = [
            (rows + 1 - int(dot.strip()[1:]), DOTS.index(dot.strip()[0].lower()))
            for dot in text.split("-")
        ]
        return [sorted(dots(line)) for line in range(lines)].index(sorted(ends))

    return Game(
        position,
        legal,
        step,
        num_players=2,
        num_actions=lines,
        name=f"dots_and_boxes({rows}x{cols}, pays {pays})",
        start=start,
        random_action=random_action,
        playout=playout,
        observe=observe,
        observation_shape=(3 if pays_boxes else 4, rows + 1, cols + 1),
        payoff_range=(0, boxes) if pays_boxes else (-1, 1),
        zero_sum=not pays_boxes,
        max_plies=lines,
        symmetric_seats=True,
        # Boxes that were paid for do not change what is still to be paid.
        key_fields=("drawn", "to_play") if pays_boxes else ("drawn", "score", "to_play"),
        show=show,
        show_action=show_action,
        read_action=read_action,
    )


def box_table(rows: int, cols: int) -> np.ndarray:
    """The two boxes beside each line, [line, 2]; `rows * cols` stands for the outside."""
    outside = rows * cols
    box = np.pad(np.arange(outside).reshape(rows, cols), 1, constant_values=outside)
    across = np.stack([box[:-1, 1:-1], box[1:, 1:-1]], axis=-1)
    down = np.stack([box[1:-1, :-1], box[1:-1, 1:]], axis=-1)
    return np.concatenate([across.reshape(-1, 2), down.reshape(-1, 2)]).astype(np.uint16)

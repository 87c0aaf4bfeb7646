"""Backgammon: a race around the board with two dice; a gammon counts double."""

from __future__ import annotations

import numpy as np

from uctree.game import CHANCE, OVER, Game

OFF, BAR = 0, 25  # points of a player, beside 1 to 24
SIDES = 6
START = ((6, 5), (8, 3), (13, 5), (24, 2))  # points and checkers of each player
HYPER = ((22, 1), (23, 1), (24, 1))
UNDECIDED = 2  # whose turn it is before the first roll

# Rolls in the order of OpenSpiel: the 15 of two faces, then the doubles.
ROLLS = np.array(
    [(a, b) for a in range(1, 7) for b in range(a + 1, 7)] + [(a, a) for a in range(1, 7)], np.int64
)
NUM_MIXED, NUM_ROLLS = 15, 21

Position = np.dtype(
    [
        ("points", np.int8, (2, 26)),  # checkers of each player by the player's own numbers
        ("dice", np.int8, 2),  # faces that are still to be played, 0 for none; equal for doubles
        ("left", np.int8),  # how many dice are still to be played
        ("turn", np.int8),  # whose turn it is, also while the dice roll; UNDECIDED at the start
        ("to_play", np.int8),
    ]
)


def backgammon(pays: str = "backgammons", hyper: bool = False) -> Game:
    """Backgammon without the doubling cube; action `6 * (point - 1) + face - 1` moves a checker.

    A turn is an action for each die. Points are numbered as the player to move sees them, from 24
    to 1; 25 is the bar. Outcomes of the first roll are `2 * roll + player`, the one who begins.

    Args:
        pays: "backgammons", the winner gets 1, 2 for a gammon and 3 for a backgammon; "gammons", at
            most 2; "wins", 1. The loser gets the negative.
        hyper: hyper-backgammon, in which each player has three checkers, on 24, 23 and 22.
    """
    levels = {"wins": 1, "gammons": 2, "backgammons": 3}
    if pays not in levels:
        raise ValueError(f'pays must be "wins", "gammons" or "backgammons"; got {pays!r}')
    most = levels[pays]
    first = HYPER if hyper else START
    num_checkers = sum(count for _, count in first)

    def start(state):
        for player in range(2):
            for point, count in first:
                state.points[player, point] = count
        state.turn = UNDECIDED
        state.to_play = CHANCE

    def step(state, action, reward):
        if state.to_play == CHANCE:
            roll(state, action)
            return
        player = state.turn
        point, face = action // SIDES + 1, action % SIDES + 1
        move(state, player, point, face)
        if state.points[player, OFF] == num_checkers:
            worth = min(most, worth_of(state, 1 - player))
            reward[player] = worth
            reward[1 - player] = -worth
            state.to_play = OVER
        elif state.left == 0 or not can_move(state, player):
            pass_on(state)

    words = [pays] * (pays != "backgammons") + ["hyper"] * hyper
    return Game(
        Position,
        legal,
        step,
        num_players=2,
        num_actions=BAR * SIDES,
        name=f"backgammon({', '.join(words)})" if words else "backgammon",
        start=start,
        chance=chance,
        max_outcomes=2 * NUM_MIXED,
        observe=observe,
        observation_shape=(2 * (4 * 24 + 2) + 1 + SIDES,),
        payoff_range=(-most, most),
        zero_sum=True,
        show=show,
        show_action=show_action,
        read_action=read_action,
    )


def chance(state, outcomes, probabilities):
    if state.turn == UNDECIDED:  # equal faces are rolled again
        for i in range(2 * NUM_MIXED):
            outcomes[i] = i
            probabilities[i] = 1.0 / (2 * NUM_MIXED)
        return 2 * NUM_MIXED
    for i in range(NUM_ROLLS):
        outcomes[i] = i
        probabilities[i] = 1.0 / 18 if i < NUM_MIXED else 1.0 / 36
    return NUM_ROLLS


def roll(state, outcome):
    """Give the dice to the player whose turn it is; to the other one if that player cannot move."""
    if state.turn == UNDECIDED:
        state.turn = outcome % 2
        outcome = outcome // 2
    one, other = ROLLS[outcome, 0], ROLLS[outcome, 1]
    state.dice[0], state.dice[1] = one, other
    state.left = 4 if one == other else 2
    state.to_play = state.turn
    if not can_move(state, state.turn):
        pass_on(state)


def pass_on(state):
    state.left = state.dice[0] = state.dice[1] = 0
    state.turn = 1 - state.turn
    state.to_play = CHANCE


# --- moves ---------------------------------------------------------------------------------------
# Some functions look at a position in which a checker has already gone from a point `gone` to a
# point `come`, without making that move; NOWHERE if none has.

NOWHERE = -1


def count_at(state, player, point, gone, come):
    """The checkers of a player on a point."""
    count = np.int64(state.points[player, point])
    return count - np.int64(point == gone) + np.int64(point == come)


def rearmost(state, player, gone, come):
    """The highest point with a checker of a player; OFF if there is none."""
    point = BAR
    while point > OFF and count_at(state, player, point, gone, come) == 0:
        point -= 1
    return point


def may_move(state, player, point, face, last, gone, come):
    """Whether a player may move a checker from a point; `last` is the rearmost one."""
    if count_at(state, player, point, gone, come) == 0 or (last == BAR and point != BAR):
        return False
    goal = point - face
    if goal > OFF:
        return state.points[1 - player, BAR - goal] <= 1
    return last <= SIDES and (goal == OFF or point == last)


def can_play(state, player, face, gone, come):
    """Whether a player can move any checker by a face."""
    last = rearmost(state, player, gone, come)
    for point in range(last, OFF, -1):
        if may_move(state, player, point, face, last, gone, come):
            return True
    return False


def can_move(state, player):
    """Whether a player can use one of the dice."""
    for i in range(2):
        if state.dice[i] > 0 and can_play(state, player, np.int64(state.dice[i]), NOWHERE, NOWHERE):
            return True
    return False


def legal(state, actions):
    player = state.turn
    one, other = np.int64(state.dice[0]), np.int64(state.dice[1])
    if one == other or one == 0 or other == 0:
        # Equal dice: a move never takes away another one, so that all orders use as many dice.
        return list_moves(state, player, max(one, other), actions, 0)
    count = 0
    for i in range(2):  # first moves after which the other die can be played, too
        face, rest = (one, other) if i == 0 else (other, one)
        last = rearmost(state, player, NOWHERE, NOWHERE)
        for point in range(last, OFF, -1):
            if may_move(state, player, point, face, last, NOWHERE, NOWHERE):
                if can_play(state, player, rest, point, max(OFF, point - face)):
                    actions[count] = SIDES * (point - 1) + face - 1
                    count += 1
    if count == 0:  # only one die can be played: the larger one, if possible
        count = list_moves(state, player, max(one, other), actions, 0)
    if count == 0:
        count = list_moves(state, player, min(one, other), actions, 0)
    return count


def list_moves(state, player, face, actions, count):
    """The number of listed actions after those with one die were added."""
    last = rearmost(state, player, NOWHERE, NOWHERE)
    for point in range(last, OFF, -1):
        if may_move(state, player, point, face, last, NOWHERE, NOWHERE):
            actions[count] = SIDES * (point - 1) + face - 1
            count += 1
    return count


def move(state, player, point, face):
    """Move a checker, hit what stands alone on its goal, and use up the die."""
    goal = max(OFF, point - face)
    state.points[player, point] -= 1
    state.points[player, goal] += 1
    if goal > OFF and state.points[1 - player, BAR - goal] == 1:
        state.points[1 - player, BAR - goal] = 0
        state.points[1 - player, BAR] += 1
    state.left -= 1
    if state.dice[0] != state.dice[1]:
        state.dice[0 if state.dice[0] == face else 1] = 0


def worth_of(state, loser):
    """1 for a win, 2 for a gammon, 3 for a backgammon, by where the loser's checkers are."""
    if state.points[loser, OFF] > 0:
        return 1.0
    for point in range(BAR - SIDES, BAR + 1):  # in the winner's home, or on the bar
        if state.points[loser, point] > 0:
            return 3.0
    return 2.0


# --- for networks and people ---------------------------------------------------------------------


def observe(state, player, planes):
    place = 0
    for i in range(2):
        seat = player if i == 0 else 1 - player
        for point in range(1, BAR):
            # Both players' checkers by the numbers of the observer (Tesauro's units).
            count = state.points[seat, point if i == 0 else BAR - point]
            for level in range(3):
                planes[place + level] = count > level
            planes[place + 3] = max(0, count - 3) / 2.0
            place += 4
        planes[place] = state.points[seat, BAR] / 2.0
        planes[place + 1] = state.points[seat, OFF] / 15.0
        place += 2
    planes[place] = state.turn == player
    for i in range(2):
        face = np.int64(state.dice[i])
        if face > 0:
            planes[place + face] = state.left / 2.0 if state.dice[0] == state.dice[1] else 1.0


def mark_at(state, point):
    """Who stands on a point of player 0, and how many."""
    counts = state.points[0, point], state.points[1, BAR - point]
    if counts[0] == counts[1] == 0:
        return "."
    return f"X{counts[0]}" if counts[0] else f"O{counts[1]}"


def show(state):
    rows: list[str] = []
    for points in (range(13, 25), range(12, 0, -1)):
        numbers = [f"{point:>4}" for point in points]
        marks = [f"{mark_at(state, point):>4}" for point in points]
        both = ["".join(row[:6]) + " |" + "".join(row[6:]) for row in (numbers, marks)]
        rows += both if points[0] == 13 else reversed(both)
    for name, point in (("bar", BAR), ("off", OFF)):
        rows.append(f"{name}: X{state.points[0, point]} O{state.points[1, point]}")
    if state.to_play == CHANCE:
        rows.append("roll" if state.turn == UNDECIDED else f"{'XO'[state.turn]} rolls")
    elif state.to_play != OVER:
        dice = [face for face in state.dice if face > 0]
        dice = dice[:1] * state.left if len(set(dice)) == 1 else dice
        rows.append(f"{'XO'[state.turn]} to play {'-'.join(map(str, dice))}")
    return "\n".join(rows)


def point_name(point):
    return "bar" if point == BAR else "off" if point <= OFF else str(point)


def show_action(state, action):
    if state.to_play == CHANCE:
        one, other = ROLLS[action // 2 if state.turn == UNDECIDED else action]
        begins = f"{'XO'[action % 2]} " if state.turn == UNDECIDED else ""
        return f"{begins}{other}-{one}"
    point, face = action // SIDES + 1, action % SIDES + 1
    goal = point - face
    hits = goal > OFF and state.points[1 - state.turn, BAR - goal] == 1
    # A checker may leave the board with more than it needs, by either die.
    spare = f"({face})" if goal < OFF else ""
    return f"{point_name(point)}/{point_name(goal)}{spare}{'*' if hits else ''}"


def read_action(state, text):
    word = text.lower().rstrip("*")
    actions = range(BAR * SIDES)
    if state.to_play == CHANCE:
        actions = range(2 * NUM_MIXED if state.turn == UNDECIDED else NUM_ROLLS)
    shown = [show_action(state, action).lower().rstrip("*") for action in actions]
    return shown.index(word)

"""Tree files of plans: the tree, and beside it all answers that its numbers stand for, as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from uctree.engine import treefile
from uctree.errors import UctreeError
from uctree.game import OVER
from uctree.kernels.records import CLOSED, NONE, UNSEEN
from uctree.planning.book import NO_ACTION, Book
from uctree.planning.lines import Lines, short
from uctree.planning.problem import Answer, Problem
from uctree.tree import Tree


def answers_of(book: Book, path: str | Path) -> np.ndarray:
    """All that a book knows as bytes: lines of JSON in the order in which states got numbers."""
    try:
        text = "\n".join(_lines_of(book, Lines(path, book.problem, book)))
    except UctreeError as error:
        raise UctreeError(
            f"{error}. Or give plan a journal=, from which the same call grows the same tree"
        ) from None
    return np.frombuffer(text.encode(), np.uint8)


def _lines_of(book: Book, lines: Lines) -> Iterator[str]:
    yield lines.text({"uctree answers": 1, "problem": book.problem.name})
    yield lines.answer(0, NONE, _answer_of(book, 0, ()))
    yield from _proposals_of(book, 0, lines)
    num_known = 1
    for (row, index), (behind, reward) in book.behind.items():
        if book.states[behind] is NO_ACTION:
            yield lines.failure(row, index, book.failed[row, index], {}, list(reward))
        else:
            yield lines.answer(row, index, _answer_of(book, behind, reward))
        if behind == num_known:
            num_known += 1
            yield from _proposals_of(book, behind, lines)
    for (row, index), why in book.failed.items():
        if (row, index) not in book.behind and book.actions[row][index] is not NO_ACTION:
            yield lines.failure(row, index, why, {})


def _answer_of(book: Book, row: int, reward: tuple[float, ...]) -> Answer:
    """The answer that made a row known."""
    to_play, weights = book.to_play[row], book.weights[row]
    if to_play >= 0 and weights is not None:
        weights = tuple(math.exp(weight) for weight in weights)  # they were log-priors
    is_over = to_play == OVER
    proposes = book.problem.propose is not None and to_play >= 0
    return Answer(
        book.states[row], reward or (0.0,) * book.problem.num_players, to_play, is_over,
        () if proposes else book.actions[row], weights, book.values[row],
    )  # fmt: skip


def _proposals_of(book: Book, row: int, lines: Lines) -> Iterator[str]:
    """The lines of the actions that were proposed in a state."""
    if book.problem.propose is None or book.to_play[row] < 0:
        return
    for index, action in enumerate(book.actions[row]):
        if action is NO_ACTION:
            yield lines.failure(row, index, book.failed[row, index], {})
        else:
            yield lines.answer(row, index, Answer(None, proposed=[action]))
    if row in book.num_actions:
        yield lines.answer(row, book.num_actions[row], Answer(None, proposed=[]))


def read_answers(path: str | Path, problem: Problem, book: Book) -> None:
    """Fill a book with the answers of a tree file; UctreeError if they do not fit the problem."""
    _, arrays = treefile.read(path)
    stored = arrays.get("answers")
    if stored is None or stored.dtype != np.uint8 or stored.ndim != 1:
        raise UctreeError(f"{path} is not the tree of a plan: it has no answers; see Tree.load")
    lines = Lines(path, problem, book)
    texts = stored.tobytes().split(b"\n")
    header = lines.parsed(texts[0], 1)
    if header != {"uctree answers": 1, "problem": problem.name}:
        raise UctreeError(
            f"{path} is the tree of another problem, with the header {short(header)}; this one is "
            f"{problem.name!r}"
        )
    for number, text in enumerate(texts[1:], 2):
        lines.replay(lines.parsed(text, number), number)
    if not book.states:
        raise UctreeError(f"{path} has no answer about its start; save the tree again")


def check_answers(path: str | Path, tree: Tree, book: Book) -> None:
    """Refuse a tree whose edges say something else than the answers beside it."""
    fault = _fault_of(tree, book)
    if fault is not None:
        raise UctreeError(
            f"{path} holds a tree that no plan made: {fault}. Plan again and save the new tree"
        )


def _fault_of(tree: Tree, book: Book) -> str | None:
    state, names = tree.state, ("first", "num_edges", "action", "row", "count", "mover")
    root = int(state["row"])
    if not 0 <= root < len(book) or state != book.record(root):
        return f"its root is {state}, which is no state of its answers"
    columns = {name: tree.edges[name].tolist() for name in names}
    rewards, is_shared = tree.edges["reward"].tolist(), tree.layout.shared
    nodes = tree.edges["node"].tolist() if is_shared else None
    stack, is_done = [(0, root)], set()
    while stack:
        node, row = stack.pop()
        first = columns["first"][node]
        if first == NONE:
            continue
        is_done.add(node)
        for edge in range(first, first + columns["num_edges"][node]):
            action, behind = columns["action"][edge], columns["row"][edge]
            if not 0 <= action < book.count(row):
                return f"state {row} has no action with the number {action}"
            if behind == NONE:
                if columns["mover"][edge] not in (UNSEEN, CLOSED):
                    return f"an edge of state {row} has a player to move and no state"
                continue
            known, paid = book.behind.get((row, action), (NONE, ()))
            said = columns["count"][edge], columns["mover"][edge]
            if known != behind or said != (book.count(behind), book.to_play[behind]):
                return f"state {row} does not lead to state {behind} by action {action}"
            if rewards[edge] != list(paid[: len(rewards[edge])]):
                return f"action {action} of state {row} pays {rewards[edge]} in its tree"
            below = edge if nodes is None or nodes[edge] == NONE else nodes[edge]
            if below not in is_done:
                stack.append((below, behind))
    return None

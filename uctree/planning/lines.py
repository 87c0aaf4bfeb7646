"""Answers as lines of JSON, in journals and tree files: written, and checked when read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from uctree.engine.jsontext import parse_json
from uctree.errors import UctreeError
from uctree.game import CHANCE
from uctree.kernels.records import NONE
from uctree.planning.book import Book
from uctree.planning.problem import Answer, Problem, Question, as_actions, as_outcomes


class Lines:
    """The answers to one problem as lines of JSON; reading them fills a book.

    Lines are read in the order in which they were written, so states get the numbers they had.
    """

    def __init__(self, path: str | Path, problem: Problem, book: Book) -> None:
        """
        Args:
            path: of the file, for messages.
        """
        self.path, self.problem, self.book = path, problem, book
        self.costs: dict[str, float] = {}  # of the lines that were read

    # Writing.

    def answer(self, row: int, index: int, answer: Answer) -> str:
        """The line of an answer."""
        return self.text({
            "row": row,
            "index": index,
            "state": None if answer.proposed is not None else self.dumped(answer.state),
            "reward": _plain(answer.reward),
            "to_play": answer.to_play,
            "over": answer.over,
            "actions": _plain(answer.actions),
            "weights": _plain(answer.weights),
            "value": _plain(answer.value),
            "proposed": _plain(answer.proposed),
            "costs": answer.costs or {},
        })  # fmt: skip

    def failure(
        self, row: int, index: int, why: str, costs: dict[str, float], paid: Any = None
    ) -> str:
        """The line of a question that could not be answered."""
        line = {"row": row, "index": index, "failed": why, "costs": costs}
        return self.text(line | ({} if paid is None else {"paid": _plain(paid)}))

    def text(self, line: dict[str, Any]) -> str:
        """A line as JSON."""
        try:
            text = json.dumps(line, allow_nan=False)
            parse_json(text)  # as the next call will read it
        except (TypeError, ValueError, RecursionError) as error:
            raise UctreeError(
                f"the answer {short(line)} cannot be written to {self.path}: {error}. "
                "States need dump= and load= unless they are JSON data; actions must be numbers, "
                "strings or tuples"
            ) from None
        return text

    def dumped(self, state: Any) -> Any:
        """A state as JSON data."""
        return _plain(state if self.problem.dump is None else self.problem.dump(state))

    def _loaded(self, data: Any) -> Any:
        return _hashable(data) if self.problem.load is None else self.problem.load(data)

    # Reading.

    def parsed(self, text: bytes, number: int) -> dict[str, Any]:
        """A line; UctreeError if it is none."""
        try:
            line = parse_json(text)
        except ValueError:
            line = None
        if not isinstance(line, dict):
            raise UctreeError(
                f"line {number} of {self.path} is not an answer: the file is damaged; delete "
                "that line and those after it, or the file"
            )
        return line

    def replay(self, line: dict[str, Any], number: int) -> None:
        """Note in the book what a line says."""
        book = self.book
        try:
            if "late" in line:
                self._book_costs(_checked_costs(line["late"]))
                return
            question = self._question(line)
            costs = _checked_costs(line.get("costs") or {})
            if "failed" in line:
                book.note_failure(question, str(line["failed"]), line.get("paid"))
            else:
                book.note(question, book.checked(question, self._answer(line, question)))
            self._book_costs(costs)
        except Exception as error:  # a file can hold anything, and `load` can raise anything
            raise UctreeError(
                f"line {number} of {self.path} is not an answer to this problem: "
                f"{type(error).__name__}: {error!s:.500}"
            ) from None

    def _book_costs(self, costs: dict[str, float]) -> None:
        for name, cost in costs.items():
            self.costs[name] = self.costs.get(name, 0.0) + cost

    def _question(self, line: dict[str, Any]) -> Question:
        """The question of a line; kernels will index with its numbers."""
        row, index, book = line["row"], line["index"], self.book
        if type(row) is not int or type(index) is not int:
            raise ValueError(f"row {row!r} and index {index!r} are no integers")
        if index == NONE:
            return Question(0, row, index, None)
        if not 0 <= row < len(book):
            raise ValueError(f"row {row} is not known before this line")
        most = self.problem.max_actions if self._proposes(row) else len(book.actions[row])
        if not 0 <= index < most:
            raise ValueError(f"state {row} has {most} actions; there is none with number {index}")
        wanted = int(line.get("proposed") is not None)
        return Question(0, row, index, None, to_play=book.to_play[row], wanted=wanted)

    def _proposes(self, row: int) -> bool:
        """Whether the actions of a state are proposed one after another."""
        return self.problem.propose is not None and self.book.to_play[row] >= 0

    def _answer(self, line: dict[str, Any], question: Question) -> Answer:
        """The answer of a line, checked as what the functions of the problem return."""
        over, to_play, proposed = line["over"], line["to_play"], _hashable(line["proposed"])
        if type(over) is not bool or type(to_play) is not int:
            raise ValueError(f"over is {over!r} and to_play is {to_play!r}")
        if proposed is not None:
            if question.edge == NONE or not self._proposes(question.row):
                raise ValueError("it proposes actions where none were asked for")
            as_actions(proposed, False)
        actions, weights = _hashable(line["actions"]), line["weights"]
        is_chance = to_play == CHANCE and not over
        if is_chance and self.problem.chance is None:
            raise ValueError("chance is to play, but the problem has no chance=")
        if weights is None:
            if is_chance:
                raise ValueError("the outcomes have no probabilities")
            as_actions(actions, False)
        else:
            pairs = list(zip(actions, weights, strict=True))
            actions, weights = as_outcomes(pairs) if is_chance else as_actions(pairs, True)
        state = None if question.wanted else self._loaded(line["state"])
        return Answer(
            state, line["reward"], to_play, over, actions, weights, line["value"], proposed,
            line["costs"],
        )  # fmt: skip


def _plain(value: Any) -> Any:
    """Sequences and NumPy arrays as lists, which JSON has."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value


def _hashable(value: Any) -> Any:
    """Lists of JSON as tuples: actions must be hashable."""
    return tuple(_hashable(each) for each in value) if isinstance(value, list) else value


def _checked_costs(costs: Any) -> dict[str, float]:
    """Costs of a line; ValueError if one is no cost."""
    for name, cost in costs.items():
        if isinstance(cost, bool) or not cost >= 0:
            raise ValueError(f"the cost {name} is {cost!r}")
    return dict(costs)


def short(content: Any) -> str:
    text = repr(content)
    return text if len(text) <= 500 else f"{text[:500]}..."

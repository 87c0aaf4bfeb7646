"""Journals: every answer of a planner as a line of JSON, so that nothing is asked twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from uctree.engine.jsonlines import LineFile
from uctree.engine.jsontext import parse_json
from uctree.errors import UctreeError
from uctree.game import CHANCE
from uctree.kernels.records import NONE
from uctree.planning.book import Book
from uctree.planning.problem import Answer, Problem, Question, as_actions, as_outcomes

_VERSION = 1
_BEGINNING = b'{"uctree journal":'  # the first bytes of every file


class Journal:
    """The file of the answers of one plan; opening it fills the book with those it holds.

    Answers are replayed in the order in which they came, so states get the numbers they had. A last
    line that was torn by a crash is dropped.
    """

    def __init__(self, path: str | Path, problem: Problem, start: Any, book: Book) -> None:
        self.problem, self.book = problem, book
        self.costs: dict[str, float] = {}
        header = {"uctree journal": _VERSION, "problem": problem.name, "start": self._dumped(start)}
        self._file = LineFile(path, "journal", _BEGINNING)
        try:
            self._resume(header)
        except BaseException:
            self.close()
            raise

    def _resume(self, header: dict[str, Any]) -> None:
        lines = [self._parsed(line, number) for number, line in enumerate(self._file.lines, 1)]
        if not lines:
            self._write(header)
            return
        if lines[0] != header:
            raise UctreeError(
                f"{self._file.path} is the journal of another plan, with the header "
                f"{_short(lines[0])}; this one has {_short(header)}: give another file name, or "
                "delete the file"
            )
        for number, line in enumerate(lines[1:], 2):
            self._replay(line, number)

    def note(self, question: Question, answer: Answer) -> None:
        """Write an answer down."""
        line = {
            "row": question.row,
            "index": question.edge,
            "state": None if answer.proposed is not None else self._dumped(answer.state),
            "reward": _plain(answer.reward),
            "to_play": answer.to_play,
            "over": answer.over,
            "actions": _plain(answer.actions),
            "weights": _plain(answer.weights),
            "value": _plain(answer.value),
            "proposed": _plain(answer.proposed),
            "costs": answer.costs or {},
        }
        self._write(line)

    def note_failure(
        self, question: Question, why: str, costs: dict[str, float], paid: Any = None
    ) -> None:
        """Write down that a question could not be answered, and what that cost."""
        line = {"row": question.row, "index": question.edge, "failed": why, "costs": costs}
        self._write(line | ({} if paid is None else {"paid": _plain(paid)}))

    def note_costs(self, costs: dict[str, float]) -> None:
        """Write down what calls cost whose answers came too late to be used."""
        self._write({"late": costs})

    def close(self) -> None:
        """Close the file, so that another plan can use it."""
        self._file.close()

    def _book_costs(self, costs: dict[str, float]) -> None:
        for name, cost in costs.items():
            self.costs[name] = self.costs.get(name, 0.0) + cost

    def _write(self, line: dict[str, Any]) -> None:
        try:
            text = json.dumps(line, allow_nan=False)
            parse_json(text)  # as the next call will read it
        except (TypeError, ValueError, RecursionError) as error:
            raise UctreeError(
                f"the answer {_short(line)} cannot be written to {self._file.path}: {error}. "
                "States need dump= and load= unless they are JSON data; actions must be numbers, "
                "strings or tuples"
            ) from None
        self._file.append(text)

    def _parsed(self, text: bytes, number: int) -> dict[str, Any]:
        try:
            line = parse_json(text)
        except ValueError:
            line = None
        if not isinstance(line, dict):
            raise UctreeError(
                f"line {number} of {self._file.path} is not an answer: the file is damaged; delete "
                "that line and those after it, or the file"
            )
        return line

    def _replay(self, line: dict[str, Any], number: int) -> None:
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
                f"line {number} of {self._file.path} is not an answer to this problem: "
                f"{type(error).__name__}: {error!s:.500}"
            ) from None

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

    def _dumped(self, state: Any) -> Any:
        return _plain(state if self.problem.dump is None else self.problem.dump(state))

    def _loaded(self, data: Any) -> Any:
        return _hashable(data) if self.problem.load is None else self.problem.load(data)


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


def _short(content: Any) -> str:
    text = repr(content)
    return text if len(text) <= 500 else f"{text[:500]}..."

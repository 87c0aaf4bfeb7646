"""Journals: every answer of a planner as a line of JSON, so that nothing is asked twice."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from uctree.errors import UctreeError
from uctree.kernels.records import NONE
from uctree.planning.book import Book
from uctree.planning.problem import Answer, Problem, Question

_VERSION = 1


class Journal:
    """The file of the answers of one plan; opening it fills the book with those it holds.

    Answers are replayed in the order in which they came, so states get the numbers they had. A last
    line that was torn by a crash is dropped.
    """

    def __init__(self, path: str | Path, problem: Problem, start: Any, book: Book) -> None:
        self.path, self.problem = Path(path), problem
        self.costs: dict[str, float] = {}
        header = {"uctree journal": _VERSION, "problem": problem.name, "start": self._dumped(start)}
        lines = self._read()
        if lines:
            if lines[0] != header:
                raise UctreeError(
                    f"{self.path} is the journal of another plan, with the header {lines[0]}; this "
                    f"one has {header}: give another file name, or delete the file"
                )
            for number, line in enumerate(lines[1:], 2):
                self._replay(line, number, book)
        self._file = open(self.path, "a", encoding="utf-8")  # noqa: SIM115
        if not lines:
            self._write(header)

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
        self._file.close()

    def _book_costs(self, costs: dict[str, float]) -> None:
        for name, cost in costs.items():
            self.costs[name] = self.costs.get(name, 0.0) + cost

    def _write(self, line: dict[str, Any]) -> None:
        try:
            text = json.dumps(line, allow_nan=False, separators=(",", ":"))
        except (TypeError, ValueError) as error:
            raise UctreeError(
                f"the answer {line!r} cannot be written to {self.path}: {error}. States need dump= "
                "and load= unless they are JSON data; actions must be numbers, strings or tuples"
            ) from None
        self._file.write(text + "\n")
        self._file.flush()

    def _read(self) -> list[dict[str, Any]]:
        """The lines of the file; a last line that is not whole is removed from it."""
        if not self.path.exists():
            return []
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(self.path, whole)
        found = []
        for number, text in enumerate(content[:whole].splitlines(), 1):
            try:
                line = json.loads(text)
            except (ValueError, RecursionError):
                line = None
            if not isinstance(line, dict):
                raise UctreeError(
                    f"line {number} of {self.path} is not an answer: the file is damaged; delete "
                    "that line and those after it, or the file"
                )
            found.append(line)
        return found

    def _replay(self, line: dict[str, Any], number: int, book: Book) -> None:
        try:
            if "late" in line:
                self._book_costs(line["late"])
                return
            row, index = int(line["row"]), int(line["index"])
            if index != NONE and not 0 <= row < len(book):
                raise ValueError(f"row {row} is not known before this line")
            to_play = 0 if index == NONE else book.to_play[row]
            wanted = int(line.get("proposed") is not None)
            question = Question(0, row, index, None, to_play=to_play, wanted=wanted)
            if "failed" in line:
                book.note_failure(question, str(line["failed"]), line.get("paid"))
                self._book_costs(line.get("costs") or {})
                return
            answer = Answer(
                state=None if wanted else self._loaded(line["state"]), reward=line["reward"],
                to_play=line["to_play"], over=line["over"], actions=_hashable(line["actions"]),
                weights=line["weights"],
                value=line["value"], proposed=_hashable(line["proposed"]), costs=line["costs"],
            )  # fmt: skip
            book.note(question, book.checked(question, answer))
            self._book_costs(answer.costs or {})
        except UctreeError:
            raise
        except Exception as error:
            raise UctreeError(
                f"line {number} of {self.path} is not an answer to this problem: "
                f"{type(error).__name__}: {error}"
            ) from None

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

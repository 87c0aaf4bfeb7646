"""Journals: every answer of a planner as a line of JSON, so that nothing is asked twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from uctree.engine.jsonlines import LineFile
from uctree.errors import UctreeError
from uctree.planning.book import Book
from uctree.planning.lines import Lines, short
from uctree.planning.problem import Answer, Problem, Question

_VERSION = 1
_BEGINNING = b'{"uctree journal":'  # the first bytes of every file


class Journal:
    """The file of the answers of one plan; opening it fills the book with those it holds.

    Answers are replayed in the order in which they came, so states get the numbers they had. A last
    line that was torn by a crash is dropped.
    """

    def __init__(self, path: str | Path, problem: Problem, start: Any, book: Book) -> None:
        self._file = LineFile(path, "journal", _BEGINNING)
        self._lines = Lines(self._file.path, problem, book)
        try:
            dumped = self._lines.dumped(start)
            self._resume({"uctree journal": _VERSION, "problem": problem.name, "start": dumped})
        except BaseException:
            self.close()
            raise

    @property
    def costs(self) -> dict[str, float]:
        """Of the answers that it held when it was opened."""
        return self._lines.costs

    def _resume(self, header: dict[str, Any]) -> None:
        parsed = self._lines.parsed
        lines = [parsed(line, number) for number, line in enumerate(self._file.lines, 1)]
        if not lines:
            self._write(self._lines.text(header))
            return
        if lines[0] != header:
            raise UctreeError(
                f"{self._file.path} is the journal of another plan, with the header "
                f"{short(lines[0])}; this one has {short(header)}: give another file name, or "
                "delete the file"
            )
        for number, line in enumerate(lines[1:], 2):
            self._lines.replay(line, number)

    def note(self, question: Question, answer: Answer) -> None:
        """Write an answer down."""
        self._write(self._lines.answer(question.row, question.edge, answer))

    def note_failure(
        self, question: Question, why: str, costs: dict[str, float], paid: Any = None
    ) -> None:
        """Write down that a question could not be answered, and what that cost."""
        self._write(self._lines.failure(question.row, question.edge, why, costs, paid))

    def note_costs(self, costs: dict[str, float]) -> None:
        """Write down what calls cost whose answers came too late to be used."""
        self._write(self._lines.text({"late": costs}))

    def close(self) -> None:
        """Close the file, so that another plan can use it."""
        self._file.close()

    def _write(self, text: str) -> None:
        self._file.append(text)

"""Answers as lines of JSON."""

from __future__ import annotations

import json

import pytest

from tests.planning.counting import counting
from uctree.errors import UctreeError
from uctree.kernels.records import NONE
from uctree.planning.book import Book
from uctree.planning.lines import Lines
from uctree.planning.problem import Answer


def test_lines_fill_a_book_as_the_answers_would():
    problem = counting()
    book = Book(problem)
    lines = Lines("here", problem, book)
    answers = [
        lines.answer(0, NONE, Answer(1, actions=["add", "double"], value=0.5)),
        lines.answer(0, 1, Answer(2, reward=0.25, over=True, to_play=0)),
        lines.failure(0, 0, "no", {"usd": 2.0}),
    ]
    for number, line in enumerate(answers, 1):
        lines.replay(lines.parsed(line.encode(), number), number)
    assert book.states == [1, 2]
    assert book.behind == {(0, 1): (1, (0.25,))}
    assert book.failed == {(0, 0): "no"}
    assert lines.costs == {"usd": 2.0}


def test_a_line_that_is_no_answer_is_refused_with_its_number():
    problem = counting()
    lines = Lines("here", problem, Book(problem))
    with pytest.raises(UctreeError, match="line 7 of here is not an answer: the file is damaged"):
        lines.parsed(b"[1", 7)
    line = json.loads(lines.answer(3, 1, Answer(2)))
    with pytest.raises(UctreeError, match=r"line 8 of here .*: row 3 is not known"):
        lines.replay(line, 8)


def test_what_is_no_json_data_is_not_written():
    problem = counting()
    lines = Lines("here", problem, Book(problem))
    with pytest.raises(UctreeError, match="States need dump= and load="):
        lines.answer(0, NONE, Answer(object()))

"""The book of a planner: states by number, and what is behind their actions."""

from __future__ import annotations

import pytest

import uctree
from tests.planning.counting import counting, step
from uctree import Problem, Step
from uctree.kernels.records import NONE
from uctree.planning.book import Book
from uctree.planning.problem import Answer, Question

pytestmark = pytest.mark.quick


def question(row=0, edge=NONE, **fields):
    return Question(0, row, edge, None, **fields)


def answered(problem, start=1):
    """A book that knows the start."""
    book = Book(problem)
    book.note(question(), problem.answer(question()._replace(state=start)))
    return book


def note(book, row, edge):
    """Write down what is behind an action, as the problem says."""
    asked = Question(1, row, edge, book.states[row], book.actions[row][edge])
    book.note(asked, book.problem.answer(asked))


def tell(book, asked, answer):
    book.note(asked, book.checked(asked, answer))


def test_states_are_numbered_in_the_order_in_which_they_come():
    book = answered(counting())
    note(book, 0, 1)
    note(book, 1, 0)
    assert book.states == [1, 2, 3]
    assert book.behind == {(0, 1): (1, (0.0,)), (1, 0): (2, (0.0,))}
    assert book.record(1).tolist() == (1, NONE, 2, 0)


@pytest.mark.parametrize(("key", "num_states"), [(None, 4), (lambda number: number, 3)])
def test_states_of_the_same_key_are_one(key, num_states):
    book = answered(counting(key=key))
    note(book, 0, 0)
    note(book, 0, 1)  # 2 again: adding one is doubling
    note(book, 1, 0)
    assert len(book) == num_states


def test_an_end_has_no_edges():
    book = answered(counting(), start=4)
    note(book, 0, 1)
    assert book.to_play[1] == uctree.OVER
    assert book.count(1) == 0
    assert book.behind[0, 1] == (1, (1.0,))


def test_proposals_make_room_until_there_are_no_more():
    problem = Problem(propose=lambda n, tried, k: [], step=step, value=lambda n: 0.0, max_actions=9)
    book = answered(problem)
    assert book.count(0) == 9
    tell(book, question(edge=0, wanted=1), Answer(None, proposed=("add",)))
    assert book.actions[0] == ("add",)
    tell(book, question(edge=1, wanted=1), Answer(None, proposed=()))
    assert book.num_actions == {0: 1}
    assert book.num_listed(0) == 1
    assert book.label(0, 0) == "add"
    assert book.label(0, 5) == "proposal 5"


def test_the_book_as_a_game_takes_known_steps_alone():
    book = answered(counting())
    note(book, 0, 1)
    game = book.game(2)
    state = book.record(0)
    after, reward = game.step(state, 1)
    assert (int(after.row), reward.tolist()) == (1, [0.0])
    assert game.show(after) == "2"
    assert game.show_action(state, 1) == "double"
    with pytest.raises(uctree.IllegalAction, match="what is behind add is not known yet"):
        game.step(state, 0)


def test_a_player_who_does_not_exist_is_refused():
    problem = counting(step=lambda number, action: Step(number, to_play=3))
    book = answered(problem)
    with pytest.raises(uctree.BrokenGame, match="says to_play=3; expected 0 to 0"):
        note(book, 0, 0)

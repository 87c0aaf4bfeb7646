"""Studies of solvers by budget: runs in a file, summaries."""

from __future__ import annotations

import contextlib
import json

import pytest

from uctree import UctreeError, games
from uctree.continuous import budgets
from uctree.engine.jsonlines import LineFile

LOSS = games.loss_game()


def test_a_study_goes_on_where_it_was_broken_off(tmp_path):
    file = tmp_path / "runs.jsonl"
    first = budgets.study(LOSS, ["ascent"], [100, 300], range(2), file=file)
    file.write_text("\n".join(file.read_text().splitlines()[:3]) + '\n{"solver": "asc')
    again = budgets.study(LOSS, ["ascent"], [100, 300], range(2), file=file)
    assert again == first
    assert all(run.evaluations <= run.budget for run in first)


def test_a_solver_that_takes_more_than_its_budget_has_no_regret():
    assert budgets.run(LOSS, "backward", 1000, 0).regret is None
    assert budgets.run(LOSS, "backward", 10**7, 0).worst < 1e-9


def test_the_first_budget_is_the_one_that_nearly_all_seeds_need():
    runs = [
        budgets.Run("x", budget, seed, budget, (worst, 0.0), (0.0,), ())
        for budget, worst in ((10, 5.0), (100, 0.5), (1000, 0.005))
        for seed in range(4)
    ]
    found = budgets.summaries(runs)
    assert budgets.first_budgets(found) == {"x": [100, 1000, 1000]}
    assert budgets.draw(found, "x").count("<circle") == 3  # one for each budget


def test_a_study_goes_on_after_a_torn_line_and_refuses_another_game(tmp_path):
    file = tmp_path / "runs.jsonl"
    whole = budgets.study(LOSS, ["ascent"], [50, 100], range(2), file=file)
    complete = file.read_text()
    file.write_text(complete[:-20])
    assert budgets.study(LOSS, ["ascent"], [50, 100], range(2), file=file) == whole
    assert file.read_text() == complete
    with pytest.raises(UctreeError, match="holds runs of another game"):
        budgets.study(games.loss_game(3), ["ascent"], [50], range(1), file=file)


HEADER = '{"game": {}}\n'
RUN = {
    "solver": "ascent", "budget": 50, "seed": 0, "evaluations": 50, "regret": [0.5, 0.5],
    "payoff": [1.0, 1.0], "path": [[0.5], [0.5]],
}  # fmt: skip
DAMAGED = {
    "no table": b"7",
    "no run": b"{}",
    "no text": b"\xff\xfe{",
    "a number that is a text": json.dumps(RUN | {"budget": "50"}).encode(),
    "a text that is a number": json.dumps(RUN | {"solver": 7}).encode(),
    "a list that is a text": json.dumps(RUN | {"regret": "0.5"}).encode(),
    "a number that is a list": json.dumps(RUN | {"path": [[[0.5]]]}).encode(),
    "no number": json.dumps(RUN | {"payoff": [None, 1.0]}).encode(),
    "no finite number": json.dumps(RUN | {"payoff": [float("nan"), 1.0]}).encode(),
    "a deep one": b"[" * 5000 + b"]" * 5000,
}


def studied(file):
    return budgets.study(LOSS, ["ascent"], [50], range(1), file=file)


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_line_is_named_and_left_alone(kind, tmp_path):
    file = tmp_path / "runs.jsonl"
    studied(file)
    content = file.read_bytes() + DAMAGED[kind] + b"\n"
    file.write_bytes(content)
    with pytest.raises(UctreeError, match=r"runs.jsonl, line 3 is damaged \("):
        studied(file)
    assert file.read_bytes() == content


@pytest.mark.parametrize(
    "content",
    [b"something else\n", b"\xff\xfe\n", b'{"game": 7}\n', b'{"game": {"name": 7}}\n',
     b'{"game":' + b"[" * 5000 + b"\n"],
)  # fmt: skip
def test_a_file_that_is_no_study_is_refused_and_left_alone(content, tmp_path):
    file = tmp_path / "runs.jsonl"
    file.write_bytes(content)
    with pytest.raises(UctreeError, match="give another"):
        studied(file)
    assert file.read_bytes() == content


def test_a_study_writes_through_no_link_and_beside_no_other_study(tmp_path):
    other, file = tmp_path / "precious", tmp_path / "runs.jsonl"
    other.write_text(HEADER)
    file.symlink_to(other)
    with pytest.raises(UctreeError, match="is a link"):
        studied(file)
    assert other.read_text() == HEADER
    with pytest.raises(UctreeError, match="No such file or directory"):
        studied(tmp_path / "missing" / "runs.jsonl")
    file.unlink()
    with (
        contextlib.closing(LineFile(file, "study", budgets.BEGINNING)),
        pytest.raises(UctreeError, match="is in use by another study"),
    ):
        studied(file)


def test_a_full_disk_leaves_a_study_that_goes_on(tmp_path, monkeypatch):
    file, append = tmp_path / "runs.jsonl", LineFile.append
    whole = budgets.study(LOSS, ["ascent"], [50, 100], range(2))

    def fills(self, text):
        if len(self.path.read_bytes().splitlines()) > 2:
            self.file.write(text[: len(text) // 2].encode())  # a part of it still fits
            raise UctreeError(f"{self.path}: No space left on device")
        append(self, text)

    monkeypatch.setattr(LineFile, "append", fills)
    with pytest.raises(UctreeError, match="No space left"):
        budgets.study(LOSS, ["ascent"], [50, 100], range(2), file=file)
    monkeypatch.undo()
    assert budgets.study(LOSS, ["ascent"], [50, 100], range(2), file=file) == whole

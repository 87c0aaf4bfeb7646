"""The commands `uctree ablate` and `uctree advise`."""

from __future__ import annotations

import json

import pytest

from uctree import cli

pytestmark = pytest.mark.quick

# --- ablate --------------------------------------------------------------------------------------


def test_ablate_prints_a_table_and_fills_a_folder(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert (
        cli.main(["ablate", "tic_tac_toe", "--vary", "num_simulations=1,20", "--games", "4"]) == 0
    )
    printed = capsys.readouterr()
    assert "num_simulations=20" in printed.out
    assert printed.err == "uctree: wrote ablation-tic_tac_toe\n"
    names = {path.name for path in (tmp_path / "ablation-tic_tac_toe").iterdir()}
    assert names == {
        "grid.json", "games-2-against-1.jsonl", "table.md", "chart.svg", "ablation.json",
    }  # fmt: skip


def test_ablate_reads_budgets_and_common_options(tmp_path, capsys):
    status = cli.main(
        ["ablate", "tic_tac_toe", "--vary", "selection.ucb1.c=0.5,2", "--num-simulations", "5,10",
         "--base", "solver=True", "--games", "2", "--folder", str(tmp_path), "--json"]
    )  # fmt: skip
    content = json.loads(capsys.readouterr().out)
    rows = content["rows"]
    assert status == 0
    assert content["settings"] == {"openings": 2, "seed": 0, "max_seconds": None}
    assert [row["budget"] for row in rows] == ["num_simulations=5"] * 2 + ["num_simulations=10"] * 2
    assert rows[0]["agent"] == "search(num_simulations=5, solver=True, selection=ucb1(c=0.5))"


def test_ablate_reads_openings_from_a_file(tmp_path, capsys):
    (tmp_path / "openings.txt").write_text("5 1\n# the corner\n1\n")
    status = cli.main(
        ["ablate", "tic_tac_toe", "--vary", "num_simulations=1,5", "--games", "4", "--openings",
         str(tmp_path / "openings.txt"), "--folder", str(tmp_path / "all")]
    )  # fmt: skip
    assert status == 0
    lines = (tmp_path / "all" / "games-2-against-1.jsonl").read_text().splitlines()
    assert [json.loads(line)["opening"] for line in lines[1::2]] == [[4, 0], [0]]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--vary", "solver"], "cannot read 'solver'"),
        (
            ["--vary", "solver=true,false", "--num-simulations", "ten"],
            "--num-simulations ten: expected",
        ),
    ],
)
def test_a_mistake_in_ablate_is_one_line(more, message, capsys, tmp_path):
    assert cli.main(["ablate", "tic_tac_toe", *more, "--folder", str(tmp_path)]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1


# --- advise --------------------------------------------------------------------------------------


def test_advise_prints_the_table_and_the_call(tmp_path, capsys):
    status = cli.main(
        ["advise", "tic_tac_toe", "--actions", "4,0", "--positions", "3", "--rule", "ucb1()",
         "--budgets", "5,20", "--seeds", "1", "--base", "solver=True", "--folder", str(tmp_path)]
    )  # fmt: skip
    printed = capsys.readouterr().out
    assert status == 0
    assert "tic_tac_toe: 3 states, 1 seed each; reference: exact values" in printed
    assert "selection=uctree.selection.ucb1(), solver=True)" in printed
    assert (tmp_path / "chart.svg").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--budgets", "few"], "--budgets few: expected numbers, as 100,1000"),
        (["--base", "reuse=True"], "--base: reuse is for whole games"),
        (["--base", "solvr=True"], "search has no option 'solvr'"),
    ],
)
def test_a_mistake_in_advise_is_one_line(more, message, capsys):
    assert cli.main(["advise", "tic_tac_toe", *more]) == 2
    assert message in capsys.readouterr().err

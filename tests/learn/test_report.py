"""A run as a page: what is on it, and that it needs nothing else."""

from __future__ import annotations

import math
import shutil

import pytest

from tests.learn.faults import plain_weights
from tests.pages.browsers import ARGUMENTS
from tests.pages.results import Reader
from uctree import games
from uctree.cli import learning
from uctree.errors import UctreeError
from uctree.learn import ladder, report
from uctree.learn.metrics import sound_rows
from uctree.learn.run import Run

pytest.importorskip("safetensors", reason="the extra learn is not installed")

pytestmark = pytest.mark.quick


def games_of(score):
    return {
        "games": 4, "wins": 2, "draws": 1, "losses": 1, "score": score,
        "score_interval": [0.2, 0.9], "elo": 40.0, "elo_interval": [-100.0, 300.0],
        "points": [[1.5, 0.5], [1.0, 1.0]],
    }  # fmt: skip


def returns_of(amount):
    return {
        "games": 4, "mean_return": amount, "return_interval": [1.0, 9.0], "opponent_return": 2.0,
        "opponent_interval": None, "difference": amount - 2.0, "difference_interval": [-1.0, 3.0],
    }  # fmt: skip


DIAGNOSIS = {
    "games": 4, "positions": 30, "value_error": 0.1, "search_value_error": 0.05,
    "reliability": [
        {"low": -1.0, "high": 0.0, "positions": 10, "predicted": -0.4, "outcome": -0.5,
         "outcome_interval": [-0.8, -0.1]},
        {"low": 0.0, "high": 1.0, "positions": 20, "predicted": 0.3, "outcome": 0.4,
         "outcome_interval": None},
    ],
    "divergence": 0.3, "changed": 0.25, "entropy": 1.0, "search_entropy": 0.7,
}  # fmt: skip
EXACT = {
    "source": "bitbully", "positions": 200, "raw": 0.7, "raw_interval": [0.6, 0.8],
    "search": 0.9, "search_interval": [0.85, 0.95],
}  # fmt: skip


def recorded(folder, game, exact=EXACT):
    """A run with the metrics of 20 iterations and two measurements."""
    alone = game.num_players == 1
    with Run.begin(folder, game) as run:
        for iteration in range(1, 21):
            run.log(
                "self-play", iteration=iteration, games=64 * iteration, positions=500 * iteration,
                simulations=25_000 * iteration, played=64, plies_per_game=8.0, seconds=2.0,
                games_per_second=32.0, simulations_per_second=12_500.0,
            )  # fmt: skip
            run.log(
                "learning", iteration=iteration, steps=8 * iteration, learning_rate=1e-3,
                seconds=1.0, policy_loss=2.0 / iteration, value_loss=1.0 / iteration,
            )  # fmt: skip
            if iteration % 10:
                continue
            run.log("checkpoint", iteration=iteration, weights_sha256="5a" * 32, seconds=360.0)
            names = ["random", "playout_100", *["past"] * (iteration > 10)]
            played = {name: returns_of(5.0) if alone else games_of(0.6) for name in names}
            run.log(
                "ladder", iteration=iteration, past=10 if iteration > 10 else None, games=played,
                diagnosis=DIAGNOSIS, exact=exact, seed=0, seconds=1.0,
            )  # fmt: skip
    return run


@pytest.fixture
def run(tmp_path):
    return recorded(tmp_path / "run", games.connect_four())


def test_a_page_has_every_section_and_is_well_formed(run):
    text = report.report_page(run)
    Reader(text)
    for expected in (
        "Does it learn?", "Ratings of checkpoints", "Score at checkpoints", "an optimal action",
        "Values against outcomes", "Calibration error", "KL(search", "actions that change after",
        "Entropy of policies", "Losses", "Learning rate", "Games per second", "Simulations per",
        "5a" * 32, "num_simulations",
    ):  # fmt: skip
        assert expected in text, expected
    assert text.count("<svg") == 13
    assert "nan" not in text
    assert "20 iterations in 0.10 hours, 1,280 games, 10,000 positions" in text
    assert "an optimal action in 90.0%, the policy alone in 70.0%" in text


def test_a_game_of_one_player_has_returns_instead_of_ratings(tmp_path):
    text = report.report_page(recorded(tmp_path / "run", games.twenty48(max_tile=16), None))
    assert "Mean return at checkpoints" in text
    assert "<p>It is not clear whether it learns: its mean return was 5 (95 %: 1 to 9)" in text
    assert "Ratings of checkpoints" not in text
    assert "play optimally" not in text


def test_a_page_of_a_run_that_has_just_begun_says_so(tmp_path):
    with Run.begin(tmp_path / "run", games.tic_tac_toe()) as run:
        text = report.report_page(run)
    Reader(text)
    assert "<p>Whether it learns was not measured yet: " in text
    assert "no game was played yet" in text
    assert "Nothing was measured yet" in text
    assert "<svg" not in text


def ladder_of(*measured):
    """The ladder's rows with these points against random, of ten openings each."""
    return [
        {"iteration": 10 * number, "past": None, "diagnosis": DIAGNOSIS,
         "games": {"random": games_of(0.5) | {"points": [points] * 10}}}
        for number, points in enumerate(measured, start=1)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "answer"),
    [
        (ladder_of([0, 2], [2, 0]), "Yes, it learns: from iteration 10 to 20 the rating of its "),
        (ladder_of([2, 0], [0, 2]), "No, it does not learn: from iteration 10 to 20 the rating"),
        (ladder_of([1, 1], [1, 1]), "It is not clear whether it learns: from iteration 10 to 20"),
        (ladder_of([2, 0]), "It is not clear whether it learns: only one checkpoint has played."),
    ],
)
def test_the_first_sentence_says_whether_it_learns(run, monkeypatch, rows, answer):
    monkeypatch.setattr(run, "metrics", lambda kind: rows if kind == "ladder" else [])
    page = report.report_page(run)
    assert page.partition("<p>")[2].startswith(answer)


def test_where_exact_play_was_not_measured_the_page_says_why(tmp_path):
    missing = {"missing": "bitbully is not installed: pip install bitbully"}
    text = report.report_page(recorded(tmp_path / "run", games.connect_four(), missing))
    assert "Not measured: bitbully is not installed: pip install bitbully." in text


MODEL = [
    {"k": 0, "positions": 20, "reward": None, "value": 0.0, "outcome": 0.4, "policy": 0.0,
     "illegal": 0.02, "turn": 0.0},
    {"k": 1, "positions": 16, "reward": 0.125, "value": 0.25, "outcome": 0.5, "policy": 0.75,
     "illegal": 0.375, "turn": 0.0625},
]  # fmt: skip


def test_a_page_of_a_learned_model_says_how_wrong_it_is(tmp_path):
    with Run.begin(tmp_path / "run", games.tic_tac_toe(), algorithm="muzero") as run:
        played = {name: games_of(0.6) for name in ("random", "rules", "policy")}
        for iteration in (10, 20):
            run.log(
                "learning", iteration=iteration, steps=8, policy_loss=1.0, value_loss=0.5,
                reward_loss=0.25, consistency_loss=0.5, turn_loss=0.0, learning_rate=1e-3,
            )  # fmt: skip
            run.log(
                "ladder", iteration=iteration, past=None, games=played, model=MODEL, strength=0.6
            )
    text = report.report_page(run)
    Reader(text)
    for expected in (
        "Is the model any good?", "at iteration 20", "0.375", "0.0625", "consistency",
        "the network with the game&#x27;s rules", "its policy without search",
    ):  # fmt: skip
        assert expected in text, expected
    assert "nan" not in text


def test_a_fall_is_named_and_the_strongest_checkpoint_stays(tmp_path):
    with Run.begin(tmp_path / "run", games.tic_tac_toe(), keep_checkpoints=1) as run:

        def measured(iteration, strength):
            run.save(iteration, network=plain_weights(iteration))
            games_played = {"random": games_of(0.6)}
            run.log("ladder", iteration=iteration, past=None, games=games_played, strength=strength)
            return ladder.fall(run)

        assert measured(10, 0.5) is None
        assert measured(20, 0.9) is None
        assert measured(30, 0.8) is None  # a quarter of what was learned
        found = measured(40, 0.6)
        assert (found.first, found.best, found.last) == ((10, 0.5), (20, 0.9), (40, 0.6))
        assert run.iterations() == [20, 40]
        text = report.report_page(run)
        assert "of iteration 40, has lost a good part of what was learned" in text
        assert "run.learned(20) is the stronger one" in text
        line = learning._best_and_last(run, sound_rows(run, "ladder"))
        assert line == [
            "  the strongest checkpoint is of iteration 20 (strength 0.9), the last one of "
            "iteration 40 (0.6); both are kept"
        ]
        assert measured(50, 0.95) is None
        assert learning._best_and_last(run, sound_rows(run, "ladder")) == []
        run.save(60, network=plain_weights(60))
        assert run.iterations() == [50, 60]  # the best, and the last


def test_text_of_a_run_cannot_become_markup(tmp_path):
    run = recorded(tmp_path / "<script>alert(1)<", games.tic_tac_toe())
    run.warnings.append("<img src=x>")
    text = report.report_page(run)
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;" in text
    assert "Damaged: &lt;img src=x&gt;" in text


def test_an_interval_that_is_not_known_is_not_drawn(tmp_path):
    row = {"iteration": 1, "score": 0.5, "score_interval": None}
    series = report._curve("a", [row], "score", bounds="score_interval")
    assert math.isnan(series.low[0])
    assert report._curve("a", [row], "missing.deep") is None


def test_a_page_that_cannot_be_written_leaves_what_was_there(run, tmp_path):
    with pytest.raises(UctreeError, match="report"):
        report.write_report(run, tmp_path / "none" / "such" / "report.html")
    target = tmp_path / "report.html"
    report.write_report(run, target)
    assert target.read_text(encoding="utf-8") == report.report_page(run)


@pytest.mark.peer
def test_a_browser_shows_the_page_and_loads_nothing_else(run, tmp_path):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not installed")
    target = tmp_path / "report.html"
    report.write_report(run, target)
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=ARGUMENTS)
        tab = browser.new_page(viewport={"width": 390, "height": 844})
        problems, requests = [], []
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.on("console", lambda message: problems.append(message.text))
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto(target.as_uri())
        widths = tab.eval_on_selector_all("svg", "all => all.map(e => e.clientWidth)")
        fits = tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        browser.close()
    assert (problems, requests) == ([], [target.as_uri()])
    assert len(widths) == 13
    assert all(200 < width <= 390 for width in widths)
    assert fits

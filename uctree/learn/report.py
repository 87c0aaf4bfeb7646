"""A run as one HTML page: whether it learned, how fast, and with which options."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from uctree.engine.treefile import replacing
from uctree.learn import files, ladder
from uctree.learn.metrics import ANCHOR, PAST, POLICY, RULES, sound_rows
from uctree.learn.run import Run
from uctree.pages.chart import Series, line_chart
from uctree.pages.document import document, heading, paragraph, table

Row = dict[str, Any]
Rows = list[Row]
UNKNOWN = (float("-inf"), float("inf"))  # the interval of a change that was not measured


def write_report(run: Run, path: str | os.PathLike[str]) -> None:
    """Write the metrics of a run as one self-contained HTML page."""
    with files.explain_os_errors(Path(path), "writing the report"), replacing(Path(path)) as file:
        file.write(report_page(run).encode())


def report_page(run: Run) -> str:
    """The HTML of the page."""
    first = [paragraph(_verdict(run)), paragraph(_headline(run))]
    fallen = ladder.fall(run)
    first += [paragraph(str(fallen))] if fallen else []
    sections = []
    for name, section in (
        ("Does it learn?", _strength), ("Does it play optimally?", _exact),
        ("Is the network right?", _diagnosis), ("Is the model any good?", _model),
        ("Losses", _losses), ("Speed", _speed),
        ("Checkpoints", _checkpoints), ("Options", _options),
    ):  # fmt: skip
        found = section(run)
        sections += [heading(name), *found] if found else []
    parts = [paragraph(f"Damaged: {each}") for each in run.warnings]
    failed = run.metrics("quarantined")
    parts += [paragraph(f"Episodes that failed and were left out: {len(failed)}.")] * bool(failed)
    return document(f"{run.game.name}: a run of uctree", [*first, *parts, *sections])


def _verdict(run: Run) -> str:
    """The answer to "does it learn?" in one sentence."""
    rows = sound_rows(run, "ladder")
    if not rows:
        return "Whether it learns was not measured yet: the ladder runs at checkpoints."
    seen, (low, high) = _change_of_returns(rows) if run.game.num_players == 1 else _rise(run)
    answer = "It is not clear whether it learns"
    if low > 0:
        answer = "Yes, it learns"
    elif high < 0:
        answer = "No, it does not learn"
    return f"{answer}: {seen}."


def _rise(run: Run) -> tuple[str, tuple[float, float]]:
    """How the rating changed from the oldest checkpoint in the games to the newest, in Elo."""
    rated = ladder.ratings(run)
    assert rated is not None, "there are games"
    own = [row for row in rated.rows() if row["iteration"] is not None]
    if len(own) < 2:
        return "only one checkpoint has played", UNKNOWN
    elo, low, high = rated.difference(own[-1]["agent"], own[0]["agent"])
    return (
        f"from iteration {own[0]['iteration']} to {own[-1]['iteration']} the rating of its search "
        f"changed by {elo:+.0f} Elo (95 %: {low:+.0f} to {high:+.0f})"
    ), (low, high)


def _change_of_returns(rows: Rows) -> tuple[str, tuple[float, float]]:
    """How the mean return of one player changed from the first measurement to the last."""
    first, last = (row["games"][ANCHOR] for row in (rows[0], rows[-1]))
    before, after = first["return_interval"], last["return_interval"]
    seen = (
        f"its mean return was {first['mean_return']:.4g} (95 %: {_interval(before, '.4g')}) at "
        f"iteration {rows[0]['iteration']} and is {last['mean_return']:.4g} (95 %: "
        f"{_interval(after, '.4g')}) at iteration {rows[-1]['iteration']}"
    )
    if len(rows) < 2 or before is None or after is None:
        return seen, UNKNOWN
    return seen, (after[0] - before[1], after[1] - before[0])


def _headline(run: Run) -> str:
    played, learned = sound_rows(run, "self-play"), sound_rows(run, "learning")
    if not played:
        return f"{run.folder}: no game was played yet."
    last = played[-1]
    steps = f", {learned[-1]['steps']:,.0f} steps" if learned else ""
    saved = sound_rows(run, "checkpoint")
    hours = f" in {saved[-1]['seconds'] / 3600:.2f} hours" if saved else ""
    return (
        f"{run.folder}: {last['iteration']} iterations{hours}, {last['games']:,.0f} games, "
        f"{last['positions']:,.0f} positions, {last['simulations']:,.0f} simulations{steps}; "
        f"{_parameters(run)}."
    )


def _parameters(run: Run) -> str:
    options = run.options
    return f"{options.num_simulations} simulations per search, seed {options.seed}"


# --- curves --------------------------------------------------------------------------------------


def _curve(name: str, rows: Rows, key: str, *, bounds: str | None = None) -> Series | None:
    """A number of the metrics over iterations; None if no line has it.

    Args:
        key: that of the number, with dots for nested ones, as `games.random.score`.
        bounds: the key of its interval.
    """
    points = [(row["iteration"], _number(row, key), _number(row, bounds)) for row in rows]
    drawn = [point for point in points if isinstance(point[1], (int, float))]
    if not drawn:
        return None
    x, y, intervals = zip(*drawn, strict=True)
    if bounds is None:
        return Series(name, x, y)
    unknown = float("nan"), float("nan")
    low, high = zip(*(each or unknown for each in intervals), strict=True)
    return Series(name, x, y, low, high)


def _number(row: Any, key: str | None) -> Any:
    for part in [] if key is None else key.split("."):
        row = row.get(part) if isinstance(row, dict) else None
    return None if key is None else row


def _chart(title: str, y_label: str, curves: Sequence[Series | None]) -> list[str]:
    """A chart of the curves that are not None; nothing if there are none."""
    drawn = [each for each in curves if each is not None]
    return [line_chart(drawn, title=title, x_label="iteration", y_label=y_label)] if drawn else []


# --- sections ------------------------------------------------------------------------------------


def _strength(run: Run) -> list[str]:
    rows = sound_rows(run, "ladder")
    if not rows:
        return [paragraph("Nothing was measured yet: the ladder runs at checkpoints.")]
    if run.game.num_players == 1:
        return _returns(rows)
    rated = ladder.ratings(run)
    assert rated is not None, "there are games"
    names = list(rows[-1]["games"])
    scores = [
        _curve(f"against {_label(name)}", rows, f"games.{name}.score",
               bounds=f"games.{name}.score_interval")
        for name in names
    ]  # fmt: skip
    return [
        _ratings_chart(rated.rows()),
        *_chart("Score at checkpoints, with 95 % intervals", "score", scores),
        table(_games_table(rows[-1])),
        table(_ratings_table(rated.rows())),
    ]


def _ratings_table(rows: Rows) -> list[list[str]]:
    """A row per agent, the strongest first."""
    ranked = sorted(rows, key=lambda row: float(row["elo"]), reverse=True)
    lines = [
        [_label(row["agent"]), f"{row['elo']:+.0f}", _interval((row["low"], row["high"]), "+.0f")]
        for row in ranked
    ]
    return [["rating of", "Elo", "95 %"], *lines]


def _ratings_chart(rows: Rows) -> str:
    own = [row for row in rows if row["iteration"] is not None]
    x = [row["iteration"] for row in own]
    elo, low, high = ([row[key] for row in own] for key in ("elo", "low", "high"))
    series = [Series("the network's search", x, elo, low, high)]
    series += [
        Series(_label(row["agent"]), [x[0], x[-1]], [row["elo"]] * 2)
        for row in rows
        if row["iteration"] is None
    ]
    title = "Ratings of checkpoints, with 95 % intervals; random play is 0"
    return line_chart(series, title=title, x_label="iteration", y_label="Elo")


def _games_table(row: Row) -> list[list[str]]:
    titles = ["opponent", "games", "won", "drawn", "lost", "score", "95 %", "Elo", "95 %"]
    lines = [titles]
    for name, each in row["games"].items():
        lines.append([
            _label(name), str(each["games"]), str(each["wins"]), str(each["draws"]),
            str(each["losses"]), f"{each['score']:.3f}", _interval(each["score_interval"], ".3f"),
            f"{each['elo']:+.0f}", _interval(each["elo_interval"], "+.0f"),
        ])  # fmt: skip
    return lines


def _returns(rows: Rows) -> list[str]:
    """The mean returns in a game of one player."""
    names = list(rows[-1]["games"])
    key = f"games.{names[0]}"
    curves = [_curve("the network's search", rows, f"{key}.mean_return",
                     bounds=f"{key}.return_interval")]  # fmt: skip
    curves += [
        _curve(_label(name), rows, f"games.{name}.opponent_return",
               bounds=f"games.{name}.opponent_interval")
        for name in names
    ]  # fmt: skip
    lines = [["against", "games", "return", "95 %", "of the other", "difference", "95 %"]]
    for name, each in rows[-1]["games"].items():
        lines.append([
            _label(name), str(each["games"]), f"{each['mean_return']:.4g}",
            _interval(each["return_interval"], ".4g"), f"{each['opponent_return']:.4g}",
            f"{each['difference']:+.4g}", _interval(each["difference_interval"], "+.4g"),
        ])  # fmt: skip
    title = "Mean return at checkpoints, with 95 % intervals"
    return [*_chart(title, "return", curves), table(lines)]


def _exact(run: Run) -> list[str]:
    rows = [row for row in sound_rows(run, "ladder") if row.get("exact")]
    if not rows:
        return []
    last = rows[-1]["exact"]
    if last["missing"] is not None:
        return [paragraph(f"Not measured: {last['missing']}.")]
    curves = [
        _curve("by search", rows, "exact.search", bounds="exact.search_interval"),
        _curve("by its policy alone", rows, "exact.raw", bounds="exact.raw_interval"),
    ]
    text = (
        f"{last['positions']:,} positions in which some action is not optimal: search takes an "
        f"optimal action in {last['search']:.1%}, the policy alone in {last['raw']:.1%}."
    )
    return [paragraph(text), *_chart("Share of positions with an optimal action", "share", curves)]


def _diagnosis(run: Run) -> list[str]:
    rows = [row for row in sound_rows(run, "ladder") if row.get("diagnosis")]
    if not rows:
        return []
    last = rows[-1]["diagnosis"]
    text = (
        f"{last['positions']:,} positions of {last['games']} games of the network against itself, "
        f"at iteration {rows[-1]['iteration']}: the calibration error of its values is "
        f"{last['value_error']:.3g}, and search changes its action in {last['changed']:.1%}."
    )
    errors = [
        _curve("of the network", rows, "diagnosis.value_error"),
        _curve("of its search", rows, "diagnosis.search_value_error"),
    ]
    entropies = [
        _curve("of the network", rows, "diagnosis.entropy"),
        _curve("of its search", rows, "diagnosis.search_entropy"),
    ]
    surprise = [_curve("KL", rows, "diagnosis.divergence")]
    changed = [_curve("share", rows, "diagnosis.changed")]
    return [
        paragraph(text),
        *([_calibration_chart(last["reliability"])] if last["reliability"] else []),
        *_chart("Calibration error of values", "returns", errors),
        *_chart("How far search moves the policy: KL(search ‖ network)", "nats", surprise),
        *_chart("Share of actions that change after search", "share", changed),
        *_chart("Entropy of policies", "nats", entropies),
    ]


def _model(run: Run) -> list[str]:
    """How wrong a learned model is after k steps, at the newest checkpoint."""
    rows = [row for row in sound_rows(run, "ladder") if row["model"]]
    if not rows:
        return []
    names = {
        "reward": "reward", "value": "value", "outcome": "value against the outcome",
        "policy": "KL of the policy", "illegal": "share on illegal actions",
        "turn": "wrong player to move",
    }  # fmt: skip
    lines = [["steps", "positions", *names.values()]]
    for each in rows[-1]["model"]:
        numbers = [each[name] for name in names]
        shown = ["" if number is None else f"{number:.3g}" for number in numbers]
        lines.append([str(each["k"]), f"{each['positions']:,}", *shown])
    text = (
        f"Mean errors of what the model imagines after some steps, at iteration "
        f"{rows[-1]['iteration']}: rewards against those that were paid, values and policies "
        "against those of the true states."
    )
    drawn = [
        Series(f"iteration {row['iteration']}", [each["k"] for each in row["model"]],
               [each["value"] or 0.0 for each in row["model"]])
        for row in (rows[0], rows[-1])
    ]  # fmt: skip
    chart = line_chart(
        drawn, title="Error of the value after k steps", x_label="steps", y_label="returns"
    )
    return [paragraph(text), table(lines), chart]


def _calibration_chart(rows: Rows) -> str:
    """Mean outcomes against predicted values."""
    predicted, outcomes = ([row[key] for row in rows] for key in ("predicted", "outcome"))
    bounds = [row["outcome_interval"] or (float("nan"),) * 2 for row in rows]
    low, high = zip(*bounds, strict=True)
    ends = [min(predicted), max(predicted)]
    series = [
        Series("mean outcome, by bins of values", predicted, outcomes, low, high),
        Series("perfect calibration", ends, ends),
    ]
    title = "Values against outcomes, with 95 % intervals"
    return line_chart(series, title=title, x_label="predicted value", y_label="mean outcome")


def _losses(run: Run) -> list[str]:
    rows = sound_rows(run, "learning")
    losses = [
        _curve(name, rows, f"{name}_loss")
        for name in ("policy", "value", "reward", "consistency", "turn")
    ]
    rate = [_curve("learning rate", rows, "learning_rate")]
    return [*_chart("Losses", "loss", losses), *_chart("Learning rate", "rate", rate)]


def _speed(run: Run) -> list[str]:
    rows = [row for row in sound_rows(run, "self-play") if row.get("played")]
    games = [_curve("games", rows, "games_per_second")]
    simulations = [_curve("simulations", rows, "simulations_per_second")]
    plies = [_curve("plies", rows, "plies_per_game")]
    return [
        *_chart("Games per second in self-play", "games/s", games),
        *_chart("Simulations per second in self-play", "simulations/s", simulations),
        *_chart("Plies of a game in self-play", "plies", plies),
    ]


def _checkpoints(run: Run) -> list[str]:
    existing = set(run.iterations())
    rows = sound_rows(run, "checkpoint")
    lines = [["iteration", "hours", "sha256 of the weights", "on disk"]]
    lines += [
        [str(row["iteration"]), f"{row['seconds'] / 3600:.2f}", row["weights_sha256"],
         "yes" if row["iteration"] in existing else "no"]
        for row in rows
    ]  # fmt: skip
    return [table(lines)] if rows else []


def _options(run: Run) -> list[str]:
    values = msgspec.to_builtins(run.options)
    return [table([["option", "value"], *([name, str(value)] for name, value in values.items())])]


def _label(name: str) -> str:
    """The label of an opponent.

    >>> _label("playout_100"), _label("past")
    ('playout search, 100 simulations', 'the checkpoint before')
    """
    if name.startswith("playout_"):
        return f"playout search, {int(name.removeprefix('playout_')):,} simulations"
    names = {
        PAST: "the checkpoint before",
        RULES: "the network with the game's rules",
        POLICY: "its policy without search",
    }
    return names.get(name, name)


def _interval(interval: Sequence[float] | None, style: str) -> str:
    if interval is None:
        return "unknown"
    return f"{interval[0]:{style}} to {interval[1]:{style}}"

"""Charts as SVG text: curves with intervals over a linear or logarithmic axis."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 640, 400  # without the legend below
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 40, 48  # margins
LINE = 16  # the height of a line of the legend
# Distinguishable with colour blindness (Okabe and Ito 2008).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#999933")
DASHES = ("", "6 3", "2 3", "9 3 2 3")  # of the first eight curves, of the next eight, ...
CLASS = "uctree-chart"  # limits the style to the chart on a page
STYLE = (
    f".{CLASS} text{{font:12px system-ui,sans-serif;fill:#222}}"
    f".{CLASS} .title{{font-size:15px;font-weight:600}}"
    f".{CLASS} .paper{{fill:#fff}}.{CLASS} .grid{{stroke:#ddd}}.{CLASS} .axis{{stroke:#555}}"
    f".{CLASS} .curve{{fill:none;stroke-width:2}}"
    f"@media(prefers-color-scheme:dark){{.{CLASS} text{{fill:#ddd}}.{CLASS} .paper{{fill:#1b1b1b}}"
    f".{CLASS} .grid{{stroke:#444}}.{CLASS} .axis{{stroke:#aaa}}}}"
)


@dataclass(frozen=True)
class Series:
    """One curve: its points and their intervals."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None  # ends of the intervals around y
    high: Sequence[float] | None = None
    line: bool = True  # join the points


def line_chart(
    series: Sequence[Series],
    *,
    title: str,
    x_label: str,
    y_label: str,
    log_x: bool = False,
    log_y: bool = False,
) -> str:
    """A chart of curves as one SVG element, which is also a valid file.

    Values that are not finite are omitted, and on a logarithmic axis those that are not above 0.

    >>> svg = line_chart([Series("a", [1, 2], [3, 4])], title="t", x_label="x", y_label="y")
    >>> svg.startswith("<svg"), svg.count("<circle")
    (True, 2)
    """
    xs = [x for each in series for x in each.x]
    ys = [y for each in series for y in (*each.y, *(each.low or ()), *(each.high or ()))]
    across = _axis(xs, log_x, LEFT, WIDTH - RIGHT)
    up = _axis(ys, log_y, HEIGHT - BOTTOM, TOP)
    legend = _legend(series)
    height = HEIGHT + LINE * len(legend)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{CLASS}" viewBox="0 0 {WIDTH} {height}" '
        f'role="img" aria-label="{_text(title)}"><style>{STYLE}</style>'
        f'<rect class="paper" width="{WIDTH}" height="{height}"/>'
        f'<text class="title" x="{LEFT}" y="20">{_text(title)}</text>'
    ]
    parts += _frame(across, up, x_label, y_label)
    for i, each in enumerate(series):
        parts += _curve(each, i, across, up)
    return "".join([*parts, *legend, "</svg>"])


# --- axes ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Axis:
    """The positions of numbers on an axis, and the numbers written beside it."""

    place: Callable[[float], float | None]
    ticks: list[float]


def _axis(values: Sequence[float], log: bool, begin: float, end: float) -> _Axis:
    drawn = [v for v in values if math.isfinite(v) and (v > 0 or not log)] or [1.0]
    low, high = min(drawn), max(drawn)
    if log:
        ticks = _powers(low, high)
        low, high = math.log10(min(low, ticks[0])), math.log10(max(high, ticks[-1]))
    else:
        ticks = _round_numbers(low, high)
        low, high = min(low, ticks[0]), max(high, ticks[-1])
    span = high - low or 1.0

    def place(value: float) -> float | None:
        if not math.isfinite(value) or (log and value <= 0):
            return None
        at = ((math.log10(value) if log else value) - low) / span
        return begin + at * (end - begin)

    return _Axis(place, ticks)


def _round_numbers(low: float, high: float) -> list[float]:
    """About five multiples of 1, 2 or 5 times a power of ten that enclose a range.

    >>> _round_numbers(0.0, 10.0)
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    """
    span = (high - low) or abs(high) or 1.0
    power: float = 10.0 ** math.floor(math.log10(span / 4))
    step = power * next(f for f in (1, 2, 5, 10) if f * power * 5 >= span)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [step * i for i in range(first, max(last, first + 1) + 1)]


def _powers(low: float, high: float) -> list[float]:
    """The powers of ten that enclose a range of positive numbers, at most eight of them."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    last = max(last, first + 1)
    stride = max(1, math.ceil((last - first) / 7))
    return [10.0**i for i in range(first, last + stride, stride)]


# --- parts of the picture ------------------------------------------------------------------------


def _frame(across: _Axis, up: _Axis, x_label: str, y_label: str) -> list[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = []
    for tick in across.ticks:
        x = across.place(tick)
        parts.append(
            f'<path class="grid" d="M{x:.1f} {TOP}V{bottom}"/>'
            f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{_number(tick)}</text>'
        )
    for tick in up.ticks:
        y = up.place(tick)
        parts.append(
            f'<path class="grid" d="M{LEFT} {y:.1f}H{right}"/>'
            f'<text x="{LEFT - 6}" y="{y:.1f}" dy="4" text-anchor="end">{_number(tick)}</text>'
        )
    middle = (TOP + bottom) / 2
    parts.append(
        f'<path class="axis" fill="none" d="M{LEFT} {TOP}V{bottom}H{right}"/>'
        f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 10}" text-anchor="middle">'
        f"{_text(x_label)}</text>"
        f'<text transform="translate(14 {middle})rotate(-90)" text-anchor="middle">'
        f"{_text(y_label)}</text>"
    )
    return parts


def _look(number: int) -> tuple[str, str]:
    """The colour of a curve, and the attributes of its line."""
    turn, place = divmod(number, len(COLOURS))
    colour, dashes = COLOURS[place], DASHES[turn % len(DASHES)]
    return colour, f'class="curve" stroke="{colour}" stroke-dasharray="{dashes or "none"}"'


def _curve(series: Series, number: int, across: _Axis, up: _Axis) -> list[str]:
    """Points, the line that joins them, and a bar for each interval."""
    points, parts = [], []
    colour, line = _look(number)
    for i, (x_value, y_value) in enumerate(zip(series.x, series.y, strict=True)):
        x, y = across.place(x_value), up.place(y_value)
        if x is None or y is None:
            continue
        points.append(f"{x:.1f} {y:.1f}")
        bounds = (
            None if series.low is None or series.high is None else (series.low[i], series.high[i])
        )
        if bounds is not None and all(map(math.isfinite, bounds)):
            low, high = (y if end is None else end for end in map(up.place, bounds))
            bar = f"M{x:.1f} {low:.1f}V{high:.1f}m-3 0h6M{x - 3:.1f} {low:.1f}h6"
            parts.append(f'<path d="{bar}" stroke="{colour}" fill="none"/>')
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
    if series.line and len(points) > 1:
        parts.insert(0, f'<path {line} d="M{"L".join(points)}"/>')
    return parts


def _legend(series: Sequence[Series]) -> list[str]:
    """A line per curve; none for a single curve."""
    if len(series) < 2:
        return []
    parts = []
    for i, each in enumerate(series):
        y, (colour, line) = HEIGHT + LINE * i + LINE // 2, _look(i)
        parts.append(
            f'<path {line} d="M{LEFT} {y - 4}h{30 if each.line else 0}"/>'
            f'<rect x="{LEFT + 12}" y="{y - 7}" width="6" height="6" rx="3" fill="{colour}"/>'
            f'<text x="{LEFT + 38}" y="{y}">{_text(each.name)}</text>'
        )
    return parts


def _number(value: float) -> str:
    """A short text of a number beside an axis.

    >>> _number(100000.0), _number(0.25), _number(1e-09)
    ('100,000', '0.25', '1e-09')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 and abs(value) < 1e7 else f"{value:.4g}"


def _text(text: str) -> str:
    return html.escape(text, quote=True)

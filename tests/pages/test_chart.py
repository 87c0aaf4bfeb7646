"""Charts: what is drawn where, and what is left out."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as xml

import pytest

from uctree.pages.chart import HEIGHT, WIDTH, Series, line_chart

pytestmark = pytest.mark.quick

SVG = "{http://www.w3.org/2000/svg}"


def chart(*series, **options):
    named = {"title": "t", "x_label": "x", "y_label": "y"}
    return xml.fromstring(line_chart(series, **(named | options)))


def circles(picture):
    return [(float(c.get("cx")), float(c.get("cy"))) for c in picture.iter(f"{SVG}circle")]


def test_larger_values_are_further_right_and_up():
    (x0, y0), (x1, y1) = circles(chart(Series("a", [1, 2], [3, 4])))
    assert 0 < x0 < x1 < WIDTH
    assert 0 < y1 < y0 < HEIGHT


def test_equal_factors_are_equal_steps_on_a_logarithmic_axis():
    places = circles(chart(Series("a", [10, 100, 1000], [1, 1, 1]), log_x=True))
    assert places[1][0] - places[0][0] == pytest.approx(places[2][0] - places[1][0], abs=0.2)


def test_what_cannot_be_drawn_is_left_out():
    series = Series("a", [0, 1, 2, 3], [1.0, math.nan, 1.0, math.inf])
    assert len(circles(chart(series))) == 2
    assert len(circles(chart(series, log_x=True))) == 1


@pytest.mark.parametrize("values", [[], [5.0], [0.0, 0.0], [-3.0, -3.0], [1e-12, 1e12]])
@pytest.mark.parametrize("log", [False, True])
def test_any_range_gives_a_chart(values, log):
    picture = chart(Series("a", range(len(values)), values), log_y=log)
    for x, y in circles(picture):
        assert 0 <= x <= WIDTH
        assert 0 <= y <= HEIGHT


def test_intervals_reach_from_low_to_high():
    picture = chart(Series("a", [1], [2], low=[1], high=[3]))
    bars = [path.get("d") for path in picture.iter(f"{SVG}path") if path.get("stroke")]
    low, high = map(float, re.match(r"M[\d.]+ ([\d.]+)V([\d.]+)", bars[0]).groups())
    ((_, y),) = circles(picture)
    assert high < y < low


def test_an_interval_that_is_not_known_has_no_bar():
    picture = chart(Series("a", [1, 2], [2, 2], low=[1, -math.inf], high=[3, math.inf]))
    assert len(circles(picture)) == 2
    assert len([path for path in picture.iter(f"{SVG}path") if path.get("stroke")]) == 2


def test_the_legend_stands_below_the_curves_however_many_there_are():
    names = [f"setting {i}" for i in range(30)]
    picture = chart(*(Series(name, [1, 2], [i, 2 * i]) for i, name in enumerate(names)))
    height = float(picture.get("viewBox").split()[3])
    places = {text.text: float(text.get("y", 0)) for text in picture.iter(f"{SVG}text")}
    assert all(HEIGHT < places[name] < height for name in names)
    assert chart(Series("a", [1], [1])).get("viewBox").endswith(f" {HEIGHT}")


def test_more_curves_than_colours_are_told_apart_by_dashes():
    picture = chart(*(Series(str(i), [1, 2], [i, i]) for i in range(20)))
    curves = [path for path in picture.iter(f"{SVG}path") if path.get("class") == "curve"]
    looks = {(path.get("stroke"), path.get("stroke-dasharray")) for path in curves}
    assert len(looks) == 20


def test_the_style_of_a_chart_is_for_charts_alone():
    (style,) = chart(Series("a", [1], [1])).iter(f"{SVG}style")
    plain = re.sub(r"@media\([^)]*\)\{", "", style.text).replace("}}", "}")
    selectors = re.findall(r"([^{}]+)\{", plain)
    assert len(selectors) >= 6
    assert all(selector.startswith(".uctree-chart ") for selector in selectors)


def test_text_is_escaped():
    svg = line_chart(
        [Series("<b>", [1], [1]), Series("&", [1], [1])], title='"<t>', x_label="", y_label=""
    )
    assert "<b>" not in svg
    xml.fromstring(svg)

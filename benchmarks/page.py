"""The time to draw the tree of a result page in a real browser. Prints JSON.

    python benchmarks/page.py [--nodes 100000]

Opens the page of a connect-four search in Chromium (Debian's `chromium`) by Playwright (of the dev
extra), opens all nodes, then drags, zooms, and closes and opens a node. Figures are milliseconds
from an input to the next frame; "painting" is the part that the page itself takes.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

import uctree
from uctree import games

ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
NEXT_FRAME = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
TURNS = 30


def written(folder: Path, num_nodes: int) -> tuple[Path, dict[str, Any]]:
    """The page of a search with `num_nodes` simulations, and its size and time."""
    game = games.connect_four()
    result = uctree.search(game, game.start(), num_simulations=num_nodes)
    began = time.perf_counter()
    result.save(folder / "page.html")
    path = folder / "page.html"
    return path, {
        "simulations": num_nodes,
        "seconds to write": round(time.perf_counter() - began, 2),
        "megabytes": round(path.stat().st_size / 1e6, 2),
    }


def timed(tab: Page, act: Callable[[], None]) -> tuple[float, float]:
    """Milliseconds from an input to the next frame, and those of painting alone."""
    began = time.perf_counter()
    act()
    tab.evaluate(NEXT_FRAME)
    taken = 1e3 * (time.perf_counter() - began)
    return taken, float(tab.eval_on_selector("#canvas", "canvas => canvas.dataset.paintMs"))


def measured(tab: Page) -> dict[str, Any]:
    found: dict[str, Any] = {"open all, ms": round(timed(tab, lambda: tab.click("#open-all"))[0])}
    found["nodes shown"] = int(tab.eval_on_selector("#canvas", "canvas => canvas.dataset.shown"))
    box = tab.locator("#canvas").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    tab.mouse.move(x, y)
    tab.mouse.down()
    steps = iter(range(1, 10**6))
    drag = [timed(tab, lambda: tab.mouse.move(x, y - 9 * next(steps))) for _ in range(TURNS)]
    tab.mouse.up()
    zoom = [timed(tab, lambda: tab.mouse.wheel(0, 40)) for _ in range(TURNS)]
    tab.click("#open-line")
    tab.focus("#canvas")
    keys = iter(["ArrowLeft", "ArrowRight"] * TURNS)
    toggle = [timed(tab, lambda: tab.keyboard.press(next(keys))) for _ in range(TURNS)]
    for name, times in (("drag", drag), ("zoom", zoom), ("close or open a node", toggle)):
        found[f"{name}, ms to the next frame"] = round(statistics.median(t for t, _ in times), 1)
        found[f"{name}, ms of painting, at most"] = round(max(t for _, t in times), 1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=100_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        path, found = written(Path(folder), given.nodes)
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=ARGUMENTS
        )  # fmt: skip
        tab = browser.new_page(viewport={"width": 1200, "height": 900})
        began = time.perf_counter()
        tab.goto(path.as_uri())
        tab.wait_for_selector("html[data-ready=yes]")
        found["seconds to load"] = round(time.perf_counter() - began, 2)
        print(json.dumps(found | measured(tab), indent=2))
        browser.close()


if __name__ == "__main__":
    main()

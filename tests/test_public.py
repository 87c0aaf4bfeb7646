"""The package as a stranger meets it: names, weight, wheel, examples."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import uctree

ROOT = Path(__file__).parent.parent


def run(*command, **variables):
    done = subprocess.run(
        [str(part) for part in command], env=os.environ | variables, capture_output=True, text=True,
        timeout=300, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_public_name_is_there_and_documented():
    reference = (ROOT / "docs/api.md").read_text()
    for name in uctree.__all__:
        assert getattr(uctree, name) is not None
        assert f"`{name}" in reference or f"{name}(" in reference, f"{name} is not in docs/api.md"
    assert dir(uctree) == sorted(uctree.__all__)


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(uctree, "no_such_name")


def test_importing_uctree_loads_numpy_alone_and_prints_nothing():
    code = (
        "import sys, uctree; heavy = {'numba', 'rich', 'cyclopts', 'msgspec', 'torch', 'scipy'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert run(sys.executable, "-c", code) == "[]\n"


def test_the_wheel_runs_without_the_source(tmp_path):
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    venv.create(tmp_path / "env", with_pip=False, system_site_packages=False)
    python = tmp_path / "env" / "bin" / "python"
    site = run(python, "-c", "import site; print(site.getsitepackages()[0])").strip()
    run(sys.executable, "-m", "zipfile", "-e", wheel, site)
    # Everything but uctree itself comes from the environment that runs the tests.
    outer = run(sys.executable, "-c", "import numpy, os; print(os.path.dirname(numpy.__path__[0]))")
    outer_paths = f"import sys; sys.path.append({outer.strip()!r}); "
    code = outer_paths + (
        "import uctree; game = uctree.games.connect_four(); "
        "result = uctree.search(game, game.play([3, 2, 3, 2, 3, 2]), num_simulations=500); "
        "print(uctree.__file__); print(result.action)"
    )
    # -I: neither the current folder nor PYTHONPATH, which may name the source.
    where, action = run(python, "-I", "-c", code, PYTHONPATH=str(ROOT)).split()
    assert where.startswith(site)
    assert action == "3"
    assert (Path(site) / "uctree" / "py.typed").exists()


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_the_demo_searches_before_it_installs_torch(tmp_path):
    commands = run("make", "--dry-run", f"VENV={tmp_path / 'new'}", "demo")
    order = ["-m venv", "examples/demo.py", "torch==", "examples/learn_tic_tac_toe.py"]
    places = [commands.index(each) for each in order]
    assert places == sorted(places)


def test_the_demo_finds_the_winning_action():
    printed = run(sys.executable, ROOT / "examples" / "demo.py")
    assert "The search found the one action that wins" in printed
    assert "solver=True proves that player 0 wins, with column 3" in printed


def test_the_example_of_a_rule_of_ones_own_runs():
    printed = run(sys.executable, ROOT / "examples" / "ucb_v.py")
    assert "ucb_v(1.2, 1.0): action 3" in printed


def test_the_example_of_a_round_trip_finds_a_short_one():
    printed = run(sys.executable, ROOT / "examples" / "tsp.py", "8", "5000")
    assert ", 0.00% above the shortest trip" in printed


def test_every_link_between_pages_leads_to_a_heading():
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")]
    links = 0
    for page in [*pages, ROOT / "CONTRIBUTING.md"]:
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        for target, anchor in re.findall(r"\]\(([^)#: ]*\.md)?#([^)]+)\)", text):
            links += 1
            other = page.parent / target if target else page
            assert other.exists(), f"{page.name} links to {target}, which does not exist"
            assert anchor in _anchors(other), f"{page.name} links to {target}#{anchor}"
    assert links > 40


def _anchors(page):
    """What the headings of a page are called in links, as GitHub and others name them."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    names = re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", name.lower()).replace(" ", "-") for name in names}


def test_the_readme_shows_what_its_searches_print():
    """All but speeds and times: the board, the value, the expected line, the table of actions."""
    text = (ROOT / "README.md").read_text()
    shown = re.findall(r"```text\n(.*?)```", text.partition("The same as numbers")[0], re.DOTALL)
    code = "\n".join(
        re.findall(r"```python\n(.*?)```", text.partition("The same as numbers")[0], re.DOTALL)
    )
    printed = run(sys.executable, "-c", code)
    assert len(shown) == 2
    assert _repeatable(printed) == _repeatable("".join(shown))


def _repeatable(text):
    lines = [line.rstrip() for line in text.splitlines()]
    return [line for line in lines if line and not re.search(r" in \d+\.\d\d s \(|^time: ", line)]

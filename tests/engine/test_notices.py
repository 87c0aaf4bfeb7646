"""The line that says that something is compiled: who sees it, and who does not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import types

import pytest

from uctree.engine.notices import compiling

COMPILE = """
import sys
from uctree.engine.compile import compile_kernel

def double(n):
    return 2 * n

def run():
    compile_kernel(double, {}, (1,), label="doubling")

if __name__ == "__main__":
    if "worker" in sys.argv:
        import multiprocessing
        process = multiprocessing.get_context("spawn").Process(target=run)
        process.start()
        process.join()
    else:
        run()
"""


def shown(folder, *arguments, terminal=True, script=COMPILE, **variables):
    """What a process that compiles shows on stderr."""
    pty = pytest.importorskip("pty")
    (folder / "main.py").write_text(script)
    environment = os.environ | {"UCTREE_CACHE_DIR": str(folder / "cache")} | variables
    ours, theirs = pty.openpty() if terminal else os.pipe()
    subprocess.run(
        [sys.executable, "main.py", *arguments], cwd=folder, env=environment, stderr=theirs,
        timeout=100, check=True,
    )  # fmt: skip
    os.write(theirs, b"|")  # so that there is something to read
    text = os.read(ours, 10_000).decode()
    os.close(ours)
    os.close(theirs)
    return text.removesuffix("|")


def test_a_terminal_shows_the_name_and_the_seconds_once(tmp_path):
    line = r"uctree: compiling doubling \.\.\. \d+\.\d s\s+"
    assert re.fullmatch(line, shown(tmp_path))
    assert shown(tmp_path) == ""  # it comes from the cache


COMMAND = "import sys; from uctree import cli; sys.exit(cli.main(sys.argv[1:]))"


def test_a_command_at_a_terminal_shows_it_once(tmp_path):
    words = ["search", "nim", "--num-simulations", "10", "--json"]
    assert re.search(r"uctree: compiling nim\b.* \.\.\.", shown(tmp_path, *words, script=COMMAND))
    assert "compiling" not in shown(tmp_path, *words, script=COMMAND)


@pytest.mark.parametrize("silent", ["pipe", "worker", "UCTREE_QUIET"])
def test_nothing_is_shown_in_pipes_and_workers_or_if_turned_off(tmp_path, silent):
    if silent == "pipe":
        text = shown(tmp_path, terminal=False)
    elif silent == "worker":
        text = shown(tmp_path, "worker")
    else:
        text = shown(tmp_path, UCTREE_QUIET="1")
    assert text == ""
    assert list((tmp_path / "cache").glob("*.kernel"))  # it was compiled


def test_a_notebook_shows_it_too(monkeypatch, capsys):
    with compiling("nothing"):
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    shell = types.ModuleType("IPython")
    shell.get_ipython = object
    monkeypatch.setitem(sys.modules, "IPython", shell)
    with compiling("nothing"):
        pass
    assert capsys.readouterr().err == "uctree: compiling nothing ... 0.0 s\n"


def test_a_compilation_that_fails_ends_its_line(monkeypatch, capsys):
    monkeypatch.setattr("uctree.engine.notices._is_watched", lambda: True)
    with pytest.raises(KeyboardInterrupt), compiling("nothing"):
        raise KeyboardInterrupt
    assert capsys.readouterr().err == "uctree: compiling nothing ... stopped\n"


BARS = """
from uctree.cli.app import counting_bar
from uctree.engine.compile import compile_kernel

def double(n):
    return 2 * n

def triple(n):
    return 3 * n

with counting_bar() as show:
    compile_kernel(double, {}, (1,), label="doubling")
    show(1, 2, "one of two")
    compile_kernel(triple, {}, (1,), label="tripling")
    show(2, 2, "two of two")
"""


def test_a_progress_bar_does_not_tear_the_lines(tmp_path):
    text = shown(tmp_path, script=BARS)
    lines = re.split(r"[\r\n]+|\x1b\[\d*[A-KM-Z]", text)  # where a terminal begins a line
    plain = [re.sub(r"\x1b\[[\d?;]*[a-z]", "", each) for each in lines]
    found = [each for each in plain if "compiling" in each]
    assert not any(re.fullmatch(r"\s*\d+\.\d s\s*", each) for each in plain), text
    assert len(found) == 2, text
    assert re.fullmatch(r"uctree: compiling doubling \.\.\. \d+\.\d s", found[0]), text
    assert found[1] == "uctree: compiling tripling ..."
    assert "of two" in text  # the bar is drawn now and then, not at every call

"""Imports go one way: which room may use which, no cycle, and what must stay out."""

from __future__ import annotations

import ast
import itertools
import re
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "uctree"

# From the bottom up. A room or module imports those before it in this list, and itself.
ORDER = [
    "errors", "engine.jsontext", "engine.jsonlines", "game", "bits", "views", "games",
    "engine.treefile", "specs",
    "pages.columns", "pages.document", "kernels.binding",
    "engine.reach", "doctor.contract", "doctor.walk", "doctor.first_look", "engine.watch",
    "engine.fingerprint", "engine.identity", "engine.disk_cache",
    "engine.fields", "engine.inlining", "engine.interrupts", "engine.notices", "engine.passes",
    "engine.recent", "engine.shortcuts", "engine.compile", "engine.looks", "engine.machine",
    "engine.memory", "engine.threaded_calls", "kernels", "engine.frames", "selection",
    "engine.soundness", "tree",
    "evaluators", "backup", "engine.bindings", "solver", "continuous", "choice", "engine.history",
    "engine", "workers", "variation", "pages", "result", "pages.outline", "pages.tree_data",
    "pages.result_page",
    "stopping", "comparison",
    "mcts", "planning", "adapters", "principle", "doctor", "arena", "learn", "studio", "cli",
    "__main__",
]  # fmt: skip

# Each goes against the order for a reason.
EXCEPTIONS = {
    ("kernels", "selection"): "formulas that kernels and rules share",
    ("kernels", "continuous"): "the line of vectors that a simulation refines",
    ("result", "pages.result_page"): "imported inside `save` and `_repr_html_` only",
    ("planning", "adapters"): "imported inside `world_of` only, for what is no Problem",
    ("continuous", "mcts"): "budgets runs searches, which are made of proposals",
    ("continuous", "pages"): "budgets draws a chart",
    ("continuous", "variation"): "regret judges a principal variation",
}
OUTSIDE = {
    "errors": set(),
    "game": {"numpy"},
    "engine.compile": {"numpy", "numba", "llvmlite"},
    "engine.disk_cache": {"numpy", "numba", "llvmlite"},
    "engine.fields": {"numpy", "numba"},
    "engine.inlining": {"llvmlite", "numba"},
    "engine.passes": {"numba"},
    "engine.shortcuts": {"numba"},
    "engine.frames": {"numpy", "numba", "llvmlite"},
    "engine.machine": {"numpy", "numba", "llvmlite"},
    "games": {"numpy"},
    "views": {"numpy"},
    "adapters": {"numpy", "gymnasium", "pettingzoo", "pyspiel"},
    "workers": {"ray"},
    "learn": {"numpy", "msgspec", "torch"},
    "studio": {"numpy", "msgspec", "starlette", "uvicorn"},
    "cli": {"numpy", "cyclopts", "rich"},
    "__main__": set(),
}
NOT_IN_KERNELS = {"os", "logging", "random", "numba"}


def sources():
    return [path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py"]


def module_of(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module):
    """The entry of ORDER that a module belongs to."""
    return module if module in ORDER else module.split(".")[0]


def _top_level(body):
    """The statements outside functions, those under `if TYPE_CHECKING` included."""
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from _top_level(node.body)


def imported(path, *, inside_functions=True):
    """Every module of uctree and of others that a file imports, as dotted names."""
    tree = ast.parse(path.read_text())
    nodes = ast.walk(tree) if inside_functions else _top_level(tree.body)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                is_module = PACKAGE.parent.joinpath(*below.split(".")).with_suffix(".py").exists()
                is_room = PACKAGE.parent.joinpath(*below.split("."), "__init__.py").exists()
                yield below if is_module or is_room else node.module


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_what_stands_below_it(path):
    room = room_of(module_of(path))
    for name in imported(path):
        first, _, rest = name.partition(".")
        if first == "uctree" and rest:
            other = room_of(rest)
            allowed = ORDER.index(other) <= ORDER.index(room) or (room, other) in EXCEPTIONS
            assert allowed, f"{room} imports {name}"
        elif first not in sys.stdlib_module_names and first != "uctree":
            assert first in OUTSIDE.get(room, {"numpy"}), f"{room} imports {name}"
        elif room.startswith("kernels"):
            assert first not in NOT_IN_KERNELS, f"{room} imports {name}"


def test_every_exception_is_needed():
    used = set()
    for path in sources():
        room = room_of(module_of(path))
        others = {room_of(name[7:]) for name in imported(path) if name.startswith("uctree.")}
        used |= {(room, other) for other in others if ORDER.index(other) > ORDER.index(room)}
    assert used == set(EXCEPTIONS)


def test_games_import_only_what_a_users_file_may():
    for path in (PACKAGE / "games").glob("*.py"):
        for name in imported(path):
            if name.startswith("uctree.") and path.name != "__init__.py":
                is_game = name.startswith("uctree.games.")
                allowed = is_game or name in ("uctree.game", "uctree.bits", "uctree.views")
                assert allowed, f"{path.name} imports {name}"


def test_no_module_imports_itself_by_way_of_others():
    graph = {
        f"uctree.{module_of(path)}": {
            name for name in imported(path, inside_functions=False) if name.startswith("uctree.")
        }
        for path in sources()
    }
    done, under_way = set(), []

    def visit(module):
        assert module not in under_way, " -> ".join([*under_way, module])
        if module in done:
            return
        under_way.append(module)
        for other in sorted(graph.get(module, ())):
            visit(other)
        done.add(under_way.pop())

    for module in sorted(graph):
        visit(module)


def test_every_room_stands_in_the_order():
    rooms = {room_of(module_of(path)) for path in sources()}
    assert rooms == set(ORDER)


def test_the_top_level_has_at_most_15_modules():
    assert len([path for path in PACKAGE.glob("*.py") if not path.stem.startswith("__")]) <= 15


def test_every_module_has_a_file_of_tests_of_its_name():
    tests = Path(__file__).parent
    modules = [path.relative_to(PACKAGE) for path in sources() if not path.stem.startswith("__")]
    assert [
        str(module) for module in modules
        if not (tests / module.parent / f"test_{module.name}").exists()
    ] == []  # fmt: skip


def test_the_code_map_names_every_module():
    text = (PACKAGE.parent / "CONTRIBUTING.md").read_text()
    named = set(re.findall(r"`([\w./]+)`", text[text.index("## Where to look") :]))
    # A row may name a folder and then its modules without it.
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    for row in rows:
        for room in re.findall(r"`(\w+/)`:", row):
            named |= {room + name for name in re.findall(r"`(\w+\.py)`", row)}
    # One row for all modules of these, each of which is one game, command, library or backend.
    covered = {"games/", "cli/", "adapters/", "continuous/", "workers/"}
    assert covered <= named
    modules = [str(path.relative_to(PACKAGE)) for path in sources() if "__" not in path.name]
    missing = [
        module for module in modules
        if module not in named and module.split("/")[0] + "/" not in covered
    ]  # fmt: skip
    assert missing == []


def test_the_room_of_machine_code_names_the_modules_that_import_numba():
    importing = {
        path.stem for path in (PACKAGE / "engine").glob("*.py")
        if {"numba", "llvmlite"} & {name.split(".")[0] for name in imported(path)}
    }  # fmt: skip
    docstring = ast.get_docstring(ast.parse((PACKAGE / "engine/__init__.py").read_text()))
    said = docstring[docstring.index("Numba") :].partition(".")[0]
    assert importing == set(re.findall(r"`(\w+)`", said))


def test_the_table_of_slow_tests_names_every_file_that_has_some():
    tests = Path(__file__).parent
    table = (tests.parent / "CONTRIBUTING.md").read_text().split("Some tests are in `make slow`")[1]
    files = [path for path in tests.rglob("test_*.py") if path != Path(__file__)]
    slow = {path.name for path in files if "mark.slow" in path.read_text()}
    assert {name for name in slow if name not in table} == set()


def test_make_quick_runs_tests_of_every_room():
    tests, marked = Path(__file__).parent, {}
    for path in tests.rglob("test_*.py"):
        text = path.read_text()
        of_all = re.search(r"^pytestmark = .*\bmark\.quick\b", text, re.MULTILINE)
        found = r"^def test_" if of_all else r"^@pytest\.mark\.quick$"
        room = path.relative_to(tests).parts[0]
        marked[room] = marked.get(room, 0) + len(re.findall(found, text, re.MULTILINE))
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert sum(marked.values()) >= 150
    assert {room for room in rooms if marked.get(room, 0) == 0} == set()


def test_every_room_says_what_lives_there():
    for path in PACKAGE.glob("*/__init__.py"):
        docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
        assert len(docstring.splitlines()) >= 3, f"{path} says too little of its room"


def test_no_private_name_crosses_a_room():
    for path in sources():
        room = room_of(module_of(path)).split(".")[0]
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("uctree"):
                other = (node.module or "").split(".")[1:2]
                private = [alias.name for alias in node.names if alias.name.startswith("_")]
                assert not private or other == [room], f"{path} imports {private}"


def test_the_command_line_uses_public_names_only():
    paths = sorted((PACKAGE / "cli").glob("*.py"))
    assert paths
    for node in itertools.chain.from_iterable(ast.walk(ast.parse(p.read_text())) for p in paths):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("uctree"):
            assert not any(alias.name.startswith("_") for alias in node.names)
            assert "._" not in (node.module or "")

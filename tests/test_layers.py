"""Imports go one way: the table of who may use whom, and what must stay out."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "uctree"

# A module may import those named in its row (and the outside world's named below), nothing else.
LOWEST = {"errors", "game", "_compile"}
KERNELS = LOWEST | {"tree", "gumbel", "selection", "proofs", "evaluators", "scoring", "backup"}
VECTORS = {"backward", "continuous", "refine"}
LAYERS = {
    "errors": set(),
    "game": {"errors"},
    "_compile": {"errors", "game"},
    "_machine": {"_compile"},
    "gumbel": {"game"},
    "specs": {"errors", "game", "games"},
    "treefile": {"errors", "game", "specs"},
    "tree": LOWEST | {"treefile"},
    "selection": LOWEST | {"tree", "gumbel"},
    "proofs": LOWEST | {"tree"},
    "evaluators": LOWEST | {"tree"},
    "scoring": LOWEST | {"tree", "gumbel", "selection", "proofs", "evaluators"},
    "backup": LOWEST | {"tree", "proofs", "evaluators"},
    "backward": LOWEST | {"evaluators"},
    "refine": LOWEST | {"backward", "evaluators"},
    "continuous": LOWEST | {"backward", "evaluators", "refine", "scoring", "tree"},
    "simulation": KERNELS | {"refine"},
    "exchange": KERNELS | {"_machine", "simulation"},
    "compose": KERNELS | VECTORS | {"_machine", "exchange", "simulation"},
    "trouble": {"compose", "evaluators", "game", "tree"},
    "forest": KERNELS | {"compose", "exchange", "simulation", "trouble"},
    "choice": {"game", "result"},  # the result for annotations alone
    "variation": LOWEST | {"tree", "choice", "evaluators", "backward", "solver"},
    "history": {"tree"},
    # The page inside `save` and `_repr_html_` alone.
    "result": LOWEST | {"tree", "choice", "gumbel", "history", "page", "variation"},
    "stopping": {"choice", "result"},
    "budgets": {"errors", "game", "backup", "continuous", "mcts", "refine", "regret", "selection"}
    | {"chart", "treefile"},
    "regret": {"errors", "game", "backward", "solver", "variation"},
    "mcts": KERNELS
    | VECTORS
    | {"_machine", "choice", "compose", "exchange", "forest", "history", "result", "stopping"}
    | {"treefile", "trouble"},
    "comparison": {"errors", "choice", "result", "tree", "treefile", "variation"},
    # The principle for annotations alone.
    "studypage": {"chart", "columns", "document", "game", "principle"},
    "principle": KERNELS | {"mcts", "result", "studypage"},
    "solver": {"errors", "game", "_compile", "backup", "evaluators"},
    "contract": {"errors", "game"},
    "walk": {"errors", "game", "contract"},
    "doctor": {"errors", "game", "_compile", "evaluators", "contract", "mcts", "solver", "walk"},
    "rulespeed": {"errors", "game", "_compile", "evaluators"},
    "board": {"game"},
    "outline": {"result", "tree"},
    "page": {"board", "game", "outline", "result", "tree", "treefile", "variation"},
    "bits": set(),
    "chart": set(),
    "columns": set(),
    "document": set(),
    "processes": {"cluster"},  # inside a function, by name
    "cluster": {"errors", "processes"},
    "games": {"game", "bits"},
    "arena": {"arena", "errors", "evaluators", "game", "mcts", "specs", "treefile"}
    | {"chart", "columns", "processes", "result", "solver"},
    "learn": LOWEST
    | {
        "arena",
        "chart",
        "choice",
        "compose",
        "document",
        "evaluators",
        "forest",
        "mcts",
        "selection",
    }
    | {"processes", "solver", "specs", "treefile"},
    "cli": {"arena", "budgets", "columns", "comparison", "errors", "evaluators", "game", "games"}
    | {"learn", "principle", "specs"},
    "__main__": {"cli"},
}
PACKAGES = {"cli", "learn"}  # whose modules may import each other; games may not
OUTSIDE = {
    "errors": set(),
    "game": {"numpy"},
    "_compile": {"numpy", "numba", "llvmlite"},
    "_machine": {"numpy", "numba", "llvmlite"},
    "games": {"numpy"},
    "processes": set(),
    "cluster": {"ray"},
    "learn": {"numpy", "msgspec", "torch"},
    "cli": {"numpy", "cyclopts", "rich"},
    "__main__": set(),
}
KERNEL_MODULES = {
    "backward", "refine", "tree", "gumbel", "selection", "proofs", "evaluators", "scoring",
    "backup", "simulation",
}  # fmt: skip
NOT_IN_KERNELS = {"os", "logging", "random", "numba"}


def sources():
    return [path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py"]


def layer_of(path):
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported(path):
    """Every module a file imports, inside functions too, as dotted names."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "uctree":
            yield from (f"uctree.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_what_its_row_allows(path):
    import sys

    layer = layer_of(path)
    for name in imported(path):
        first, _, rest = name.partition(".")
        if first == "uctree" and rest:
            other = rest.split(".")[0]
            inside = other == layer and (path.name == "__init__.py" or layer in PACKAGES)
            assert other in LAYERS[layer] or inside, f"{layer} imports {name}"
        elif first not in sys.stdlib_module_names and first != "uctree":
            assert first in OUTSIDE.get(layer, {"numpy"}), f"{layer} imports {name}"
        elif layer in KERNEL_MODULES:
            assert first not in NOT_IN_KERNELS, f"{layer} imports {name}"


def test_every_module_has_a_row():
    assert {layer_of(path) for path in sources()} == set(LAYERS)


def test_the_command_line_uses_public_names_only():
    paths = sorted((PACKAGE / "cli").glob("*.py"))
    assert paths
    for node in itertools.chain.from_iterable(ast.walk(ast.parse(p.read_text())) for p in paths):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("uctree"):
            assert not any(alias.name.startswith("_") for alias in node.names)
            assert "._" not in (node.module or "")

"""Trees from files: what no search can have made is refused, and the rest can be searched."""

from __future__ import annotations

import json
import random
import time
import tracemalloc

import numpy as np
import pytest

import uctree
from tests.engine.tree_files import changed, put, search_on
from tests.forged_trees import KINDS, forge
from uctree import Tree, games
from uctree.engine import treefile
from uctree.engine.soundness import block_capacities
from uctree.errors import UctreeError
from uctree.kernels.records import NONE, capacity_of


@pytest.fixture(autouse=True)
def interpreted(monkeypatch, request):
    """Plain Python raises an error beyond the end of an array; slow tests are compiled."""
    if "slow" not in request.keywords:
        monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")


# --- what is accepted ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_tree_of_a_search_is_accepted_and_so_is_what_is_below_an_action(kind, files, tmp_path):
    path, game = files[kind]
    tree = Tree.load(path, game)
    search_on(kind, tree)
    edge = tree.root.edges[int(np.argmax(tree.edge_visits(tree.root.edges)))]
    below = tree.below(tree.action(edge))
    below.save(tmp_path / "below.tree")
    loaded = Tree.load(tmp_path / "below.tree", game)
    assert loaded.edges.tobytes() == below.edges.tobytes()


def test_an_open_loop_is_accepted_where_few_actions_are_legal(tmp_path):
    game = games.tic_tac_toe()
    state = game.play([0, 1, 2, 4])
    tree = uctree.search(game, state, num_simulations=30, open_loop=True).tree
    tree.save(tmp_path / "few.tree")
    loaded = Tree.load(tmp_path / "few.tree", game)
    more = uctree.search(game, state, num_simulations=10, open_loop=True, tree=loaded)
    assert more.edges["visits"].sum() == 40


def test_rooms_are_those_of_the_kernels():
    counts = [(e, c) for c in (0, 1, 3, 32, 33, 40, 100) for e in range(max(1, c) + 1)]
    records = np.zeros(len(counts), [("num_edges", int), ("num_legal", int)]).view(np.recarray)
    records.num_edges, records.num_legal = np.transpose(counts)
    for appends in (False, True):
        names = {"IS_LAZY": True, "APPENDS": appends}
        kernel = uctree.engine.compile.bind(capacity_of, names)
        expected = [kernel(records, i) for i in range(len(records))]
        assert block_capacities(records.num_edges, records.num_legal, appends).tolist() == expected


# --- what is refused -----------------------------------------------------------------------------


def put_first(name, value):
    """Change the first edge of the root, wherever it is."""

    def change(header, arrays):
        arrays["edges"][name][arrays["edges"]["first"][0]] = value

    return change


def shorten(name, rows):
    def change(header, arrays):
        arrays[name] = arrays[name][:rows]

    return change


def point_back(header, arrays):
    """Let a node deep in the tree have the edges of the root."""
    edges = arrays["edges"]
    edges["first"][edges["first"][0]] = edges["first"][0]


def full_table(header, arrays):
    arrays["table"]["node"] = 1
    arrays["head"]["num_nodes"] = len(arrays["table"])


FORGED = [
    ("plain", put("action", 5, 9), "the action of an edge is 9; expected 0 to 8"),
    ("plain", put("action", 5, -1), "the action of an edge is -1"),
    ("plain", put("visits", 5, -1), "the visits of an edge is -1"),
    ("plain", put("visits", 5, 2**31 - 1), "the visits of an edge is 2147483647"),
    ("plain", put("visits", 5, 2**31 - 2), "an edge has 2147483646 visits, and the tree 80"),
    ("plain", put("first", 5, 10**6), "the first of an edge is 1000000"),
    ("plain", put("first", 5, 0), "the root is the edge of a node"),
    ("plain", put("num_edges", 0, 100), "the num_edges of an edge is 100; expected 0 to 9"),
    ("plain", put("num_edges", 0, -3), "the num_edges of an edge is -3"),
    ("plain", put("num_legal", 0, 120), "the num_legal of an edge is 120; expected 0 to 9"),
    ("plain", put("num_legal", 0, 2), "more edges than legal actions"),
    ("plain", put("value_sum", 1, np.nan), "the value_sum of an edge is not a number"),
    ("plain", point_back, "the same edges, or edges lead in a cycle"),
    ("plain", shorten("root_squares", 2), "root_squares have 2 rows; expected 9 or more"),
    ("plain", shorten("root_squares", 0), "root_squares have 0 rows"),
    ("plain", shorten("head", 0), "it has 0 heads"),
    ("plain", shorten("edges", 0), "it counts .* records and has 0"),
    ("plain", shorten("edges", 20), "it counts .* records and has 20"),
    ("plain", put("used", 0, 10**12, "head"), "it counts 1000000000000 records"),
    ("plain", put("root_player", 0, 99, "head"), "its root_player is 99; the game's is 0"),
    ("plain", put("simulations", 0, -1, "head"), "its simulations is -1"),
    ("plain", put("most", 0, 5.0, "head"), "its most is .*; the game's is"),
    ("plain", put("factor", 0, np.nan, "head"), "its range of returns has no numbers"),
    ("plain", put("to_play", 0, 77, "state"), "a root that the rules of tic_tac_toe do not take"),
    ("lazy", put("first", 0, 200), "a node has edges outside the tree"),
    ("priors", put("prior", 1, np.inf), "the prior of an edge is not a number"),
    ("priors", put("prior", 1, -0.5), "the prior of an edge is negative"),
    ("priors", put("num_edges", 0, 0), "a node has a block without edges"),
    ("bounds", put("low", 1, np.nan), "the bounds of a node are not numbers"),
    ("vectors", put("proof", 1, 9), "the proof of an edge is 9"),
    ("amaf", put("amaf_visits", 1, -5), "the amaf_visits of an edge is -5"),
    ("shared", put("node", 1, 10**6), "the node of an edge is 1000000"),
    ("shared", put("node", 0, 1), "the root is the node of another record"),
    ("shared", put("node", 2, 1), "leads to a record that holds no node|in another record|"),
    ("shared", put("node_visits", 1, -1), "the node_visits of an edge is -1"),
    ("shared", full_table, "its num_nodes is 256"),
    ("shared", shorten("table", 3), "its table has"),
    ("shared", put("node", 3, 10**6, "table"), "its table has"),
    ("plain", put("node", 0, 0, "table"), "a table of nodes, and nodes are not shared"),
    ("chance", put("num_edges", 0, 7), "the num_edges of an edge is 7; expected 0 to 6"),
    ("vector actions", put_first("vector", np.nan), "the vector of an edge is not a number"),
    ("vector actions", put_first("vector", 1e6), "an edge has a vector outside"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "change", "message"), FORGED)
def test_a_forged_tree_is_refused_on_loading(kind, change, message, files, tmp_path):
    path, game = changed(files, kind, tmp_path, change)
    with pytest.raises(UctreeError, match=message):
        Tree.load(path, game)


def set_layout(name, value):
    def change(header, arrays):
        header["layout"][name] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_layout("dim", 200_000_000), "which no tree of tic_tac_toe has"),
        (set_layout("dim", -1), "which no tree of tic_tac_toe has"),
        (set_layout("dim", "9"), "has the layout"),
        (set_layout("proofs", "vectors"), "which no tree of tic_tac_toe has"),
        (set_layout("lazy", 1), "has the layout"),
        (set_layout("sparse", True), "which no tree of tic_tac_toe has"),
        (set_layout("colour", True), "expected values for priors"),
        (set_layout("squares", True), "edges in the format of another version"),
        (lambda header, arrays: header.pop("layout"), "has the layout None"),
        (lambda header, arrays: header.pop("game"), "has no game or no state"),
        (lambda header, arrays: header.update(game=[]), "has no game or no state"),
        (lambda header, arrays: arrays.pop("state"), "has no game or no state"),
        (lambda header, arrays: arrays.update(state=np.zeros(1)), "do not take"),
        (lambda header, arrays: arrays.pop("table"), "table in the format of another version"),
        (lambda header, arrays: arrays.update(root_noise=np.zeros((2, 2))), "its root_noise"),
    ],
)
def test_a_forged_header_is_refused_and_takes_no_memory(change, message, files, tmp_path):
    path, game = changed(files, "plain", tmp_path, change)
    tracemalloc.start()
    with pytest.raises(UctreeError, match=message):
        Tree.load(path, game)
    assert tracemalloc.get_traced_memory()[1] < 10e6
    tracemalloc.stop()


def test_headers_with_random_values_are_refused_or_loaded(files, tmp_path):
    """The header is that of a tree, with other values at random places, and a right checksum."""
    path, game = files["shared"]
    header, arrays = treefile.read(path)
    values = [None, True, -1, 0, 10**18, 1.5, "", "x", [], [1], {}, {"a": 1}, "source:0"]
    chance, num_refused = random.Random(3), 0
    for turn in range(200):
        forged = json.loads(json.dumps(header))
        part = chance.choice([forged, forged["game"], forged["layout"], forged["layout"]])
        part[chance.choice(sorted(part))] = chance.choice(values)
        treefile.write(tmp_path / "forged.tree", forged, arrays)
        try:
            Tree.load(tmp_path / "forged.tree", game if turn % 2 else None)
        except UctreeError:
            num_refused += 1
    assert 100 < num_refused < 200


def test_an_endless_chain_of_nodes_is_refused_in_time(files, tmp_path):
    def chain(header, arrays):
        edges = np.zeros(300_000, arrays["edges"].dtype)
        edges["num_edges"] = edges["num_legal"] = 1
        edges["first"] = np.arange(1, len(edges) + 1)
        edges["first"][-1], edges["num_edges"][-1], edges["num_legal"][-1] = NONE, 0, 0
        arrays["edges"], arrays["head"]["used"] = edges, len(edges)

    path, game = changed(files, "plain", tmp_path, chain)
    began = time.process_time()
    with pytest.raises(UctreeError, match="deeper than 4096 edges"):
        Tree.load(path, game)
    assert time.process_time() - began < 2.0


# --- fuzz ----------------------------------------------------------------------------------------


def fuzz(kind, files, tmp_path, rounds, seed, **options):
    """How many of `rounds` forged files were accepted; each of these is searched."""
    (path, game), chance, num_accepted = files[kind], random.Random(f"{kind} {seed}"), 0
    header, arrays = treefile.read(path)
    for _ in range(rounds):
        copies = {name: array.copy() for name, array in arrays.items()}
        forge(copies, chance)
        treefile.write(tmp_path / "forged.tree", header, copies)
        try:
            tree = Tree.load(tmp_path / "forged.tree", game)
            num_accepted += 1
            search_on(kind, tree, **options)
        except UctreeError as error:
            assert str(error)  # noqa: PT017
    return num_accepted


@pytest.mark.parametrize("kind", KINDS)
def test_forged_files_are_refused_or_searched(kind, files, tmp_path):
    num_accepted = fuzz(kind, files, tmp_path, rounds=40, seed=1)
    assert 0 < num_accepted < 40


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_forged_files_are_refused_or_searched_within_bounds(kind, files, tmp_path):
    """Compiled with bounds checks, so that an access outside of an array raises an IndexError."""
    fuzz(kind, files, tmp_path, rounds=1000, seed=2, num_simulations=20, debug=True)


def test_a_million_edges_are_checked_fast(tmp_path):
    game = games.n_in_a_row(15, 15, 5, 2)
    tree = uctree.search(game, game.start(), num_simulations=2).tree
    width, used = 224, 224 * 4464 + 1
    edges = np.zeros(used, tree.edges.dtype)
    edges["first"], edges["action"][1:] = NONE, np.arange(used - 1) % width
    nodes = np.arange(used // width)
    edges["first"][nodes], edges["num_edges"][nodes] = 1 + width * nodes, width
    edges["num_legal"][nodes] = width
    tree.edges, tree.head["used"] = edges, used
    tree.root_squares = np.zeros((225, 1))
    tree.save(tmp_path / "large.tree")
    began = time.process_time()
    loaded = Tree.load(tmp_path / "large.tree", game)
    seconds = time.process_time() - began
    print(f"{len(loaded.edges):,} edges in {seconds:.2f} s")
    assert seconds < 1.5

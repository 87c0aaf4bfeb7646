"""Trees that are kept: from ply to ply, within a memory, in a file."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import uctree
from tests.random_games import random_game, roots
from tests.test_combinations import COMBINATIONS, leaning
from tests.test_combinations import game as game_called
from uctree import Searcher, games, selection
from uctree.kernels.records import NONE


def favourites(state, values, logits):
    for action in range(logits.shape[0]):
        logits[action] = -0.3 * action


KINDS = {
    "playouts": (games.connect_four, {}),
    "priors": (games.connect_four, {"evaluator": favourites}),
    "many actions": (lambda: games.n_in_a_row(7, 7, 4, 2), {}),
    "shared": (games.connect_four, {"transpositions": True}),
    "proofs": (games.tic_tac_toe, {"solver": True}),
    "amaf": (games.tic_tac_toe, {"selection": selection.rave()}),
    "two trees": (games.connect_four, {"threads": 2, "parallel": "root"}),
}
each_kind = pytest.mark.parametrize("kind", KINDS)


def searcher_of(kind):
    game, options = KINDS[kind]
    return Searcher(game(), **options)


def statistics(node, depth=3):
    """Visits and values of all that hangs below a node, by the actions that lead there."""
    tree, found = node.tree, {}
    values = tree.mean_values(node.edges)
    for edge, visits, value in zip(node.edges, tree.edge_visits(node.edges), values, strict=True):
        action = int(tree.edges["action"][edge])
        found[action] = (int(visits), value.round(9).tolist())
        if visits and depth > 1:
            below = statistics(node.child(edge), depth - 1)
            found |= {(action, *np.atleast_1d(key)): value for key, value in below.items()}
    return found


@each_kind
def test_what_hangs_below_an_action_stays_as_it_is(kind):
    searcher = searcher_of(kind)
    result = searcher.search(num_simulations=3_000, seed=1)
    before = []
    for tree in result.trees:
        edge = next(e for e in tree.root.edges if tree.edges["action"][e] == result.action)
        before.append((tree.root.child(edge), tree.mean_values(range(edge, edge + 1))[0]))
    expected = [(node.visits, value, statistics(node)) for node, value in before]
    searcher.advance(result.action)
    for tree, (visits, value, below) in zip(searcher._trees, expected, strict=True):
        assert tree.root.visits == visits
        assert tree.mean_values(range(1))[0] == pytest.approx(value)
        assert statistics(tree.root) == below


@each_kind
def test_a_kept_tree_is_searched_on_and_the_same_seed_gives_the_same(kind):
    def play():
        searcher, taken = searcher_of(kind), []
        for ply in range(3):
            result = searcher.search(num_simulations=500, seed=ply)
            taken.append((result.action, result.edges["visits"].tolist(), result.simulations))
            if ply:
                assert result.edges["visits"].sum() > 500 or result.status == "solved"
            searcher.advance(result.action)
        return taken

    assert play() == play()


def test_outcomes_of_chance_are_advanced_over():
    searcher = Searcher(games.pig())
    searcher.search(num_simulations=3_000)
    searcher.advance(0)
    assert searcher.game.to_play(searcher.state) == uctree.CHANCE
    visits = searcher.tree.root.visits
    searcher.advance(searcher.game.outcomes(searcher.state)[2][0])
    assert 0 < searcher.tree.root.visits < visits
    assert searcher.search(num_simulations=100).simulations == 100


def test_an_open_loop_keeps_its_node_over_an_outcome():
    searcher = Searcher(games.pig(), open_loop=True)
    searcher.search(num_simulations=2_000)
    searcher.advance(0)
    visits = searcher.tree.root.visits
    searcher.advance(searcher.game.outcomes(searcher.state)[2][0])
    assert searcher.tree.root.visits == visits > 0
    result = searcher.search(num_simulations=100)
    assert result.action in searcher.game.legal(searcher.state)


def test_a_state_it_does_not_know_starts_afresh():
    searcher = searcher_of("playouts")
    searcher.search(num_simulations=300)
    other = searcher.game.play([0, 0, 1])
    result = searcher.search(other, num_simulations=200)
    assert result.edges["visits"].sum() == 200
    searcher.advance(6)
    searcher.advance(6)  # hardly searched, if at all
    assert searcher.search(num_simulations=50).simulations == 50


def test_an_episode_is_played_to_its_end():
    searcher = Searcher(games.tic_tac_toe(), solver=True)
    while not searcher.game.is_over(searcher.state):
        searcher.advance(searcher.search(num_simulations=2_000).action)
    assert searcher.search(num_simulations=10).status == "terminal"
    assert int(searcher.state["taken"]) == 0b111_111_111  # all cells: a draw


def test_a_proof_whose_edges_were_given_up_is_found_again():
    game, rng = games.tic_tac_toe(), np.random.default_rng(1)
    for _ in range(12):
        searcher = Searcher(game, solver=True, max_memory="30kB")
        while not game.is_over(searcher.state):
            result = searcher.search(num_simulations=1_500)
            assert result.action in game.legal(searcher.state)
            assert len(result.edges)
            searcher.advance(int(rng.choice(game.legal(searcher.state))))


def test_what_was_grown_against_one_player_is_not_used_for_another():
    game = games.n_in_a_row(3, 3, 3, 3)
    searcher = Searcher(game, opponents="paranoid")
    searcher.search(num_simulations=200)
    searcher.advance(0)
    assert searcher.tree is None


def test_shared_nodes_survive_a_file_after_advancing(tmp_path):
    searcher = Searcher(games.tic_tac_toe(), transpositions=True)
    searcher.search(num_simulations=2_000)
    searcher.advance(4)
    searcher.tree.save(tmp_path / "later.tree")
    loaded = uctree.Tree.load(tmp_path / "later.tree")
    assert statistics(loaded.root) == statistics(searcher.tree.root)


def assert_same(old, new):
    """Two nodes and all below them have the same edges with the same statistics."""
    pairs, seen = [(old, new)], set()
    while pairs:
        old, new = pairs.pop()
        if (old.edge, new.edge) in seen:
            continue
        seen.add((old.edge, new.edge))
        before, after = old.tree, new.tree
        assert old.visits == new.visits
        assert len(old.edges) == len(new.edges)
        for name in before.edges.dtype.names:
            if name not in PLACES:
                assert (before.edges[name][old.edges] == after.edges[name][new.edges]).all(), name
        assert (before.mean_values(old.edges) == after.mean_values(new.edges)).all()
        proven = before.proven_values(old.edges), after.proven_values(new.edges)
        assert np.array_equal(*proven, equal_nan=True)
        for edge, kept in zip(old.edges, new.edges, strict=True):
            if before.edges["visits"][edge]:
                pairs.append((behind(old, edge), behind(new, kept)))


def behind(node, edge):
    """The node behind an edge; its state is left as it is, since nodes of open loops have none."""
    shared = node.tree.layout.shared
    return replace(node, edge=int(node.tree.edges["node"][edge]) if shared else edge)


# Fields that say where something is, or that belong to the node an edge leads to.
PLACES = ("first", "node", "num_edges", "num_legal", "value_sum", "node_visits", "own_sum", "raw",
          "low", "high", "proven", "proof")  # fmt: skip

KEPT = {name: (game_called(row.game), row.options) for name, row in COMBINATIONS.items()}
KEPT["rewards, dice, discount"] = (random_game("three, with dice"), {})


@pytest.mark.parametrize("name", KEPT)
def test_edges_are_kept_with_all_they_hold(name):
    """Those never taken included; and the root is worth what its edge was but for the reward."""
    game, options = KEPT[name]
    start = roots(game)[2] if game.name == "random" else game.start()
    for action in game.legal(start):
        searcher = Searcher(game, **options)
        searcher.search(start, num_simulations=400, seed=1)
        old = searcher.tree
        edge = next(e for e in old.root.edges if old.edges["action"][e] == action)
        visits, q = old.edges["visits"][edge], old.mean_values(range(edge, edge + 1))[0]
        _, reward = game.step(start, action)
        searcher.advance(action)
        if searcher.tree is None:  # never taken, or grown against somebody else
            assert visits == 0 or options.get("opponents") == "paranoid"
            continue
        assert_same(behind(old.root, edge), searcher.tree.root)
        value = searcher.tree.mean_values(range(1))[0]
        assert reward + game.discount * value == pytest.approx(q, abs=1e-12)


def test_an_action_never_searched_starts_afresh():
    searcher = searcher_of("playouts")
    searcher.search(num_simulations=1)
    searcher.advance(6)
    assert searcher.tree is None
    result = searcher.search(num_simulations=300, seed=4)
    state = searcher.game.play([6])
    fresh = uctree.search(searcher.game, state, num_simulations=300, seed=4)
    assert result.edges["visits"].tolist() == fresh.edges["visits"].tolist()


def test_the_state_of_a_searcher_may_be_given_again():
    searcher = searcher_of("many actions")
    searcher.search(num_simulations=500)
    searcher.advance(24)
    searcher.advance(int(searcher.tree.edges["action"][searcher.tree.root.edges[0]]))
    kept = searcher.tree.root.visits
    assert kept > 0
    # The same position after other actions: its fields that are derived may differ.
    result = searcher.search(searcher.state, num_simulations=100)
    assert result.edges["visits"].sum() == 100 + kept - 1


def coin_game():
    """Heads allow the actions 0 to 5, tails the action 7 alone."""

    def legal(state, actions):
        for i in range(6):
            actions[i] = i
        actions[0] = 7 if state.face == 1 else 0
        return 1 if state.face == 1 else 6

    def chance(state, outcomes, probabilities):
        for face in range(2):
            outcomes[face], probabilities[face] = face, 0.5
        return 2

    def step(state, action, reward):
        if state.to_play == uctree.CHANCE:
            state.face, state.to_play = action, state.turn % 2
            return
        state.turn += 1
        state.to_play = uctree.CHANCE
        if state.turn == 4:
            reward[0], reward[1] = action / 8, -action / 8
            state.to_play = uctree.OVER

    fields = [("turn", np.int8), ("face", np.int8), ("to_play", np.int8)]
    return uctree.Game(
        fields, legal, step, num_players=2, num_actions=8, chance=chance, max_outcomes=2,
        zero_sum=True, payoff_range=(-1, 1), name="coins",
    )  # fmt: skip


@pytest.mark.parametrize("face", [0, 1])
def test_an_open_loop_offers_only_what_is_legal_after_this_outcome(face):
    game = coin_game()
    searcher = Searcher(game, open_loop=True)
    for _ in range(2):
        searcher.advance(searcher.search(num_simulations=500).action)
        searcher.advance(face)
        result = searcher.search(num_simulations=20)
        legal = game.legal(searcher.state)
        assert result.action in legal
        assert set(np.flatnonzero(result.policy())) <= set(legal)
        assert set(result.edges["action"].tolist()) <= set(legal)
        assert result.edges["prior"] == pytest.approx(1 / len(legal))


def test_a_searcher_says_what_does_not_fit():
    game = games.tic_tac_toe()
    with pytest.raises(TypeError, match=r"num_simulations is given to Searcher\.search"):
        Searcher(game, num_simulations=10)
    with pytest.raises(ValueError, match="halves a fresh root"):
        Searcher(game, root_selection=selection.gumbel(), evaluator=favourites)
    with pytest.raises(TypeError, match="solvr"):
        Searcher(game, solvr=True)
    with pytest.raises(uctree.IllegalAction):
        Searcher(game).advance(11)


# --- memory --------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"transpositions": True}, {"evaluator": favourites}])
def test_a_search_ten_times_past_its_memory_goes_on(options):
    game, cap = games.connect_four(), 1_000_000
    uctree.search(game, game.start(), num_simulations=50_000, max_memory=cap, **options)  # compile
    free = uctree.search(game, game.start(), num_simulations=100_000, **options).tree.num_bytes
    num_simulations = max(100_000, 10 * cap * 100_000 // free)
    tracemalloc.start()
    result = uctree.search(
        game, game.start(), num_simulations=num_simulations, max_memory=cap, **options
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.simulations == num_simulations
    assert result.edges["visits"].sum() == num_simulations
    assert peak < 1.05 * cap + 250_000  # what is not the tree: code, workspace, results
    edges = result.tree.edges
    for node in range(len(edges)):
        first, count = int(edges["first"][node]), int(edges["num_edges"][node])
        if first != NONE and not result.tree.layout.shared:
            assert edges["visits"][first : first + count].sum() <= edges["visits"][node]


def test_a_pruned_search_still_finds_the_win():
    game = games.connect_four()
    state = game.play([3, 0, 3, 0, 3, 1])
    result = uctree.search(game, state, num_simulations=200_000, max_memory="200kB")
    assert result.action == 3


def test_what_is_left_of_a_pruned_tree_with_shared_nodes_fits_together(tmp_path):
    game = game_called("many actions")
    options = {"transpositions": True, "evaluator": leaning, "max_memory": "500kB"}
    result = uctree.search(game, game.start(), num_simulations=40_000, **options)
    tree = result.tree
    assert result.edges["visits"].sum() == 40_000
    for node in tree.root.walk():
        assert tree.edge_visits(node.edges).sum() <= node.visits
    tree.save(tmp_path / "pruned.tree")
    assert uctree.Tree.load(tmp_path / "pruned.tree").edges.tobytes() == tree.edges.tobytes()


def test_the_table_of_shared_nodes_grows_within_the_memory():
    """Two actions and no state twice: as many nodes as edges, the most a table can have."""

    def legal(state, actions):
        actions[0], actions[1] = 0, 1
        return 2

    def step(state, action, reward):
        state.way = 2 * state.way + action
        state.turn += 1
        state.to_play = 1 - state.to_play
        if state.turn == 40:
            reward[0] = 1.0 if (state.way * 2654435761) & 64 else -1.0
            reward[1] = -reward[0]
            state.to_play = uctree.OVER

    fields = [("way", np.int64), ("turn", np.int8), ("to_play", np.int8)]
    game = uctree.Game(
        fields, legal, step, num_players=2, num_actions=2, zero_sum=True, payoff_range=(-1, 1),
        name="ways",
    )  # fmt: skip
    for max_memory in (500_000, 530_000, 600_000):  # tables are full at some of them
        result = uctree.search(
            game, game.start(), num_simulations=20_000, transpositions=True, max_memory=max_memory
        )
        assert result.edges["visits"].sum() == 20_000
        assert result.tree.num_bytes <= max_memory


@pytest.mark.parametrize("options", [{"transpositions": True}, {"evaluator": favourites}])
def test_pruning_does_not_change_what_is_clear(options):
    game = games.connect_four()
    state = game.play([0, 3, 0, 3, 1, 3])  # whoever does not play 3 has lost
    free, pruned = (
        uctree.search(game, state, num_simulations=60_000, max_memory=cap, **options)
        for cap in (None, "200kB")
    )
    assert 10 * pruned.tree.num_bytes <= 10 * 200_000 < free.tree.num_bytes
    assert pruned.action == free.action == 3
    assert pruned.value == pytest.approx(free.value, abs=0.1)


def test_a_memory_too_small_for_the_root_is_an_error():
    game = games.connect_four()
    with pytest.raises(ValueError, match="the root alone needs"):
        uctree.search(game, game.start(), num_simulations=10, max_memory=100)


# --- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "two trees"])
def test_a_search_goes_on_from_a_file_as_from_memory(kind, tmp_path):
    make, options = KINDS[kind]
    game = make()
    tree = uctree.search(game, game.start(), num_simulations=700, seed=1, **options).tree
    tree.save(tmp_path / "a.tree")
    loaded = uctree.Tree.load(tmp_path / "a.tree")
    assert loaded.edges.tobytes() == tree.edges.tobytes()
    results = [
        uctree.search(game, game.start(), num_simulations=300, seed=2, tree=t, **options)
        for t in (tree, loaded)
    ]
    assert results[0].edges["visits"].tolist() == results[1].edges["visits"].tolist()
    assert results[0].value.tolist() == results[1].value.tolist()


def test_a_tree_of_a_game_of_ones_own_needs_the_game(tmp_path):
    game = random_game("two, zero-sum")
    uctree.search(game, roots(game)[0], num_simulations=50).tree.save(tmp_path / "own.tree")
    with pytest.raises(ValueError, match="game="):
        uctree.Tree.load(tmp_path / "own.tree")
    assert uctree.Tree.load(tmp_path / "own.tree", game).simulations == 50
    with pytest.raises(ValueError, match="differs"):
        uctree.Tree.load(tmp_path / "own.tree", games.connect_four())


def test_a_damaged_file_and_a_foreign_one_are_refused(tmp_path):
    game, path = games.tic_tac_toe(), tmp_path / "a.tree"
    uctree.search(game, game.start(), num_simulations=50).tree.save(path)
    content = path.read_bytes()
    path.write_bytes(content[:-100] + b"?" + content[-99:])
    with pytest.raises(ValueError, match=r"a\.tree was changed or damaged .* save the tree again"):
        uctree.Tree.load(path)
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=r"a\.tree is cut off or damaged"):
        uctree.Tree.load(path)
    path.write_text("visits: 50")
    with pytest.raises(ValueError, match="is not a tree of uctree"):
        uctree.Tree.load(path)


def test_a_tree_of_another_size_of_the_game_is_refused(tmp_path):
    game, path = games.connect_four(), tmp_path / "a.tree"
    uctree.search(game, game.start(), num_simulations=50).tree.save(path)
    with pytest.raises(ValueError, match="differs: name is"):
        uctree.Tree.load(path, games.connect_four(5, 7))

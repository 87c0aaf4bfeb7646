"""Trees that are kept: from ply to ply, within a memory, in a file."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import ramify
from ramify import Searcher, games, selection
from ramify.tree import NONE


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
    assert searcher.game.to_play(searcher.state) == ramify.CHANCE
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
    loaded = ramify.Tree.load(tmp_path / "later.tree")
    assert statistics(loaded.root) == statistics(searcher.tree.root)


def test_a_searcher_says_what_does_not_fit():
    game = games.tic_tac_toe()
    with pytest.raises(TypeError, match=r"num_simulations is given to Searcher\.search"):
        Searcher(game, num_simulations=10)
    with pytest.raises(ValueError, match="halves a fresh root"):
        Searcher(game, root_selection=selection.gumbel(), evaluator=favourites)
    with pytest.raises(TypeError, match="solvr"):
        Searcher(game, solvr=True)
    with pytest.raises(ramify.IllegalAction):
        Searcher(game).advance(11)


# --- memory --------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"transpositions": True}, {"evaluator": favourites}])
def test_a_search_ten_times_past_its_memory_goes_on(options):
    game, cap = games.connect_four(), 1_000_000
    ramify.search(game, game.start(), num_simulations=50_000, max_memory=cap, **options)  # compile
    free = ramify.search(game, game.start(), num_simulations=100_000, **options).tree.num_bytes
    num_simulations = max(100_000, 10 * cap * 100_000 // free)
    tracemalloc.start()
    result = ramify.search(
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
    result = ramify.search(game, state, num_simulations=200_000, max_memory="200kB")
    assert result.action == 3


def test_a_memory_too_small_for_the_root_is_an_error():
    game = games.connect_four()
    with pytest.raises(ValueError, match="the root alone needs"):
        ramify.search(game, game.start(), num_simulations=10, max_memory=100)


# --- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "two trees"])
def test_a_search_goes_on_from_a_file_as_from_memory(kind, tmp_path):
    make, options = KINDS[kind]
    game = make()
    tree = ramify.search(game, game.start(), num_simulations=700, seed=1, **options).tree
    tree.save(tmp_path / "a.tree")
    loaded = ramify.Tree.load(tmp_path / "a.tree")
    assert loaded.edges.tobytes() == tree.edges.tobytes()
    results = [
        ramify.search(game, game.start(), num_simulations=300, seed=2, tree=t, **options)
        for t in (tree, loaded)
    ]
    assert results[0].edges["visits"].tolist() == results[1].edges["visits"].tolist()
    assert results[0].value.tolist() == results[1].value.tolist()


def test_a_tree_of_a_game_of_ones_own_needs_the_game(tmp_path):
    from tests.random_games import random_game, roots

    game = random_game("two, zero-sum")
    ramify.search(game, roots(game)[0], num_simulations=50).tree.save(tmp_path / "own.tree")
    with pytest.raises(ValueError, match="game="):
        ramify.Tree.load(tmp_path / "own.tree")
    assert ramify.Tree.load(tmp_path / "own.tree", game).simulations == 50
    with pytest.raises(ValueError, match="differs"):
        ramify.Tree.load(tmp_path / "own.tree", games.connect_four())

"""Leaves valued in Python, in batches, and many trees grown together."""

from __future__ import annotations

import time

import numpy as np
import pytest

import uctree
from tests.judges import GAME, in_python, judge, judge_batch, visits
from uctree import UctreeError, evaluators, games, selection
from uctree.engine.driver import BatchedSearch, Pieces

pytestmark = pytest.mark.usefixtures("both_ways")


@pytest.mark.parametrize("rule", [None, selection.gumbel()])
def test_a_batched_search_grows_the_trees_that_searches_grow(rule):
    states = [GAME.play(actions) for actions in ([], [4], [0, 4], [0, 4, 8])]
    batch = BatchedSearch(GAME, 4, evaluator=in_python(), root_selection=rule)
    for tree, state in enumerate(states):
        batch.reset([tree], [state], num_simulations=100 + tree, seed=tree)
    batch.run()
    for tree, state in enumerate(states):
        alone = uctree.search(
            GAME, state, num_simulations=100 + tree, evaluator=judge, root_selection=rule,
            seed=tree,
        )  # fmt: skip
        root = batch.root(tree)
        assert dict(zip(root.actions.tolist(), root.visits.tolist(), strict=True)) == {
            int(row["action"]): int(row["visits"]) for row in alone.edges
        }
        assert root.value == pytest.approx(alone.tree.mean_values(range(1))[0])
        if rule is not None:
            policy = np.zeros(9)
            policy[root.actions] = root.improved()
            assert policy == pytest.approx(alone.improved_policy(), abs=1e-6)
            assert root.actions[root.gumbel_choice()] == alone.action


WIDE = games.hex(size=6)


def weigh_cells(state, values, logits):
    x = 0.7 * state.ply
    values[state.to_play], values[1 - state.to_play] = 0.3 * np.sin(x), -0.3 * np.sin(x)
    for action in range(36):
        logits[action] = np.cos(x + action * action)


@pytest.mark.parametrize(
    ("game", "asked", "compiled", "options"),
    [
        (GAME, judge, judge, {}),
        (GAME, in_python(cache=0), judge, {}),
        (GAME, judge, judge, {"solver": True}),
        (WIDE, weigh_cells, weigh_cells, {}),
    ],
    ids=["tic-tac-toe", "python", "solver", "hex"],
)
def test_a_tree_of_a_forest_is_that_of_a_search(game, asked, compiled, options):
    """Actions never taken have no edge there; a copy has them, with the same priors."""
    options = options | {"root_selection": selection.gumbel()}
    batch = BatchedSearch(game, 2, evaluator=asked, **options)
    assert batch.composition.layout.sparse
    batch.reset([0, 1], [game.start()] * 2, num_simulations=100, seed=5)
    batch.run()
    for number in (0, 1):
        alone = uctree.search(
            game, game.start(), num_simulations=100, seed=5 + number, evaluator=compiled, **options
        ).tree
        mine = batch.tree(number)
        assert mine.layout == alone.layout
        assert mine.simulations == alone.simulations
        assert rows_below(mine.root) == rows_below(alone.root)
        assert mine.root_noise.tolist() == alone.root_noise.tolist()
    forgetful = BatchedSearch(game, 2, keeps_trees=False, evaluator=asked, **options)
    forgetful.reset([0, 1], [game.start()] * 2, num_simulations=100, seed=5)
    forgetful.run()
    for number in (0, 1):
        one, other = batch.root(number), forgetful.root(number)
        assert one.visits.tolist() == other.visits.tolist()
        assert one.q.tolist() == other.q.tolist()


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("evaluator", [in_python(cache=0), judge], ids=["python", "compiled"])
def test_trees_that_start_together_may_have_budgets_and_seeds_of_their_own(evaluator, monkeypatch):
    monkeypatch.setattr(BatchedSearch, "FIRST_PIECE", 30)  # below some of the budgets
    given = {"num_simulations": [12, 20, 9], "seed": [7, 7, 3], "noise": [True, False, True]}
    states = [GAME.start(), GAME.play([4]), GAME.play([0, 4])]
    options = {"evaluator": evaluator, "root_selection": selection.gumbel()}
    together, alone = BatchedSearch(GAME, 3, **options), BatchedSearch(GAME, 3, **options)
    together.reset(range(3), states, **given)
    for tree in range(3):
        own = {name: values[tree] for name, values in given.items()}
        alone.reset([tree], [states[tree]], **own)
    for batch in (together, alone):
        batch.run()
    for tree in range(3):
        one, other = together.root(tree), alone.root(tree)
        assert one.visits.tolist() == other.visits.tolist()
        assert one.visits.sum() == given["num_simulations"][tree]
        assert one.noise.tolist() == other.noise.tolist()


@pytest.mark.quick
@pytest.mark.parametrize("options", [{}, {"root_selection": selection.gumbel()}, {"solver": True}])
def test_many_states_are_searched_together_and_found_as_one_by_one(options):
    sizes = []

    def note(states):
        sizes.append(len(states))
        return judge_batch(states)

    over = GAME.play([0, 3, 1, 4, 2])
    states = [GAME.start(), GAME.play([4]), over, GAME.play([0, 1, 3, 4, 8])]
    options = options | {"num_simulations": 60}
    many = uctree.search_many(
        GAME, states, seed=5, evaluator=evaluators.python(note, priors=True, cache=0), **options
    )
    assert max(sizes) == 3
    for i, (state, result) in enumerate(zip(states, many, strict=True)):
        alone = uctree.search(GAME, state, seed=5 + i, evaluator=in_python(cache=0), **options)
        assert result.edges.tobytes() == alone.edges.tobytes()  # some are not numbers
        assert np.array_equal(result.value, alone.value)
        names = ("status", "simulations", "seed", "action", "state")
        assert [getattr(result, name) for name in names] == [getattr(alone, name) for name in names]
        assert result.options.keys() == alone.options.keys()
        assert len(result.history) == min(1, len(alone.history))


@pytest.mark.parametrize("options", [{}, {"solver": True}, {"transpositions": True}])
@pytest.mark.parametrize(("leaves", "cache"), [(1, "1MB"), (3, 0), (3, "1MB")])
def test_trees_of_many_states_differ_only_if_leaves_share_a_cache(options, leaves, cache):
    options = options | {
        "num_simulations": 60,
        "leaves": leaves,
        "evaluator": in_python(cache=cache),
    }
    states = [GAME.start(), GAME.play([4]), GAME.start()]
    many = uctree.search_many(GAME, states, seed=5, **options)
    alone = [uctree.search(GAME, state, seed=5 + i, **options) for i, state in enumerate(states)]
    assert [each.simulations for each in many] == [each.simulations for each in alone] == [60] * 3
    are_same = [
        one.tree.edges.tobytes() == other.tree.edges.tobytes()
        for one, other in zip(many, alone, strict=True)
    ]
    assert all(are_same) == (leaves == 1 or cache == 0)


def test_what_is_asked_in_python_is_timed_as_evaluation():
    def slow(states):
        time.sleep(0.01)
        return judge_batch(states)

    evaluator = evaluators.python(slow, priors=True, cache=0)
    result = uctree.search(GAME, GAME.start(), num_simulations=20, evaluator=evaluator)
    assert 0.2 < result.profile["evaluation"] <= result.seconds
    assert sum(result.profile.values()) == pytest.approx(result.seconds, abs=0.01)
    assert "evaluation" in result.profile_line


def rows_below(node):
    """Visits, values and priors of all edges, by their actions."""
    rows = {}
    for edge in node.edges:
        tree = node.tree
        record = tree.edges[edge]
        below = node.child(edge) if record["first"] != -1 else None
        rows[tree.action(edge)] = (
            int(record["visits"]), record["value_sum"].tolist(), float(record["prior"]),
            record["raw"].tolist(), None if below is None else rows_below(below),
        )  # fmt: skip
    return rows


def test_every_tree_may_have_a_budget_of_its_own():
    options = {"evaluator": in_python(cache=0), "root_selection": selection.gumbel(4)}
    batch = BatchedSearch(GAME, 2, **options)
    batch.reset([0], [GAME.start()], num_simulations=70, seed=1)
    for budget in range(20, 10, -1):
        batch.reset([1], [GAME.play([4])], num_simulations=budget, seed=2)
        while batch.root(1).visits.sum() < budget:
            batch.step()
        alone = uctree.search(
            GAME, GAME.play([4]), num_simulations=budget, seed=2, **options
        )  # fmt: skip
        assert batch.root(1).visits.tolist() == alone.edges["visits"].tolist()
    batch.run()
    alone = uctree.search(GAME, GAME.start(), num_simulations=70, seed=1, **options)
    assert batch.root(0).visits.tolist() == alone.edges["visits"].tolist()


@pytest.mark.parametrize(
    "options",
    [{}, {"solver": True}, {"evaluator": judge, "root_selection": selection.gumbel(4)}],
    ids=["playouts", "solver", "gumbel"],
)
def test_trees_of_a_compiled_evaluator_grow_in_pieces_that_do_not_change_them(options, monkeypatch):
    def grown():
        batch = BatchedSearch(GAME, 2, **options)
        batch.reset([0, 1], [GAME.start(), GAME.play([4, 0, 8])], num_simulations=150, seed=3)
        num_steps, ended = 0, []
        while len(ended) < 2:
            ended += batch.step().tolist()
            num_steps += 1
        return num_steps, [batch.tree(number) for number in (0, 1)]

    monkeypatch.setattr(BatchedSearch, "PIECE_SECONDS", 1e9)
    monkeypatch.setattr(BatchedSearch, "FIRST_PIECE", 1000)
    few, whole = grown()
    monkeypatch.setattr(BatchedSearch, "PIECE_SECONDS", 1e-9)
    monkeypatch.setattr(BatchedSearch, "FIRST_PIECE", 7)
    many, cut = grown()
    assert few <= 2
    assert many > 20
    for one, other in zip(whole, cut, strict=True):
        assert one.edges.tobytes() == other.edges.tobytes()
        assert one.simulations == other.simulations


def test_pieces_take_about_the_seconds_wanted_and_grow_slowly():
    pieces = Pieces(64)
    pieces.adapt(100, 0.5, longest=1000, goal=0.02)
    assert (pieces.size, pieces.rate) == (4, 200.0)
    pieces.adapt(4, 1e-9, longest=32, goal=0.02)
    assert pieces.size == 32
    pieces.adapt(32, 1e9, longest=256, goal=0.02)
    assert pieces.size == 1


def test_a_tree_that_waits_may_begin_anew():
    batch = BatchedSearch(GAME, 2, evaluator=in_python(), leaves=3)
    batch.reset([0, 1], [GAME.start()] * 2, num_simulations=50)
    for _ in range(3):
        batch.step()
    batch.reset([0], [GAME.play([4])], num_simulations=60)
    batch.run()
    assert [int(batch.root(tree).visits.sum()) for tree in (0, 1)] == [60, 50]
    alone = uctree.search(GAME, GAME.play([4]), num_simulations=60, evaluator=in_python(), leaves=3)
    assert batch.root(0).visits.tolist() == alone.edges["visits"].tolist()


def test_trees_begin_anew_while_others_grow():
    batch = BatchedSearch(GAME, 3, evaluator=in_python(), leaves=2)
    batch.reset(range(3), [GAME.start()] * 3, num_simulations=30)
    ended = []
    while len(ended) < 9:
        for tree in batch.step():
            assert batch.root(tree).visits.sum() == 30
            ended.append(int(tree))
            batch.reset([tree], [GAME.play([len(ended) % 9])], num_simulations=30)
    assert set(ended) == {0, 1, 2}


def test_a_batched_search_makes_room():
    game = games.hex(size=5)

    def flat(states):
        return np.zeros((len(states), 25)), np.zeros((len(states), 2))

    batch = BatchedSearch(game, 2, evaluator=evaluators.python(flat, priors=True))
    batch.reset([0, 1], [game.start()] * 2, num_simulations=600)
    batch.run()
    assert batch.root(1).visits.sum() == 600
    assert batch.tree(1).root.visits == 601  # the root itself was valued first


@pytest.mark.parametrize("leaves", [1, 8])
def test_memory_that_runs_out_is_made_do_with(leaves):
    options = {"evaluator": in_python(cache=0), "leaves": leaves}
    small = uctree.search(GAME, GAME.start(), num_simulations=400, max_memory="20kB", **options)
    assert small.simulations == 400
    assert small.edges["visits"].sum() == 400
    assert small.tree.num_bytes < 20_000


@pytest.mark.parametrize("game", [games.pig(target=20), games.twenty48()], ids=lambda g: g.name)
def test_a_batched_search_makes_room_for_outcomes(game):
    def flat(states):
        return np.zeros((len(states), game.num_actions)), np.zeros((len(states), game.num_players))

    state = game.start()
    while game.to_play(state) < 0:
        state, _ = game.step(state, game.outcomes(state)[0][0])
    batch = BatchedSearch(game, 2, evaluator=evaluators.python(flat, priors=True))
    batch.reset(range(2), [state] * 2, num_simulations=400, seed=5)
    batch.run()
    assert [int(batch.root(tree).visits.sum()) for tree in range(2)] == [400, 400]


def test_after_an_evaluator_has_failed_a_forest_begins_anew():
    calls = []

    def fails_once(states):
        calls.append(len(states))
        if len(calls) == 3:
            raise OSError("the network is away")
        return judge_batch(states)

    batch = BatchedSearch(GAME, 2, evaluator=evaluators.python(fails_once, priors=True, cache=0))
    states = [GAME.start(), GAME.play([4])]
    with pytest.raises(UctreeError, match="raised OSError: the network is away"):
        list(batch.search(states, num_simulations=30, seeds=[1, 2]))
    found = dict(batch.search(states[1:], num_simulations=30, seeds=[2]))
    assert found.keys() == {0}
    assert batch.tree(found[0]).edges.tobytes() == grown_alone(states[1], 2).edges.tobytes()


def grown_alone(state, seed):
    return uctree.search(
        GAME, state, num_simulations=30, seed=seed, evaluator=in_python(cache=0)
    ).tree


def test_a_search_that_was_left_does_not_disturb_the_next():
    batch = BatchedSearch(GAME, 2, evaluator=in_python(cache=0))
    states = [GAME.start(), GAME.play([4]), GAME.play([0])]
    next(iter(batch.search(states, num_simulations=30, seeds=[1, 2, 3])))
    assert [number for number, _ in batch.search(states[:1], num_simulations=9, seeds=[1])] == [0]


def test_a_tree_that_was_never_planted_is_empty():
    root = BatchedSearch(GAME, 1, evaluator=in_python()).root(0)
    assert (len(root.actions), root.is_best, root.proven) == (0, None, None)


def test_with_three_players_a_sure_win_is_kept():
    game = games.n_in_a_row(rows=3, cols=3, length=3, num_players=3)
    state = game.play([0, 3, 4, 1, 6, 7])  # the player to move wins with the diagonal

    def flat(states):
        return np.zeros((len(states), 9)), np.zeros((len(states), 3))

    batch = BatchedSearch(game, 1, evaluator=evaluators.python(flat, priors=True), solver=True)
    batch.reset([0], [state], num_simulations=100)
    batch.run()
    root = batch.root(0)
    kept = root.actions[root.is_best]
    after, reward = game.step(state, int(kept[0]))
    assert len(kept) == 1
    assert game.is_over(after)
    assert np.array_equal(root.proven, reward)
    many = uctree.search_many(
        game, [state], num_simulations=100, solver=True,
        evaluator=evaluators.python(flat, priors=True),
    )  # fmt: skip
    assert many[0].status == "solved"


@pytest.mark.quick
def test_a_search_that_was_left_in_the_middle_can_go_on():
    calls = []

    def breaks(states):
        calls.append(len(states))
        if len(calls) == 20:
            raise OSError("the service is gone")
        return judge_batch(states)

    searcher = uctree.Searcher(GAME, evaluator=evaluators.python(breaks, priors=True), leaves=4)
    searcher.search(num_simulations=20)
    with pytest.raises(UctreeError, match="breaks raised OSError: the service is gone"):
        searcher.search(num_simulations=300)
    result = searcher.search(num_simulations=100)
    assert not result.tree.edges["pending"].any()
    assert result.edges["visits"].sum() == result.tree.root.visits - 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: visits(in_python(), threads=2), "leaves= in place of threads="),
        (lambda: visits(judge, leaves=4), "judge is compiled: omit it"),
        (lambda: visits(in_python(), leaves=0), "leaves must be a whole number of at least 1"),
        (lambda: in_python(leaves=0), "leaves must be a whole number"),
        (lambda: in_python(concurrency=0), "concurrency must be a whole number"),
        (lambda: in_python(timeout=0), "timeout must be above 0"),
        (lambda: in_python(cache="much"), "cache is bytes or text"),
        (lambda: BatchedSearch(GAME, 0), "num_trees must be at least 1"),
        (
            lambda: BatchedSearch(GAME, 2).reset([0, 1], [GAME.start()], num_simulations=1),
            "got 2 trees, 1 states",
        ),
        (lambda: BatchedSearch(games.loss_game(), 1), "vectors"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_tree_is_planted_where_a_player_acts():
    batch = BatchedSearch(GAME, 1, evaluator=in_python())
    with pytest.raises(ValueError, match="over"):
        batch.reset([0], [GAME.play([0, 3, 1, 4, 2])], num_simulations=5)

"""Episodes of self-play: their targets, and that they follow from their seeds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import uctree
from tests.learn.fixed_evaluators import constant
from uctree import games
from uctree.engine.driver import BatchedSearch
from uctree.evaluators import playout
from uctree.learn import selfplay
from uctree.learn.options import make_options
from uctree.learn.selfplay import Setup, play_episodes, playout_options, search_options

GAME = games.tic_tac_toe()


def played(game=GAME, numbers=range(6), evaluator=None, **options):
    given = make_options(game, **({"num_simulations": 20, "num_trees": 4} | options))
    evaluator = constant(game) if evaluator is None else evaluator
    episodes = list(play_episodes(game, evaluator, given, numbers))
    return sorted(episodes, key=lambda episode: episode.number)


def test_every_episode_is_played_once_and_to_its_end():
    episodes = played(numbers=range(10, 17))
    assert [episode.number for episode in episodes] == list(range(10, 17))
    for episode in episodes:
        states = episode.positions["state"]
        assert states[0] == GAME.start()
        assert (states["to_play"] == np.arange(len(states)) % 2).all()
        assert len(states) == episode.num_plies
        assert episode.simulations == 20 * episode.num_plies
        assert set(episode.returns) in ({0.0}, {-1.0, 1.0})


def test_values_are_those_of_the_player_to_play_first():
    for episode in played():
        seats = episode.positions["state"]["to_play"]
        expected = np.stack([np.roll(episode.returns, -seat) for seat in seats])
        assert episode.positions["returns"] == pytest.approx(expected)


def test_policies_are_shares_of_visits_over_legal_actions():
    for episode in played():
        for position in episode.positions:
            used = position["policy_actions"] >= 0
            shares = position["policy_shares"][used]
            assert shares.sum() == pytest.approx(1.0)
            assert np.allclose(shares * 20, np.round(shares * 20))
            legal = GAME.legal(GAME.copy(position["state"]))
            assert set(position["policy_actions"][used].tolist()) <= set(legal)


@pytest.mark.parametrize("rule", ["puct", "gumbel"])
def test_the_same_numbers_give_the_same_episodes_and_others_give_others(rule):
    first, again = (played(root_selection=rule, policy_target=target) for target in ("visits",) * 2)
    for one, other in zip(first, again, strict=True):
        assert (one.positions == other.positions).all()
    assert len({episode.positions["state"].tobytes() for episode in first}) > 1
    others = played(root_selection=rule, seed=1)
    assert [e.positions.tobytes() for e in others] != [e.positions.tobytes() for e in first]


def test_the_order_of_episodes_by_playouts_does_not_depend_on_the_clock(monkeypatch):
    """Their numbers in the replay follow from it, and from these what is learned."""
    options = make_options(GAME, num_simulations=20, num_trees=4)
    found = []
    for most in (1000, 15, 6):  # simulations of a tree before the next look at the clock
        rng = np.random.default_rng(most)
        monkeypatch.setattr(BatchedSearch, "_piece", lambda self: int(rng.integers(1, most)))  # noqa: B023
        episodes = list(play_episodes(GAME, playout(), options, range(12)))
        found.append([(each.number, each.positions.tobytes()) for each in episodes])
    assert found[0] == found[1] == found[2]


def test_gumbel_teaches_the_improved_policy():
    episodes = played(root_selection="gumbel", policy_target="gumbel")
    shares = np.concatenate([episode.positions["policy_shares"] for episode in episodes])
    assert not np.allclose(shares * 20, np.round(shares * 20))
    assert shares.sum(axis=1) == pytest.approx(1.0)


def test_fast_searches_teach_values_alone_and_have_no_noise():
    (episode,) = played(
        numbers=[3], full_search_share=0.0, fast_simulations=5, temperature=0.0,
        temperature_floor=0.0,
    )  # fmt: skip
    assert (episode.positions["policy_weight"] == 0).all()
    assert episode.simulations == 5 * episode.num_plies
    # Without noise and chance, an untrained network plays the same episode for every number.
    (other,) = played(
        numbers=[4], full_search_share=0.0, fast_simulations=5, temperature=0.0,
        temperature_floor=0.0,
    )  # fmt: skip
    assert (other.positions["state"] == episode.positions["state"]).all()


def test_from_the_cutover_on_the_most_visited_action_is_taken():
    for episode in played(temperature_cutover=2, noise_fraction=0.0):
        positions = episode.positions
        for now, after in itertools.pairwise(positions):
            best = now["policy_actions"][0]
            state, _ = GAME.step(GAME.copy(now["state"]), int(best))
            shares = now["policy_shares"]
            if shares[0] > shares[1]:
                assert state.tobytes() == after["state"].tobytes()


def test_surprise_weighs_positions_and_keeps_their_mean():
    plain, weighed = played(), played(surprise_share=0.5)
    assert all((episode.positions["weight"] == 1).all() for episode in plain)
    for episode in weighed:
        assert episode.positions["weight"].mean() == pytest.approx(1.0)
        assert episode.positions["weight"].std() > 0


def test_value_plies_end_returns_with_search_values():
    near, whole = played(value_plies=1), played()
    for one, other in zip(near, whole, strict=True):
        assert one.positions["returns"][-1] == pytest.approx(other.positions["returns"][-1])
    assert any(
        not np.allclose(one.positions["returns"], other.positions["returns"])
        for one, other in zip(near, whole, strict=True)
    )


@pytest.mark.parametrize(
    "game",
    [
        games.pig(target=10),
        games.dots_and_boxes(rows=1, cols=1),
        games.nim(),
        games.n_in_a_row(rows=3, cols=3, length=3, num_players=3),
    ],
    ids=lambda game: game.name,
)
def test_any_number_of_players_chance_and_rewards_on_the_way(interpreted, game):
    for episode in played(game, numbers=range(3), num_simulations=8):
        assert (episode.positions["state"]["to_play"] >= 0).all()
        first = episode.positions[0]
        seat = int(first["state"]["to_play"])
        assert np.roll(first["returns"], seat) == pytest.approx(episode.returns, abs=1e-6)


def test_noise_is_annealed():
    given = make_options(GAME, noise_fraction=0.4, noise_end=0.0, noise_iterations=10)
    noises = [search_options(given, iteration)["root_noise"] for iteration in (1, 6, 11)]
    assert [noise and noise.fraction for noise in noises] == [0.4, pytest.approx(0.2), None]


@pytest.mark.parametrize("rule", ["puct", "gumbel"])
def test_from_the_cutover_on_the_best_action_is_taken(rule):
    options = {"root_selection": rule, "noise_fraction": 0.0, "num_simulations": 32}
    lines = {
        cutover: {
            tuple(e.positions["state"]["taken"])
            for e in played(numbers=range(12), temperature_cutover=cutover, **options)
        }
        for cutover in (0, 9)
    }
    assert len(lines[0]) == 1  # nothing is random
    assert len(lines[9]) > 4


def endless(**options):
    """Tic-tac-toe that never ends."""

    def step(state, action, reward):
        state.to_play = 1 - state.to_play

    return uctree.Game(
        GAME.dtype, GAME.rules.legal, step, num_players=2, num_actions=9, name="endless",
        observe=GAME.rules.observe, observation_shape=GAME.observation_shape, **options,
    )  # fmt: skip


def test_a_game_without_an_end_is_refused(interpreted, monkeypatch):
    monkeypatch.setattr(selfplay, "ENDLESS", 7)
    with pytest.raises(uctree.BrokenGame, match="endless is not over after 7 plies; give the game"):
        played(endless())


@pytest.mark.parametrize("worth", [0.0, 0.25])
def test_a_truncated_episode_ends_with_the_value_of_the_heuristic(interpreted, worth):
    def heuristic(state, values):
        values[0], values[1] = worth, -worth

    game = endless(max_plies=5, discount=0.5, heuristic=heuristic if worth else None)
    for episode in played(game):
        assert episode.num_plies == 5
        for_first = worth * 0.5 ** np.arange(5, 0, -1)
        assert episode.positions["returns"][:, 0] == pytest.approx(for_first * [1, -1, 1, -1, 1])


def optimal_actions(state, solution):
    """The actions that keep the exact result of a state of tic-tac-toe."""
    exact = solution.value_of(state)
    steps = {action: GAME.step(state, action) for action in GAME.legal(state)}
    return [
        action
        for action, (after, reward) in steps.items()
        if np.array_equal(reward + solution.value_of(after), exact)
    ]


def test_the_solver_teaches_proven_results():
    solution, proven = uctree.solve(GAME), 0
    for episode in played(numbers=range(40), solver=True, num_simulations=60):
        seats = episode.positions["state"]["to_play"]
        exact = [
            np.roll(solution.value_of(GAME.copy(position["state"])), -seat)
            for position, seat in zip(episode.positions, seats, strict=True)
        ]
        is_proven = (episode.positions["search_values"] == exact).all(axis=1)
        for position, value, proves in zip(episode.positions, exact, is_proven, strict=True):
            state = GAME.copy(position["state"])
            if int(state["taken"]).bit_count() < 6:  # the others are small enough to be proven
                continue
            assert proves
            taught = position["policy_actions"][position["policy_shares"] > 0]
            assert set(taught) <= set(optimal_actions(state, solution))
            assert np.array_equal(position["returns"], value)
            proven += 1
    assert proven > 5


def test_playouts_may_have_fewer_simulations_than_a_fast_search():
    options = make_options(GAME, playout_iterations=1, playout_simulations=5)
    assert playout_options(options).num_simulations == 5


def test_openings_are_drawn_and_not_learned_from():
    begun = [
        int(episode.positions["state"]["taken"][0]).bit_count()
        for episode in played(numbers=range(40), opening_plies=3)
    ]
    assert set(begun) == {0, 1, 2, 3}


def test_an_opening_never_ends_an_episode():
    for episode in played(numbers=range(40), opening_plies=9):
        assert len(episode.positions) >= 1
        assert not GAME.is_over(GAME.copy(episode.positions["state"][0]))


def test_the_first_iterations_can_be_played_by_playouts():
    options = make_options(
        GAME, playout_iterations=2, num_simulations=20, root_selection="gumbel",
        policy_target="gumbel",
    )  # fmt: skip
    setup = Setup(GAME, options, None, 2)
    for episode in setup.play(range(4)):
        assert episode.simulations == 400 * episode.num_plies
        assert (episode.positions["policy_weight"] == 1).all()
        visits = 400 * episode.positions["policy_shares"]
        assert visits == pytest.approx(np.round(visits), abs=1e-3)  # shares of visits

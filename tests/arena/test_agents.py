"""Agents: what they take, and how text names them."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import uctree
from tests.arena.failing import NoAgent, Watches
from uctree import Searcher, UctreeError, choice, games, search, selection, stopping
from uctree.arena import GreedyAgent, RandomAgent, SearchAgent, agents, make_agent, play
from uctree.arena.agents import derived_seed, name_of

pytestmark = pytest.mark.quick

FAILING = "tests/arena/failing.py"


def begun(agent, game, player=0, seed=1):
    agent.begin(game, player, seed)
    return agent


# --- what they take ------------------------------------------------------------------------------


def test_a_random_agent_takes_every_legal_action_alike_often():
    game = games.tic_tac_toe()
    agent = begun(RandomAgent(), game)
    state = game.play([0, 1, 2])
    taken = [agent.act(state) for _ in range(3_000)]
    counts = np.bincount(taken, minlength=9)
    assert counts[:3].sum() == 0
    assert (abs(counts[3:] - 500) < 100).all()


def test_a_random_agent_does_the_same_with_the_same_seed():
    game = games.tic_tac_toe()
    one, other = begun(RandomAgent(), game, seed=5), begun(RandomAgent(), game, seed=5)
    assert [one.act(game.start()) for _ in range(20)] == [
        other.act(game.start()) for _ in range(20)
    ]


def test_a_greedy_agent_takes_a_win_that_is_there():
    game = games.tic_tac_toe()
    agent = begun(GreedyAgent(), game)
    assert agent.act(game.play([0, 3, 1, 4])) == 2


def test_a_greedy_agent_decides_between_equals_by_its_seed():
    game = games.tic_tac_toe()
    first = {begun(GreedyAgent(), game, seed=seed).act(game.start()) for seed in range(50)}
    assert len(first) > 5


def test_a_greedy_agent_looks_at_the_heuristic_for_its_own_player():
    def heuristic(state, values):
        values[0], values[1] = 0.1 * state.taken, -0.1 * state.taken

    plain = games.tic_tac_toe()
    game = type(plain)(
        plain.dtype, plain.rules.legal, plain.rules.step, num_players=2, num_actions=9,
        name="with_heuristic", heuristic=heuristic,
    )  # fmt: skip
    assert begun(GreedyAgent(), game, player=0).act(game.start()) == 8  # the highest bit
    assert begun(GreedyAgent(), game, player=1).act(game.play([4])) == 0


def test_a_search_agent_does_what_a_search_with_its_options_does(interpreted):
    game, rule = games.tic_tac_toe(), selection.puct(c=2)
    agent = begun(SearchAgent(60, selection=rule, solver=True), game, seed=3)
    result = search(
        game, game.start(), num_simulations=60, selection=rule, solver=True,
        seed=derived_seed(3, 0),
    )  # fmt: skip
    assert agent.act(game.start()) == result.action


def test_a_search_agent_has_another_seed_at_every_ply(monkeypatch):
    game, seeds = games.tic_tac_toe(), []
    agent = begun(SearchAgent(20), game)
    monkeypatch.setattr(
        "uctree.arena.agents.search",
        lambda *given, seed, **options: seeds.append(seed) or search(*given, seed=seed, **options),
    )
    for _ in range(3):
        action = agent.act(game.start())
        agent.watch(game.start(), action)
    assert len(set(seeds)) == 3


@pytest.mark.parametrize("game", [games.tic_tac_toe(), games.pig(20)], ids=lambda game: game.name)
def test_an_agent_with_reuse_continues_its_tree(interpreted, game, monkeypatch):
    reused = []
    plain = Searcher.search

    def noted(searcher, *given, **options):
        reused.append(0 if searcher.tree is None else searcher.tree.simulations)
        return plain(searcher, *given, **options)

    monkeypatch.setattr(Searcher, "search", noted)
    record = play(game, [functools.partial(SearchAgent, 40, reuse=True), "random"], seed=2)
    assert record.end == "over"
    assert reused[0] == 0
    assert max(reused[1:]) > 0


def test_an_agent_may_reuse_its_tree_with_an_open_loop_and_against_paranoid_opponents(
    interpreted,
):
    for options in ("open_loop=True", "opponents=paranoid"):
        agents = [f"search(num_simulations=10, reuse=True, {options})"] * 2
        assert play("pig(10)", agents, seed=1).end == "over", options


def test_chance_without_end_is_an_error(monkeypatch):
    def chance(state, outcomes, probabilities):
        outcomes[0], probabilities[0] = 0, 1.0
        return 1

    def start(state):
        state.to_play = uctree.CHANCE

    dtype = np.dtype([("to_play", np.int8)])
    monkeypatch.setattr(agents, "ENDLESS", 100)
    game = uctree.Game(
        dtype, lambda state, actions: 1, lambda state, action, reward: None, num_players=2,
        num_actions=1, start=start, chance=chance, max_outcomes=1, name="dice",
    )  # fmt: skip
    with pytest.raises(uctree.BrokenGame, match="dice: no player is to move in the first 100"):
        SearchAgent(5).prepare(game)


def test_a_gumbel_root_refuses_reuse():
    def favourites(state, values, logits):
        logits[0] = 1.0

    rule = selection.gumbel()
    agent = SearchAgent(16, reuse=True, root_selection=rule, evaluator=favourites)
    with pytest.raises(ValueError, match="cannot continue a tree"):
        agent.prepare(games.tic_tac_toe())


def test_every_agent_watches_all_actions_with_those_of_the_opening_and_of_chance():
    agents = [Watches(), Watches()]
    game = games.pig(10)
    record = play(game, agents, opening=[0, 4], seed=3)
    keys = [game.key(state) for state in record.states]
    for seat, agent in enumerate(agents):
        assert agent.player == seat
        assert agent.seen == list(zip(keys[:-1], record.actions, strict=True))
        assert agent.closed


# --- text ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "option", "value"),
    [
        ("choice=lcb", "choice", choice.lcb()),
        ('choice="lcb"', "choice", choice.lcb()),
        ("choice=robust_max", "choice", "robust_max"),
        ("selection=puct(c=2)", "selection", selection.puct(c=2)),
        ("selection='puct(c=2)'", "selection", selection.puct(c=2)),
        ("selection=None", "selection", None),
        ("stop=decided()", "stop", stopping.decided()),
        ("stop=[decided(), proven()]", "stop", [stopping.decided(), stopping.proven()]),
        ("parallel=tree", "parallel", "tree"),
        ("parallel='tree'", "parallel", "tree"),
        ("chance=proportional", "chance", "proportional"),
        ("solver=True", "solver", True),
        ("threads=2", "threads", 2),
        ("max_memory='1MB'", "max_memory", "1MB"),
        ("widening=widening(k=3)", "widening", selection.widening(k=3)),
        ("root_noise=dirichlet(alpha=0.5)", "root_noise", selection.dirichlet(alpha=0.5)),
    ],
)
def test_an_option_of_a_search_is_read_as_python_would(text, option, value):
    agent = make_agent(f"search(num_simulations=10, {text})")
    assert agent.options == {option: value}
    assert agent.num_simulations == 10


def test_an_evaluator_is_read_too():
    agent = make_agent("search(seconds=0.5, evaluator=playout(num_playouts=3))")
    assert agent.options["evaluator"].num_playouts == 3
    assert agent.seconds == 0.5


def test_the_other_agents_are_read():
    assert isinstance(make_agent("random"), RandomAgent)
    assert isinstance(make_agent(" greedy() "), GreedyAgent)


def test_an_external_program_is_read_without_being_started():
    from uctree.arena import external

    assert isinstance(make_agent("gtp('no_such_program --gtp')"), external.GtpAgent)


def test_a_class_of_a_file_is_made_with_its_arguments():
    agent = make_agent(f"{FAILING}:Raises(after=4)")
    assert type(agent).__name__ == "Raises"
    assert agent.after == 4


def test_a_class_a_function_and_an_agent_itself_will_do():
    agent = RandomAgent()
    assert make_agent(agent) is agent
    assert isinstance(make_agent(RandomAgent), RandomAgent)
    assert make_agent(functools.partial(SearchAgent, num_simulations=5)).num_simulations == 5


def test_agents_are_called_by_what_made_them():
    assert (
        name_of(functools.partial(SearchAgent, num_simulations=5))
        == "SearchAgent(num_simulations=5)"
    )
    assert name_of(Watches) == "Watches"
    assert name_of(Watches()) == "Watches"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "serch(num_simulations=3)",
            r"unknown 'serch'; did you mean search\? possible: random\(\)",
        ),
        ("search", "a search needs a budget: num_simulations=1000, or seconds=1"),
        ("search(100)", "cannot read the options '100'; write them as search"),
        ("search(num_simulations=)", "cannot read the options 'num_simulations='"),
        ("search(**x)", "name each of them once"),
        ("search(simulation=3)", r"no option 'simulation'; did you mean num_simulations\? It has"),
        ("search(simulations=3)", r"no option 'simulations'; did you mean num_simulations\? "),
        ("search(num_simulations=3, seed=1)", "search has no option 'seed'"),
        (
            "search(num_simulations=3, selection=puc())",
            r"selection puc\(\): unknown 'puc'; did you",
        ),
        ("search(num_simulations=3, choice=best)", "choice best: unknown 'best'"),
        ("search(num_simulations=3, threads=open('x'))", "cannot read the arguments"),
        ("random(3)", r"too many positional arguments; the signature is random\(\)"),
        ("no_file.py:Agent()", "there is no file no_file.py"),
        (f"{FAILING}:Nobody()", "has no class or function 'Nobody'; its agents: .*Raises"),
        (f"{FAILING}:Raises(before=1)", "unexpected keyword argument 'before'"),
        (f"{FAILING}:NoAgent()", "has no begin and no act; an agent has begin"),
    ],
)
def test_what_is_wrong_with_a_text_is_said(text, message):
    with pytest.raises(UctreeError, match=message) as caught:
        make_agent(text)
    assert "agent" in str(caught.value)


def test_something_that_is_no_agent_is_refused():
    with pytest.raises(UctreeError, match="'NoAgent' is of type NoAgent, which has no begin"):
        make_agent(NoAgent)

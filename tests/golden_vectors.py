"""The answers of uctree's own functions to the test vectors, by family of vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import uctree
from tests import (
    golden_choice,
    golden_continuous,
    golden_gumbel,
    golden_learning,
    golden_principle,
    golden_views,
)
from uctree import choice, evaluators, selection, variation
from uctree.engine import compose, workspace
from uctree.engine.compile import bind
from uctree.engine.options import resolve
from uctree.kernels import backups, proofs, records, scoring
from uctree.kernels.context import Search
from uctree.kernels.records import MOVER, NONE
from uctree.tree import Layout, Tree

Input = dict[str, Any]
Answer = dict[str, Any]


def compute(id: str, input: Input) -> Answer:
    """What uctree answers to the vector `id`: plain numbers, lists, dicts, None where undefined."""
    for family, answer in FAMILIES.items():
        if id.startswith(family):
            return _plain(answer(_numbers(input)))
    raise LookupError(f"nothing in uctree answers {id} yet")


def _expected(probabilities: Any, values: Any) -> float:
    total = 0.0
    for probability, value in zip(probabilities, values, strict=True):
        total = backups.add_outcome(total, probability, value)
    return total


def _numbers(value: Any) -> Any:
    """JSON as numbers: infinities come as text."""
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    return float(value) if value in ("Infinity", "-Infinity", "NaN") else value


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def _first_largest(scores: list[float]) -> int:
    return backups.best_reply(np.array(scores)[:, None], 0)


# --- selection -----------------------------------------------------------------------------------


def _ucb1(given: Input) -> Answer:
    span = given.get("hi", 1.0) - given.get("lo", 0.0)
    width = selection.ucb1_width(given["N"], given.get("C", math.sqrt(2)), span)

    def score(w: float, n: int) -> float:
        return selection.ucb1_score(w / n if n else 0.0, n, width)

    w, n = given["w"], given["n"]
    if isinstance(n, list):
        scores = [score(*edge) for edge in zip(w, n, strict=True)]
        return {"scores": scores, "argmax": _first_largest(scores)}
    bonus = selection.ucb1_score(0.0, n, width)
    return {"exploit": w / n if n else None, "bonus": bonus, "score": score(w, n)}


def _puct(given: Input) -> Answer:
    visits = max(given["N"], given.get("n_floor", 0))
    c, c_base = given.get("c", given.get("c_init")), given.get("c_base", math.inf)
    answer: Answer = {"c": selection.growing_c(visits, c, c_base)}
    if "Q" not in given:
        return answer
    width = selection.puct_width(visits, c, c_base)
    q, prior, n = given["Q"], given["P"], given["n"]
    if isinstance(n, list):
        scores = [selection.puct_score(*edge, width) for edge in zip(q, prior, n, strict=True)]
        return answer | {"scores": scores, "argmax": _first_largest(scores)}
    bonus = selection.puct_score(0.0, prior, n, width)
    return answer | {"bonus": bonus, "score": selection.puct_score(q, prior, n, width)}


def _fpu(given: Input) -> Answer:
    mode = {"absolute": "parent", "sqrt_visited": "parent_sqrt"}.get(given["mode"], given["mode"])
    rule = selection.puct(fpu=mode, fpu_value=given["reduction"])
    value, prior = given["parent_value_selecting_player"], given["visited_prior_mass"]
    return {"fpu": rule.bound("unvisited")(value, prior, rule.parameters)}


def _ucb1_tuned(given: Input) -> Answer:
    width = math.sqrt(math.log(max(1, given["N"])))
    mean, square = given["mean"] or 0.0, given["mean_square"] or 0.0
    return {"score": selection.ucb1_tuned_score(mean, square, given["n"], width)}


def _minmax(given: Input) -> Answer:
    num_players = len(given["query"])
    nothing = [0.0] * num_players
    tree = _backed_up(num_players, 1.0, [([0], [r], nothing) for r in given["updates"]])[0]
    head = tree.head.view(np.recarray)[0]
    scale_unit = bind(scoring.scale_unit, {"PARANOID": False})
    normalised = []
    for player, q in enumerate(given["query"]):
        shift, factor, *_ = scale_unit(_context(tree=head, edges=None), 0, 0, player, 0.0)
        normalised.append((q - shift) * factor)
    return {"lo": head.low, "hi": head.high, "normalised": normalised}


def _siblings(given: Input) -> Answer:
    values = [given["node_value"]]
    values += [q for q, n in zip(given["q"], given["visits"], strict=True) if n]
    low, span = min(values), scoring.sibling_span(min(values), max(values))
    pairs = zip(given["q"], given["visits"], strict=True)
    return {"normalised": [(q - low) / span if n else 0.0 for q, n in pairs]}


def _bounds(given: Input) -> Answer:
    fields = [(name, float, (1,)) for name in ("low", "high", "factor")]
    head = np.zeros(1, fields).view(np.recarray)[0]
    head.low[0], head.high[0] = given["min_value"], given["max_value"]
    head.factor[0] = 1.0 / (given["max_value"] - given["min_value"])
    scale_unit = bind(scoring.scale_unit, {"PARANOID": False})
    shift, factor, *_ = scale_unit(_context(tree=head, edges=None), 0, 0, 0, 0.0)
    pairs = zip(given["q"], given["visits"], strict=True)
    return {"normalised": [(q - shift) * factor if n else 0.0 for q, n in pairs]}


def _rave(given: Input) -> Answer:
    beta = selection.rave_weight(given["n"], given["n_amaf"], given["bias"])
    return {"beta": beta, "value": (1 - beta) * given["q"] + beta * given["q_amaf"]}


def _one_loop(given: Input) -> Answer:
    kappa, hbar, total = given["kappa"], given["hbar"], given["N_total"]
    rule = selection.one_loop(
        kappa, value_weight=given["beta"], hbar=hbar, visit_scale=math.inf,
        zero_prior_bonus=given.get("zero_prior_bonus", False),
        mode=given.get("mode", "kernel"), coefficient=given.get("coefficient"),
    )  # fmt: skip
    width, score = rule.bound("width"), rule.bound("score")
    edges = list(zip(given["Q"], given["p"], given["N"], strict=True))
    sums = sum(rule.bound("total")(p, n, total, rule.parameters) for _, p, n in edges)
    bonus, rng = width(total, 1.0, rule.parameters), None  # the rule draws nothing
    scores = [score(q, p, n, bonus, 0.0, sums, rule.parameters, rng) for q, p, n in edges]
    curvatures = [selection.curvature(p, max(1, n), max(1, total), kappa) for _, p, n in edges]
    return {"score": scores, "argmax": _first_largest(scores), "h": curvatures}


def _validity(given: Input) -> Answer:
    pairs = zip(given["p"], given["N"], strict=True)
    rest = given["N_total"], given["kappa"], given["hbar"]
    return {"epsilon": [selection.validity(p, n, *rest) for p, n in pairs]}


def _hbar(given: Input) -> Answer:
    n, hbar, scale = given["N_total"], given["hbar_base"], given["N_scale"]
    value = selection.falling_hbar(n, hbar, scale)
    # d/dN of h0 (1 + N/s)^(-1/2)
    return {"hbar_eff": value, "d_dN": -value / (2.0 * (scale + n))}


def _noise(given: Input) -> Answer:
    noise = np.array(given["noise"])
    return {"noisy": selection.mixed_priors(given["prior"], noise, given["epsilon"])}


def _anneal(given: Input) -> Answer:
    return {
        "epsilon": selection.annealed(given["start"], given["end"], given["step"], given["total"])
    }


def _widening(given: Input) -> Answer:
    ceil = float(given.get("rounding", "floor") == "ceil")
    limit = selection.widening_limit(given["N"], given["k"], given["alpha"], ceil)
    return {"limit": limit, "expand_if_children_below": True}


def _double_widening(given: Input) -> Answer:
    if "outcome_draw_counts" in given:
        counts = given["outcome_draw_counts"]
        return {"probabilities": [scoring.drawn_share(m, sum(counts)) for m in counts]}
    drawn, outcomes = [], 0
    for visits in range(given["visits"]):
        limit = selection.widening_limit(visits, given["k_outcome"], given["alpha_outcome"])
        drawn.append(int(outcomes < limit))
        outcomes += drawn[-1]
    return {"new_outcome": drawn}


def _virtual_loss(given: Input) -> Answer:
    n, w, each, worst = given["N"], given["W"], given["n_vl"], given["v_vl"]
    pending, value = given["pending"], given["real_value"]
    in_flight = pending * each
    left = in_flight - each
    return {
        "N_eff": n + in_flight,
        "W_eff": w + in_flight * worst,
        "Q_eff": selection.in_flight_value(w, n, in_flight, worst),
        "after_one_backup": {
            "N": n + 1 + left,
            "W": selection.in_flight_value(w + value, n + 1, left, worst) * (n + 1 + left),
            "pending": pending - 1,
        },
        "after_all_same_value": {"N": n + pending, "W": w + pending * value},
    }


def _unobserved(given: Input) -> Answer:
    width = selection.puct_width(given["N"] + given["in_flight_parent"], given["c"], math.inf)
    visits = given["n"] + given["in_flight"]
    return {"score": selection.puct_score(given["Q"], given["P"], visits, width)}


# --- backup --------------------------------------------------------------------------------------


def _step_returns(reward: list[float], discount: float, after: list[float]) -> list[float]:
    return [backups.step_return(r, discount, v) for r, v in zip(reward, after, strict=True)]


def _backup_vector(given: Input) -> Answer:
    returns = [given["leaf_value"]]
    steps = zip(given["edge_rewards"], given["edge_discounts"], strict=True)
    for reward, discount in reversed(list(steps)):
        returns.append(_step_returns(reward, discount, returns[-1]))
    return {"return_at_node": returns[::-1]}


def _backup_accumulate(given: Input) -> Answer:
    simulations = [(s["path"], s["r"], s["leaf"]) for s in given["simulations"]]
    num_players = len(given["simulations"][0]["leaf"])
    _, edges = _backed_up(num_players, given["discount"], simulations)
    return {
        "edges": {
            "/".join(map(str, path)): {"N": edge.visits, "Q": edge.value_sum / edge.visits}
            for path, edge in edges.items()
        }
    }


def _backed_up(
    num_players: int, discount: float, simulations: list[tuple[list[int], Any, Any]]
) -> tuple[Tree, dict[tuple[int, ...], Any]]:
    """A tree after these simulations (path, rewards, leaf), and its edges by path."""
    paths = {tuple(path[:k]) for path, _, _ in simulations for k in range(1, len(path) + 1)}
    # The root's edges stand side by side, first of all.
    index = {path: 1 + i for i, path in enumerate(sorted(paths, key=lambda p: (len(p), p)))}
    game = uctree.Game(
        [("to_play", np.int8)], _legal, _step, num_players=num_players, num_actions=len(index) + 1,
        discount=discount, max_plies=len(index) + 1,
    )  # fmt: skip
    options = resolve(game)
    back_up = bind(backups.back_up, compose.bindings(game, options))
    tree = Tree(game, game.start(), options.layout(game), 1 + len(index), 1 + len(index))
    tree.edges[:] = 0
    tree.edges["first"][0] = 1
    arrays = workspace.arrays_of(game, options, tree.layout)
    work = workspace.Workspace(game, options, arrays, tree.state)
    path = np.zeros(work.max_depth, arrays.path)
    head, edges, mine, steps = (
        array.view(np.recarray) for array in (tree.head, tree.edges, work.work, path)
    )
    search = _context(
        tree=head[0], edges=edges, path=steps, work=mine[0], root_squares=tree.root_squares
    )
    for actions, rewards, leaf in simulations:
        for k, reward in enumerate(rewards):
            steps[k].edge, steps[k].player = index[tuple(actions[: k + 1])], 0
            steps[k].reward[:] = reward
        mine[0].depth = len(actions)
        mine[0].returns[:] = leaf
        back_up(search)
    return tree, {path: edges[i] for path, i in index.items()}


def _shared(given: Input) -> Answer:
    """Nodes that are shared, each computed from its edges, the last ones first."""
    names = list(given["own_value"])
    layout = Layout(lazy=False, shared=True)
    game = _table_game(1, len(names), given["gamma"])
    options = resolve(game, transpositions=True)
    renew = bind(backups.renew, compose.bindings(game, options))
    count = sum(len(edges) for edges in given["edges"].values())
    tree = Tree(game, game.start(), layout, 1, len(names) + count)
    tree.edges[:] = 0
    tree.edges["first"] = NONE
    arrays = workspace.arrays_of(game, options, layout)
    work = workspace.Workspace(game, options, arrays, tree.state)
    head, edges, mine = (a.view(np.recarray) for a in (tree.head, tree.edges, work.work))
    used = len(names)
    for node, name in enumerate(names):
        below = given["edges"][name].values()
        edges[node].own_sum[0] = given["own_value"][name]
        edges[node].node_visits = 1 + sum(edge["visits"] for edge in below)
        if below:
            edges[node].first, edges[node].num_edges = used, len(below)
        for edge in below:
            edges[used].node, edges[used].visits = names.index(edge["child"]), edge["visits"]
            used += 1
    for node in reversed(range(len(names))):
        renew(_context(tree=head[0], edges=edges, work=mine[0]), node, 0)
    nodes = tree.edges[: len(names)]
    values = nodes["value_sum"][:, 0].tolist()
    return {
        "Q": dict(zip(names, values, strict=True)),
        "N": dict(zip(names, nodes["node_visits"].tolist(), strict=True)),
    }


def _context(**fields: Any) -> Search:
    """What kernels are given, with only some of its fields."""
    return Search(**{name: fields.get(name) for name in Search._fields})


def _table_game(num_players: int, num_actions: int, discount: float = 1.0, **more: Any) -> Any:
    return uctree.Game(
        [("to_play", np.int8)], _legal, _step, num_players=num_players, num_actions=num_actions,
        discount=discount, max_plies=100, **more,
    )  # fmt: skip


def _shared_bonus(given: Input) -> Answer:
    width = selection.puct_width(given["N_parent"], given["c"], math.inf)
    return {"correct_bonus": selection.puct_score(0.0, given["P"], given["edge_visits"], width)}


def _proved(tree_of: Input, low: float, high: float, zero_sum: bool) -> Tree:
    """A tree of records for nested children, with all that is proven in it."""
    places = [tree_of]
    for place in places:
        places.extend(place.get("children", ()))
    leaf = next(place["leaf"] for place in places if "leaf" in place)
    game = _table_game(len(leaf), len(places), zero_sum=zero_sum, payoff_range=(low, high))
    options = resolve(game, solver=True)
    bound = compose.bindings(game, options) | {"IS_LAZY": False}
    prove, mark_end = bind(proofs.prove, bound), bind(proofs.mark_end, bound)
    tree = Tree(game, game.start(), Layout(lazy=False, proofs="bounds" if zero_sum else "vectors"),
                1, len(places))  # fmt: skip
    tree.edges[:] = 0
    tree.edges["first"] = NONE
    if zero_sum:
        tree.edges["low"], tree.edges["high"] = -np.inf, np.inf
    edges, used = tree.edges.view(np.recarray), 1
    for node, place in enumerate(places):
        below = place.get("children", ())
        if below:
            edges[node].first, edges[node].num_edges = used, len(below)
            used += len(below)
    for node, place in reversed(list(enumerate(places))):
        if "leaf" in place:
            mark_end(edges, node, np.array(place["leaf"], float))
        elif "children" in place:
            head = tree.head.view(np.recarray)[0]
            prove(_context(tree=head, edges=edges), node, place["player"])
    return tree


def _solver2(given: Input) -> Answer:
    root = _proved(given["tree"], given["u_min"], given["u_max"], True).edges[0]
    low, high = max(given["u_min"], root["low"]), min(given["u_max"], root["high"])
    solved = bool(low == high)
    return {
        "bounds_player0": [low, high], "solved": solved, "value_player0": low if solved else None
    }  # fmt: skip


def _solvern(given: Input) -> Answer:
    tree = _proved(given["tree"], -10.0, given["u_max"], False)
    status = tree.proof(0)
    assert status in ("", "mover", "exact")
    assert (status == "mover") == (tree.edges["proof"][0] == MOVER)
    return {"status": status or None, "value": tree.edges["proven"][0] if status else None}


def _paranoid(node: Input, root: int) -> tuple[float, int | None]:
    """What the root's player gets where all others want the least for it."""
    if "leaf" in node:
        return node["leaf"][root], None
    values = [_paranoid(child, root)[0] for child in node["children"]]
    value_for = bind(records.value_for, {"PARANOID": True, "ZERO_SUM": False})
    head = np.zeros(1, [("root_player", int)]).view(np.recarray)
    head.root_player = root
    worth = [value_for(head[0], np.full(root + 1, float(v)), node["player"]) for v in values]
    action = backups.best_reply(np.array(worth)[:, None], 0)
    return values[action], action


def _rerooted(given: Input) -> Answer:
    paths = [tuple(path.split("/")) if path else () for path in given["nodes"]]
    paths.sort(key=lambda path: (len(path), path))
    tree = Tree(_table_game(1, len(paths)), np.zeros(1, [("to_play", np.int8)])[0],
                Layout(lazy=False), 1, len(paths))  # fmt: skip
    tree.edges[:] = 0
    for record, path in zip(tree.edges, paths, strict=True):
        below = [i for i, p in enumerate(paths) if p[:-1] == path and p]
        record["first"], record["num_edges"] = (below[0], len(below)) if below else (NONE, 0)
        record["visits"] = given["nodes"]["/".join(path)]["N"]
        record["action"] = int(path[-1]) if path else 0
    tree.head["used"] = len(paths)
    root = paths.index(tuple(given["new_root"].split("/")))
    edges = tree.copy(root, len(paths)).edges
    nodes, todo = {}, [("", 0)]
    for name, node in todo:
        nodes[name] = {"N": int(edges["visits"][node])}
        for edge in range(edges["num_edges"][node]):
            at = int(edges["first"][node]) + edge
            action = str(edges["action"][at])
            todo.append((f"{name}/{action}".lstrip("/"), at))
    return {"nodes": nodes}


def _new_frame(given: Input) -> Answer:
    value = np.roll(given["value_relative_to_old_root"], -given["plies_advanced"])
    return {"value_relative_to_new_root": value}


def _reward_mover_only(given: Input) -> Answer:
    reward = [0.0] * len(given["child_value"])
    reward[given["mover"]] = given["scalar_reward"]
    return {"q": _step_returns(reward, given["discount"], given["child_value"])}


def _reward_terminal(given: Input) -> Answer:
    reward, nothing = given["placement"], [0.0] * len(given["placement"])
    q = _step_returns(reward, given["discount"], nothing)
    return {"reward_convention": {"r": reward, "v_terminal": nothing, "q": q}}


def _solved(node: Input) -> tuple[list[float], int | None]:
    """The value of a tree by max^n and expectation, and the action at its root."""
    if "leaf" in node:
        return node["leaf"], None
    values = [_solved(child)[0] for child in node["children"]]
    if "chance" in node:
        columns = zip(*values, strict=True)
        return [_expected(node["chance"], column) for column in columns], None
    action = backups.best_reply(np.array(values, float), node["player"])
    return values[action], action


def _maxn(given: Input) -> Answer:
    value, action = _solved(given["tree"])
    paranoid, against = _paranoid(given["tree"], given["tree"]["player"])
    return {
        "maxn_value": value, "maxn_action": action,
        "paranoid_value_root": paranoid, "paranoid_action": against,
    }  # fmt: skip


def _expectimax(given: Input) -> Answer:
    value, action = _solved(given["tree"])
    return {"value": value, "action": action}


def _sample_average(given: Input) -> Answer:
    visits, means = given["outcome_visits"], given["outcome_means"]
    means = [0.0 if mean is None else mean for mean in means]
    shares = [n / sum(visits) for n in visits] if sum(visits) else None
    return {
        "visit_weighted": None if shares is None else _expected(shares, means),
        "probability_weighted": _expected(given["outcome_probs"], means),
    }


# --- choice --------------------------------------------------------------------------------------


def _pv(given: Input) -> Answer:
    def children(path: tuple[int, ...]) -> Any:
        below = given["children"].get("/".join(map(str, path)), [])
        if len(path) == given["target_depth"]:
            below = []
        below = sorted(below, key=lambda child: child["index"])
        visits = np.array([child["visits"] for child in below])
        q = np.array([child["value"][child["mover"]] for child in below])
        return visits, q, lambda i: (*path, below[i]["index"])

    path = variation.follow((), children)[-1]
    return {"path": list(path), "complete": len(path) == given["target_depth"]}


def _temperature(given: Input) -> Answer:
    return {"policy": choice.temperature_policy(np.array(given["visits"]), given["tau"])}


def _temperature_schedule(given: Input) -> Answer:
    names = {"tau0": "start", "decay": "decay", "floor": "floor"}
    options = {names[key]: given[key] for key in names if key in given}
    return {"tau": choice.falling_temperature(given["move"], **options)}


def _lcb_value(given: Input) -> Answer:
    radius = choice.confidence_radius(
        given["N"], given["mean"], given["mean_square"], given["utility_radius"], given["z"]
    )
    return {"radius": radius, "lcb": (given["mean"] if given["N"] else 0.0) - radius}


def _rotate(given: Input) -> Answer:
    player, target = given["relative_to_player"], given["target_player"]
    absolute = evaluators.to_absolute(np.array(given["vector"]), player)
    return {
        "absolute": absolute,
        "relative_to_target": np.roll(absolute, -target),
        "roll_shift": (player - target) % len(absolute),
    }


def _win(given: Input) -> Answer:
    from uctree.games.n_in_a_row import longest_run

    board = np.array([[int(cell) for cell in row] for row in given["board"]])
    run = int(longest_run(board, *given["last_move"]))
    return {"longest_run": run, "win": run >= given["win_length"]}


# --- a whole search ------------------------------------------------------------------------------
# `data` holds where an action leads and what it pays, the player to move, what each place is worth
# and which actions look good there.


def _legal(state, actions, data):
    for action in range(data[0].shape[1]):
        actions[action] = action
    return data[0].shape[1]


def _step(state, action, reward, data):
    for player in range(reward.shape[0]):
        reward[player] += data[1][state.place, action, player]
    state.place = data[0][state.place, action]
    state.to_play = data[2][state.place]


def _evaluate(state, values, priors, data):
    for player in range(values.shape[0]):
        values[player] = data[3][state.place, player]
    for action in range(priors.shape[0]):
        priors[action] = data[4][state.place, action]


def table_of_players(given: Input) -> tuple[uctree.Game, Any, selection.Rule]:
    """The game of a table with vectors, its root, and the rule of its search."""
    mover = np.where(given["terminal"], uctree.OVER, given["mover"]).astype(np.int8)
    data = (
        np.array(given["next_state"], np.int32), np.array(given["reward"], float), mover,
        np.array(given["value"], float), np.array(given["prior"], float),
    )  # fmt: skip
    game = uctree.Game(
        [("place", np.int32), ("to_play", np.int8)], _legal, _step, data=data, name="table",
        num_players=data[3].shape[1], num_actions=data[0].shape[1], discount=given["discount"],
    )  # fmt: skip
    root = game.start()
    root["place"], root["to_play"] = given["root"], mover[given["root"]]
    rule = selection.puct(
        given["c_init"], given["c_base"], fpu_value=given["fpu_reduction"], normalise="none"
    )
    return game, root, rule


def _search(given: Input) -> Answer:
    game, root, rule = table_of_players(given)
    result = uctree.search(
        game, root, num_simulations=given["simulations"], selection=rule, evaluator=_evaluate
    )
    return {
        "root_visits": result.edges["visits"],
        "root_q": [row["q"] if row["visits"] else None for row in result.edges],
        "root_value": result.value,
        "root_N": result.tree.root.visits,
        "nodes": sum(1 for _ in result.tree.root.walk()),
    }


FAMILIES: dict[str, Callable[[Input], Answer]] = {
    "ucb1.": _ucb1,
    "puct.": _puct,
    "fpu.": _fpu,
    "minmax.": _minmax,
    "backup.vector.": _backup_vector,
    "backup.accumulate": _backup_accumulate,
    "backup.running_stats": lambda given: backups.spread(given["values"]),
    "reward.mover_only": _reward_mover_only,
    "reward.terminal_convention": _reward_terminal,
    "maxn.": _maxn,
    "chance.expectimax": _expectimax,
    "chance.sample_average": _sample_average,
    "pv.": _pv,
    "temperature.schedule.": _temperature_schedule,
    "temperature.": _temperature,
    "lcb.value.": _lcb_value,
    "rotate.": _rotate,
    "win.": _win,
    "search3p.": _search,
    "ucb1tuned.": _ucb1_tuned,
    "gumbel.qtransform_parent_siblings.": _siblings,
    "gumbel.qtransform_min_max": _bounds,
    "rave.schedule.": lambda given: {"beta": selection.rave_schedule(given["n"], given["k"])},
    "rave.": _rave,
    "quantum.score.": _one_loop,
    "quantum.validity.": _validity,
    "quantum.hbar.": _hbar,
    "dirichlet.mix.": _noise,
    "noise_anneal.": _anneal,
    "widening.double.": _double_widening,
    "widening.": _widening,
    "virtual_loss.": _virtual_loss,
    "wu_uct.": _unobserved,
    "dag.idempotent": _shared,
    "dag.shared_visit_bias": _shared_bonus,
    "solver2.": _solver2,
    "solvern.": _solvern,
    "reroot.basic": _rerooted,
    "reroot.frame.": _new_frame,
    **golden_gumbel.FAMILIES,
    **golden_choice.FAMILIES,
    **golden_principle.FAMILIES,
    **golden_continuous.FAMILIES,
    **golden_learning.FAMILIES,
    **golden_views.FAMILIES,
}

"""The answers of ramify's own functions to the test vectors, by family of vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import ramify
from ramify import backup, choice, evaluators, selection, tree
from ramify._compile import bind

Input = dict[str, Any]
Answer = dict[str, Any]


def compute(id: str, input: Input) -> Answer:
    """What ramify answers to the vector `id`: plain numbers, lists, dicts, None where undefined."""
    for family, answer in FAMILIES.items():
        if id.startswith(family):
            return _plain(answer(_numbers(input)))
    raise LookupError(f"nothing in ramify answers {id} yet")


def _expected(probabilities: Any, values: Any) -> float:
    total = 0.0
    for probability, value in zip(probabilities, values, strict=True):
        total = backup.add_outcome(total, probability, value)
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
    return backup.best_reply(np.array(scores)[:, None], 0)


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
    return {"fpu": rule.unvisited(value, prior, rule.parameters)}


def _minmax(given: Input) -> Answer:
    num_players = len(given["query"])
    nothing = [0.0] * num_players
    head, _ = _backed_up(num_players, 1.0, [([0], [r], nothing) for r in given["updates"]])
    normalised = []
    for player, q in enumerate(given["query"]):
        shift, factor, *_ = selection.scale_unit(head, player)
        normalised.append((q - shift) * factor)
    return {"lo": head.low, "hi": head.high, "normalised": normalised}


# --- backup --------------------------------------------------------------------------------------


def _step_returns(reward: list[float], discount: float, after: list[float]) -> list[float]:
    return [backup.step_return(r, discount, v) for r, v in zip(reward, after, strict=True)]


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
) -> tuple[Any, dict[tuple[int, ...], Any]]:
    """The head of a tree after these simulations (path, rewards, leaf), and its edges by path."""
    paths = {tuple(path[:k]) for path, _, _ in simulations for k in range(1, len(path) + 1)}
    # The root's edges stand side by side, first of all.
    index = {path: 1 + i for i, path in enumerate(sorted(paths, key=lambda p: (len(p), p)))}
    game = ramify.Game(
        [("to_play", np.int8)], _legal, _step, num_players=num_players, num_actions=len(index) + 1
    )
    bound = evaluators.bindings(game, evaluators.playout())
    bound |= {"DISCOUNT": discount, "SEES_RANGE": True, "HAS_PRIORS": False}
    back_up = bind(backup.back_up, bound)
    edges = np.zeros(1 + len(index), tree.edge_dtype(game, has_priors=False)).view(np.recarray)
    edges[0].first = 1
    head = np.zeros(1, tree.head_dtype(num_players)).view(np.recarray)
    head.low, head.high = math.inf, -math.inf
    squares = np.zeros((len(edges), num_players))
    step = np.dtype([("edge", int), ("player", int), ("reward", float, (num_players,))])
    for path, rewards, leaf in simulations:
        steps = [(index[tuple(path[: k + 1])], 0, reward) for k, reward in enumerate(rewards)]
        records = np.array(steps, step).view(np.recarray)
        back_up(head[0], edges, records, len(path), np.array(leaf, float), squares)
    return head[0], {path: edges[i] for path, i in index.items()}


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
    action = backup.best_reply(np.array(values, float), node["player"])
    return values[action], action


def _maxn(given: Input) -> Answer:
    value, action = _solved(given["tree"])
    return {"maxn_value": value, "maxn_action": action}


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

    path = choice.follow((), children)[-1]
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
        "relative_to_target": evaluators.to_relative(absolute, target),
        "roll_shift": (player - target) % len(absolute),
    }


def _win(given: Input) -> Answer:
    from ramify.games.n_in_a_row import longest_run

    board = np.array([[int(cell) for cell in row] for row in given["board"]])
    run = int(longest_run(board, *given["last_move"]))
    return {"longest_run": run, "win": run >= given["win_length"]}


# --- a whole search ------------------------------------------------------------------------------
# `data` holds where an action leads and what it pays, who is to play, and what each place is worth
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


def _search(given: Input) -> Answer:
    mover = np.where(given["terminal"], ramify.OVER, given["mover"]).astype(np.int8)
    data = (
        np.array(given["next_state"], np.int32), np.array(given["reward"], float), mover,
        np.array(given["value"], float), np.array(given["prior"], float),
    )  # fmt: skip
    game = ramify.Game(
        [("place", np.int32), ("to_play", np.int8)], _legal, _step, data=data, name="table",
        num_players=data[3].shape[1], num_actions=data[0].shape[1], discount=given["discount"],
    )  # fmt: skip
    root = game.start()
    root["place"], root["to_play"] = given["root"], mover[given["root"]]
    rule = selection.puct(
        given["c_init"], given["c_base"], fpu_value=given["fpu_reduction"], normalise=False
    )
    result = ramify.search(
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
    "backup.running_stats": lambda given: backup.spread(given["values"]),
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
}

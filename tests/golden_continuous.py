"""The answers of uctree's continuous games, solvers and regrets to the test vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

import uctree
from uctree import continuous, regret, selection
from uctree.games import loss_game as make_loss_game
from uctree.games.loss_game import (
    CONCAVE_BELOW,
    equilibrium,
    own_gradient,
    payoffs,
    reply_2,
    reply_3,
)  # fmt: skip

Input = dict[str, Any]
Answer = dict[str, Any]

GAME, GAME_3D = make_loss_game(), make_loss_game(3)


def _paid(x: Any) -> np.ndarray:
    return GAME.replay(x).returns


def _payoff(given: Input) -> Answer:
    return {"payoff": _paid(given["x"])}


def _gradient(given: Input) -> Answer:
    """Own gradients as the game gives them; all others by a step along the imaginary axis."""
    own, tiny = np.zeros(3), 1e-30
    own_gradient(*given["x"], own)
    jacobian = np.zeros((3, 3))
    for i in range(3):
        x = np.array(given["x"], complex)
        x[i] += 1j * tiny
        reward = np.zeros(3, complex)
        payoffs(*x, reward)
        jacobian[:, i] = reward.imag / tiny
    return {"own_gradient": own, "jacobian": jacobian}


def _payoff_3d(given: Input) -> Answer:
    path = [given[name] for name in "xyz"]
    sums, own = np.sum(path, axis=1), np.zeros(3)
    own_gradient(*sums, own)
    payoff = GAME_3D.replay(path).returns
    return {"sums": sums, "payoff": payoff, "own_gradient_each_component": own}


def _best_response(given: Input) -> Answer:
    after, _ = GAME.step(GAME.start(), [given["x1"]])
    found = continuous.solve_backward(GAME, after)
    x2, x3 = (float(action[0]) for action in found.actions)
    assert abs(x2 - reply_2(given["x1"])) < 1e-9
    assert abs(x3 - reply_3(x2)) < 1e-9
    return {"x2": x2, "x3": x3, "payoff": found.returns}


def _equilibrium(given: Input) -> Answer:
    """In closed form; that backward induction comes to the same is a test of its own."""
    sums = np.array(equilibrium())
    dim = given.get("d", 1)
    each = [[x / dim] * dim for x in sums]
    answer = {"sums": sums, "payoff": _paid(sums), "representative": each}
    return answer | {"x": sums, "actions": sums}


def _saturation(given: Input) -> Answer:
    bound = given["bound"]
    where = (323 * bound - 1585) / (220 + 1440 * bound)  # there `reply_2` reaches the bound
    return {"x1_where_player2_saturates": where, "concave_convex_switch": CONCAVE_BELOW}


def _regret(given: Input) -> Answer:
    found = regret.measure(GAME, given["x"])
    stage, open_loop = found.stage, found.open_loop
    return {"stage_regret": stage, "open_loop_regret": open_loop, "payoff": found.payoff}


def _sampled(given: Input) -> Answer:
    lists = given["candidates"]
    actions, payoff = regret.sampled_equilibrium(GAME, GAME.start(), lists)
    gap = regret.sampled_gap(GAME, given["baseline"], candidates=lists)
    return {"actions": actions, "payoff": payoff, "sampled_gap": gap}


def _gradient_step(given: Input) -> Answer:
    own, box = np.zeros(3), uctree.Box(given["lo"], given["hi"])
    own_gradient(*given["x"], own)
    steps = [
        continuous.gradient_step(
            np.array([x]), np.array([g]), given["learning_rate"], given["clip_norm"], box.project
        )
        for x, g in zip(given["x"], own, strict=True)
    ]
    return {"x_new": np.concatenate(steps)}


OPEN_LOOP = np.array([
    (19 / 14, -5, 2),
    (1.0981148128, -4.1045944146, 1.5970674866),
    (-0.4155751302, 1.1279140305, -0.7575613137),
])  # fmt: skip


def _gradient_flow(given: Input) -> Answer:
    found = continuous.own_gradient_ascent(
        GAME, given["start"], rate=given["learning_rate"], clip=given["clip_norm"],
        num_steps=given["steps"],
    )  # fmt: skip
    x = np.concatenate(found.actions)
    nearest = int(np.argmin(np.abs(OPEN_LOOP - x).max(axis=1)))
    return {"x": x, "open_loop_nash_index": nearest}


# --- complete searches ---------------------------------------------------------------------------


def stream_game(in_unit_range: bool) -> uctree.Game:
    """The loss game whose new actions and playouts come from one additive recurrence."""

    def random_action(state, action, rng, data):
        data[0][0] += 1.0
        share = data[0][0] * 0.6180339887498949
        action[0] = -5.0 + 10.0 * (share - np.floor(share))

    return uctree.Game(
        GAME.dtype, None, GAME.rules.step, num_players=3, action_space=GAME.action_space,
        name="loss_game", max_plies=3, random_action=random_action, data=(np.zeros(1),),
        payoff_range=(0.0, 1.0) if in_unit_range else None,
    )  # fmt: skip


def _search(given: Input) -> Answer:
    game = stream_game(in_unit_range=not given["normalise"])
    result = uctree.search(
        game, game.start(), num_simulations=given["simulations"],
        selection=selection.ucb1(given["exploration"]),
        widening=selection.widening(given["widening_factor"], 0.5),
        check=False,  # the stream of actions is counted in `data`, which no game should change
    )  # fmt: skip
    line = result.principal_variation()
    tree, node, indices = result.tree, result.tree.root, []
    for edge in line.edges:
        indices.append(edge - node.edges.start)
        node = node.child(edge)
    nodes = 1 + sum(len(each.edges) for each in tree.root.walk())
    return {
        "root_child_visits": result.edges["visits"],
        "root_child_actions": result.edges["action"][:, 0],
        "pv": indices,
        "pv_actions": [float(action[0]) for action in line.actions],
        "pv_payoff": game.replay(line.actions).returns if line.complete else None,
        "root_value": result.value,
        "nodes": nodes,
    }


FAMILIES = {
    "lossgame1d.payoff.": _payoff,
    "lossgame1d.gradient_step.": _gradient_step,
    "lossgame1d.gradient_flow.": _gradient_flow,
    "lossgame1d.gradient.": _gradient,
    "lossgame1d.best_response.": _best_response,
    "lossgame1d.regret.": _regret,
    "lossgame1d.sampled_maxn.": _sampled,
    "lossgame1d.spe": _equilibrium,
    "lossgame1d.pwuct.": _search,
    "lossgame3d.payoff.": _payoff_3d,
    "lossgame3d.spe": _equilibrium,
    "lossgame.saturation.": _saturation,
}

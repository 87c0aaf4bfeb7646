"""Complete searches computed independently of uctree, through a model that answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests import golden_gumbel, golden_vectors
from tests.exact_model import root_in_model
from tests.test_golden import VECTORS, assert_equal

pytestmark = pytest.mark.usefixtures("both_ways")

NAMES = ("gumbel.search.", "muzero.search.", "search3p.")
SEARCHES = [vector for vector in VECTORS if vector["id"].startswith(NAMES)]


@pytest.mark.parametrize("vector", SEARCHES, ids=lambda vector: vector["id"])
def test_a_model_gives_the_search_computed_elsewhere(vector):
    given = golden_vectors._numbers(vector["input"])
    found = search_of(vector["id"], given)
    for key, value in vector["expected"].items():
        if key in found:
            assert_equal(golden_vectors._plain(found[key]), value, max(vector["tol"], 1e-9), key)
    assert {"visit_counts", "root_visits"} & found.keys()


def search_of(name: str, given: dict[str, Any]) -> dict[str, Any]:
    if name.startswith("search3p."):
        return _three_players(given)
    game = golden_gumbel.table_game(
        given["model"], given.get("invalid_actions"), given.get("max_depth")
    )
    state = game.start()
    state["place"] = given["root_state"]
    if name.startswith("gumbel."):
        options = golden_gumbel._options(given)
        rules = golden_gumbel.gumbel_rules(given["max_considered"], given["root_gumbel"], **options)
    else:
        rules = golden_gumbel.muzero_rules(given["c_init"], given["c_base"])
    root, _ = root_in_model(game, state, golden_gumbel._evaluate, given["num_simulations"], **rules)
    visits = np.zeros(game.num_actions, np.int64)
    values: list[float | None] = [None] * game.num_actions
    for action, count, q in zip(root.actions, root.visits, root.q, strict=True):
        visits[action] = count
        if count:
            values[action] = float(q[root.to_play])
    found = {"visit_counts": visits, "q_values": values,
             "root_value": float(root.value[root.to_play])}  # fmt: skip
    if name.startswith("gumbel."):
        found["action"] = int(root.actions[root.gumbel_choice()])
        policy = np.zeros(game.num_actions)
        policy[root.actions] = root.improved()
        found["improved_policy"] = policy
    return found


def _three_players(given: dict[str, Any]) -> dict[str, Any]:
    game, state, rule = golden_vectors.table_of_players(given)

    def judge(state, values, logits, data):
        golden_vectors._evaluate(state, values, logits, data)
        logits[:] = np.log(logits)

    root, _ = root_in_model(game, state, judge, given["simulations"], selection=rule)
    return {
        "root_visits": root.visits,
        "root_q": [q if count else None for q, count in zip(root.q, root.visits, strict=True)],
        "root_value": root.value,
    }

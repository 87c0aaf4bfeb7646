"""Values computed independently of uctree, through models: searches, targets and losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests import golden_gumbel, golden_vectors
from tests.exact_model import root_in_model
from tests.test_golden import VECTORS, assert_equal
from uctree import games
from uctree.evaluators import to_absolute
from uctree.learn.replay import Replay
from uctree.learn.sequences import Columns, make_sequence, sequence_schema
from uctree.learn.targets import to_frames

NAMES = ("gumbel.search.", "muzero.search.", "search3p.")
SEARCHES = [vector for vector in VECTORS if vector["id"].startswith(NAMES)]


@pytest.mark.usefixtures("both_ways")
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


# --- targets and losses --------------------------------------------------------------------------


def named(*names: str) -> Any:
    found = [vector for vector in VECTORS if vector["id"].startswith(names)]
    return pytest.mark.parametrize("vector", found, ids=lambda vector: vector["id"])


@named("nstep.")
def test_a_stored_sequence_gives_the_target_computed_elsewhere(vector, tmp_path):
    given = golden_vectors._numbers(vector["input"])
    game, actions = games.n_in_a_row(rows=3, cols=3, length=3, num_players=3), [0, 1, 2, 3, 4, 5, 7]
    movers, final = given["movers"], given["final_value_absolute"]
    states = [game.play(actions[:ply]) for ply in range(len(actions) + (final is not None))]
    assert [int(state["to_play"]) for state in states[:7]] == movers
    values = [
        to_absolute(np.array(value), mover)
        for value, mover in zip(given["root_values_relative"], movers, strict=True)
    ]
    positions = make_sequence(
        game, np.array(states, game.dtype), actions, given["reward_vectors_absolute"],
        [np.ones(9) / 9] * len(states), np.array(values if final is None else [*values, final]),
        is_over=not given["truncated"],
    )  # fmt: skip
    with Replay(tmp_path, game, schema=sequence_schema(game)) as replay:
        replay.append(0, positions)
        columns = Columns(replay, given["discount"])
        columns.extend(replay.end, given["td_steps"])
        at = given["pos"]
        found = columns.value_targets(np.array([at]), given["td_steps"])
    # A replay stores rewards and values in 32 bits, so seven digits of them are exact.
    assert_equal(
        to_frames(found, [movers[at]])[0].tolist(), vector["expected"]["target_relative"], 5e-7, ""
    )


@named("unroll.")
def test_unrolled_losses_have_the_weights_computed_elsewhere(vector):
    """The model adds nothing on the way, so the loss of a step shows its weight and its share."""
    torch, unroll = torch_and_unroll()
    num_steps = vector["input"]["K"]
    expected = vector["expected"]
    for k in range(num_steps + 1):
        model = Passing(torch, [0.0])
        found = unroll.unrolled_losses(model, targets_of(torch, unroll, num_steps, [1.0], only=k))
        assert_equal(found.value.item(), expected["loss_weight"][k], 1e-12, "loss_weight")
        found.value.sum().backward()
        # The derivative of (v - 1)^2 at v = 0 is -2.
        share = -0.5 * model.start.grad.item() / expected["loss_weight"][k]
        assert_equal(share, expected["state_gradient_factor"][k], 1e-12, "state_gradient_factor")


@named("value_mse")
def test_the_loss_of_a_models_value_is_that_computed_elsewhere(vector):
    torch, unroll = torch_and_unroll()
    model = Passing(torch, vector["input"]["predicted"])
    target = vector["input"]["target"]
    found = unroll.unrolled_losses(model, targets_of(torch, unroll, 0, target)).value.item()
    assert_equal(found, vector["expected"]["mean"], 1e-12, "mean")
    assert_equal(found * len(target), vector["expected"]["sum"], 1e-12, "sum")


def torch_and_unroll() -> Any:
    torch = pytest.importorskip("torch", reason="the learn extra is not installed")
    from uctree.learn import unroll

    return torch, unroll


class Passing:
    """A model whose hidden state stays what it was at the start, and is the value."""

    def __init__(self, torch: Any, value: list[float]) -> None:
        self.start = torch.tensor([value], dtype=torch.float64, requires_grad=True)
        self.nothing = torch.zeros(1, 1, dtype=torch.float64)

    def initial(self, observations: Any) -> Any:
        return self.start, self.nothing, self.start

    def recurrent(self, hidden: Any, actions: Any) -> Any:
        return hidden, 0 * hidden, self.nothing, hidden


def targets_of(
    torch: Any, unroll: Any, num_steps: int, value: list[float], only: int | None = None
) -> Any:
    """Targets of one sequence that teach its value alone, at all steps or one of them."""
    weights = torch.zeros(1, num_steps + 1, dtype=torch.float64)
    weights[0, slice(None) if only is None else only] = 1.0
    nothing = torch.zeros(1, num_steps + 1, 1, dtype=torch.float64)
    none = torch.zeros(1, num_steps + 1, dtype=torch.int64)
    values = torch.tensor(value, dtype=torch.float64).expand(1, num_steps + 1, len(value))
    return unroll.Targets(
        observations=nothing, actions=none[:, 1:], policies=nothing, policy_weights=0 * weights,
        values=values, value_weights=weights, rewards=0 * values[:, 1:],
        reward_weights=0 * weights[:, 1:], turns=none[:, 1:], turn_weights=0 * weights[:, 1:],
        exists=none.bool(), weights=weights[:, 0],
    )  # fmt: skip

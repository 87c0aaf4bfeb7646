"""Which searches share a kernel: only those for which the same things are compiled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import uctree
from uctree import backup, continuous, evaluators, games, refine, selection
from uctree.engine import compose as composing
from uctree.engine.compose import compose
from uctree.engine.fingerprint import fingerprint
from uctree.engine.options import OPTION_NAMES, resolve

NOT_COMPILED = ("stop", "choice", "max_memory")


@dataclass(frozen=True)
class Fingerprinted:
    """In place of a kernel: the name that its machine code would have."""

    name: str
    is_stale: bool = False


def fingerprinted(function, bound, arguments, *, debug, **_):
    import numba

    types_given = [str(numba.typeof(argument)) for argument in arguments]
    return Fingerprinted(fingerprint(function, bound, types_given, debug).name)


@pytest.fixture
def fingerprints(monkeypatch):
    """Let `compose` compute the names of kernels, and compile nothing."""
    monkeypatch.setattr(composing, "compile_kernel", fingerprinted)
    monkeypatch.setattr(composing, "MOST_KERNELS", 1000)  # so that none is forgotten


def leaning(state, values, logits):
    logits[0] = 1.0


def sure(state, values, priors):
    priors[0] = 1.0


def flat(state, values):
    values[0] = 0.0


def judge(states):
    return np.zeros((len(states), 2)), np.zeros((len(states), 2))


def root_choice(count, q, prior, visits, parameters):
    return 0


def slope(line, slopes):
    slopes[0, 0] = 1.0


def middle(state, action):
    action[0] = 0.5


AT_ROOT = selection.Rule("root", choose=root_choice, parameters=(1.0,) * 5, at_root=True)
COMMON: list[dict[str, Any]] = [
    {},
    {"selection": selection.ucb1(0.1)},
    {"selection": selection.ucb1_tuned()},
    {"root_selection": selection.ucb1_tuned()},
    {"root_selection": selection.ucb1(0.1)},
    {"backup": backup.mean()},
    {"backup": backup.maximum()},
    {"backup": backup.soft_maximum(0.5)},
    {"evaluator": flat},
    {"evaluator": evaluators.playout(max_plies=3)},
    {"widening": selection.widening()},
    {"opponents": "paranoid"},
    {"ties": "random"},
    {"in_flight": "unobserved"},
    {"check": False},
    {"debug": True},
]
OF_NUMBERS: list[dict[str, Any]] = [
    {"selection": selection.rave()},
    {"selection": selection.rave(equivalence=10.0)},
    {"evaluator": leaning},
    {"evaluator": sure},
    {"evaluator": leaning, "root_noise": selection.dirichlet()},
    {"evaluator": leaning, "root_selection": selection.puct(fpu="infinite")},
    {"evaluator": leaning, "root_selection": selection.gumbel()},
    {"evaluator": leaning, "selection": selection.puct(), "root_selection": AT_ROOT},
    {
        "evaluator": leaning,
        "selection": selection.puct(),
        "root_selection": replace(AT_ROOT, at_root=False),
    },
    {"evaluator": leaning, "widening": selection.widening(most=2)},
    {"evaluator": evaluators.python(judge, priors=True)},
    {"evaluator": evaluators.python(judge, priors=True), "leaves": 3},
    {"open_loop": True},
    {"transpositions": True},
    {"solver": True},
    {"threads": 2, "parallel": "tree"},
    {"threads": 2, "parallel": "root"},
]
OF_CHANCE = [
    {"chance": "proportional"},
    {"chance": selection.outcome_widening()},
]
OF_VECTORS = [
    {"proposal": middle},
    {"proposal": continuous.gaussian()},
    {"proposal": continuous.quadratic()},
    *(
        {"refine": kind}
        for kind in (
            refine.gradient(),
            refine.gradient(frequency=3.0),
            refine.gradient(gradient=slope),
            refine.gradient(whole=False),
            refine.local_minimax(),
            refine.local_minimax(frequency=5.0),
            refine.local_minimax(levels=1),
            refine.local_minimax(levels=2),
            refine.local_minimax(axes=True),
            refine.local_minimax(peaks=True),
            refine.best_replies(),
        )
    ),
]
VARIANTS = {
    "tic-tac-toe": (games.tic_tac_toe, COMMON + OF_NUMBERS),
    "pig": (lambda: games.pig(12), COMMON + OF_NUMBERS + OF_CHANCE),
    "loss game": (games.loss_game, COMMON + OF_VECTORS),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_searches_that_share_a_kernel_have_the_same_machine_code(name, fingerprints):
    make, variants = VARIANTS[name]
    game, alone = make(), make()
    for given in variants:
        for many in (False, True):
            shared = compose(game, resolve(game, **given), many=many)
            alone.tables.clear()
            own = compose(alone, resolve(alone, **given), many=many)
            assert shared.kernel == own.kernel, given
            assert shared.arrays.work == own.arrays.work, given
            assert shared.arrays.path == own.arrays.path, given


def test_every_option_is_varied_in_that_test():
    varied = {name for _, variants in VARIANTS.values() for given in variants for name in given}
    assert varied == set(OPTION_NAMES) - set(NOT_COMPILED)


def test_other_numbers_need_no_other_kernel(fingerprints):
    game = games.tic_tac_toe()
    options = [resolve(game, selection=selection.ucb1(c)) for c in (0.5, 0.7)]
    assert compose(game, options[0]).kernel is compose(game, options[1]).kernel
    stopped = resolve(game, stop=uctree.stopping.decided(), max_memory="1GB")
    assert compose(game, stopped).kernel is compose(game, options[0]).kernel

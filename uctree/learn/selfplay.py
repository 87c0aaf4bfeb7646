"""Episodes that a network plays against itself, many at the same time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from uctree import selection
from uctree.choice import falling_temperature, temperature_policy
from uctree.errors import BrokenGame
from uctree.evaluators import Evaluator, playout
from uctree.forest import Forest, Root
from uctree.game import CHANCE, ENDLESS, Game
from uctree.learn.extras import load_module
from uctree.learn.options import Options
from uctree.learn.replay import make_positions
from uctree.learn.targets import (
    divergence,
    n_step_returns,
    surprise_weights,
    to_frames,
)
from uctree.selection import annealed


@dataclass(frozen=True)
class Episode:
    """One episode as it goes into the replay, and what it took."""

    number: int
    positions: np.ndarray  # of `replay.position_dtype`
    returns: np.ndarray  # [players], from the start on
    num_plies: int
    simulations: int


@dataclass(frozen=True)
class Setup:
    """What the episodes of one iteration are played with."""

    game: Game
    options: Options
    network: Any  # the bytes of an ONNX file, a module for torch; None: playouts value leaves
    iteration: int

    def play(self, numbers: Sequence[int]) -> Iterator[Episode]:
        """Episodes that are played together, as they end; the same numbers give the same ones."""
        options = self.options
        if self.network is None:
            evaluator, options = playout(), by_playouts(options)
        else:
            evaluator = network_evaluator(self.network, self.game, options)
        return play_episodes(self.game, evaluator, options, numbers, iteration=self.iteration)


def by_playouts(options: Options) -> Options:
    """How episodes are played before the network is any good."""
    return msgspec.structs.replace(
        options, num_simulations=options.playout_simulations,
        fast_simulations=options.playout_simulations, full_search_share=1.0,
        root_selection="puct", policy_target="visits",
    )  # fmt: skip


def network_evaluator(network: Any, game: Game, options: Options) -> Evaluator:
    """The evaluator of a network as `Setup` has it."""
    inference = load_module("uctree.learn.inference")
    make = inference.onnx_evaluator if isinstance(network, bytes) else inference.evaluator
    evaluator: Evaluator = make(
        network, game, symmetries=options.evaluation_symmetries, leaves=options.leaves
    )
    return evaluator


def search_options(options: Options, iteration: int) -> dict[str, Any]:
    """What a search of self-play is made of."""
    if options.root_selection == "gumbel":
        rule = selection.gumbel(num_considered=options.num_considered)
        return {"root_selection": rule}
    end = options.noise_fraction if options.noise_end is None else options.noise_end
    done = max(0, iteration - 1)
    fraction = annealed(options.noise_fraction, end, done, options.noise_iterations)
    noise = selection.dirichlet(options.noise_alpha, fraction) if fraction > 0 else None
    rule = selection.puct(c=options.c)
    return {"selection": rule, "root_noise": noise}


def play_episodes(
    game: Game,
    evaluator: Evaluator,
    options: Options,
    numbers: Sequence[int],
    *,
    iteration: int = 0,
) -> Iterator[Episode]:
    """Play the episodes of these numbers, `num_trees` at a time, and yield them as they end.

    What happens in an episode follows from the seed, its number, the evaluator, and which others
    are played with it (a network's answer depends, in its last digits, on the batch).
    """
    left = deque(numbers)
    num_trees = min(options.num_trees, len(left))
    # Without priors there is only the rule that a search has by itself.
    rules = search_options(options, iteration) if evaluator.gives_priors else {}
    forest = Forest(game, num_trees, evaluator=evaluator, solver=options.solver, **rules)
    plays: dict[int, _Play] = {}

    def begin(tree: int) -> None:
        if left:
            plays[tree] = _Play(game, options, left.popleft())
            plays[tree].plant(forest, tree)

    for tree in range(num_trees):
        begin(tree)
    while plays:
        for tree in forest.step():
            play = plays[int(tree)]
            play.take(forest.root(int(tree)))
            if play.is_over:
                del plays[int(tree)]
                yield play.episode()
                begin(int(tree))
            else:
                play.plant(forest, int(tree))


class _Play:
    """One episode under way."""

    def __init__(self, game: Game, options: Options, number: int) -> None:
        self.game, self.options, self.number = game, options, number
        self.rng = np.random.default_rng([options.seed, number])
        self.state = game.start()
        self.is_full = True
        self.simulations = 0
        self.rewards: list[np.ndarray] = []  # of every ply, those of chance included
        self.plies: list[int] = []  # those with a decision; the lists below have one entry for each
        self.states: list[np.record] = []
        self.policies: list[tuple[np.ndarray, np.ndarray]] = []
        self.values: list[np.ndarray] = []
        self.proven: list[bool] = []  # whether these are certain
        self.surprises: list[float] = []
        self.policy_weights: list[float] = []
        self._pass_chance()
        if self.is_over:
            raise BrokenGame(f"{game.name} is over before anyone has acted; nothing can be learned")
        self._open(int(self.rng.integers(options.opening_plies + 1)))

    @property
    def is_over(self) -> bool:
        return self.game.is_over(self.state) or self._is_cut

    @property
    def _is_cut(self) -> bool:
        """Whether it ends here because it has as many plies as the game allows."""
        most = self.game.max_plies
        return most is not None and len(self.rewards) >= most

    @property
    def _is_cut_over(self) -> bool:
        """Whether the best action is taken from now on."""
        assert self.options.temperature_cutover is not None
        return len(self.rewards) >= self.options.temperature_cutover

    def plant(self, forest: Forest, tree: int) -> None:
        """Let a tree of the forest search the state."""
        options = self.options
        self.is_full = self.rng.random() < options.full_search_share
        budget = options.num_simulations if self.is_full else options.fast_simulations
        assert budget is not None
        seed = int(self.rng.integers(2**62))
        # Gumbel's noise decides what is played, so that it ends where the temperature does.
        noise = self.is_full and (options.root_selection != "gumbel" or not self._is_cut_over)
        forest.plant([tree], [self.state], num_simulations=budget, seed=seed, noise=noise)

    def take(self, root: Root) -> None:
        """Note what the search found, and act."""
        target, edge = self._found(root)
        self.simulations += int(root.visits.sum())
        priors = np.ones(len(target)) / len(target) if root.priors is None else root.priors
        self.plies.append(len(self.rewards))
        self.states.append(self.state)
        self.policies.append((root.actions, target))
        self.values.append(root.value if root.proven is None else root.proven)
        self.proven.append(root.proven is not None)
        self.surprises.append(float(divergence(target, priors)))
        is_taught = self.is_full or root.proven is not None
        self.policy_weights.append(1.0 if is_taught else 0.0)
        self._step(int(root.actions[edge]))
        self._pass_chance()

    def _found(self, root: Root) -> tuple[np.ndarray, int]:
        """The policy over the edges of the root that is taught, and the edge to take."""
        if root.keeps is not None:
            # The search ended as soon as it was certain, so that its visits teach nothing.
            target = root.keeps / root.keeps.sum()
            return target, int(self.rng.choice(len(target), p=target))
        is_gumbel = self.options.policy_target == "gumbel"
        target = root.improved() if is_gumbel else root.visits / root.visits.sum()
        return target, self._choice(root)

    def _choice(self, root: Root) -> int:
        """The edge to take: by visits at the temperature of the ply, or as Gumbel's search says."""
        options, ply = self.options, len(self.rewards)
        if options.root_selection == "gumbel":
            return root.gumbel_choice()
        degree = falling_temperature(
            ply, options.temperature, options.temperature_decay, options.temperature_floor
        )
        if self._is_cut_over:
            degree = 0.0
        return int(self.rng.choice(len(root.visits), p=temperature_policy(root.visits, degree)))

    def _open(self, num_plies: int) -> None:
        """Act at random so often, but never so that the episode ends."""
        for _ in range(num_plies):
            before, num_rewards = self.state, len(self.rewards)
            self._step(int(self.rng.choice(self.game.legal(self.state))))
            self._pass_chance()
            if self.is_over:
                self.state = before
                del self.rewards[num_rewards:]
                return

    def _pass_chance(self) -> None:
        while self.game.to_play(self.state) == CHANCE and not self._is_cut:
            outcomes = self.game.outcomes(self.state)
            drawn = self.rng.choice(len(outcomes), p=[share for _, share in outcomes])
            self._step(outcomes[int(drawn)][0])

    def _step(self, action: int) -> None:
        self.state, reward = self.game.step(self.state, action)
        self.rewards.append(reward)
        if len(self.rewards) >= ENDLESS and not self.is_over:
            raise BrokenGame(
                f"an episode of {self.game.name} is not over after {len(self.rewards)} plies; give "
                "the game max_plies=, or let it end"
            )

    def episode(self) -> Episode:
        """The episode, now that it is over, with what is to be learned from it."""
        game, options = self.game, self.options
        rewards, plies = self.rewards, np.array(self.plies)
        values = np.full((len(rewards), game.num_players), np.nan)
        values[plies] = self.values
        returns = n_step_returns(
            rewards, discount=game.discount, values=values, num_steps=options.value_plies,
            final_value=None if game.is_over(self.state) else game.estimate(self.state),
        )[plies]  # fmt: skip
        returns[self.proven] = np.array(self.values)[self.proven]
        players = np.array([state["to_play"] for state in self.states])
        positions = make_positions(
            game, np.array(self.states, game.dtype), self.policies, to_frames(returns, players),
            search_values=to_frames(np.array(self.values), players),
            weights=surprise_weights(np.array(self.surprises), options.surprise_share),
            policy_weights=self.policy_weights, plies=plies,
        )  # fmt: skip
        paid = np.sum(rewards, axis=0)
        return Episode(self.number, positions, paid, len(self.rewards), self.simulations)

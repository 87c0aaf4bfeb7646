"""Self-play: episodes of a network against itself, many at the same time."""

from __future__ import annotations

import contextlib
import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from uctree import selection
from uctree.choice import falling_temperature, temperature_policy
from uctree.engine.driver import BatchedSearch, Root
from uctree.errors import BrokenGame
from uctree.evaluators import Evaluator, playout
from uctree.game import CHANCE, ENDLESS, Game
from uctree.learn.environments import World, Worlds
from uctree.learn.extras import load_module
from uctree.learn.moves import is_walked
from uctree.learn.options import Options
from uctree.learn.replay import make_positions
from uctree.learn.sequences import make_sequence
from uctree.learn.targets import (
    divergence,
    n_step_returns,
    surprise_weights,
    to_frames,
)
from uctree.selection import annealed


@dataclass(frozen=True)
class Episode:
    """A finished episode as it goes into the replay."""

    number: int
    positions: np.ndarray  # of `replay.position_dtype`
    returns: np.ndarray  # [players], from the start of the episode
    num_plies: int
    simulations: int
    moved_windows: int = 0  # decisions at which a threat moved the window


@dataclass(frozen=True)
class Setup:
    """Game, options and network of the self-play of one iteration."""

    game: Game
    options: Options
    # The bytes of an ONNX file, a torch module, or a `ModelExport`; None: playouts value leaves.
    network: Any
    iteration: int

    def play(self, numbers: Sequence[int]) -> Iterator[Episode]:
        """The episodes of these numbers as they end; the same numbers give the same episodes."""
        options = self.options
        if self.network is None:
            evaluator, options = playout(), playout_options(options)
        else:
            evaluator = network_evaluator(self.network, self.game, options)
        return play_episodes(self.game, evaluator, options, numbers, iteration=self.iteration)


def playout_options(options: Options) -> Options:
    """The options of the iterations in which playouts, not the network, value leaves."""
    return msgspec.structs.replace(
        options, num_simulations=options.playout_simulations,
        fast_simulations=options.playout_simulations, full_search_share=1.0,
        root_selection="puct", policy_target="visits",
    )  # fmt: skip


def network_evaluator(network: Any, game: Game, options: Options) -> Evaluator:
    """The evaluator of a network, given as in `Setup`."""
    evaluator: Evaluator
    if options.algorithm == "muzero":
        evaluator = network.evaluator(
            game, leaves=options.leaves, device=options.device, precision=options.precision
        )
        return evaluator
    inference = load_module("uctree.learn.inference")
    given: dict[str, Any] = {"symmetries": options.evaluation_symmetries, "leaves": options.leaves}
    make = inference.onnx_evaluator
    if not isinstance(network, bytes):
        load_module("uctree.learn.devices").choose(options.device).place(network)
        make, given = inference.evaluator, given | {"precision": options.precision}
    evaluator = make(network, game, **given)
    return evaluator


def search_options(options: Options, iteration: int) -> dict[str, Any]:
    """The selection rules and the noise of a search of self-play, as keywords of `search`."""
    if options.root_selection == "gumbel":
        rule = selection.gumbel(
            num_considered=options.num_considered, c_visit=options.c_visit,
            c_scale=options.c_scale, rescale=options.rescale,
        )  # fmt: skip
        return {"root_selection": rule}
    end = options.noise_fraction if options.noise_end is None else options.noise_end
    done = max(0, iteration - 1)
    fraction = annealed(options.noise_fraction, end, done, options.noise_iterations)
    noise = selection.dirichlet(options.noise_alpha, fraction) if fraction > 0 else None
    rule = selection.puct(c=options.c)
    if options.algorithm == "muzero":  # nobody knows the range of what a model says
        rule = selection.puct(
            c=options.c, normalise="minmax", smallest_range=options.smallest_range
        )
    return {"selection": rule, "root_noise": noise}


def play_episodes(
    game: Game,
    evaluator: Evaluator,
    options: Options,
    numbers: Sequence[int],
    *,
    iteration: int = 0,
) -> Iterator[Episode]:
    """The episodes of these numbers as they end; `num_trees` of them are played at the same time.

    An episode follows from the seed, its number, the evaluator, and which other episodes are played
    at the same time (the last digits of a network's outputs depend on the batch).
    """
    waiting = deque(numbers)
    num_trees = min(options.num_trees, len(waiting))
    # Rules that need priors are left to the search's defaults if the evaluator gives none.
    rules = search_options(options, iteration) if evaluator.gives_priors else {}
    searches = BatchedSearch(
        game, num_trees, keeps_trees=False, evaluator=evaluator, solver=options.solver, **rules
    )
    active: dict[int, _ActiveEpisode] = {}  # by tree

    def begin(tree: int) -> None:
        if waiting:
            active[tree] = _ActiveEpisode(worlds.take(), options, waiting.popleft())

    def search(trees: Sequence[int]) -> None:
        """Start the searches of the episodes in these trees, together because that is faster."""
        going = [tree for tree in trees if tree in active]
        if going:
            searches.reset(going, **_searches_of([active[tree] for tree in going]))

    with contextlib.closing(Worlds(game)) as worlds:
        for tree in range(num_trees):
            begin(tree)
        search(range(num_trees))
        ended: list[int] = []
        while active:
            ended += searches.step().tolist()
            if evaluator.batch is None and len(ended) < len(active):
                continue  # which of these searches end first depends on the clock
            for tree in sorted(ended):
                episode = active[tree]
                episode.decide(searches.root(tree))
                if episode.is_over:
                    del active[tree]
                    yield episode.finish()
                    worlds.give_back(episode.world)
                    begin(tree)
            search(sorted(ended))
            ended.clear()


def _searches_of(episodes: Sequence[_ActiveEpisode]) -> dict[str, Any]:
    """The searches of the current states of episodes, as keywords of `BatchedSearch.reset`."""
    budgets, seeds, noises = zip(*(each.next_search() for each in episodes), strict=True)
    return {
        "states": [each.state for each in episodes], "num_simulations": budgets, "seed": seeds,
        "noise": noises,
    }  # fmt: skip


@dataclass(frozen=True, eq=False)
class Decision:
    """One searched ply of an episode, and what the network is taught from it."""

    ply: int
    state: np.record | None  # None if the replay stores actions
    to_play: int
    actions: np.ndarray  # [edges], those of the root
    policy: np.ndarray  # [edges], the policy target
    value: np.ndarray  # [players], that of the search; exact if it is proven
    is_proven: bool
    surprise: float  # KL from the priors to the policy target
    policy_weight: float
    action: int  # that was taken


class _ActiveEpisode:
    """One episode in progress."""

    def __init__(self, world: World, options: Options, number: int) -> None:
        game = world.game
        self.world, self.game, self.options, self.number = world, game, options, number
        self.rng = np.random.default_rng([options.seed, number])
        first = 0 if game.environment is None else int(self.rng.integers(2**31))
        self.state = world.start(first)
        self.is_full_search = True
        self.simulations = self.moved_windows = 0
        self.is_walked = is_walked(game)
        self.actions: list[int] = []  # of every ply, those of the whole game
        self.players: list[int] = []  # who took them
        self.rewards: list[np.ndarray] = []  # of every ply, chance plies included
        self.decisions: list[Decision] = []
        # The search of the last state, if the episode was cut and its value is needed.
        self.last: Decision | None = None
        self._resolve_chance()
        if self.is_over:
            raise BrokenGame(
                f"{game.name} is over before any player has acted; nothing can be learned from it"
            )
        self._play_opening(int(self.rng.integers(options.opening_plies + 1)))

    @property
    def is_over(self) -> bool:
        if self.game.is_over(self.state):
            return True
        return self._is_truncated and (self.last is not None or not self._closes)

    @property
    def _closes(self) -> bool:
        """Whether a search values the last state of an episode that is cut."""
        is_muzero = self.options.algorithm == "muzero"
        return is_muzero and bool(self.decisions) and self.game.to_play(self.state) >= 0

    @property
    def _is_truncated(self) -> bool:
        """Whether the episode has reached the game's max_plies, or the environment cut it."""
        most = self.game.max_plies
        return self.world.is_truncated or (most is not None and len(self.rewards) >= most)

    @property
    def _is_past_cutover(self) -> bool:
        """Whether the best action is taken from now on."""
        assert self.options.temperature_cutover is not None
        return len(self.rewards) >= self.options.temperature_cutover

    def next_search(self) -> tuple[int, int, bool]:
        """Budget, seed and noise of a search of the current state."""
        options = self.options
        self.is_full_search = self.rng.random() < options.full_search_share
        budget = options.num_simulations if self.is_full_search else options.fast_simulations
        assert budget is not None
        seed = int(self.rng.integers(2**62))
        # Gumbel noise decides which action is taken, so it ends at the cutover of the temperature.
        is_noisy = options.root_selection != "gumbel" or not self._is_past_cutover
        return budget, seed, self.is_full_search and is_noisy

    def decide(self, root: Root) -> None:
        """Record what the search found, and take an action."""
        policy, edge = self._target_and_edge(root)
        self.simulations += int(root.visits.sum())
        priors = np.ones(len(policy)) / len(policy) if root.priors is None else root.priors
        is_proven = root.proven is not None
        decision = Decision(
            ply=len(self.rewards),
            state=None if self.is_walked else self.state,
            to_play=int(self.state["to_play"]),
            actions=root.actions,
            policy=policy,
            value=root.value if root.proven is None else root.proven,
            is_proven=is_proven,
            surprise=float(divergence(policy, priors)),
            policy_weight=1.0 if self.is_full_search or is_proven else 0.0,
            action=int(root.actions[edge]),
        )  # fmt: skip
        if self._is_truncated:
            self.last = decision
            return
        self.decisions.append(decision)
        if self.game.view is not None:
            self.moved_windows += int(self.state["view_focus"]) != 0
        self._step(decision.action)
        self._resolve_chance()

    def _target_and_edge(self, root: Root) -> tuple[np.ndarray, int]:
        """The policy target over the edges of the root, and the edge to take."""
        if root.is_best is not None:
            # A search stops as soon as the root is proven, so its visits are no policy target.
            target = root.is_best / root.is_best.sum()
            return target, int(self.rng.choice(len(target), p=target))
        is_gumbel = self.options.policy_target == "gumbel"
        target = root.improved() if is_gumbel else root.visits / root.visits.sum()
        return target, self._choose_edge(root)

    def _choose_edge(self, root: Root) -> int:
        """The edge to take: drawn by visits at the ply's temperature, or the choice of Gumbel."""
        options, ply = self.options, len(self.rewards)
        if options.root_selection == "gumbel":
            return root.gumbel_choice()
        degree = falling_temperature(
            ply, options.temperature, options.temperature_decay, options.temperature_floor
        )
        if self._is_past_cutover:
            degree = 0.0
        return int(self.rng.choice(len(root.visits), p=temperature_policy(root.visits, degree)))

    def _play_opening(self, num_plies: int) -> None:
        """Take `num_plies` random actions, or fewer if the next one would end the episode."""
        for _ in range(0 if self.game.environment else num_plies):
            before, num_rewards = self.state, len(self.rewards)
            self._step(int(self.rng.choice(self.game.legal(self.state))))
            self._resolve_chance()
            if self.is_over:
                self.state = before
                for listed in (self.rewards, self.actions, self.players):
                    del listed[num_rewards:]
                return

    def _resolve_chance(self) -> None:
        """Draw chance outcomes until a player is to move."""
        while self.game.to_play(self.state) == CHANCE and not self._is_truncated:
            outcomes = self.game.outcomes(self.state)
            drawn = self.rng.choice(len(outcomes), p=[share for _, share in outcomes])
            self._step(outcomes[int(drawn)][0])

    def _step(self, action: int) -> None:
        view = self.game.view
        self.actions.append(action if view is None else view.to_whole(self.state, action))
        self.players.append(int(self.state["to_play"]))
        self.state, reward = self.world.step(self.state, action)
        self.rewards.append(reward)
        if len(self.rewards) >= ENDLESS and not self.is_over:
            raise BrokenGame(
                f"an episode of {self.game.name} is not over after {len(self.rewards)} plies; give "
                "the game max_plies=, or let it end"
            )

    def finish(self) -> Episode:
        """The finished episode, with its training targets."""
        make = self._sequence if self.options.algorithm == "muzero" else self._positions
        total = np.sum(self.rewards, axis=0)
        return Episode(
            self.number, make(), total, len(self.rewards), self.simulations, self.moved_windows
        )  # fmt: skip

    @property
    def _weights(self) -> np.ndarray:
        """How often each decision is drawn."""
        surprises = [each.surprise for each in self.decisions]
        return surprise_weights(surprises, self.options.surprise_share)

    def _positions(self) -> np.ndarray:
        """The decisions as positions that are learned from one by one."""
        game, options, decisions = self.game, self.options, self.decisions
        plies = np.array([each.ply for each in decisions])
        search_values = np.array([each.value for each in decisions])
        is_proven = [each.is_proven for each in decisions]
        values = np.full((len(self.rewards), game.num_players), np.nan)
        values[plies] = search_values
        returns = n_step_returns(
            self.rewards, discount=game.discount, values=values, num_steps=options.value_plies,
            final_value=None if game.is_over(self.state) else game.estimate(self.state),
        )[plies]  # fmt: skip
        returns[is_proven] = search_values[is_proven]
        players = np.array([each.to_play for each in decisions])
        first = self._num_before
        return make_positions(
            game, self._states(), self._policies(), _after(first, to_frames(returns, players)),
            search_values=_after(first, to_frames(search_values, players)),
            weights=_after(first, self._weights),
            policy_weights=_after(first, [each.policy_weight for each in decisions]),
            plies=_after(first, plies, np.arange(first)), actions=self.actions,
        )  # fmt: skip

    @property
    def _num_before(self) -> int:
        """The plies before the first decision, which are positions as well if states are walked."""
        return self.decisions[0].ply if self.is_walked else 0

    def _states(self, last: np.record | None = None) -> np.ndarray:
        """The states of all positions; if actions are stored, who is to move in them."""
        if self.is_walked:
            players = self.players + ([] if last is None else [int(last["to_play"])])
            return np.array(players, np.int8).view([("to_play", np.int8)])
        states = [each.state for each in self.decisions]
        return np.array(states + ([] if last is None else [last]), self.game.dtype)

    def _policies(self) -> list[Any]:
        """The policies of all positions, as actions and shares; none before the first decision."""
        nothing: tuple[np.ndarray, np.ndarray] = np.zeros(0, np.int64), np.zeros(0)
        return [nothing] * self._num_before + [
            (each.actions, each.policy) for each in self.decisions
        ]

    def _sequence(self) -> np.ndarray:
        """The decisions as a sequence, closed by the last state if the episode was cut."""
        game, decisions = self.game, self.decisions
        first = self._num_before
        plies = [*range(first), *(each.ply for each in decisions)]
        values = [*np.zeros((first, game.num_players)), *(each.value for each in decisions)]
        policies = self._policies()
        rewards = [
            n_step_returns(self.rewards[ply:after], discount=game.discount)[0]
            for ply, after in itertools.pairwise([*plies, len(self.rewards)])
        ]
        if self.last is not None:
            values.append(self.last.value)
            policies.append((self.last.actions, self.last.policy))
            plies.append(len(self.rewards))
        actions = self.actions if self.is_walked else [each.action for each in decisions]
        return make_sequence(
            game, self._states(None if self.last is None else self.state), actions, rewards,
            policies, np.array(values), is_over=game.is_over(self.state),
            weights=_after(first, self._weights),
            policy_weights=_after(first, [each.policy_weight for each in decisions]), plies=plies,
        )  # fmt: skip


def _after(count: int, rows: Any, before: Any = 0.0) -> np.ndarray:
    """Rows after `count` others, which are zeros unless they are given."""
    rows = np.asarray(rows)
    padded = np.zeros((count + len(rows), *rows.shape[1:]), rows.dtype)
    padded[:count], padded[count:] = before, rows
    return padded

"""advise(): which rule and how many simulations a game needs, measured on its states.

Every search is compared with a reference: exact values if a state can be solved, otherwise two
searches that are far longer than the measured ones. Rules are tried at growing budgets, and those
with the largest loss are dropped on the way.
"""

from __future__ import annotations

import functools
import inspect
import math
import os
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from uctree import evaluators, specs
from uctree.arena.agents import derived_seed, search_options
from uctree.arena.dice import random_walk
from uctree.arena.matches import whole_number
from uctree.arena.ratings import mean_interval, rate
from uctree.arena.references import Reference, deep_reference, exact_reference
from uctree.arena.reports import markdown_table, plain_row, write_files
from uctree.arena.standings import span
from uctree.engine.jsontext import finite, json_text
from uctree.errors import UctreeError
from uctree.game import ENDLESS, Game, State
from uctree.mcts import Searcher, search
from uctree.pages.chart import Series, line_chart
from uctree.pages.columns import aligned
from uctree.result import SearchResult

BUDGETS = (10, 30, 100, 300, 1000, 3000, 10_000)
RULES = (
    "ucb1()", "ucb1(c=0.2)", "ucb1(c=0.8)", "ucb1(c=1.4)", "ucb1_tuned()",
    "puct()", "puct(c=2.5)", "puct(c=5)",
    "puct(fpu='infinite')", "puct(c=2.5, fpu='infinite')", "puct(c=5, fpu='infinite')",
    "rave()",
)  # fmt: skip
RULES_WITH_PRIORS = (
    "puct()", "puct(c=0.6)", "puct(c=2.5)", "puct(c=5)", "puct(fpu='parent')",
    "puct(fpu='infinite')", "puct(c=2.5, fpu='parent')", "one_loop()",
)  # fmt: skip
REFERENCE_FACTOR = 10  # simulations of a reference, in multiples of the largest budget
MIN_REFERENCE_FACTOR = 3  # below, the report warns
NUM_LATE = 3  # rules are compared over this number of the largest budgets
MIN_RULES = 3  # that are measured at every budget
MAX_DOUBTFUL = 0.1  # the share of doubtful states above which the report warns
FEW_STATES = 10  # below, intervals over states are rough
NUM_EPISODES = 10  # random ones, in which the decisions of a player are counted
MAX_TRIES = 50  # random episodes per requested state
_NOT_OPTIONS = ("num_simulations", "seconds", "seed", "selection", "tree", "progress", "stop")


@dataclass(frozen=True)
class AdviceProgress:
    """The progress of a measurement; passed to `progress` after every state."""

    done: int  # simulations
    total: int  # at most
    text: str


@dataclass(frozen=True)
class Measure:
    """The results of one rule at one budget."""

    rule: str
    simulations: int
    agreement: float  # the share of searches whose action is among the best
    agreement_interval: tuple[float, float]
    loss: float  # how much less their actions are worth than the best, on average
    loss_interval: tuple[float, float]


def advise(
    game: Game | str,
    states: Sequence[State] | None = None,
    *,
    budgets: Sequence[int] = BUDGETS,
    rules: Sequence[str] | None = None,
    num_positions: int = 50,
    num_seeds: int = 3,
    reference_simulations: int | None = None,
    max_states: int = 200_000,
    tolerance: float = 0.01,
    seed: int = 0,
    progress: Callable[[AdviceProgress], None] | None = None,
    **options: Any,
) -> Advice:
    """Which rule and how many simulations to use, from searches of `states`.

    Ctrl-C ends it with the result so far, if at least one budget has been measured.

    Args:
        game: a game, or its text, as `connect_four(rows=5)`.
        states: the states to measure on; by default states of random episodes.
        budgets: numbers of simulations.
        rules: selection rules as text, the one to beat first; by default a list of rules.
        num_positions: the number of states to draw if `states` is None.
        num_seeds: searches per state, rule and budget.
        reference_simulations: simulations of each of the two long searches of a state that is not
            solved; ten times the largest budget by default.
        max_states: solve a state exactly if at most this many states can follow it; 0 never does.
        tolerance: actions count as equally good within this share of the range of returns.
        progress: called with an `AdviceProgress` after every state.
        options: options of all searches, as in `uctree.search`.
    """
    chosen = specs.as_game(game)
    _refuse_vectors(chosen)
    known = [name for name in search_options() if name not in _NOT_OPTIONS]
    for name in options:
        if name in _NOT_OPTIONS:
            raise TypeError(f"advise sets {name} itself; omit it")
        if name not in known:
            raise TypeError(specs.no_option(name, known))
    steps = _checked(budgets, tolerance)
    num_seeds, seed = whole_number("num_seeds", num_seeds, 1), whole_number("seed", seed)
    num_positions = whole_number("num_positions", num_positions, 0)
    max_states = whole_number("max_states", max_states, 0)
    if reference_simulations is not None:
        reference_simulations = whole_number("reference_simulations", reference_simulations, 1)
    drawn = random_states(chosen, num_positions, seed) if states is None else list(states)
    decisions = [chosen.copy(state) for state in drawn if _has_choice(chosen, state)]
    if not decisions:
        raise UctreeError(
            f"{chosen.name}: no player has a choice in any of the {len(drawn)} states; give states "
            "with several legal actions"
        )
    trial = _Trial(chosen, decisions, steps, fitting_rules(chosen, rules, options), num_seeds, seed,
                   options, progress)  # fmt: skip
    deep = reference_simulations or REFERENCE_FACTOR * max(steps)
    trial.find_references(deep, max_states, tolerance)
    status = trial.measure()
    return Advice(
        chosen, len(drawn), trial.references, deep, tolerance, num_seeds, trial.rules, trial.steps,
        trial.losses, status, dict(options), num_decisions(chosen, seed),
    )  # fmt: skip


def random_states(
    game: Game | str, num_positions: int, seed: int = 0, root: State | None = None
) -> list[np.record]:
    """Different states in which a player has a choice, each from a random episode of its own.

    Args:
        root: where the episodes begin, and the first of the returned states; by default the start
            of the game, which is not returned.
    """
    game = specs.as_game(game)
    if num_positions < 1:
        raise UctreeError(f"the number of positions must be at least 1; got {num_positions}")
    _refuse_vectors(game)
    rng = random.Random(derived_seed(seed, "positions"))
    found: dict[bytes, np.record] = {}
    if root is not None and _has_choice(game, root):
        found[game.key(root)] = game.copy(root)
    for _ in range(MAX_TRIES * num_positions):
        if len(found) == num_positions:
            break
        begin = game.start() if root is None else game.copy(root)
        _, walked = random_walk(game, begin, game.max_plies or ENDLESS, rng)
        states = [state for state in walked if _has_choice(game, state)]
        if states:
            state = rng.choice(states)
            found.setdefault(game.key(state), state)
    return list(found.values())


def num_decisions(game: Game, seed: int = 0) -> float:
    """How often a player has a choice in a random episode, on average; at least 1."""
    rng, found = random.Random(derived_seed(seed, "decisions")), 0
    for _ in range(NUM_EPISODES):
        _, walked = random_walk(game, game.start(), game.max_plies or ENDLESS, rng)
        found += sum(_has_choice(game, state) for state in walked)
    return max(1.0, found / NUM_EPISODES / game.num_players)


def _refuse_vectors(game: Game) -> None:
    if game.is_continuous:
        raise UctreeError(
            f"the actions of {game.name} are vectors, and advise needs numbered actions; "
            "`uctree continuous` compares solvers of such a game"
        )


def _has_choice(game: Game, state: State) -> bool:
    return game.to_play(state) >= 0 and len(game.legal(state)) > 1


# --- measuring -----------------------------------------------------------------------------------


def _checked(budgets: Sequence[int], tolerance: float) -> list[int]:
    steps = sorted({whole_number("each of budgets", step, 1) for step in budgets})
    if not steps:
        raise UctreeError("budgets must be whole numbers of at least 1; got none")
    if not 0 <= tolerance < 1:
        raise UctreeError(f"tolerance must be a share of the range, from 0 to 1; got {tolerance}")
    return steps


def fitting_rules(
    game: Game, rules: Sequence[str] | None, options: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """The options of a search for each rule, by the text of the rule.

    Default rules that do not work with the game or the options are left out.
    """
    given = options.get("evaluator")
    evaluator = evaluators.compiled(given) if inspect.isfunction(given) else given
    has_priors = evaluator is not None and evaluator.gives_priors
    found: dict[str, dict[str, Any]] = {}
    for text in rules or (RULES_WITH_PRIORS if has_priors else RULES):
        rule = specs.read_rule(text, "selection", specs.rule_functions("selection"))
        try:
            Searcher(game, selection=rule, **options)
        except ValueError as error:
            if rules is not None or not found:
                raise UctreeError(f"selection {text}: {error}") from error
            continue
        found[text] = {**options, "selection": rule}
    return found


def num_rules_at_budgets(num_rules: int, num_budgets: int) -> list[int]:
    """How many rules are measured at each budget: all at the first two, then half at each step.

    >>> num_rules_at_budgets(12, 6)
    [12, 12, 6, 3, 3, 3]
    """
    return [
        min(num_rules, max(MIN_RULES, math.ceil(num_rules / 2 ** max(0, place - 1))))
        for place in range(num_budgets)
    ]


class _Trial:
    """A measurement under way."""

    def __init__(
        self, game: Game, states: list[np.record], steps: list[int],
        candidates: dict[str, dict[str, Any]], num_seeds: int, seed: int,
        options: dict[str, Any], progress: Callable[[AdviceProgress], None] | None,
    ) -> None:  # fmt: skip
        self.game, self.states, self.steps = game, states, steps
        self.candidates, self.num_seeds, self.seed = candidates, num_seeds, seed
        self.options, self.progress = options, progress
        self.rules = list(candidates)
        self.references: list[Reference] = []
        self.losses: dict[tuple[str, int], np.ndarray] = {}  # [num_states, num_seeds] of each
        self.done = 0
        counts = num_rules_at_budgets(len(self.rules), len(steps))
        searches = len(states) * num_seeds
        self.total = sum(searches * n * step for n, step in zip(counts, steps, strict=True))

    def find_references(self, deep: int, max_states: int, tolerance: float) -> None:
        """Set the reference of every state."""
        self.total += 2 * deep * len(self.states)
        # With a solver, a search that proves its root ends early and says little of other actions.
        options = {**self.options, "solver": False}
        for place, state in enumerate(self.states):
            found = exact_reference(self.game, state, max_states, tolerance) if max_states else None
            if found is None:
                pair = [
                    self._search(
                        state, deep, derived_seed(self.seed, "deep", place, again), options
                    )
                    for again in range(2)
                ]
                found = deep_reference(self.game, state, pair, tolerance)
                self._report(2 * deep, f"reference of state {place + 1}")
            else:
                self.total -= 2 * deep
            self.references.append(found)

    def measure(self) -> str:
        """Search with every rule at growing budgets; "complete", or "interrupted" by Ctrl-C."""
        names = list(self.rules)
        counts = num_rules_at_budgets(len(names), len(self.steps))
        try:
            for place, step in enumerate(self.steps):
                names = self._best(names, self.steps[max(0, place - 1)], counts[place])
                done = {(name, step): self._losses(name, step) for name in names}
                self.losses.update(done)
        except KeyboardInterrupt:
            if not self.losses:
                raise
            return "interrupted"
        return "complete"

    def _best(self, names: list[str], step: int, count: int) -> list[str]:
        """The rules with the smallest loss at this budget, and always the first one."""
        if count >= len(names):
            return names
        first, *others = names
        best = sorted(others, key=lambda name: float(self.losses[name, step].mean()))[: count - 1]
        return [first, *(name for name in others if name in best)]

    def _losses(self, name: str, step: int) -> np.ndarray:
        table = np.zeros((len(self.states), self.num_seeds))
        for place, state in enumerate(self.states):
            for again in range(self.num_seeds):
                seed = derived_seed(self.seed, name, step, place, again)
                result = self._search(state, step, seed, self.candidates[name])
                assert result.action is not None, "a player has a choice"
                table[place, again] = self.references[place].loss(result.action)
            self._report(step * self.num_seeds, f"{step:,} simulations, {name}")
        return table

    def _search(
        self, state: np.record, simulations: int, seed: int, options: dict[str, Any]
    ) -> SearchResult:
        result = search(self.game, state, num_simulations=simulations, seed=seed, **options)
        if result.status == "interrupted":
            raise KeyboardInterrupt
        return result

    def _report(self, simulations: int, text: str) -> None:
        self.done += simulations
        if self.progress is not None:
            self.progress(AdviceProgress(self.done, self.total, text))


# --- the result ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Advice:
    """The results of rules and budgets on states of a game, and a suggestion. Print it."""

    game: Game
    num_given: int  # states, including those without a choice
    references: list[Reference]  # of the states with a choice
    reference_simulations: int
    tolerance: float
    num_seeds: int
    rules: list[str]  # the one to beat first
    budgets: list[int]
    losses: dict[tuple[str, int], np.ndarray]  # by rule and budget, [num_states, num_seeds]
    status: str  # "complete" or "interrupted"
    options: dict[str, Any]  # common to all searches
    num_decisions: float = 1.0  # of a player in an episode

    @functools.cached_property
    def table(self) -> list[Measure]:
        """A row for each rule and budget that was measured."""
        margins = np.array([reference.margin for reference in self.references])[:, None]
        rows = []
        for (rule, step), losses in self.losses.items():
            agree, loss = (losses <= margins).mean(axis=1), losses.mean(axis=1)
            rows.append(
                Measure(
                    rule, step, float(agree.mean()), _share_interval(agree),
                    float(loss.mean()), _not_below(0.0, mean_interval(loss)),
                )
            )  # fmt: skip
        return rows

    @functools.cached_property
    def rule(self) -> str:
        """The suggested rule: the first one, unless another one loses less beyond noise."""
        best, difference = self._closest
        return best if difference[1] > 0 else self.rules[0]

    @functools.cached_property
    def simulations(self) -> int:
        """The largest budget of the suggested rule, or the smallest shown to be as good.

        As good means that no larger budget gains more than `equivalence` at a decision, by the
        upper end of the interval. Without such proof the larger budget is preferred.
        """
        steps = self._steps(self.rule)
        if len(self.references) < FEW_STATES:
            return steps[-1]
        for place, step in enumerate(steps):
            gains = [self._gain(step, more) for more in steps[place + 1 :]]
            if all(high <= self.equivalence for _, _, high in gains):
                return step
        return steps[-1]

    @functools.cached_property
    def equivalence(self) -> float:
        """The gain at a decision that does not count: the tolerance, over a whole episode."""
        margin = float(np.mean([reference.margin for reference in self.references]))
        return margin / self.num_decisions

    @property
    def call(self) -> str:
        """The suggested search, as code to copy."""
        selection = re.sub(r"(\w+)\(", r"uctree.selection.\1(", self.rule)
        more = "".join(f", {name}={_shown(name, value)}" for name, value in self.options.items())
        return (
            f"uctree.search(game, state, num_simulations={self.simulations}, "
            f"selection={selection}{more})"
        )

    @functools.cached_property
    def notes(self) -> list[str]:
        """Sentences on how reliable the suggestion is."""
        return [*self._reference_notes(), *self._rule_notes(), *self._budget_notes()]

    def to_json(self) -> dict[str, Any]:
        """All of it, ready for `json.dumps`."""
        return finite(
            {
                "game": self.game.name,
                "status": self.status,
                "states": len(self.references),
                "states_exact": sum(reference.exact for reference in self.references),
                "states_doubtful": sum(reference.doubtful for reference in self.references),
                "reference_simulations": self.reference_simulations,
                "tolerance": self.tolerance,
                "decisions": self.num_decisions,
                "equivalence": self.equivalence,
                "seeds": self.num_seeds,
                "rule": self.rule,
                "simulations": self.simulations,
                "call": self.call,
                "notes": self.notes,
                "rows": [plain_row(row) for row in self.table],
            }
        )

    def __str__(self) -> str:
        return "\n".join(
            [
                self._headline(),
                "",
                *aligned(self._cells()),
                "",
                *self.notes,
                "",
                f"suggested: {self.call}",
            ]
        )

    def markdown(self) -> str:
        """The table and the notes in Markdown."""
        parts = [self._headline(), markdown_table(self._cells()), *self.notes, f"`{self.call}`"]
        return "\n\n".join(parts) + "\n"

    def chart(self) -> str:
        """An SVG chart of the agreement with the reference by budget."""
        last = max(step for _, step in self.losses)
        names = [rule for rule in self.rules if (rule, last) in self.losses]
        return line_chart(
            [self._series(name) for name in names],
            title=f"{self.game.name}: agreement with the reference, "
            f"{_count(len(self.references), 'state')}",
            x_label="simulations",
            y_label="share of best actions",
            log_x=True,
        )

    def save(self, folder: str | os.PathLike[str]) -> list[Path]:
        """The files written: table.md, chart.svg and advice.json."""
        texts = {
            "table.md": self.markdown(),
            "chart.svg": self.chart(),
            "advice.json": json_text(self.to_json(), indent=2) + "\n",
        }
        return write_files(folder, texts)

    # Parts of the above.

    def _steps(self, rule: str) -> list[int]:
        return [step for step in self.budgets if (rule, step) in self.losses]

    @functools.cached_property
    def _closest(self) -> tuple[str, tuple[float, float, float]]:
        """The rule with the smallest loss at the largest budgets, and its gain over the first."""
        late = self._steps(self.rules[0])[-NUM_LATE:]
        finalists = [
            rule for rule in self.rules if all((rule, step) in self.losses for step in late)
        ]
        means = {
            rule: np.mean([self.losses[rule, step].mean(axis=1) for step in late], axis=0)
            for rule in finalists
        }
        best = min(finalists, key=lambda rule: float(means[rule].mean()))
        return best, _difference(means[self.rules[0]] - means[best])

    def _gain(self, step: int, larger: int) -> tuple[float, float, float]:
        """How much less the suggested rule loses with a larger budget, paired by state."""
        losses = [self.losses[self.rule, each].mean(axis=1) for each in (step, larger)]
        return _difference(losses[0] - losses[1])

    def _headline(self) -> str:
        n, exact = len(self.references), sum(reference.exact for reference in self.references)
        deep = f"two searches of {self.reference_simulations:,} simulations"
        if exact == n:
            reference = "exact values"
        elif exact:
            reference = f"exact values of {exact}, {deep} of the other {n - exact}"
        else:
            reference = deep
        return (
            f"{self.game.name}: {_count(n, 'state')}, {_count(self.num_seeds, 'seed')} each; "
            f"reference: {reference}; "
            f"agreement within {100 * self.tolerance:g} % of the range; {self.status}"
        )

    def _cells(self) -> list[list[str]]:
        rows = [["rule", "simulations", "agreement", "95 %", "loss", "95 %"]]
        for row in self.table:
            rows.append(
                [
                    row.rule, f"{row.simulations:,}", f"{row.agreement:.3f}",
                    span(row.agreement_interval, ".3f"), f"{row.loss:.4f}",
                    span(row.loss_interval, ".4f"),
                ]
            )  # fmt: skip
        return rows

    def _reference_notes(self) -> list[str]:
        n, notes = len(self.references), []
        skipped = self.num_given - n
        if skipped:
            notes.append(f"{skipped} of {self.num_given} states offer no choice: left out")
        if n < FEW_STATES:
            notes.append(f"only {_count(n, 'state')}: the intervals are unreliable")
        deep = [reference for reference in self.references if not reference.exact]
        if deep and self.reference_simulations < MIN_REFERENCE_FACTOR * max(self.budgets):
            notes.append(
                f"the reference of {self.reference_simulations:,} simulations is hardly longer "
                f"than the largest budget, {max(self.budgets):,}, and cannot judge it"
            )
        doubtful = sum(reference.doubtful for reference in deep)
        if doubtful:
            many = doubtful > MAX_DOUBTFUL * n
            notes.append(
                f"in {doubtful} of {len(deep)} states the two long searches disagree by more than "
                "the tolerance" + (": the reference is unreliable, use more simulations" * many)
            )
        return notes

    def _rule_notes(self) -> list[str]:
        first = self.rules[0]
        if len(self.rules) == 1:
            return []
        best, (mean, low, high) = self._closest
        if best == first:
            return [f"no rule loses less than {first} at the largest budgets"]
        by = f"by {mean:.4f} (95 %: {span((low, high), '+.4f')})"
        if low > 0:
            return [f"{best} loses less than {first} {by}"]
        return [f"within noise: {best} loses less than {first} {by}; {first} is suggested"]

    def _budget_notes(self) -> list[str]:
        steps = self._steps(self.rule)
        if len(steps) < 2:
            return ["a single budget does not show how many simulations are enough"]
        largest = steps[-1]
        less = steps[-2] if self.simulations == largest else self.simulations
        mean, low, high = self._gain(less, largest)
        gain = f"{mean:.4f} over {less:,} simulations (95 %: {span((low, high), '+.4f')})"
        enough = (
            f"{self.equivalence:.4f}, the tolerance over the {self.num_decisions:.0f} decisions of "
            "a player"
        )
        if self.simulations < largest:
            return [
                f"{less:,} simulations are as good as {largest:,}: {largest:,} gain {gain}, at "
                f"most {enough}"
            ]
        if low > 0:
            return [f"{self.rule} still gains at the largest budget, {gain}: try larger budgets"]
        return [
            f"the largest budget is suggested, because none below is shown to be as good: "
            f"{largest:,} simulations gain {gain}, and more than {enough}, is not excluded; more "
            "states would narrow the interval"
        ]

    def _series(self, rule: str) -> Series:
        rows = [row for row in self.table if row.rule == rule]
        low, high = zip(*(row.agreement_interval for row in rows), strict=True)
        steps = [row.simulations for row in rows]
        return Series(rule, steps, [row.agreement for row in rows], low, high)


def _share_interval(shares: np.ndarray) -> tuple[float, float]:
    """The interval of a mean of shares; it has a width even if all shares are 1."""
    table = np.zeros((len(shares), 2, 2))
    table[:, 0, 1], table[:, 1, 0] = shares, 1.0 - shares
    low, high = rate(table).score_intervals[0]
    return float(low), float(high)


def _difference(values: np.ndarray) -> tuple[float, float, float]:
    """The mean over states with its interval."""
    return (float(values.mean()), *mean_interval(values))


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _not_below(least: float, bounds: tuple[float, float]) -> tuple[float, float]:
    return max(least, bounds[0]), max(least, bounds[1])


def _shown(name: str, value: Any) -> str:
    """An option as code: a literal, or the name of the caller's variable."""
    is_literal = value is None or isinstance(value, (bool, int, float, str))
    return repr(value) if is_literal else name

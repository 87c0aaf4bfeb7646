"""The contract of a game as named rules, and the report of which of them hold."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from uctree.engine.jsontext import finite
from uctree.game import ENDLESS, LARGEST, Game
from uctree.pages.document import paragraph, preformatted, table

ERROR, WARNING = "error", "warning"

# By the name of a rule: the severity of a breach, what must hold, and what to do if it does not.
RULES: dict[str, tuple[str, str, str]] = {
    "raises": (ERROR, "no rule raises an exception",
        "Repeat the actions with game.play([...]) under a debugger."),
    "overflow": (ERROR, "every number fits into its field",
        "Give the field a wider type in the dtype; compiled code wraps around silently."),
    "out-of-bounds": (ERROR, "no index is out of bounds",
        "Check the index first; compiled code would read or write foreign memory."),
    "negative-index": (WARNING, "no index into a field is negative",
        "It counts from the end: check the border of the board. Fine if intended."),
    "stale-view": (WARNING, "no part of a field is used after it was overwritten",
        "A row or slice of a field is a view, not a copy: swap elements one by one."),
    "hidden-randomness": (ERROR, "the same call gives the same result",
        "Put everything that decides the future into the record; roll dice with chance=."),
    "data-changed": (ERROR, "no rule changes the arrays in data",
        "Put what changes into the record; all states and searches share data."),
    "to-play-range": (ERROR, "to_play is a player, OVER, or CHANCE in a game with chance=",
        "Set state.to_play in step to 0 ... num_players-1, uctree.OVER or uctree.CHANCE."),
    "invariant": (ERROR, "invariant(state) holds in every state",
        "Repeat the actions with game.play([...]), and fix the rules or invariant=."),
    "legal-count": (ERROR, "legal returns 1 to num_actions if a player is to move",
        "Return the number of actions written; if none is left, step must set OVER."),
    "legal-range": (ERROR, "legal actions are in [0, num_actions)",
        "Write every action up to the count, each in [0, num_actions)."),
    "legal-duplicate": (ERROR, "legal lists no action twice", "List every action once."),
    "legal-changes-state": (ERROR, "legal does not change the state",
        "Change the state in step only; a search may call legal any number of times."),
    "bounds-range": (ERROR, "bounds gives a box with low <= high within action_space",
        "Return the number of coordinates that count, and write finite corners for each."),
    "changes-state": (ERROR, "chance, observe and the other rules do not change the state",
        "Change the state in step only."),
    "chance-count": (ERROR, "chance gives 1 to max_outcomes different outcomes",
        "Raise max_outcomes=, or return the number of outcomes written, each once."),
    "chance-range": (ERROR, "outcomes of chance are at least 0",
        "Number the outcomes from 0 or 1 on; step may translate them."),
    "chance-probabilities": (ERROR, "probabilities are not negative and add up to 1",
        "Divide the weights by their sum."),
    "reward-finite": (ERROR, f"rewards are finite numbers of at most {LARGEST:g}",
        "Look for a division by zero, or pay in other units."),
    "zero-sum": (ERROR, "rewards add up to zero if zero_sum=True",
        "Pay the other player the negative, or omit zero_sum=."),
    "payoff-range": (ERROR, "returns are within payoff_range",
        "State the range of the return of a whole episode, or omit payoff_range=."),
    "max-plies": (ERROR, "episodes end within max_plies",
        "Raise max_plies=; chance plies count. A search refuses a root beyond it."),
    "endless": (ERROR, f"random play ends within {ENDLESS:,} plies",
        "Give the game max_plies=, or an end, for instance after n plies without progress."),
    "ply-field": (WARNING, "the field ply counts plies, which max_plies needs",
        "Add 1 in every step, chance included, or rename the field."),
    "never-to-play": (WARNING, "every player moves at some time",
        "Pass the turn in step: state.to_play = (player + 1) % num_players."),
    "perspective": (WARNING, "the player who moves last wins some episodes",
        "Pay the player who moved, not state.to_play after its change; fine in a misere game."),
    "one-sided": (WARNING, "different players win",
        "Pay reward[player] with player = state.to_play before it is changed."),
    "never-pays": (WARNING, "some episode pays somebody",
        "Add to reward[player] in step: without rewards every action is worth the same."),
    "seat-symmetry": (ERROR, "if symmetric_seats=True, it makes no difference who begins",
        "Write state.to_play where a rule means the player to move, or omit symmetric_seats=."),
    "key-fields": (ERROR, "states with equal key fields behave alike",
        "Add the field in which they differ to key_fields=."),
    "observe-shape": (ERROR, "observe fits into observation_shape",
        "Fix the index or observation_shape=."),
    "observe-finite": (ERROR, "observations are finite", "Look for a division by zero."),
    "heuristic-range": (WARNING, "the heuristic is finite and within payoff_range",
        "Write the returns expected from the state on, for every player."),
    "priors-range": (ERROR, "priors writes a number, or minus infinity, for every legal action",
        "Look for a division by zero and for the logarithm of a negative number."),
    "exact-holds": (ERROR, "exact is the value of the best action, if it knows all of them",
        "Write the returns from the state on under perfect play, for every player."),
    "show-fails": (ERROR, "show and show_action return text", "They are called in every state."),
    "read-action-roundtrip": (ERROR, "read_action reads what show_action writes",
        "Make the two inverse to each other, with one text per action."),
    "pickle": (WARNING, "the game can be sent to another process",
        "Close over numbers, strings, arrays and plain functions only."),
    "does-not-compile": (ERROR, "every rule compiles", "See the line above."),
    "compiled-anew": (WARNING, "machine code can be cached on disk", "See above."),
    "diverges": (ERROR, "compiled code does what plain Python does",
        "Usual reasons: uint64 mixed with int64, a product beyond 64 bits, small integers from "
        "arrays, which NumPy wraps around. Convert with int(...), and compute in int64."),
    "random-action-support": (ERROR, "random_action draws every legal action, and no other",
        "Draw from what legal lists; pass heuristic=True if it omits some on purpose."),
    "random-action-uniform": (WARNING, "random_action draws all legal actions equally often",
        "Pass heuristic=True if it prefers some on purpose."),
    "playout-agrees": (ERROR, "playout pays on average what step-by-step play pays",
        "Pay the same players, discount as steps do; pass heuristic=True if it plays better."),
    "search-against-exact": (WARNING, "a search finds the best action by exact values",
        "Check heuristic, playout and random_action: they may mislead the search. If they are "
        "right, random playouts mislead here; use a larger budget or a smaller c."),
}  # fmt: skip

# Those of a `Problem`, which holds Python objects.
PROBLEM_RULES: dict[str, tuple[str, str, str]] = {
    "raises": (ERROR, "no function raises an exception",
        "Repeat the actions with problem.step under a debugger."),
    "actions-form": (ERROR, "actions are hashable, and each is listed once",
        "Return numbers, texts or tuples of such, each once; priors=True if they are pairs with "
        "priors."),
    "step-form": (ERROR, "step returns a Step with finite rewards and a player to move",
        "Return uctree.Step(state, reward, to_play, over); to_play is 0 to num_players-1 or "
        "CHANCE."),
    "outcomes": (ERROR, "chance lists pairs (outcome, probability) that add up to 1",
        "Give the Problem chance=, and divide the weights by their sum."),
    "value-form": (ERROR, "a value is one finite number per player",
        "Return the expected return of each player, in the order of the players."),
    "same-again": (ERROR, "the same call gives the same result",
        "Put everything that decides the future into the state, and dice into chance=."),
    "keeps-its-argument": (ERROR, "no function changes the state that it was given",
        "Copy what a step changes: lists, dicts and arrays in the state as well."),
    "shares-nothing": (ERROR, "a step does not change earlier states",
        "States share a list, dict or array: copy it in step, or in clone=."),
    "key-holds": (ERROR, "states with equal keys behave alike",
        "Put what differs into the key: whose turn it is, how much time is left."),
    "dump-and-load": (ERROR, "load gives back the state that dump wrote as JSON",
        "Write all parts of the state; JSON turns tuples into lists and keys into texts."),
    "every-player-moves": (WARNING, "every player moves at some time",
        "Return to_play in Step: it is 0 if omitted."),
    "last-mover-wins": (WARNING, "the player who moves last is paid most in some episodes",
        "A single number belongs to the player who acted, not to the one who is next; fine if the "
        "last mover loses by the rules."),
    "value-in-range": (WARNING, "values are within payoff_range",
        "State the range of the return of a whole episode, or omit payoff_range=."),
    "pays": (WARNING, "some step pays somebody",
        "Return a reward in Step: without rewards every action is worth the same."),
    "ends": (WARNING, "some random episodes end",
        "Return over=True or no actions at the end; or give value=, and state horizon=."),
}  # fmt: skip


# --- the report ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Finding:
    """One breach of a rule, with the shortest sequence of actions found that leads to it."""

    rule: str
    severity: str  # "error" or "warning"
    message: str
    actions: tuple[Any, ...]  # from the start, chance outcomes included
    cure: str

    def lines(self) -> list[str]:
        """The finding as text: the rule, what was seen, after which actions, and what to do."""
        after = [f"after the actions {shortened(self.actions)}"] if self.actions else []
        title = f"{self.severity}: {self.rule}"
        return [title, *self.message.splitlines(), *after, self.cure]


@dataclass(frozen=True)
class Report:
    """The result of `check`. Print it for a table."""

    game: str
    findings: tuple[Finding, ...]
    checked: tuple[str, ...]  # the rules that were checked
    episodes: int
    plies: int
    states: int | None  # of the whole game, if it was solved
    seconds: float

    @property
    def is_game(self) -> bool:
        """Whether the rules are those of a `Game`; else they are those of a `Problem`."""
        return "actions-form" not in self.checked

    @property
    def ok(self) -> bool:
        """Whether no finding is an error."""
        return all(finding.severity != ERROR for finding in self.findings)

    def _verdict(self) -> str:
        counts = dict.fromkeys((ERROR, WARNING), 0)
        for finding in self.findings:
            counts[finding.severity] += 1
        listed = [f"{n} {what}{'s' if n > 1 else ''}" for what, n in counts.items() if n]
        return ", ".join(["ok" if self.ok else "not ok", *listed])

    def to_json(self) -> dict[str, Any]:
        """The whole report as plain numbers, lists and strings, ready for `json.dumps`."""
        findings = [asdict(f) | {"actions": list(f.actions)} for f in self.findings]
        return finite(
            asdict(self) | {"ok": self.ok, "findings": findings, "checked": list(self.checked)}
        )

    def __str__(self) -> str:
        lines = [self._headline(), ""]
        lines += [f"  {word:4}  {rule:22} {holds}" for word, rule, holds in self._verdicts()]
        if self._skipped:
            lines += ["", self._skipped]
        for finding in self.findings:
            title, *details = finding.lines()
            lines += ["", title, *(f"  {line}" for line in details)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The findings, then the rules, as HTML for a notebook."""
        parts = [paragraph(self._headline()), *map(paragraph, filter(None, [self._skipped]))]
        parts += [preformatted("\n".join(finding.lines())) for finding in self.findings]
        return "".join([*parts, table([["", "rule", "what must hold"], *self._verdicts()])])

    def _headline(self) -> str:
        solved = "" if self.states is None else f", solved: {self.states:,} states"
        return (
            f"{self.game}: {self._verdict()}   ({self.episodes} episodes, "
            f"{self.plies:,} plies{solved}, {self.seconds:.1f} s)"
        )

    def _verdicts(self) -> list[list[str]]:
        """A row for each rule that was checked or broken: the verdict, its name, what must hold."""
        severities = {finding.rule: finding.severity for finding in self.findings}
        words = {ERROR: "FAIL", WARNING: "warn"}
        return [
            [words.get(severities.get(rule, ""), "ok"), rule, holds]
            for rule, (_, holds, _) in (RULES if self.is_game else PROBLEM_RULES).items()
            if rule in severities or rule in self.checked
        ]

    @property
    def _skipped(self) -> str:
        """What was not checked because of errors; empty if nothing."""
        is_skipped = self.is_game and not self.ok and "diverges" not in self.checked
        return "Compiled code was skipped; fix these errors first." if is_skipped else ""


def shortened(actions: tuple[Any, ...], most: int = 60) -> str:
    """The first `most` actions as text."""
    text = ", ".join(map(str, actions[:most]))
    return f"[{text}]" if len(actions) <= most else f"[{text}, ... {len(actions)} in all]"


def plain_rules(game: Game) -> set[str]:
    """The rules that plain Python checks in this game."""
    rules = {
        "raises", "overflow", "out-of-bounds", "negative-index", "stale-view", "hidden-randomness",
        "to-play-range", "legal-count", "never-pays",
        "legal-range", "legal-duplicate", "legal-changes-state", "reward-finite", "never-to-play",
        "show-fails", "read-action-roundtrip",
    }  # fmt: skip
    if game.is_continuous:
        rules -= {"legal-count", "legal-range", "legal-duplicate", "legal-changes-state"}
    conditions = {
        "bounds-range": game.rules.bounds,
        "data-changed": game.data,
        "invariant": game.rules.invariant,
        "seat-symmetry": game.symmetric_seats,
        "chance-count": game.rules.chance,
        "chance-range": game.rules.chance,
        "chance-probabilities": game.rules.chance,
        "zero-sum": game.zero_sum,
        "payoff-range": game.payoff_range is not None,
        "max-plies": game.max_plies,
        "ply-field": game.max_plies and "ply" in (game.dtype.names or ()),
        "key-fields": set(game.key_fields) != set(game.dtype.names or ()),
        "observe-shape": game.rules.observe,
        "observe-finite": game.rules.observe,
        "heuristic-range": game.rules.heuristic,
        "priors-range": game.rules.priors,
        "exact-holds": game.rules.exact,
        "changes-state": any(
            getattr(game.rules, name)
            for name in ("chance", "bounds", "observe", "heuristic", "priors", "exact")
        ),
    }
    return rules | {rule for rule, applies in conditions.items() if applies}

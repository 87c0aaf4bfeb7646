"""The contract of a game as rules with names, and the report that says which of them hold."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from uctree.game import ENDLESS, Game

ERROR, WARNING = "error", "warning"

# What is looked at: the name of a rule, how bad a breach is, what holds, and what to do if not.
RULES: dict[str, tuple[str, str, str]] = {
    "raises": (ERROR, "no rule raises an exception",
        "Repeat the actions with game.play([...]) under a debugger."),
    "overflow": (ERROR, "every number fits into its field",
        "Give the field a wider type in the dtype; compiled code would wrap around silently."),
    "out-of-bounds": (ERROR, "no index is out of bounds",
        "Check the index before it is used; compiled code would read or write foreign memory."),
    "negative-index": (WARNING, "no index into a field is negative",
        "It counts from the end: look for the border of the board. Fine where that is meant."),
    "stale-view": (WARNING, "no part of a field is used after it was overwritten",
        "A row or slice of a field is a view, not a copy: exchange elements one by one."),
    "hidden-randomness": (ERROR, "the same call gives the same result",
        "Everything that decides the future belongs into the record; dice are rolled by chance=."),
    "data-changed": (ERROR, "the arrays in data stay as they are",
        "Put what changes into the record; data is shared by all states and all searches."),
    "to-play-range": (ERROR, "to_play is a player, OVER, or CHANCE in a game with chance=",
        "Let step set state.to_play to 0 ... num_players-1, uctree.OVER or uctree.CHANCE."),
    "legal-count": (ERROR, "legal returns 1 to num_actions where a player is to play",
        "Return the number of actions written; when none is left, step must set OVER."),
    "legal-range": (ERROR, "legal actions are in [0, num_actions)",
        "Write every action up to the count, each in [0, num_actions)."),
    "legal-duplicate": (ERROR, "legal lists no action twice", "List every action once."),
    "legal-changes-state": (ERROR, "legal leaves the state as it is",
        "Change the state in step only; a search calls legal as often as it likes."),
    "bounds-range": (ERROR, "bounds gives a box with low <= high within action_space",
        "Return how many coordinates count, and write as many finite corners."),
    "changes-state": (ERROR, "chance, observe and the other rules leave the state alone",
        "Change the state in step only."),
    "chance-count": (ERROR, "chance gives 1 to max_outcomes different outcomes",
        "Raise max_outcomes=, or return the number of outcomes written, each once."),
    "chance-probabilities": (ERROR, "probabilities are not negative and add up to 1",
        "Divide the weights by their sum."),
    "reward-finite": (ERROR, "rewards are finite numbers", "Look for a division by zero."),
    "zero-sum": (ERROR, "rewards add up to zero where zero_sum=True says so",
        "Pay the other player the negative, or leave zero_sum= away."),
    "payoff-range": (ERROR, "returns are within payoff_range",
        "State the range of the whole return of an episode, or leave payoff_range= away."),
    "max-plies": (ERROR, "episodes are over by max_plies",
        "Raise max_plies=, chance plies counted; a search refuses a root beyond it."),
    "endless": (ERROR, f"random play ends within {ENDLESS:,} plies",
        "Give the game max_plies=, or an end: no progress in so many plies, say."),
    "ply-field": (WARNING, "the field ply counts plies, as max_plies needs it",
        "Add 1 in every step, chance included, or give the field another name."),
    "never-to-play": (WARNING, "every player is to play at some time",
        "Let step pass the turn: state.to_play = (player + 1) % num_players."),
    "perspective": (WARNING, "who makes the last move of an episode wins now and then",
        "Pay who has just moved, not state.to_play after it was changed; fine in a misere game."),
    "one-sided": (WARNING, "different players win",
        "Check who is paid: reward[player], with player = state.to_play before it is changed."),
    "key-fields": (ERROR, "states with equal key fields behave alike",
        "Add the field that tells them apart to key_fields=."),
    "observe-shape": (ERROR, "observe fits into observation_shape",
        "Mend the index or observation_shape=."),
    "observe-finite": (ERROR, "observations are finite", "Look for a division by zero."),
    "heuristic-range": (WARNING, "the heuristic is finite and within payoff_range",
        "Write what is still to be won from the state on, for every player."),
    "priors-range": (ERROR, "priors writes a number, or minus infinity, for every legal action",
        "Look for a division by zero and for the logarithm of something negative."),
    "exact-holds": (ERROR, "exact is what the best action leads to, where it knows all of them",
        "Write what is still to be won under perfect play, for every player."),
    "show-fails": (ERROR, "show and show_action give text", "They are called in every state."),
    "read-action-roundtrip": (ERROR, "read_action understands what show_action writes",
        "Let the two be each other's inverse, with one text for each action."),
    "pickle": (WARNING, "the game can be sent to another process",
        "Close over numbers, strings, arrays and plain functions only."),
    "does-not-compile": (ERROR, "every rule compiles", "See the line named above."),
    "compiled-anew": (WARNING, "machine code can be kept on disk", "See above."),
    "diverges": (ERROR, "compiled code does what plain Python does",
        "The usual reasons: a uint64 beside an int64, a product beyond 64 bits, small integers "
        "from arrays, which NumPy wraps around. Convert with int(...), and compute in int64."),
    "random-action-support": (ERROR, "random_action draws legal actions, each now and then",
        "Draw from what legal lists; pass wise=True where some are left out on purpose."),
    "random-action-uniform": (WARNING, "random_action draws every legal action as often",
        "Pass wise=True where this is on purpose."),
    "playout-agrees": (ERROR, "playout pays on average what step-by-step play pays",
        "Pay the same players, discount as steps would; pass wise=True where it plays better."),
    "search-against-exact": (WARNING, "a search finds what exact values say is best",
        "Look at heuristic, playout and random_action: they may lead the search astray. If those "
        "are ok, random playouts mislead here, and a larger budget or smaller c is needed."),
}  # fmt: skip


# --- what comes back -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Finding:
    """One breach of a rule, by the shortest way to it that was found."""

    rule: str
    severity: str  # "error" or "warning"
    message: str
    actions: tuple[Any, ...]  # from the start, chance outcomes included
    cure: str


@dataclass(frozen=True)
class Report:
    """What the doctor found. Print it for a table."""

    game: str
    findings: tuple[Finding, ...]
    checked: tuple[str, ...]  # the rules that were looked at
    episodes: int
    plies: int
    states: int | None  # of the whole game, where it was solved
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether no finding is an error."""
        return all(finding.severity != ERROR for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """All of it as plain numbers, lists and strings, ready for `json.dumps`."""
        findings = [asdict(f) | {"actions": list(f.actions)} for f in self.findings]
        return asdict(self) | {"ok": self.ok, "findings": findings, "checked": list(self.checked)}

    def __str__(self) -> str:
        solved = "" if self.states is None else f", solved: {self.states:,} states"
        lines = [
            f"{self.game}: {'ok' if self.ok else 'not ok'}   ({self.episodes} episodes, "
            f"{self.plies:,} plies{solved}, {self.seconds:.1f} s)",
            "",
        ]
        severities = {finding.rule: finding.severity for finding in self.findings}
        for rule, (_, holds, _) in RULES.items():
            word = {ERROR: "FAIL", WARNING: "warn"}.get(severities.get(rule, ""), "ok")
            if rule in severities or rule in self.checked:
                lines.append(f"  {word:4}  {rule:22} {holds}")
        if not self.ok and "diverges" not in self.checked:
            lines += ["", "Compiled code was not run: mend the errors first."]
        for finding in self.findings:
            lines += ["", f"{finding.severity}: {finding.rule}"]
            lines += [f"  {line}" for line in finding.message.splitlines()]
            if finding.actions:
                lines.append(f"  after the actions {shortened(finding.actions)}")
            lines.append(f"  {finding.cure}")
        return "\n".join(lines)


def shortened(actions: tuple[Any, ...], most: int = 60) -> str:
    text = ", ".join(map(str, actions[:most]))
    return f"[{text}]" if len(actions) <= most else f"[{text}, ... {len(actions)} in all]"


def plain_rules(game: Game) -> set[str]:
    """The rules that the plain part looks at in this game."""
    rules = {
        "raises", "overflow", "out-of-bounds", "negative-index", "stale-view", "hidden-randomness",
        "to-play-range", "legal-count",
        "legal-range", "legal-duplicate", "legal-changes-state", "reward-finite", "never-to-play",
        "show-fails", "read-action-roundtrip",
    }  # fmt: skip
    if game.is_continuous:
        rules -= {"legal-count", "legal-range", "legal-duplicate", "legal-changes-state"}
    conditions = {
        "bounds-range": game.rules.bounds,
        "data-changed": game.data,
        "chance-count": game.rules.chance,
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

"""Game of 24, with steps that a language model proposes: combine four numbers to 24.

    python examples/game_of_24.py 4 9 10 13 --journal run.jsonl --save-page 24.html

After Ctrl-C, a crash or kill -9 the same command continues from its journal: nothing is asked, and
paid, twice. `Model` is a stand-in that needs no network; put your client into `Model.ask`.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from fractions import Fraction

import uctree
from uctree import Problem, Step

PRICE = 0.01  # USD of a call; a real client says how many tokens it used


class Model:
    """A stand-in for a language model: fast at arithmetic, forgetful, now and then wrong."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.num_calls = seconds, 0

    def ask(self, prompt: str) -> str:
        self.num_calls += 1
        time.sleep(self.seconds)
        uctree.spent(usd=PRICE, tokens=len(prompt) // 4)
        task, _, left = prompt.partition(": ")
        rng = random.Random(prompt)
        numbers = left.split("\n")[0].split()
        if task == "Judge":
            return f"{judged([Fraction(number) for number in numbers], rng):.2f}"
        lines = []
        for _ in range(3):
            one, other = sorted(rng.sample(numbers, 2), key=Fraction, reverse=True)
            lines.append(f"{one} {rng.choice('+-*')} {other}")
        if rng.random() < 0.1:
            lines[0] = f"{numbers[0]} and {numbers[1]} look promising"  # no step at all
        return "\n".join(lines)


def judged(numbers: list[Fraction], rng: random.Random) -> float:
    """A guess whether 24 can be reached: the share of random attempts that do, made larger."""
    hits = 0
    for _ in range(200):
        left = list(numbers)
        while len(left) > 1:
            rng.shuffle(left)
            one, other = left.pop(), left.pop()
            left.append(rng.choice([one + other, abs(one - other), one * other]))
        hits += left[0] == 24
    return min(1.0, (hits / 200) ** 0.5)


# --- the problem ---------------------------------------------------------------------------------
# A state is the numbers that are left, and the steps that led here: plain data, for the journal.

STEP = re.compile(r"(\S+) ([-+*/]) (\S+)")
OPERATIONS = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b,
    "*": lambda a, b: a * b, "/": lambda a, b: a / b,
}  # fmt: skip


def game_of_24(model: Model) -> Problem:
    def propose(state, tried, k):
        numbers, _ = state
        known = "; ".join(tried)
        lines = model.ask(f"Propose: {' '.join(numbers)}\nnot again: {known}").split("\n")
        return [line for line in lines if STEP.fullmatch(line)]  # what is no step is left out

    def step(state, text):
        numbers, steps = state
        one, sign, other = STEP.fullmatch(text).groups()
        left = list(numbers)
        left.remove(one)
        left.remove(other)
        left.append(str(OPERATIONS[sign](Fraction(one), Fraction(other))))
        # Sorted, so that one key fits all orders.
        after = tuple(sorted(left, key=Fraction)), (*steps, f"{text} = {left[-1]}")
        if len(left) > 1:
            return Step(after)
        return Step(after, reward=float(left == ["24"]), over=True)

    return Problem(
        propose=propose,
        step=step,
        value=lambda state: float(model.ask(f"Judge: {' '.join(state[0])}\n")),
        key=lambda state: state[0],  # other ways to the same numbers are the same state
        show=lambda state: "\n".join([*state[1], f"left: {' '.join(state[0])}"]),
        payoff_range=(0, 1),
        max_actions=16,
        name="game of 24",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("numbers", nargs="*", default=["4", "9", "10", "13"])
    parser.add_argument("--usd", type=float, default=2.0)
    parser.add_argument("--journal")
    parser.add_argument("--save-page")
    parser.add_argument("--seconds-per-call", type=float, default=0.0)
    given = parser.parse_args()
    model = Model(given.seconds_per_call)
    numbers = tuple(sorted(given.numbers or ["4", "9", "10", "13"], key=Fraction))
    result = uctree.plan(
        game_of_24(model), (numbers, ()), num_simulations=1000, seed=1, journal=given.journal,
        budget={"usd": given.usd}, on_error="drop", transpositions=True,
    )  # fmt: skip
    print(result)
    best = result.best_episode()
    found = best is not None and best.returns == 1.0
    print("solution:", ", ".join(best.actions) if found else "none found")
    print(f"ended by: {result.status}; calls of this run: {model.num_calls}")
    if given.save_page:
        result.save(given.save_page)


if __name__ == "__main__":
    main()

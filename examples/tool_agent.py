"""An agent that uses tools: states are texts, a model proposes actions, a reward model judges.

    python examples/tool_agent.py

The search walks through conversations. `backup.maximum()` fits: the world is deterministic, and a
conversation is worth what its best continuation is worth, not what all the tried ones are on
average. The two models are stand-ins; both functions may be `async`, as here.
"""

from __future__ import annotations

import ast
import asyncio
import operator
import re

import uctree
from uctree import Problem, Step, backup

QUESTION = "How many years lie between the first powered flight and the first steps on the Moon?"
LIBRARY = {
    "first powered flight": "The Wright brothers flew at Kitty Hawk on 17 December 1903.",
    "flight": "Flight may mean: bird flight, first powered flight, a flight of stairs.",
    "moon": "The Moon is 384,400 km away. See also: first steps on the Moon.",
    "first steps on the moon": "Neil Armstrong stepped on the Moon on 21 July 1969.",
}
OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub}


def use_tool(name: str, text: str) -> str:
    if name == "look up":
        return LIBRARY.get(text.lower(), "Nothing found.")
    tree = ast.parse(text, mode="eval").body
    assert isinstance(tree, ast.BinOp), "a sum or a difference"
    return str(OPERATORS[type(tree.op)](tree.left.value, tree.right.value))


# --- stand-ins for two models --------------------------------------------------------------------


async def proposed_actions(conversation: str, tried: tuple[str, ...]) -> list[str]:
    """What a language model might want to do next, some of it useless."""
    await asyncio.sleep(0)
    uctree.spent(tokens=len(conversation) // 4)
    years = sorted({int(year) for year in re.findall(r"\b(?:19|20)\d\d\b", conversation)})
    ideas = ["look up[flight]", "look up[Moon]", "answer[66 years or so, I think]"]
    ideas += [f"look up[{topic}]" for topic in re.findall(r"first [a-z ]+?(?:Moon|flight)",
                                                          conversation)]  # fmt: skip
    if len(years) == 2:
        ideas.insert(0, f"calculate[{years[1]} - {years[0]}]")
    results = re.findall(r"^calculate.*\n> (\d+)$", conversation, re.MULTILINE)
    ideas[:0] = [f"answer[{result}]" for result in results]
    return [idea for idea in dict.fromkeys(ideas) if idea not in tried]


async def judged(conversation: str) -> float:
    """A reward model: how much of an answer is on the table, from 0 to 1."""
    await asyncio.sleep(0)
    facts = ("1903" in conversation) + ("1969" in conversation) + ("\n> 66" in conversation)
    return 0.2 * facts + 0.1 - 0.02 * conversation.count("\n")


# --- the problem ---------------------------------------------------------------------------------


async def propose(conversation: str, tried: tuple[str, ...], k: int) -> list[str]:
    return (await proposed_actions(conversation, tried))[: max(k, 2)]


def step(conversation: str, action: str) -> Step:
    found = re.fullmatch(r"([a-z ]+)\[(.*)\]", action)
    if found is None:
        raise ValueError(f"no tool can do {action!r}")
    name, text = found.groups()
    if name == "answer":
        is_backed = f"\n> {text}" in conversation
        return Step(f"{conversation}\nanswer: {text}", reward=float(is_backed), over=True)
    return Step(f"{conversation}\n{action}\n> {use_tool(name, text)}")


agent = Problem(
    propose=propose,
    step=step,
    value=judged,
    payoff_range=(0, 1),
    max_actions=8,
    name="tool agent",
)


def main() -> None:
    result = uctree.plan(
        agent, QUESTION, num_simulations=200, seed=1, backup=backup.maximum(), on_error="drop",
        budget={"tokens": 100_000},
    )  # fmt: skip
    print(result)
    best = result.best_episode()
    print("\nThe best conversation:\n" + QUESTION)
    for action in best.actions:
        print(" ", action)
    print(f"pays {best.returns:g}")


if __name__ == "__main__":
    main()

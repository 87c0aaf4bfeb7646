"""Grids of settings for an ablation: which options of a search vary, and over which values.

`selection.puct.c=0.5,1,2` varies a parameter of a rule, `selection=ucb1(),rave(ucb1(0.1))` the rule
itself, `solver=true,false` any other option. Several of them make the full product.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uctree import specs
from uctree.errors import UctreeError

BUDGETS = ("num_simulations", "seconds")  # options that limit a search
EXAMPLE = "selection.puct.c=0.5,1,2"
_WORDS = {"true": "True", "false": "False", "none": "None"}

Values = str | Sequence[Any]  # "0.5,1,2", or [0.5, 1, 2]


@dataclass(frozen=True)
class Setting:
    """One combination of values of a grid."""

    name: str  # what varies, as "c=2, fpu=parent"
    values: tuple[str, ...]  # of each axis
    options: dict[str, str]  # of `search(...)`, without a budget that all settings share

    def agent(self, budget: Mapping[str, float] | None = None) -> str:
        """The text of the agent with this setting."""
        listed = [f"{name}={value}" for name, value in (budget or {}).items()]
        listed += [f"{name}={value}" for name, value in self.options.items()]
        return f"search({', '.join(listed)})"


@dataclass(frozen=True)
class Grid:
    """The settings of an ablation."""

    axes: dict[str, tuple[str, ...]]  # the values of each option that varies
    base: dict[str, str]  # options that all settings share
    settings: list[Setting]

    @property
    def budget(self) -> str | None:
        """The budget that is an option of the grid; None if all settings share a budget."""
        found = {*self.axes, *self.base} & set(BUDGETS)
        return min(found) if found else None


def read_grid(vary: Mapping[str, Values], base: str | Mapping[str, Any] = "") -> Grid:
    """The product of all values; UctreeError for an unknown option or one that is given twice."""
    if not vary:
        raise UctreeError(f"no option varies; give one, as {EXAMPLE}")
    common = _read_base(base)
    axes = {name.strip(): _values(name.strip(), values) for name, values in vary.items()}
    _check_axes(axes, common)
    names = _short_names(list(axes))
    settings = []
    for values in itertools.product(*axes.values()):
        name = ", ".join(f"{short}={_plain(v)}" for short, v in zip(names, values, strict=True))
        options = dict(common)
        for axis, value in zip(axes, values, strict=True):
            _set(options, axis, value)
        settings.append(Setting(name, values, options))
    if len(settings) < 2:
        raise UctreeError(
            f"a grid of one setting has nothing to compare: {settings[0].name}; give several "
            f"values, as {EXAMPLE}"
        )
    return Grid(axes, common, settings)


def read_vary(texts: Sequence[str]) -> dict[str, str]:
    """The values of each option, from texts as `selection.puct.c=0.5,1,2`.

    >>> read_vary(["solver=true,false", "selection.puct.c=1,2"])
    {'solver': 'true,false', 'selection.puct.c': '1,2'}
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals:
            raise UctreeError(f"cannot read {text!r}; write an option and its values as {EXAMPLE}")
        if name.strip() in found:
            raise UctreeError(f"{name.strip()} is given twice; give all its values at once")
        found[name.strip()] = values
    return found


def split_values(text: str) -> list[str]:
    """The parts between commas; commas in brackets or quotes do not split.

    >>> split_values("ucb1(), rave(ucb1(0.1), bias=0.2), 'a,b'")
    ['ucb1()', 'rave(ucb1(0.1), bias=0.2)', "'a,b'"]
    """
    parts, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def number_of(value: str) -> float | None:
    """A value as a number; None if it is not a number.

    >>> number_of("0.5"), number_of("True"), number_of("'parent'")
    (0.5, None, None)
    """
    try:
        found = ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return None
    return float(found) if type(found) in (int, float) and math.isfinite(found) else None


# --- reading -------------------------------------------------------------------------------------


def _read_base(base: str | Mapping[str, Any]) -> dict[str, str]:
    """Options by name; each value is the text of a literal or of a rule."""
    if not isinstance(base, str):
        return {name: _text(value) for name, value in base.items()}
    try:
        call = ast.parse(f"f({base})", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            raise ValueError
        names = [each.arg for each in call.keywords]
        if None in names or len(set(names)) < len(names):
            raise ValueError
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UctreeError(
            f"cannot read the common options {base!r}; write them as solver=True, choice=lcb"
        ) from None
    return {str(each.arg): _text(ast.unparse(each.value)) for each in call.keywords}


def _values(axis: str, values: Values) -> tuple[str, ...]:
    listed = split_values(values) if isinstance(values, str) else list(values)
    texts = tuple(_text(value) for value in listed)
    if not texts or "" in texts:
        raise UctreeError(f"{axis}: a value is missing in {values!r}; write them as 0.5,1,2")
    twice = {text for text in texts if texts.count(text) > 1}
    if twice:
        raise UctreeError(f"{axis}: {', '.join(sorted(twice))} is given twice")
    if axis in BUDGETS:
        for text in texts:
            check_budget(axis, number_of(text), text)
    if axis == "reuse" and not set(texts) <= {"True", "False"}:
        raise UctreeError(f"reuse must be true or false; got {', '.join(texts)}")
    return texts


def check_budget(axis: str, number: float | None, text: str) -> None:
    """Raise UctreeError if a search cannot have this number of simulations or seconds."""
    whole = axis == "num_simulations"
    if number is None or not number > 0 or (whole and number != int(number)):
        kind = "whole numbers of at least 1" if whole else "numbers above 0"
        raise UctreeError(f"{axis} must be {kind}; got {text}")


def _text(value: Any) -> str:
    """A value as the text of a literal or of a call; other words are quoted.

    >>> _text("true"), _text(0.5), _text("puct(c=2)"), _text("parent"), _text("inf")
    ('True', '0.5', 'puct(c=2)', "'parent'", 'inf')
    """
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)
    if not isinstance(value, str):
        raise UctreeError(f"a value is a number or text, as 'puct(c=2)'; got {value!r}")
    text = value.strip()
    text = _WORDS.get(text.lower(), text)
    is_word = re.fullmatch(r"[A-Za-z_]\w*", text) is not None
    return repr(text) if is_word and text not in ("inf", *_WORDS.values()) else text


def _plain(text: str) -> str:
    """A value for people: a word without its quotes."""
    return text.strip("'") if re.fullmatch(r"'\w+'", text) else text


def _short_names(axes: list[str]) -> list[str]:
    """The last part of each axis, or the whole axis if two have the same last part.

    >>> _short_names(["selection.puct.c", "solver"]), _short_names(["a.b.c", "a.d.c"])
    (['c', 'solver'], ['a.b.c', 'a.d.c'])
    """
    last = [axis.rpartition(".")[2] for axis in axes]
    return [
        short if last.count(short) == 1 else axis for short, axis in zip(last, axes, strict=True)
    ]


# --- rules and their parameters ------------------------------------------------------------------


def _check_axes(axes: Mapping[str, Any], base: Mapping[str, str]) -> None:
    """Raise UctreeError for an unknown rule or parameter, or an option that is set twice."""
    rules: dict[str, str] = {}  # by option
    for axis in axes:
        option, _, rest = axis.partition(".")
        rule = rest.partition(".")[0]
        if rest:
            _check_parameter(axis)
            if option in axes:
                raise UctreeError(
                    f"{option} and {axis} cannot both vary; list the rules instead, as "
                    f"{option}={rule}({rest.partition('.')[2]}=1),{rule}(...)"
                )
            if rules.setdefault(option, rule) != rule:
                raise UctreeError(
                    f"{option} cannot be {rules[option]} and {rule} at once; list the rules "
                    f"instead, as {option}={rules[option]}(),{rule}()"
                )
        elif axis in base:
            raise UctreeError(f"{axis} both varies and is common to all settings; remove one")


def _check_parameter(axis: str) -> None:
    """Raise UctreeError if `option.rule.parameter` does not exist."""
    option, rule, parameter = [*axis.split(".", 2), "", ""][:3]
    if option not in specs.RULES:
        raise UctreeError(
            f"{axis}: {option} has no rules; {specs.meant(option, specs.RULES)}options with rules: "
            f"{', '.join(specs.RULES)}"
        )
    try:
        function = specs.known(rule, specs.rule_functions(option), ())
    except UctreeError as error:
        raise UctreeError(f"{axis}: {error}") from error
    parameters = list(inspect.signature(function).parameters)
    if parameter not in parameters:
        raise UctreeError(
            f"{axis}: {rule} has no parameter {parameter!r}; {specs.meant(parameter, parameters)}"
            f"the signature is {specs.signature(rule, function)}"
        )


def _set(options: dict[str, str], axis: str, value: str) -> None:
    """Set an option, or a parameter of its rule, to a value."""
    option, _, rest = axis.partition(".")
    if not rest:
        options[option] = value
        return
    rule, _, parameter = rest.partition(".")
    name, arguments = specs.split_call(options.get(option, rule).strip("'"))
    if name != rule:
        raise UctreeError(
            f"{axis} varies {rule}, but {option}={options[option]} is common to all settings; "
            "remove one"
        )
    given = _arguments(option, rule, arguments)
    given[parameter] = value
    options[option] = f"{rule}({', '.join(f'{key}={text}' for key, text in given.items())})"


def _arguments(option: str, rule: str, arguments: str) -> dict[str, str]:
    """The arguments of a rule by name, as text."""
    try:
        call = ast.parse(f"f({arguments})", mode="eval").body
    except SyntaxError:
        call = None
    if not isinstance(call, ast.Call):
        raise UctreeError(f"cannot read {option}={rule}({arguments}); write it as {rule}(c=2)")
    names = inspect.signature(specs.rule_functions(option)[rule]).parameters
    given = dict(zip(names, map(ast.unparse, call.args), strict=False))
    return given | {str(each.arg): ast.unparse(each.value) for each in call.keywords}

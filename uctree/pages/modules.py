"""The ES modules of `static/` as one script, for a page that may load nothing."""

from __future__ import annotations

import re
from importlib import resources

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=const |class |function )", re.MULTILINE)
_NAME = re.compile(r"^(?:export )?(?:const|let|class|function) (\w+)", re.MULTILINE)


def source(name: str) -> str:
    """The text of a file of `static/`."""
    return (resources.files("uctree.pages") / "static" / name).read_text("utf-8")


def bundled(entry: str) -> str:
    """A module and all that it imports as one classic script.

    Modules follow those that they import, in one scope; so their top-level names must differ.
    """
    parts: dict[str, str] = {}
    _add(entry, parts, ())
    owners: dict[str, str] = {}
    for module, text in parts.items():
        for name in _NAME.findall(text):
            if name in owners:
                raise ValueError(
                    f"{owners[name]} and {module} both define {name}, and one script holds them: "
                    "rename one"
                )
            owners[name] = module
    body = "\n".join(_EXPORT.sub("", text) for text in parts.values())
    return f'"use strict";\n(() => {{\n{body}}})();\n'


def _add(module: str, parts: dict[str, str], above: tuple[str, ...]) -> None:
    """Add a module to `parts` after those that it imports."""
    if module in parts:
        return
    if module in above:
        raise ValueError(f"modules import each other: {' -> '.join([*above, module])}")
    text = source(module)
    for names, other in _IMPORT.findall(text):
        _add(other, parts, (*above, module))
        for name in names.replace(" ", "").strip(",").split(","):
            if not re.search(rf"^export (?:const|class|function) {name}\b", source(other), re.M):
                raise ValueError(f"{module} imports {name}, which {other} does not export")
    parts[module] = _IMPORT.sub("", text)

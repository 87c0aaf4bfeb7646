"""Reports as files: Markdown tables, and texts in a folder."""

from __future__ import annotations

import html
import math
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from uctree.engine.treefile import replacing
from uctree.errors import UctreeError


def markdown_table(rows: list[list[str]], left: int = 1) -> str:
    """Rows as a Markdown table, titles first; the first `left` columns are left-aligned.

    >>> print(markdown_table([["name", "games"], ["a", "12"]]))
    | name | games |
    | --- | ---: |
    | a | 12 |

    Names stay text, so that they add neither columns nor HTML.

    >>> print(markdown_table([["name"], ["<b>|"]]).splitlines()[-1])
    | &lt;b&gt;\\| |
    """
    titles, *others = [[html.escape(c, quote=False).replace("|", "\\|") for c in r] for r in rows]
    sides = ["---" if place < left else "---:" for place in range(len(titles))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [titles, sides, *others])


def plain_row(row: Any) -> dict[str, Any]:
    """A row of a table, ready for `json.dumps`; None for an unknown interval."""
    return {
        name: None if name.endswith("_interval") and value and math.inf in value else value
        for name, value in asdict(row).items()
    }


def write_files(folder: str | os.PathLike[str], texts: Mapping[str, str]) -> list[Path]:
    """The paths of texts that are written to a folder, which is created if needed."""
    paths = [Path(folder) / name for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as file:  # a link in its place is replaced, not followed
                file.write(text.encode())
        except OSError as error:
            raise UctreeError(f"{path}: {error.strerror}") from error
    return paths

"""One HTML page of text, tables and charts, without scripts and without other files."""

from __future__ import annotations

import html
from collections.abc import Sequence

# Nothing is loaded, and no script runs.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem }
svg { width: 32rem; max-width: 100% } .wide { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px }
th, td { padding: 2px 8px; text-align: right; border-bottom: 1px solid #8884 }
@media (prefers-color-scheme: dark) { body { background: #1b1b1b; color: #ddd } }
"""


def document(title: str, parts: Sequence[str]) -> str:
    """A page with a title and parts of HTML."""
    name = html.escape(title)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f'<meta name="viewport" content="width=device-width"><title>{name}</title>'
        f"<style>{STYLE}</style></head>\n<body><h1>{name}</h1>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def paragraph(text: str) -> str:
    """Text as HTML.

    >>> paragraph("1 < 2")
    '<p>1 &lt; 2</p>'
    """
    return f"<p>{html.escape(text)}</p>"


def preformatted(text: str) -> str:
    """Text as HTML that keeps its lines and columns, such as a board.

    >>> preformatted("<")
    '<pre>&lt;</pre>'
    """
    return f"<pre>{html.escape(text)}</pre>"


def heading(text: str) -> str:
    """The title of a section as HTML."""
    return f"<h2>{html.escape(text)}</h2>"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of text as an HTML table; the first row has the titles.

    >>> table([["a"], ["1"]])
    '<div class="wide"><table><tr><th>a</th></tr><tr><td>1</td></tr></table></div>'
    """
    lines = []
    for i, row in enumerate(rows):
        tag = "th" if i == 0 else "td"
        lines.append("<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in row) + "</tr>")
    return f'<div class="wide"><table>{"".join(lines)}</table></div>'

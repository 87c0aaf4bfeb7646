"""HTML pages that need no network: of a search result, a report, a study; charts and boards.

Imported by `result` (inside `save`), `principle`, `arena`, `learn` and `cli`.
Read `result_page.py` first; `static/` holds the template, style and script of that page.
"""

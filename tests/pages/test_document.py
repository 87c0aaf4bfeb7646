"""One HTML page of text, tables and charts."""

from __future__ import annotations

import pytest

from uctree.pages import document

pytestmark = pytest.mark.quick


def test_a_page_loads_nothing_and_runs_no_script():
    page = document.document("a <b> title", [document.heading("1 & 2"), document.paragraph("<i>")])
    assert page.startswith("<!doctype html>")
    assert page.count("<title>a &lt;b&gt; title</title>") == 1
    assert "<h2>1 &amp; 2</h2>\n<p>&lt;i&gt;</p>" in page
    assert "default-src 'none'" in page
    assert "<script" not in page


def test_the_first_row_of_a_table_has_the_titles():
    html = document.table([["<", "b"], ["1", "2"]])
    assert html.count("<th>") == html.count("<td>") == 2
    assert "<th>&lt;</th><th>b</th>" in html
    assert document.preformatted("a\n <") == "<pre>a\n &lt;</pre>"

"""How tests start a browser, and what no page may do in it."""

from __future__ import annotations

import shutil
from contextlib import contextmanager

import pytest

ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


@contextmanager
def chromium():
    """A browser; the test is skipped if there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield started
        started.close()


class Noted:
    """The errors and requests of a tab."""

    def __init__(self, tab):
        self.errors, self.requests = [], []
        tab.on("pageerror", lambda error: self.errors.append(str(error)))
        tab.on("console", lambda message: self.errors.append(message.text))
        tab.on("dialog", lambda dialog: (self.errors.append(dialog.message), dialog.dismiss()))
        tab.on("request", lambda request: self.requests.append(request.url))

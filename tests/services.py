"""Services for the tests of those who run them elsewhere."""

from __future__ import annotations

import os
import signal


class Echo:
    """Answers what it is told, twice; on "die" it dies in the middle of it."""

    def __init__(self, greeting="", folder=None):
        if greeting == "fail":
            raise ZeroDivisionError("one over zero")
        self.greeting, self.folder = greeting, folder

    def __call__(self, message, tell):
        kind, content = message
        if kind == "environment":
            tell((kind, {name: os.environ.get(name) for name in content}))
            return
        if kind == "who":
            tell((kind, os.getpid()))
            return
        tell((kind, self.greeting + str(content)))
        if kind == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        tell((kind, content))

    def close(self):
        if self.folder is not None:
            with open(os.path.join(self.folder, "closed"), "w") as file:
                file.write(str(os.getpid()))

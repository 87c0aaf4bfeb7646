"""`python -m ramify` is the command `ramify`."""

from __future__ import annotations

import sys

from ramify.cli import main

if __name__ == "__main__":
    sys.exit(main())

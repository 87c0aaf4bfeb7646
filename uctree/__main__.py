"""`python -m uctree` is the command `uctree`."""

from __future__ import annotations

import sys

from uctree.cli import main

if __name__ == "__main__":
    sys.exit(main())

"""What all tests of kernels in plain Python need."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def numbers_wrap_around():
    """Random bits and hashes overflow on purpose, as they do in machine code."""
    with np.errstate(over="ignore"):
        yield

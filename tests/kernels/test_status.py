"""Status numbers: no two mean the same, and every error has a text."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from uctree.engine import diagnostics
from uctree.kernels import records, status

pytestmark = pytest.mark.quick

NUMBERS = {
    name: value for name, value in vars(status).items() if name.isupper() and name != "GUARD"
}
# Not errors: what the driver acts on.
ACTED_ON = {"DONE", "NEED_CAPACITY", "ROOT_SOLVED", "EDGE_CLOSED", "WAITING"}


def test_no_two_statuses_have_the_same_number():
    assert [number for number, count in Counter(NUMBERS.values()).items() if count > 1] == []


def test_minus_a_status_is_not_the_number_of_no_edge():
    assert -records.NONE not in NUMBERS.values()


def test_every_error_has_a_text():
    source = Path(diagnostics.__file__).read_text()
    assert [name for name in NUMBERS.keys() - ACTED_ON if f"\n        {name}: " not in source] == []

"""Every built-in game that has numbered actions, small."""

from __future__ import annotations

import pytest

from tests.adapters.small import NAMES, built_in


@pytest.fixture(params=NAMES)
def game(request):
    return built_in(request.param)

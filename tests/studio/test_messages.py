"""Messages of tabs: what is read, and what is refused."""

from __future__ import annotations

import pytest

from uctree.errors import UctreeError
from uctree.studio import messages
from uctree.studio.messages import read_message

pytestmark = pytest.mark.quick


def test_a_message_has_the_fields_of_its_kind():
    assert read_message('{"kind": "act", "ply": 3, "action": 4}') == messages.Act(3, 4)
    assert read_message(b'{"kind": "act", "ply": 0, "action": [0.5]}') == messages.Act(0, [0.5])
    settings = messages.Settings(seconds=None, num_simulations=10)
    text = '{"kind": "configure", "settings": {"seconds": null, "num_simulations": 10}}'
    assert read_message(text) == messages.Configure(settings)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "truncated"),
        (b"\xff\xfe", "malformed|invalid"),
        ("[" * 5_000, "Expected `object`, got `array`"),
        ('{"kind": "shout"}', "Invalid value 'shout'"),
        ('{"ply": 1}', "missing required field `kind`"),
        ('{"kind": "act", "ply": -1, "action": 4}', r"Expected `int` >= 0 - at `\$\.ply`"),
        ('{"kind": "act", "ply": 1, "action": "4"}', r"Expected `int \| array`"),
        ('{"kind": "act", "ply": 1, "action": true}', r"Expected `int \| array`"),
        ('{"kind": "undo", "more": 1}', "unknown field `more`"),
        ('{"kind": "sit", "seats": ["nobody"]}', "Invalid enum value 'nobody'"),
        ('{"kind": "configure", "settings": {"seconds": 1e9}}', "Expected `float` <= 3600"),
        ('{"kind": "configure", "settings": {"num_simulations": 0}}', "Expected `int` >= 1"),
    ],
)
def test_anything_else_is_refused_with_its_place(text, reason):
    with pytest.raises(UctreeError, match=f"cannot read this message: .*({reason})"):
        read_message(text)

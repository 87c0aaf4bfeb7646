"""Records without their times, to compare games that were played twice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from uctree.arena import GameRecord


def without_seconds(record: GameRecord) -> dict[str, Any]:
    """The content of a record except how long it took."""
    content = record.to_json()
    del content["seconds"]
    return content


def all_without_seconds(records: Iterable[GameRecord]) -> list[dict[str, Any]]:
    return [without_seconds(record) for record in records]

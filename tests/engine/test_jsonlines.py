"""Files of JSON lines: whole lines, one writer, and no other kind of file."""

from __future__ import annotations

import pytest

from uctree.engine.jsonlines import LineFile, complete_lines, open_regular
from uctree.errors import UctreeError

pytestmark = pytest.mark.quick

BEGINNING = b'{"kind"'


def test_lines_come_back_without_a_torn_one(tmp_path):
    path = tmp_path / "file.jsonl"
    file = LineFile(path, "match", BEGINNING)
    assert file.lines == []
    file.append('{"kind": 1}')
    file.append("[2]")
    file.close()
    path.write_bytes(path.read_bytes() + b"[3")
    again = LineFile(path, "match", BEGINNING)
    assert again.lines == [b'{"kind": 1}\n', b"[2]\n"]
    again.append("[4]")
    again.close()
    assert path.read_bytes() == b'{"kind": 1}\n[2]\n[4]\n'


def test_a_file_of_another_kind_stays_as_it_is(tmp_path):
    path = tmp_path / "letter.txt"
    path.write_text("Dear")
    with pytest.raises(UctreeError, match="is not the file of a journal; give another name"):
        LineFile(path, "journal", BEGINNING)
    assert path.read_text() == "Dear"


def test_two_writers_do_not_share_a_file(tmp_path):
    first = LineFile(tmp_path / "file", "match", BEGINNING)
    with pytest.raises(UctreeError, match="is in use by another match"):
        LineFile(tmp_path / "file", "match", BEGINNING)
    first.close()
    LineFile(tmp_path / "file", "match", BEGINNING).close()


def test_links_are_not_followed(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    assert open_regular(tmp_path / "link", 0, "rb") is None
    with pytest.raises(UctreeError, match="link is a link or not a file"):
        LineFile(tmp_path / "link", "match", BEGINNING)


def test_only_whole_lines_are_complete():
    assert complete_lines(b"a\nb\nc") == [b"a\n", b"b\n"]
    assert complete_lines(b"") == []

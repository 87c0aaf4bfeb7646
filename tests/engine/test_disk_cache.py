"""The cache of machine code: damaged entries, folders of others, disks that are full."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from uctree.engine import compile as compiling
from uctree.engine import disk_cache
from uctree.engine.compile import compile_kernel
from uctree.engine.recent import Recent

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes of folders")


def double(n):
    return 2 * n


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder, and no machine code in memory."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("UCTREE_CACHE_DIR", str(folder))
    monkeypatch.setattr(compiling, "_in_memory", Recent(8))
    return folder


def kernel():
    """A small kernel, as a process gets it that has compiled nothing yet."""
    compiling._in_memory = Recent(8)
    return compile_kernel(double, {}, (1,), label="double")


def the_entry(folder):
    [path] = folder.iterdir()
    return path


@pytest.mark.quick
def test_an_entry_is_loaded_by_the_next_process(cache):
    assert not kernel().cached
    loaded = kernel()
    assert loaded.cached
    assert loaded.call(21) == 42


@pytest.mark.quick
def test_no_damage_to_an_entry_is_ever_loaded(cache):
    kernel()
    path, rng = the_entry(cache), np.random.default_rng(1)
    sound = path.read_bytes()
    places = [0, 63, 64, 70, len(sound) - 1, *rng.integers(len(sound), size=30)]
    damaged = [sound[:at] + bytes([sound[at] ^ 1 << at % 8]) + sound[at + 1 :] for at in places]
    for content in [*damaged, b"", sound[:100], sound + b"x"]:
        path.write_bytes(content)
        assert disk_cache._read(path) is None
    found = kernel()
    assert not found.cached
    assert found.call(21) == 42
    assert disk_cache._read(path) is not None  # it was replaced
    assert kernel().cached


def test_an_entry_of_another_build_of_numba_is_replaced(cache):
    kernel()
    path = the_entry(cache)
    disk_cache._write(path, b'{"label": "double"}', b"not a pickle")
    assert not kernel().cached
    assert kernel().cached


@posix
def test_the_folder_is_made_for_its_user_alone(cache):
    before = os.umask(0)
    try:
        kernel()
    finally:
        os.umask(before)
    assert cache.stat().st_mode & 0o777 == 0o700
    assert the_entry(cache).stat().st_mode & 0o077 == 0


@posix
@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o722])
def test_a_folder_that_others_may_write_to_is_not_used(cache, mode):
    kernel()
    cache.chmod(mode)
    message = f"(?s)everybody can write to {cache}.*chmod go-w {cache}.*UCTREE_CACHE_DIR"
    with pytest.warns(UserWarning, match=message):
        found = kernel()
    assert not found.cached
    assert found.call(21) == 42


@posix
def test_a_folder_that_others_may_rename_is_not_used(cache):
    kernel()
    cache.parent.chmod(0o777)
    with pytest.warns(UserWarning, match=f"everybody can write to {cache.parent}, "):
        assert not kernel().cached
    cache.parent.chmod(0o1777)  # as /tmp: others cannot rename what is ours
    assert kernel().cached


@posix
def test_an_entry_that_others_may_write_to_is_replaced(cache):
    kernel()
    the_entry(cache).chmod(0o666)
    assert not kernel().cached
    assert the_entry(cache).stat().st_mode & 0o077 == 0
    assert kernel().cached


@pytest.mark.quick
@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
def test_a_folder_and_an_entry_of_another_user_are_not_used(cache):
    kernel()
    os.chown(the_entry(cache), 12345, 12345)
    assert not kernel().cached
    os.chown(cache, 12345, 12345)
    with pytest.warns(UserWarning, match="the user with the number 12345 can write to"):
        assert not kernel().cached


@posix
def test_a_link_to_a_folder_is_followed_once(cache, tmp_path, monkeypatch):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setenv("UCTREE_CACHE_DIR", str(tmp_path / "link"))
    assert disk_cache.safe_folder() == (tmp_path / "real").resolve()


def test_a_full_disk_only_costs_time_and_leaves_nothing_behind(cache, monkeypatch):
    def fails(*_):
        raise OSError(28, "No space left on device")

    cache.mkdir(mode=0o700)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fails)
        with pytest.warns(UserWarning, match="No space left"):
            found = kernel()
    assert found.call(21) == 42
    assert list(cache.iterdir()) == []
    assert not kernel().cached
    assert kernel().cached


LIMITED = """
import resource, signal, warnings, numpy as np
from uctree.engine.compile import compile_kernel

def double(n):
    return 2 * n

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(compile_kernel(double, {}, (1,), label="double").call(21))
print("File too large" in str(caught[0].message))
"""


@posix
def test_a_disk_that_takes_only_a_part_of_an_entry_leaves_nothing_behind(cache):
    done = subprocess.run(
        [sys.executable, "-c", LIMITED], capture_output=True, text=True, timeout=100, check=True
    )
    assert done.stdout.split() == ["42", "True"]
    assert list(cache.iterdir()) == []


def test_a_place_that_cannot_be_a_folder_only_costs_time(cache, monkeypatch):
    cache.parent.joinpath("file").write_text("not a folder")
    monkeypatch.setenv("UCTREE_CACHE_DIR", str(cache.parent / "file" / "cache"))
    with pytest.warns(UserWarning, match="compiled anew in every process: .*Not a directory"):
        assert kernel().call(21) == 42


@pytest.mark.quick
def test_the_newest_entries_that_fit_into_the_bound_are_kept(cache, monkeypatch):
    cache.mkdir()
    for i in range(5):
        path = cache / f"entry{i}.kernel"
        disk_cache._write(path, f'{{"label": "{i}"}}'.encode(), b"code")
        os.utime(path, (i, i))
    (cache / "notes.txt").write_text("not an entry")
    monkeypatch.setattr(disk_cache, "MAX_BYTES", 3 * path.stat().st_size)
    disk_cache.drop_oldest()
    assert [entry.label for entry in disk_cache.cache_entries()] == ["4", "3", "2"]
    assert disk_cache.clear_cache() == 3
    assert disk_cache.cache_entries() == []
    assert [path.name for path in cache.iterdir()] == ["notes.txt"]

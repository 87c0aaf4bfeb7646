"""Run folders from somebody else: sealed again after a change, with links, with huge numbers."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import tracemalloc

import numpy as np
import pytest

from tests.learn.episodes import episode
from tests.learn.test_report import recorded
from uctree import UctreeError, games
from uctree.learn import files
from uctree.learn.algorithms import make_algorithm
from uctree.learn.replay import ENTRY, Replay, _crc, _sha256
from uctree.learn.report import report_page
from uctree.learn.run import Run, load, new_network
from uctree.learn.sequences import make_reanalysed, make_sequence

torch = pytest.importorskip("torch", reason="the extra learn is not installed")
pytest.importorskip("safetensors", reason="the extra learn is not installed")


@pytest.fixture(scope="module")
def game():
    return games.tic_tac_toe()


@pytest.fixture
def run(tmp_path, game):
    """The folder of a run with a checkpoint and some episodes."""
    folder = tmp_path / "run"
    with Run.begin(folder, game, network_width=8, network_depth=1) as run:
        for number in range(4):
            run.replay.append(number, episode(game, number))
        run.log("iteration", iteration=1)
        run.save(1, network=new_network(game, run.options))
    return folder


@pytest.fixture
def model_run(tmp_path, game):
    """The folder of a run of a learned model."""
    folder = tmp_path / "model"
    options = {"algorithm": "muzero", "network_width": 8, "network_depth": 8}
    with Run.begin(folder, game, **options, priority_exponent=0.5) as run:
        states = [game.play(list(range(count))) for count in range(2)]
        run.replay.append(0, make_sequence(
            game, np.array(states, game.dtype), [0, 1], np.zeros((2, 2)),
            [([0], [1.0]), ([1], [1.0])], np.zeros((2, 2)), is_over=False,
        ))  # fmt: skip
        run.save(1, network=new_network(game, run.options))
    return folder


@pytest.fixture(autouse=True)
def little_memory():
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6


def reseal(path, change):
    """Change a sealed JSON file; its checksum is right again."""
    content = files.read_json(path)
    change(content)
    files.write_json(path, content)


# --- links ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["metrics.jsonl", "lock", "replay/episodes.index", "replay/000000.positions"]
)
@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_in_place_of_a_file_is_refused_and_its_target_stays(
    run, game, tmp_path, name, is_there
):
    target = tmp_path / "precious.txt"
    if is_there:
        target.write_bytes((run / name).read_bytes() + b"precious, without a line end")
    before = target.read_bytes() if is_there else None
    (run / name).unlink()
    (run / name).symlink_to(target)
    # A shard that leads nowhere counts as missing, and a new one begins.
    is_refused = is_there or not name.endswith(".positions")
    error = pytest.raises(UctreeError, match="is a link or not a file")
    with error if is_refused else contextlib.nullcontext(), Run.begin(run, game) as again:
        again.replay.append(99, episode(game, 99))
    assert target.exists() == is_there
    assert before is None or target.read_bytes() == before


@pytest.mark.parametrize("name", ["replay", "checkpoints", "tensorboard"])
def test_a_link_in_place_of_a_folder_is_refused(run, game, tmp_path, name):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / ".uctree-mine").write_text("mine")
    if (run / name).exists():
        (run / name).rename(tmp_path / "old")
    (run / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UctreeError, match="is a link or not a file"), Run.begin(run, game) as again:
        assert again.replay.num_episodes
    assert os.listdir(tmp_path / "elsewhere") == [".uctree-mine"]


def test_a_pipe_in_place_of_a_file_does_not_wait(run, game):
    for name in ("metrics.jsonl", "replay/episodes.index"):
        (run / name).unlink()
        os.mkfifo(run / name)
    with pytest.raises(UctreeError, match=r"is a link or not a file|is not a file"):
        Run.begin(run, game)
    with pytest.raises(UctreeError, match="is not a file"):
        Replay(run / "replay", game, read_only=True)


def test_a_link_to_a_folder_is_not_followed_when_leftovers_are_deleted(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".uctree-1").symlink_to(tmp_path / "precious")
    files.delete_temporaries(tmp_path / "run")
    assert os.listdir(tmp_path) == sorted(["precious", "run"], key=os.listdir(tmp_path).index)
    assert os.listdir(tmp_path / "run") == []


# --- sealed JSON ---------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["game", "options"])
@pytest.mark.parametrize("value", [None, 7, []])
def test_options_without_their_parts_are_taken_from_a_checkpoint(run, game, part, value):
    reseal(run / "options.json", lambda content: content.update({part: value}))
    opened = Run.open(run)
    assert "has no game or no options; game and options are those of" in opened.warnings[0]
    (run / "checkpoints" / "000001").rename(run / "gone")
    with pytest.raises(UctreeError, match="no intact checkpoint has a copy"):
        Run.open(run)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"game": None}, "has no game or no first_shard"),
        ({"first_shard": "0"}, "has no game or no first_shard"),
        ({"first_shard": -1}, "has no game or no first_shard"),
        ({"dtype": None}, "positions have another dtype"),
        ({"dtype": {"size": 10**12, "fields": {}}}, "positions have another dtype"),
        ({"game": {}}, "episodes of another game"),
    ],
)
def test_a_layout_of_the_replay_without_its_parts_is_refused(run, game, change, message):
    reseal(run / "replay" / "layout.json", lambda content: content.update(change))
    with pytest.raises(UctreeError, match=message):
        Replay(run / "replay", game, read_only=True)


@pytest.mark.parametrize("name", ["../../x.safetensors", "/etc/passwd", "weights.safetensors/.."])
def test_a_manifest_names_no_other_files(run, name):
    entry = {"bytes": 1, "sha256": "0"}
    path = run / "checkpoints" / "000001" / "manifest.json"
    reseal(path, lambda content: content["files"].update({name: entry}))
    with pytest.raises(UctreeError, match="its manifest names"):
        load(run / "checkpoints" / "000001")


@pytest.mark.parametrize(
    "sizes",
    [
        {"width": 10**6},
        {"width": 10**12},
        {"depth": 10**9},
        {"depth": 1000},
        {"num_actions": 10**6},
        {"observation_shape": [10**6, 10**6, 10**6]},
        {"observation_shape": 3},
        {"width": 8.0},
        {"width": "8"},
        {"width": True},
        {"kind": "os.system"},
        {"value_range": [0]},
        {"value_range": "ab"},
        {"per_cell": 1},
        {"more": 1},
    ],
    ids=str,
)
def test_sizes_of_a_network_are_held_against_its_weights(run, sizes):
    path = run / "checkpoints" / "000001" / "manifest.json"
    reseal(path, lambda content: content["network"].update(sizes))
    with pytest.raises(UctreeError, match=r"not the description of a network|does not fit"):
        load(run / "checkpoints" / "000001").network()


@pytest.mark.parametrize(
    "sizes",
    [{"width": 10**6}, {"depth": 10**9}, {"num_players": 10**6}, {"kind": "mlp"}, {"per_cell": 1}],
    ids=str,
)
def test_sizes_of_a_model_are_held_against_its_weights(model_run, sizes):
    path = model_run / "checkpoints" / "000001" / "manifest.json"
    reseal(path, lambda content: content["network"].update(sizes))
    with pytest.raises(UctreeError, match=r"not the description of a|does not fit"):
        load(model_run / "checkpoints" / "000001").network()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "has no state of a muzero run"),
        ({"cursors": np.zeros(3)}, "has no state of a muzero run"),
        ({"cursors": np.zeros(2, np.int64)}, "has no state of a muzero run"),
        ({"priority": np.full(9, np.nan)}, "priorities that are not numbers"),
        ({"priority": np.full(9, -1.0)}, "priorities that are not numbers"),
        ({"priority": np.ones((3, 3))}, "priorities that are not numbers"),
    ],
)
def test_what_a_model_has_learned_from_is_checked(model_run, game, arrays, message):
    whole = {"cursors": np.array([4, 10**15, 1])}
    with Run.begin(model_run, game) as run:
        run.replay  # noqa: B018 (opens its files)
        algorithm = make_algorithm(run)
        algorithm.load(whole, run.replay.end)
        algorithm.load(whole | {"priority": np.ones(10**5)}, run.replay.end)
        with pytest.raises(UctreeError, match=message):
            algorithm.load(whole | arrays if "priority" in arrays else arrays, run.replay.end)


def test_searches_made_again_of_no_position_are_left_out(model_run, game):
    with Run.begin(model_run, game) as run:
        algorithm, states = make_algorithm(run), np.array([game.play([0])], game.dtype)
        policy, values = [([0], [1.0])], np.ones((1, 2))
        for number in (0, 10**15, 2**62):
            found = make_reanalysed(game, np.array([number]), states, policy, values)
            run.reanalysis.append(number, found)
        algorithm.load({"cursors": np.array([4, 3, 1])}, run.replay.end)
        assert not algorithm.reanalysed._policies
        found["search_values"] = np.nan
        with pytest.raises(UctreeError, match="not finite"):
            run.reanalysis.append(5, found)


def test_metrics_are_valid_json_and_sealed_files_hold_finite_numbers(run, game):
    with Run.begin(run, game) as again:
        again.log("learning", iteration=1, loss=float("nan"), values=np.array([1.0, np.inf]))
        with pytest.raises(UctreeError, match="holds finite numbers"):
            again.save(2, network=new_network(game, again.options), counters={"loss": np.nan})
        row = again.metrics("learning")[0]
    assert (row["loss"], row["values"]) == (None, [1.0, None])
    text = (run / "metrics.jsonl").read_text()
    assert "NaN" not in text
    assert "Infinity" not in text


# --- metrics -------------------------------------------------------------------------------------

VALUES = [None, "x", -1, 10**30, 1e300, True, [], {}, [1], [[1]], "9" * 10**4, {"random": 1}]


def places(content, path=()):
    """The paths of everything in a line of metrics."""
    items = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in items:
        yield (*path, key)
        if isinstance(value, (dict, list)):
            yield from places(value, (*path, key))


def put_at(content, path, value):
    for key in path[:-1]:
        content = content[key]
    content[path[-1]] = value


@pytest.mark.parametrize("num_changes", [30, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["tic_tac_toe", "twenty48"])
def test_a_report_leaves_out_lines_with_other_numbers(tmp_path, name, num_changes):
    """Any entry of any line of a run, replaced by what reports do not expect."""
    game = games.twenty48(max_tile=16) if name == "twenty48" else games.tic_tac_toe()
    recorded(tmp_path / "run", game)
    path = tmp_path / "run" / "metrics.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines = lines[-5:]  # of one measurement, with a past
    random = np.random.default_rng(0)
    changed = [(row, place) for row, line in enumerate(lines) for place in places(line)]
    for row, place in random.permutation(np.array(changed, object))[:num_changes]:
        forged = copy.deepcopy(lines)
        put_at(forged[row], place, VALUES[random.integers(len(VALUES))])
        path.write_text("".join(json.dumps(line) + "\n" for line in forged))
        assert "</html>" in report_page(Run.open(tmp_path / "run"))


def test_lines_that_are_left_out_are_counted_on_the_page(tmp_path, game):
    recorded(tmp_path / "run", game)
    path = tmp_path / "run" / "metrics.jsonl"
    path.write_text(path.read_text().replace('"seconds": 360.0', '"seconds": "<b>"'))
    page = report_page(Run.open(tmp_path / "run"))
    assert "Damaged: 2 lines of metrics.jsonl of the kind &#x27;checkpoint&#x27;" in page
    assert "<b>" not in page


def test_thousands_of_damaged_lines_are_named_a_hundred_times(run):
    with (run / "metrics.jsonl").open("a") as file:
        file.write("[]\n" * 5000)
    opened = Run.open(run)
    assert len(opened.metrics()) == 1
    assert len(opened.warnings) == 100


# --- the replay ----------------------------------------------------------------------------------


def rewrite_index(run, change):
    path = run / "replay" / "episodes.index"
    entries = np.frombuffer(path.read_bytes(), ENTRY).copy()
    change(entries)
    for entry in entries:
        entry["crc32"] = _crc(entry)
    path.write_bytes(entries.tobytes())


def put(name, row, value):
    def change(entries):
        entries[name][row] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        put("first", 3, 10**12), put("first", 3, 2**64 - 1), put("count", 3, 2**32 - 1),
        put("offset", 3, 2**32 - 1), put("shard", 3, 2**32 - 1), put("first", 0, 10**12),
    ],
)  # fmt: skip
@pytest.mark.parametrize("read_only", [True, False])
def test_huge_numbers_in_the_index_take_no_memory(run, game, change, read_only):
    rewrite_index(run, change)
    try:
        with Replay(run / "replay", game, read_only=read_only) as replay:
            assert replay.window(10**9).num_positions <= 40
    except UctreeError as error:
        assert "restore it, or move" in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("name", "value"), [("policy_actions", 10**4), ("policy_actions", -5), ("returns", np.nan)]
)
def test_positions_that_cannot_be_trained_on_are_left_out(run, game, name, value):
    path = run / "replay" / "000000.positions"
    replay = Replay(run / "replay", game, read_only=True)
    positions = np.frombuffer(path.read_bytes(), replay.dtype).copy()
    positions[name][0] = value
    path.write_bytes(positions.tobytes())
    count = len(replay.positions(1)) and int(replay._entries["count"][0])
    digest = np.frombuffer(_sha256(positions[:count]), np.uint8)
    rewrite_index(run, put("sha256", 0, digest))
    again = Replay(run / "replay", game, read_only=True)
    window = again.window(1000)
    assert window.num_positions == len(positions) - count
    assert "1 of its episodes are left out (0)" in again.warnings[0]

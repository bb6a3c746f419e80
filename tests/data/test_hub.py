"""The hub, its cache and a mirror give the same rows. Only needed files are fetched, and errors say what to do."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
from refusals import refuses

from codec_bench.audio.clip import Clip
from codec_bench.data import open_source
from codec_bench.data.hub import Repository, parse_hub_name
from codec_bench.data.layout import _with_missing
from codec_bench.data.table import open_table
from codec_bench.types import Audio

from .conftest import COMMIT, CONVERTED, encoded, into_cache, rows, run_with_hub, shards, write_parquet

SHARD = "data/test-{:05d}-of-00003.parquet"

# The hub's address is read when its library is imported, so each of these runs in a process of its own. It prints, for
# every call of open_table, its rows (sounds as their numbers of samples) or what was refused.
PROGRAM = """
import json, sys
from codec_bench.audio.clip import Clip
from codec_bench.data.table import open_table
from codec_bench.messages.errors import UserError

def plain(value):
    return value.read().num_samples if isinstance(value, Clip) else value

answers = []
for where, options in json.loads(sys.argv[1]):
    try:
        table = open_table(where, **options)
        columns, total = list(table.columns), table.total
        rows = [[key, {name: plain(value) for name, value in row.items()}] for key, row in table]
        answers.append({"revision": table.revision, "columns": columns, "total": total, "rows": rows})
    except UserError as error:
        answers.append({"refused": str(error)})
print(json.dumps(answers))
"""


def ask(address, home, *calls, **more):
    """What `open_table` gives for each (where, options), with the hub at an address and its cache in a folder."""
    pytest.importorskip("datasets")
    done = run_with_hub(PROGRAM, json.dumps(calls), address=address, home=home, **more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def plain(table):
    return [
        [key, {name: v.read().num_samples if isinstance(v, Clip) else v for name, v in row.items()}]
        for key, row in table
    ]


def test_the_hub_gives_what_the_folder_gives_and_then_its_cache(hub, layout, tmp_path):
    hub.add("OWNER/NAME", layout)
    calls = [
        ("hf:OWNER/NAME", {"split": "test", "limit": 4}),
        ("hf:OWNER/NAME", {"split": "test", "limit": 4, "revision": "nope"}),
        ("hf:OWNER/NAME", {"config": "nope"}),
        ("hf:OWNER/NAME", {"split": "nope"}),
        ("hf:OWNER/NAME", {"columns": ["answer"]}),
        ("hf:OWNER/MISSING", {}),
        ("hf:OWNER/NAME:other", {}),
    ]
    first, revision, config, split, column, missing, other = ask(hub.url, tmp_path / "home", *calls)
    assert first["rows"] == plain(open_table(layout, split="test", limit=4))
    assert (first["revision"], first["total"]) == (COMMIT, 4)
    assert other["rows"] == plain(open_table(layout, config="other"))
    assert "has no revision 'nope'" in revision["refused"]
    assert "no configuration 'nope' (hint: there are: main, other)" in config["refused"]
    assert "no split 'nope' (hint: there are: test, train)" in split["refused"]
    assert "no column 'answer' (hint: its columns are id, audio, text, n, split)" in column["refused"]
    assert "OWNER/MISSING'" in missing["refused"] and "401" in missing["refused"]
    assert "CODEC_BENCH_DATA" in missing["refused"]
    later = [SHARD.format(at) for at in (1, 2)] + ["data/train-00000-of-00001.parquet"]
    assert [hub.bytes_of(path) for path in later] == [0, 0, 0], "files with no row that is wanted are not fetched"

    # The same again without a network: switched off by the environment, and with a server that does not answer.
    hub.close()
    for address, more in ((hub.url, {"HF_HUB_OFFLINE": "1"}), ("http://127.0.0.1:9", {})):
        again, other, beyond = ask(
            address, tmp_path / "home", *calls[:1], calls[-1], ("hf:OWNER/NAME", {"split": "test", "limit": 11}), **more
        )
        assert again == first and other["rows"]
        assert f"'{SHARD.format(1)}' of OWNER/NAME is not in the hub's cache (commit {COMMIT})" in beyond["refused"]


def test_of_files_that_are_not_needed_only_the_footers_are_fetched(hub, tmp_path):
    rng = np.random.default_rng(1)
    for at in range(4):
        held = [{"audio": {"bytes": rng.bytes(400_000), "path": "x.wav"}, "n": 5 * at + n} for n in range(5)]
        write_parquet(tmp_path / "set" / "data" / f"test-{at:05d}-of-00004.parquet", held)
    size = (tmp_path / "set" / "data" / "test-00000-of-00004.parquet").stat().st_size
    hub.add("OWNER/NAME", tmp_path / "set")
    seed = next(
        seed for seed in range(100)
        if {key for key, _ in open_table(tmp_path / "set", split="test", limit=2, seed=seed)} <= {f"test/{at}"
            for at in range(10, 15)}
    )  # fmt: skip
    (result,) = ask(
        hub.url, tmp_path / "home", ("hf:OWNER/NAME", {"limit": 2, "seed": seed, "columns": ["n"], "split": "test"})
    )
    assert [row["n"] // 5 for _, row in result["rows"]] == [2, 2]
    fetched = [hub.bytes_of(f"data/test-{at:05d}-of-00004.parquet") for at in range(4)]
    assert fetched[2] >= size
    assert all(0 < fetched[at] < size / 10 for at in (0, 1, 3)), f"of {size} bytes each, {fetched} were fetched"


def test_gated_repositories_and_scripts(hub, layout, tmp_path):
    hub.add("OWNER/GATED", layout)
    hub.gated.add("OWNER/GATED")
    for name in ("SCRIPT", "ALONE"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / f"{name}.py").write_text("raise SystemExit('this was run')")
        hub.add(f"OWNER/{name}", folder)
    converted = tmp_path / "converted"
    for config, split, first in (("en", "test", 0), ("en", "partial-train", 5), ("zh", "test", 10)):
        write_parquet(converted / config / split / "0000.parquet", rows(first, first + 2))
    hub.add("OWNER/SCRIPT", converted, CONVERTED)
    gated, script, several, partial, alone, pinned, old = ask(
        hub.url, tmp_path / "home", ("hf:OWNER/GATED", {}), ("hf:OWNER/SCRIPT:zh:test", {}), ("hf:OWNER/SCRIPT", {}),
        ("hf:OWNER/SCRIPT:en:train", {}), ("hf:OWNER/ALONE", {}),
        ("hf:OWNER/SCRIPT:zh:test", {"revision": CONVERTED}), ("hf:OWNER/SCRIPT:zh:test", {"revision": COMMIT}),
    )  # fmt: skip
    assert "'OWNER/GATED' is gated: its owners want their terms accepted first" in gated["refused"]
    for kind in ("accept them at", "HF_TOKEN", "CODEC_BENCH_DATA"):
        assert kind in gated["refused"]
    assert [row["n"] for _, row in script["rows"]] == [10, 11] and script["revision"] == CONVERTED
    assert "has several configurations (hint: name one: en, zh)" in several["refused"]
    assert "no split 'train' (hint: there are: partial-train, test)" in partial["refused"]
    assert plain(open_table(converted, config="zh", split="test")) == script["rows"]
    assert "'OWNER/ALONE' is a loading script" in alone["refused"]
    assert pinned == script and "refs/convert/parquet" in old["refused"]
    (offline,) = ask(hub.url, tmp_path / "home", ("hf:OWNER/SCRIPT:zh:test", {}), HF_HUB_OFFLINE="1")
    assert offline == script


def test_sound_files_that_rows_name_are_fetched_with_their_rows(hub, tmp_path):
    folder = tmp_path / "set"
    (folder / "clips").mkdir(parents=True)
    for at in range(4):
        (folder / "clips" / f"{at}.wav").write_bytes(encoded(at, "WAV"))
    lines = [json.dumps({"audio": f"clips/{at}.wav", "text": f"t{at}"}) for at in range(4)]
    (folder / "test.jsonl").write_text("\n".join(lines))
    card = "---\nconfigs:\n- config_name: default\n  data_files:\n  - split: test\n    path: test.jsonl\n---\n"
    (folder / "README.md").write_text(card)
    hub.add("OWNER/NAME", folder)
    (result,) = ask(hub.url, tmp_path / "home", ("hf:OWNER/NAME:test", {"limit": 2}))
    assert result["rows"] == [[f"test/{at}", {"audio": 800 + at, "text": f"t{at}"}] for at in range(2)]
    assert hub.bytes_of("clips/1.wav") > 0 and hub.bytes_of("clips/3.wav") == 0


# ------------------------------------------------------------------------------------------------ the cache, as it lies


def test_the_cache_is_used_offline(layout, cache):
    into_cache(cache, "OWNER/NAME", layout)
    table = open_table("hf:OWNER/NAME")
    assert (table.total, table.revision) == (31, COMMIT)
    assert plain(table) == plain(open_table(layout))
    assert open_table("hf:OWNER/NAME", revision=COMMIT, split="train").total == 6
    assert len(open_source("hf:OWNER/NAME:train")) == 6
    with refuses("not_in_hub_cache", name="OWNER/NAME", revision="v2", variable="HF_HUB_OFFLINE"):
        open_table("hf:OWNER/NAME", revision="v2")
    with refuses("not_in_hub_cache", name="OWNER/OTHER", variable="HF_HUB_OFFLINE", hint="CODEC_BENCH_DATA"):
        open_table("hf:OWNER/OTHER")


def test_a_cache_with_gaps_gives_what_it_has_and_keeps_the_keys(layout, cache):
    held = ["README.md", SHARD.format(0), SHARD.format(2)]
    into_cache(cache, "OWNER/NAME", layout, held)
    assert len(list(open_table("hf:OWNER/NAME", split="test", limit=10))) == 10
    read = iter(open_table("hf:OWNER/NAME", split="test"))
    keys = [next(read)[0] for _ in range(10)]
    assert keys[-1] == "test/9"
    with refuses("not_in_commit_cache", path="data/test-00001-of-00003.parquet", name="OWNER/NAME"):
        next(read)
    with refuses("not_in_commit_cache", path="data/test-00001-of-00003.parquet", name="OWNER/NAME"):
        list(open_table("hf:OWNER/NAME", split="test", limit=3, seed=1))


def test_gaps_differ_from_the_names():
    paths = ("data/test-00001-of-00003-0a.parquet",)
    assert _with_missing(paths) == tuple(f"data/test-{at:05d}-of-00003-0a.parquet" for at in range(3))
    assert _with_missing(("a.parquet", "b.parquet")) == ("a.parquet", "b.parquet")
    two = ("x/a-00000-of-00002.parquet", "y/a-00001-of-00002.parquet")
    assert _with_missing(two) == two


@pytest.mark.parametrize(
    ("where", "parsed"),
    [
        ("hf:OWNER/NAME", ("OWNER/NAME", None, [])),
        ("hf:squad", ("squad", None, [])),
        ("hf:OWNER/NAME@v1.0:en:test", ("OWNER/NAME", "v1.0", ["en", "test"])),
    ],
)
def test_names_of_data_sets(where, parsed):
    assert parse_hub_name(where) == parsed


@pytest.mark.parametrize("where", ["hf:", "hf:a/b/c", "hf:a/b:c:d:e", "hf:a/b::d", "hf:../../etc", "hf:/etc"])
def test_what_is_no_name_is_refused(where):
    with refuses("not_a_data_set_name", hint="write hf:OWNER/NAME[:CONFIG][:SPLIT]"):
        parse_hub_name(where)


def test_the_mirror_in_the_environment_stands_before_the_hub(layout, cache, monkeypatch, tmp_path):
    monkeypatch.setenv("CODEC_BENCH_DATA", str(layout.parent.parent))
    assert open_table("hf:OWNER/NAME").total == 31
    shards(tmp_path / "own" / "OWNER" / "NAME", "test", rows(0, 2), [2])
    assert open_table("hf:OWNER/NAME", mirror=tmp_path / "own").total == 2


@pytest.mark.parametrize("named", ["{elsewhere}", "../../priv.wav", "../../../priv.wav", "../../../../priv.wav"])
def test_a_data_set_of_the_hub_names_no_file_outside_of_itself(tmp_path, named):
    """Its tables are other people's; a local table may name files anywhere."""
    root = tmp_path / "a" / "snapshots" / COMMIT
    (root / "data" / "deep").mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "a", root.parent):
        soundfile.write(folder / "priv.wav", np.zeros(800, np.float32), 16_000)
    soundfile.write(root / "mine.wav", np.ones(400, np.float32), 16_000)
    position = Repository("o/n", str(root), "o/n", COMMIT, True)
    named = named.format(elsewhere=tmp_path / "priv.wav")
    assert Audio.read(position.sound("../../mine.wav", "data/deep/t.parquet")).num_samples == 400
    with refuses("no_file"):
        Audio.read(position.sound(named, "data/deep/t.parquet" if named.startswith("../../../") else "data/t.parquet"))
    cells = [{"bytes": None, "path": name} for name in ("../../mine.wav", f"../{named}" if named[0] == "." else named)]
    pq.write_table(pa.table({"audio": cells}), root / "data" / "deep" / "t.parquet")
    assert Audio.read(f"{root}/data/deep/t.parquet::audio::0").num_samples == 400
    with refuses("path_leads_out"):
        Audio.read(f"{root}/data/deep/t.parquet::audio::1")
    # From the table's own folder it leads into the data set, where no such file is; from the folders above, out of it.
    cells = [{"bytes": None, "path": "../../priv.wav"}]
    pq.write_table(pa.table({"audio": cells}), root / "data" / "deep" / "u.parquet")
    with refuses("no_file"):
        Audio.read(f"{root}/data/deep/u.parquet::audio::0")

"""`codec-bench validate --hub`, as a person runs it: definitions held against a local server that answers as the hub
does.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
import yaml
from refusals import refuses

from codec_bench.benchmark import load_benchmark
from codec_bench.store.answers import digest_of

from .conftest import COMMIT, encoded, run_with_hub, shards, tone

CARD = (
    "---\nlicense: cc-by-4.0\nconfigs:\n- config_name: main\n  default: true\n  data_files:\n  - split: test\n"
    "    path: data/test-*\n---\n"
)
ROWS = [
    {
        "id": f"u{n}",
        "audio": {"bytes": encoded(n, "WAV"), "path": "x.wav"},
        "question": f"q{n}",
        "answer": "AB"[n % 2],
        "kind": "xy"[n % 2],
    }
    for n in range(12)
]
DEFINITION = {
    "version": 1, "name": "mine-{part}", "title": "Mine", "summary": "Ours.", "category": "QA", "kind": "understanding",
    "language": "en", "licence": "CC-BY-4.0",
    "matrix": [{"part": "all"}, {"part": "x", "set": {"data.where": {"kind": "x"}}}],
    "data": {
        "repository": "OWNER/NAME", "config": "main", "split": "test", "id": "id",
        "columns": {"audio": "audio", "question": "question", "reference": "answer", "kind": "kind"},
    },
    "prompt": {"messages": [{"content": [{"audio": "audio"}, "{{ question }}"]}]},
    "metrics": ["accuracy[exact]"], "primary": "accuracy[exact]",
}  # fmt: skip


@pytest.fixture
def served(hub, tmp_path):
    """A repository of two files on the hub, and the folder of it."""
    pytest.importorskip("datasets")
    folder = tmp_path / "set"
    noise = np.random.default_rng(1).bytes
    held = [
        row if n < 6 else {**row, "audio": {"bytes": noise(400_000), "path": "x.wav"}} for n, row in enumerate(ROWS)
    ]
    shards(folder, "test", held, [6, 6])
    (folder / "README.md").write_text(CARD, "utf-8")
    hub.add("OWNER/NAME", folder)
    return folder


PROGRAM = """
import json, sys
from codec_bench import validate
print(json.dumps([[one.as_dict() for one in validate([name], hub=True)] for name in json.loads(sys.argv[1])]))
"""


@pytest.fixture
def held(hub, tmp_path, served):
    """Runs a program with arguments in a process that knows the hub."""

    def run(program, *arguments, address=None, **variables):
        address = address or hub.url
        done = run_with_hub(program, *arguments, address=address, home=tmp_path / "home", **variables)
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, json.loads(done.stdout)

    return run


def define(folder, **change):
    """A definition with what is changed of its data; gives its path."""
    folder.mkdir(exist_ok=True)
    changed = {**DEFINITION, "data": {**DEFINITION["data"], **change}}
    (folder / "benchmark.yaml").write_text(yaml.safe_dump(changed), "utf-8")
    return str(folder)


def by_part(path, actual):
    return {one["what"].removeprefix(path).strip(": "): one for one in actual}


def test_what_the_hub_has_is_reported_and_can_be_pinned(held, hub, served, tmp_path):
    path, pins = define(tmp_path / "mine"), tmp_path / "mine" / "pins.yaml"
    names = [f"{path}:mine-all", f"{path}:mine-x"]
    code, result = held(
        "from codec_bench.cli import main; main()", "validate", *names, "--hub", "--json", "--pins", str(pins)
    )
    complete = by_part(names[0], result)
    seconds = round(len(tone(0)) / 16_000, 3)
    assert complete[""]["found"] == f"12 questions at {COMMIT[:10]}, 5 columns; a sound of {seconds:g} s at 16,000 Hz"
    assert code == 0 and "revision, size, rows_digest" in complete["pins"]["found"] and len(result) == 4
    details = yaml.safe_load(pins.read_text())
    every = details["mine-all"]
    assert every["columns"] == {
        "id": "string",
        "audio": "audio",
        "question": "string",
        "answer": "string",
        "kind": "string",
    }
    assert (every["size"], every["revision"], every["licence"], details["mine-x"]["size"]) == (
        12,
        COMMIT,
        "cc-by-4.0",
        6,
    )
    text = [({"question": row["question"], "kind": row["kind"]}, (row["answer"],)) for row in reversed(ROWS)]
    assert every["rows_digest"] == digest_of(text) != digest_of(text[1:])
    second = "data/test-00001-of-00002.parquet"
    size = (served / second).stat().st_size
    assert 0 < hub.bytes_of(second) < size / 4, "its texts alone are wanted"
    # Both definitions take what the file says, and the hub agrees.
    define(tmp_path / "mine", pins="pins.yaml")
    one = load_benchmark(names[1]).data
    assert (one.size, one.revision, one.rows_digest) == (6, COMMIT, details["mine-x"]["rows_digest"])
    assert one.types == every["columns"] and "types" not in load_benchmark(names[1]).request_facts["data"]
    code, result = held(PROGRAM, json.dumps(names))
    assert [[one["state"] for one in of] for of in result] == [["ok"], ["ok"]]


def test_a_definition_that_the_hub_contradicts(held, hub, tmp_path):
    other = tmp_path / "other"
    shards(other, "test", [{**row, "audio": {"bytes": b"RIFF....", "path": "x.wav"}} for row in ROWS], [6, 6])
    (other / "README.md").write_text(CARD.replace("cc-by-4.0", "mit"), "utf-8")
    hub.add("OWNER/NOISE", other)
    shards(tmp_path / "mit", "test", ROWS, [12])
    (tmp_path / "mit" / "README.md").write_text(CARD.replace("cc-by-4.0", "mit"), "utf-8")
    hub.add("OWNER/MIT", tmp_path / "mit")
    cases = [
        ({"size": 13}, "size", "the data give 12 questions; the definition says 13"),
        ({"rows_digest": "0" * 40}, "rows_digest", "not those that the definition pins"),
        ({"types": {"id": "string", "question": "int64"}}, "types", "the column 'question' was int64 and is string"),
        ({"types": {"mark": "string"}}, "types", "the column 'mark' was string and is gone"),
        ({"split": "dev"}, "", "has no split 'dev'"),
        ({"config": "other"}, "", "no configuration 'other'"),
        ({"repository": "OWNER/GONE"}, "", "OWNER/GONE' does not exist"),
        ({"revision": "f" * 40}, "", "has no revision"),
        (
            {"columns": {**DEFINITION["data"]["columns"], "reference": "label"}},
            "",
            "the column 'label', which 'OWNER/NAME' has not",
        ),
        ({"repository": "OWNER/NOISE"}, "", "the audio in 'audio' of the first row cannot be decoded"),
        ({"repository": "OWNER/MIT"}, "licence", "the card states mit; the definition says CC-BY-4.0"),
    ]
    names = [f"{define(tmp_path / f'case{n}', **change)}:mine-all" for n, (change, _, _) in enumerate(cases)]
    _, result = held(PROGRAM, json.dumps(names))
    for name, of, (_, kind, text) in zip(names, result, cases, strict=True):
        assert text in by_part(name, of)[kind]["found"]
        assert by_part(name, of)[kind]["state"] == ("note" if kind == "licence" else "wrong")


def test_neither_a_mirror_nor_a_cache_stands_in_for_the_hub(held, served, tmp_path):
    name = f"{define(tmp_path / 'mine')}:mine-all"
    mirror = tmp_path / "mirror" / "OWNER"
    mirror.mkdir(parents=True)
    served.rename(mirror / "NAME")
    requested = {"CODEC_BENCH_DATA": str(mirror.parent)}
    assert held(PROGRAM, json.dumps([name]), HF_HUB_OFFLINE="1", **requested)[1][0][0]["found"].endswith(
        "HF_HUB_OFFLINE forbids the network"
    )
    (result,) = held(PROGRAM, json.dumps([name]), address="http://127.0.0.1:9", **requested)[1][0]
    assert result["state"] == "wrong" and "could not be reached" in result["found"]


def test_a_file_of_pins_that_says_nothing_of_a_benchmark(tmp_path):
    path = define(tmp_path / "mine", pins="pins.yaml")
    (tmp_path / "mine" / "pins.yaml").write_text("{}", "utf-8")
    with refuses("no_pins", name="mine-all", hint="--pins"):
        load_benchmark(f"{path}:mine-all")

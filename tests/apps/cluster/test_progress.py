"""How far the parts of a run are, while they are being written."""

from __future__ import annotations

import json
from contextlib import closing

from codec_bench.apps.cluster.parts import progress_of
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

METRICS = {"m": {"protocol": "p"}}
SAMPLES = [Sample(f"s{number}", None) for number in range(5)]


def test_parts_in_every_state(tmp_path, command):
    folders = [tmp_path / name for name in ("waiting", "running", "finished", "damaged")]
    for folder in folders[1:]:
        writer = RunWriter(folder, {"shard": "1/4"})
        writer.begin({"x": {}}, METRICS, SAMPLES)
        writer.write([(n, ItemRecord("x", f"s{n}", "ok", None, {"m": Score(1.0, "ok", None, "p")})) for n in range(3)])
        writer.write([(3, ItemRecord("x", "s3", "failed", "broke", {"m": Score.failed("broke", "p")}))])
        if folder.name == "running":
            running = writer
        else:
            writer.close()
    (folders[2] / "part.json").write_text("{}")
    (folders[3] / "run.sqlite").write_bytes((folders[3] / "run.sqlite").read_bytes()[:5000])
    with closing(running):
        result = progress_of(folders)
        assert [(one.state, one.items, one.done, one.failed) for one in result] == [
            ("waiting", 0, 0, 0), ("running", 5, 4, 1), ("finished", 5, 4, 1), ("unreadable", 0, 0, 0),
        ]  # fmt: skip
        assert "damaged" in result[3].reason
        code, printed, stderr = command("progress", str(tmp_path), "--json")
    assert code == 0, stderr
    shown = {row["folder"].rpartition("/")[2]: row["state"] for row in json.loads(printed)}
    assert shown == {"running": "running", "finished": "finished", "damaged": "unreadable"}

"""Tokens a second and bits a token stand in every table of results, from what each codec declares."""

import io
import re
from contextlib import closing

import pytest

from codec_bench.report.open_run import open_run
from codec_bench.report.paper import COLUMNS, summary_html, summary_markdown, summary_rows
from codec_bench.report.results import write_results
from codec_bench.report.table import summary_table
from codec_bench.stats.summary import summarise
from codec_bench.stats.summary_types import Summary
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

SYSTEMS = {
    "codes": {"frame_rate_hz": 75.0, "tokens_per_s": 1200.0, "nominal_bitrate_bps": 12000.0},
    "latent": {"frame_rate_hz": 12.5, "latents": 32, "tokens_per_s": None, "nominal_bitrate_bps": None},
    "packets": {"tokens_per_s": None, "nominal_bitrate_bps": 12000.0},
    "older": {"nominal_bitrate_bps": 12000.0},  # a record of a version that did not ask
}
TEXT = {
    "codes": ("1,200", "10"),
    "latent": ("not discrete", "not discrete"),
    "packets": ("–", "–"),
    "older": ("–", "–"),
}


@pytest.fixture
def folder(tmp_path):
    def build(systems):
        where = tmp_path / "-".join(systems)
        facts = {"si_sdr": {"protocol": "s/1", "unit": "dB", "higher_is_better": True, "aggregate": "mean"}}
        samples = [Sample(f"s{n}", None) for n in range(3)]
        with closing(RunWriter(where, {"asked": {}})) as writer:
            writer.begin({name: SYSTEMS[name] for name in systems}, facts, samples)
            for name in systems:
                items = [
                    ItemRecord(name, s.id, "ok", None, {"si_sdr": Score.ok(3.0 + n, "s/1")})
                    for n, s in enumerate(samples)
                ]
                writer.write(list(enumerate(items)))
            writer.set_meta(config={}, state="finished", data={"name": "speech", "samples": 3, "fingerprint": "d"})
        return where

    return build


def drawn(summary):
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, width=200).print(summary_table(summary, width=200))
    return [re.split(r"  +", line.strip()) for line in out.getvalue().splitlines() if line.strip()]


def test_they_stand_in_every_table(folder):
    with closing(open_run(folder(SYSTEMS))) as run:
        summary = summarise(run)
        assert Summary.from_dict(summary.as_dict()).systems == summary.systems
        rows = {row[0]: tuple(row[1:3]) for row in drawn(summary)}
        assert rows["system"] == ("tokens/s", "bits/token") and {name: rows[name] for name in SYSTEMS} == TEXT
        lines = [
            line.strip("| ").split(" | ") for line in summary_markdown(summary).splitlines() if line.startswith("|")
        ]
        assert lines[0][:4] == ["system", "n", "tokens/s", "bits/token"]
        assert {line[0]: tuple(line[2:4]) for line in lines[2:]} == TEXT
        assert "<th>tokens/s</th>" in summary_html(summary)
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in summary_rows(summary)]
        assert {row["system"]: (row["tokens_per_s"], row["bits_per_token"]) for row in rows} == {
            "codes": (1200.0, 10.0), "latent": ("not discrete", "not discrete"), "packets": (None, None),
            "older": (None, None),
        }  # fmt: skip
        write_results(run)
        page = (run.folder / "report.html").read_text("utf-8")
        assert "tokens/s" in page and "1,200" in page and "not discrete" in page


def test_packets_alone_have_no_such_column(folder):
    with closing(open_run(folder(["packets", "older"]))) as run:
        assert not any("token" in cell for row in drawn(summarise(run)) for cell in row)

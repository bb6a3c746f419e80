"""A site over many runs (targets: 200 runs and a million scores in under 60 s and 1 GiB; a first page under 300 kB; any view under 1 s).

python bench/bench_site.py [--runs 200] [--samples 500]

The records are written by the package's own writer, with made results: two systems and five metrics a run, all over the same data, so
that one leaderboard holds every row. Every score in the site's files must be the record's, and every number of the leaderboard that of the
run's summary. The site is made in a process of its own, whose peak memory is read. Where Chromium is installed, views are opened in it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np
from common import PEAK_MIB, append_rows, row, worst

from codec_bench.report.site import SiteFolder
from codec_bench.stats.summary import summarise
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

METRICS = {"bitrate": ("bps", False, "ratio"), "stoi": ("", True, "mean"), "si_sdr": ("dB", True, "mean"), "pesq_wb": ("MOS", True, "mean"), "wer": ("", False, "ratio")}  # fmt: skip
SYSTEMS = 2
_DIGITS = 1e-6  # relative: the site keeps seven digits
PROGRAM = f"""
import json, sys, time
from codec_bench.api.site import site
start = time.perf_counter()
site(json.loads(sys.argv[1]), out=sys.argv[2])
print(json.dumps([time.perf_counter() - start, {PEAK_MIB}]))
"""


def write(folder: Path, number: int, samples: int) -> None:
    """Writes the finished record of one run, with made results."""
    rng = np.random.default_rng(number)
    facts = {
        name: {"protocol": f"{name}/made", "kind": "pair", "unit": unit, "higher_is_better": higher, "aggregate": aggregate}
        for name, (unit, higher, aggregate) in METRICS.items()
    }  # fmt: skip
    rows = [
        Sample(f"utterance-{n:05d}", None, f"the words of utterance {n}", f"speaker-{n % 40}") for n in range(samples)
    ]
    names = [f"codec-{number:03d}@{k}" for k in range(SYSTEMS)]
    with closing(RunWriter(folder, {"data": "made", "run": number})) as writer:
        writer.begin({name: {"made": True} for name in names}, facts, rows)
        records = []
        for name in names:
            made = rng.random((samples, len(METRICS)))
            words = rng.integers(3, 20, samples)
            for n, sample in enumerate(rows):
                scores = {}
                for value, (metric, (_, _, aggregate)) in zip(made[n], METRICS.items()):
                    below = float(words[n]) if aggregate == "ratio" else 1.0
                    above = float(round(value * below)) if metric == "wer" else value * below
                    scores[metric] = Score.ok(above / below, f"{metric}/made", numerator=above, denominator=below)
                records.append(
                    (
                        n,
                        ItemRecord(
                            name, sample.id, "ok", None, scores, duration_s=2.0, sample_rate_hz=16_000, channels=1
                        ),
                    )
                )
        writer.write(records)
        when = f"2026-11-{1 + number % 28:02d}T12:00:00+00:00"
        writer.set_meta(state="finished", started=when, finished=when, config={"command": "evaluate"}, data={"name": "made", "fingerprint": "made"}, versions={}, machine={})  # fmt: skip


def check(site: SiteFolder, folders: list[Path]) -> int:
    """Stops if a number of the site is not the record's. Returns how many scores were compared."""
    entries = {entry["key"]: entry for entry in site.entries()}
    if len(entries) != len(folders):
        raise SystemExit(f"the site holds {len(entries)} runs of {len(folders)}")
    by_name = {entry["name"]: entry for entry in entries.values()}
    compared = 0
    shown = {(row["run"], row["system"]): row for row in _rows(site)}
    for folder in folders:
        key = by_name[folder.name]["key"]
        with closing(sqlite3.connect(folder / "run.sqlite")) as db:
            held = np.array(
                db.execute(
                    "SELECT metric, system, sample, value FROM scores ORDER BY metric, system, sample"
                ).fetchall()
            )
        values = []
        for metric in range(len(METRICS)):
            for system in site.read_data(f"runs/{key}/values-{metric}")["systems"]:
                above = np.array(system["above"], dtype=float)
                values.append(above / np.array(system.get("below", np.ones_like(above)), dtype=float))
        worst([(held[:, 3], np.concatenate(values))], 0.0, f"the scores of {folder.name}", _DIGITS)
        compared += len(held)
        with closing(Run(folder)) as run:
            for name, system in summarise(run)["systems"].items():
                cells = dict(zip(METRICS, shown[key, name]["cells"]))
                for metric, expected in system["metrics"].items():
                    ours = (cells[metric][:3], cells[metric][3])
                    worst([([expected["value"], *expected["ci95"]], ours[0])], 0.0, f"{metric} of {name}", _DIGITS)
                    if ours[1] != expected["n"]:
                        raise SystemExit(f"{metric} of {name}: {ours[1]} samples where the record has {expected['n']}")
    return compared


def _rows(site: SiteFolder) -> list[dict]:
    (path,) = (site.path / "data" / "boards").glob("*.js")
    found: list[dict] = site.read_data(f"boards/{path.stem}")["rows"]
    return found


def first_page(site: SiteFolder) -> int:
    """How many bytes the first page loads, and a leaderboard beyond it."""
    files = ("index.html", "assets/site.css", "assets/site.js", "data/index.js")
    return sum((site.path / name).stat().st_size for name in files)


def views(site: SiteFolder) -> dict[str, float]:
    """Seconds until each view is drawn, in Chromium; empty where it is not installed."""
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        return {}
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    browser = webdriver.Chrome(service=Service(str(shutil.which("chromedriver"))), options=options)
    key = next((site.path / "data" / "boards").glob("*.js")).stem
    rows = _rows(site)
    addresses = {
        "first page": "",
        "leaderboard": f"board/{key}",
        "compare": f"compare/{key}",
        "samples": f"samples/{key}",
        "system": f"system/{rows[0]['system']}",
        "run": f"run/{rows[0]['run']}",
        "runs": "runs",
    }
    found = {}
    try:
        for name, address in addresses.items():
            browser.get("about:blank")
            start = time.perf_counter()
            browser.get(f"{(site.path / 'index.html').resolve().as_uri()}#/{address}")
            while not browser.execute_script("return document.documentElement.dataset.ready"):
                time.sleep(0.01)
            found[name] = time.perf_counter() - start
    finally:
        browser.quit()
    return found


def main() -> None:
    """Writes the records, makes the site three times, and compares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--samples", type=int, default=500)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folders = [Path(scratch, f"run-{number:03d}") for number in range(asked.runs)]
        for number, folder in enumerate(folders):
            write(folder, number, asked.samples)
        found = []
        for turn in range(3):
            out = Path(scratch, f"site-{turn}")
            done = subprocess.run([sys.executable, "-P", "-c", PROGRAM, json.dumps([str(f) for f in folders]), str(out)], capture_output=True, text=True)  # fmt: skip
            if done.returncode:
                raise SystemExit(done.stderr)
            found.append(json.loads(done.stdout))
        site = SiteFolder(out)
        scores = check(site, folders)
        first, opened = first_page(site), views(site)
    seconds, peak = np.asarray([one for one, _ in found]), max(peak for _, peak in found)
    slowest = max(opened, key=lambda name: opened[name], default="none")
    shown = f"slowest view {slowest} {opened[slowest]:.2f} s" if opened else "no browser"
    note = f"peak {peak:.0f} MiB; first page {first / 1000:.0f} kB; {shown}"
    case = f"{scores} scores in {asked.runs} runs"
    sys.stdout.write(f"{case}: {np.median(seconds):.1f} s; {note}\n")
    lines = [row(case, "site", seconds, n=scores, agreement="every score and every number is the record's", note=note)]
    sys.stdout.write(f"rows appended to {append_rows('site', lines)}\n")


if __name__ == "__main__":
    main()

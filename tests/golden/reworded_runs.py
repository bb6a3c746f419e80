"""Runs of every kind, and what was decided in them without a sentence; a program, so that all its processes are alike.

`python reworded_runs.py OUT`: the file `OUT/decided.json` holds the codes, numbers, orders, marks and exit codes, and
`OUT/sentences.json` the sentences that were shown.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

CUSTOM_CODE = Path(__file__).parents[1] / "engine" / "assets" / "custom_code.py"
REWORDED = """
import codec_bench.messages as messages

def reworded(sentence):
    if callable(sentence):
        return lambda **parameters: sentence(**parameters)[::-1]
    return lambda **parameters: sentence.format(**parameters)[::-1]

for code, entry in list(messages._ENTRIES.items()):
    if code == "several":
        messages._ENTRIES[code] = entry._replace(sentence=lambda notes: " & ".join(notes))
    elif code not in ("error", "remark"):  # their sentence is the message of somebody else
        messages._ENTRIES[code] = entry._replace(sentence=reworded(entry.sentence))
"""
"""Writes every sentence of every catalogue backwards; every process runs it first."""
MODEL = '''
from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Response

class Echo(Model):
    """Answers with the last word of a question."""

    def __init__(self):
        self.info = ModelInfo("echo")

    identity = property(lambda self: {})

    async def ask(self, request):
        said = request.messages[-1].content[-1]
        if "break" in said:
            return Response.failed("the line is down")
        return Response(text=said.rpartition("|")[2].strip())
'''
QUESTIONS = [
    ("a", "capital of France | Paris", "Paris"), ("b", "capital of Italy | Rome", "Roma"), ("c", "break", "x"),
    ("d", "nothing |", "y"), ("e", "declines | I cannot help with that", "z"), ("f", None, "never asked"),
]  # fmt: skip
PROFILE_STEPS = ("abx", "bit_errors")
CELLS = {
    "meta": "SELECT value FROM meta WHERE key = 'checks'",
    "items": "SELECT system, sample, status, reason, bits, notes FROM items ORDER BY 1, 2",
    "scores": "SELECT system, metric, sample, value, status, reason, numerator, denominator, detail FROM scores ORDER "
    "BY 1, 2, 3",
}


def without_sentences(value):
    """JSON values without the sentence next to each code, and without times."""
    if isinstance(value, dict):
        coded = {name.removesuffix("_code") for name in value if name.endswith("_code")}
        excluded = coded | {"timing", "record"}
        return {
            name: without_sentences(one)
            for name, one in value.items()
            if name not in excluded and not name.endswith("_s")
        }
    return [without_sentences(one) for one in value] if isinstance(value, list) else value


def decided(folder):
    """What a run folder holds: the cells of its record, and its summary."""
    with closing(sqlite3.connect(folder / "run.sqlite")) as db:
        held = {name: [list(row) for row in db.execute(sql)] for name, sql in CELLS.items()}
    return held | {"summary": without_sentences(json.loads((folder / "summary.json").read_text()))}


COMMANDS = {
    "export": ["export", "eval"],
    "verify": ["verify", "eval"],
    "suspect": ["validate", f"{CUSTOM_CODE}:NotFinite"],
    "scored again": ["score", "--generated", "short=short", "--data", "reference", "--metrics", "stoi,si_sdr", "--out",
        "again"],
}  # fmt: skip


def exit_code(arguments):
    """What a command ends with."""
    from codec_bench.cli import main as command

    sys.argv = ["codec-bench", *arguments]
    try:
        command()
    except SystemExit as end:
        return end.code or 0
    return 0


def main(out):
    os.environ["CODEC_BENCH_CACHE"] = str(out / "cache")
    import numpy as np
    import soundfile
    import yaml

    from codec_bench import Audio, compare, evaluate, profile, score
    from codec_bench.api.check_codec import check_codec
    from codec_bench.api.run_benchmark import run_benchmark
    from codec_bench.apps.profiling.steps import OPTIONAL
    from codec_bench.data import open_source
    from codec_bench.report.numbers import is_alike, is_best
    from codec_bench.report.table import comparison_notes, summary_notes
    from codec_bench.stats.summary import summarise

    outcomes, sentences, samples = {}, {}, list(open_source("embedded"))[:4]
    same = {"cache": False, "workers": 1, "page": False}
    runs = {
        "eval": evaluate(
            codec=[f"{kind.lower()}={CUSTOM_CODE}:{kind}" for kind in ("FallsSilent", "OutOfRange", "RaisesForLong")],
            data=samples,
            metrics=["stoi", "si_sdr", "snr", "dnsmos", "f0_rmse", "bitrate", "pesq_wb"], out=out / "eval", **same,
        )
    }  # fmt: skip
    for n, sample in enumerate(samples):
        audio = Audio.read(sample.audio)
        quiet = np.zeros(3 * audio.sample_rate_hz)
        sound = np.concatenate([quiet, audio.samples[0], quiet])
        for name, other in (
            ("reference", sound),
            ("copy", sound * (n != 0) * 0.9),
            ("silent", sound * (n == 0)),
            ("short", sound[: 9_000 * n + 800]),
        ):
            (out / name).mkdir(exist_ok=True)
            soundfile.write(out / name / f"{sample.id}.wav", other, audio.sample_rate_hz)
    generated = {name: str(out / name) for name in ("copy", "silent", "short")}
    runs["score"] = score(
        generated=generated, data=str(out / "reference"), metrics=["stoi", "si_sdr", "dnsmos"],
        out=out / "score", **same,
    )  # fmt: skip
    (out / "mine").mkdir()
    definition = {
        "version": 1, "title": "Mine", "summary": "Questions of the test.", "category": "QA", "kind": "qa",
        "language": "en",
        "data": {"path": "rows.jsonl", "id": "id", "columns": {"question": "q", "reference": "right"}},
        "prompt": {"messages": [{"content": ["{{ question }}"]}]}, "metrics": ["accuracy[exact]", "wer[answer]"],
        "primary": "accuracy[exact]",
    }  # fmt: skip
    (out / "mine" / "benchmark.yaml").write_text(yaml.safe_dump(definition))
    (out / "mine" / "README.md").write_text("# mine\n")
    rows = [json.dumps({"id": id, "q": requests, "right": right}) for id, requests, right in QUESTIONS]
    (out / "mine" / "rows.jsonl").write_text("\n".join(rows))
    (out / "model.py").write_text(MODEL)
    done = run_benchmark(benchmark=str(out / "mine"), model=f"{out / 'model.py'}:Echo", out=out / "run", **same)
    (runs["run"],) = done.runs.values()
    for name, run in runs.items():
        outcomes[name] = decided(run.folder)
        summary = summarise(run)
        outcomes[f"{name} marks"] = [[system, metric, is_best(e), is_alike(e)] for system, metric, e in summary.entries]
        outcomes[f"{name} failures"] = [
            [f.system, f.metric, f.status, f.reason.as_dict(), f.count, f.example] for f in summary.failures.reasons
        ]
        sentences[name] = [*summary_notes(summary, None), *(str(f.reason) for f in summary.failures.reasons)]
    pairs = compare(runs=[runs["eval"]])
    outcomes["compare"] = [
        [c.metric, c.test.difference, c.test.p, c.pairs, c.wins, c.barred is None]
        for pair in pairs
        for c in pair.comparisons
    ]
    sentences["compare"] = [note for pair in pairs for note in comparison_notes(pair.comparisons)]
    measured = profile(
        codec=[f"{kind}={CUSTOM_CODE}:{kind}" for kind in ("FallsSilent", "OutOfRange")], data=samples[:2],
        metrics="snr",
        out=out / "profile", page=False, skip=[step for step in OPTIONAL if step not in PROFILE_STEPS],
    )  # fmt: skip
    held = json.loads((measured.folder / "profile.json").read_text())
    outcomes["profile"] = {
        name: {
            section: without_sentences(codec.get(section))
            for section in ("findings", "faults_code", "abx", "bit_errors", "quality")
        }
        for name, codec in held["codecs"].items()
    }
    sentences["profile"] = [
        text for codec in held["codecs"].values() for text in (*codec["faults"], codec["abx"]["reason"])
    ]
    findings = check_codec(codec=f"{CUSTOM_CODE}:FallsSilent")
    outcomes["checks"] = [[one["check"], one["state"], one["found"].as_dict()] for one in findings]
    sentences["checks"] = [str(one["found"]) for one in findings]
    os.chdir(out)
    outcomes["exit codes"] = {name: exit_code(arguments) for name, arguments in COMMANDS.items()}
    (out / "decided.json").write_text(json.dumps(outcomes, indent=1, sort_keys=True))
    (out / "sentences.json").write_text(json.dumps(sentences, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

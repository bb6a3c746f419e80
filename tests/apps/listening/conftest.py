"""Small runs to listen to, and files of answers as the page would save them."""

from __future__ import annotations

import json
import zlib

import numpy as np
import pytest

from codec_bench.apps.listening.checks import CHECKS
from codec_bench.audio.encode import write_flac
from codec_bench.store.answers import AnswerRecord, AnswerWriter, QuestionRecord, Reading
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Audio, Sample, Score

RATE = 16_000
SYSTEMS = ("zebra-codec", "quagga-codec")
HOSTILE = "</script><img src=x onerror=\"document.title='owned'\"><b>&amp;</b>{{ 7*7 }}"
FACTS = {"stoi": {"protocol": "stoi/1", "kind": "pair", "unit": "", "higher_is_better": True, "aggregate": "mean"}}


def tone(path, hz, seconds=0.4, rate=RATE):
    time = np.arange(round(seconds * rate)) / rate
    noise = np.random.default_rng(hz).standard_normal(len(time))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_flac(path, Audio((0.3 * np.sin(2 * np.pi * hz * time) + 0.01 * noise).astype(np.float32), rate))


def build_codec_run(folder, samples=8, systems=SYSTEMS) -> Run:
    """A finished run of codecs whose audio was kept; one sample of the second system was not."""
    writer = RunWriter(folder, {"data": "tones"})
    rows = [Sample(f"narwhal/{n}", None, f"text {n}", f"speaker {n % 4}", "en") for n in range(samples)]
    writer.begin({"unprocessed": {}, **{name: {} for name in systems}}, FACTS, rows)
    for n, row in enumerate(rows):
        tone(folder / f"audio/reference/{n:07d}.flac", 200 + 50 * n)
        records = []
        for index, name in enumerate(("unprocessed", *systems)):
            retained = f"audio/{'reference' if not index else name}/{n:07d}.flac"
            if index:
                tone(folder / retained, 200 + 50 * n + index, rate=RATE * (1 + index % 2))
            dropped = index == 2 and n == 5
            scores = {"stoi": Score.ok(0.9, "stoi/1")}
            records.append(
                (n, ItemRecord(name, row.id, "ok", None, scores, audio=None if dropped else retained, duration_s=0.4,
                    sample_rate_hz=RATE, channels=1))
            )  # fmt: skip
        writer.write(records)
    writer.set_meta(config={}, state="finished")
    writer.close()
    return Run(folder)


def build_answer_run(folder, questions=4) -> Run:
    """A finished run of a benchmark with options; one question has a spoken question, and one failed."""
    writer = AnswerWriter(folder, {"asked": {}, "scored": {}})
    facts = {"accuracy[exact]": {**FACTS["stoi"], "protocol": "accuracy/exact-1", "kind": "answer"}}
    writer.begin({"zebra-model": {"outputs": ["text"]}}, facts, ())
    tone(folder / "audio/questions/0000001.flac", 300)
    pairs, items = [], []
    for n in range(questions):
        fields = {"question": f"Which town is meant? {HOSTILE}", "choices": ["(A) Rome", "(B) Paris"]}
        sound = "audio/questions/0000001.flac" if n == 1 else None
        requests = QuestionRecord(
            n, f"narwhal-{n}", fields, ("B",), prompt="user: <audio>", audio=sound, speaker=f"s{n}"
        )
        answer = AnswerRecord("ok", text=f"I would say Paris. {HOSTILE}") if n else AnswerRecord("failed", "no way")
        pairs.append((requests, answer))
        item = ItemRecord(
            "zebra-model",
            requests.id,
            answer.status,
            answer.reason,
            {"accuracy[exact]": Score.ok(1.0, "accuracy/exact-1")},
        )
        items.append((n, item))  # fmt: skip
    writer.write_answers(pairs)
    writer.write_marked(items, {n: Reading() for n in range(questions)})
    writer.set_meta(config={}, benchmark={"name": "towns"}, state="finished")
    writer.close()
    return Run(folder)


@pytest.fixture(scope="session")
def codec_run(tmp_path_factory) -> Run:
    return build_codec_run(tmp_path_factory.mktemp("runs") / "aardvark run")


@pytest.fixture(scope="session")
def make_run():
    """Builds further runs of codecs; arguments as of `build_codec_run`."""
    return build_codec_run


@pytest.fixture(scope="session")
def answer_run(tmp_path_factory) -> Run:
    return build_answer_run(tmp_path_factory.mktemp("runs") / "aardvark answers")


def answer_file(key, rater, values, *, saved="2026-11-22T10:00:00.000Z", firsts=None, scales=(), changed=None):
    """A file of answers. `values` gives the value of a trial and a stimulus (with its scale), or None for no answer.

    The checksum is computed here once more, from what the page's script says it is of.
    """
    sides = key.kind in ("preference", "ccr", "cmos", "abx")
    rows = []
    for trial in key.trials:
        complete = sides or key.kind == "review" or trial.check in CHECKS
        rated = [f"{one.id}/{scale}" for one in trial.stimuli for scale in scales] or [one.id for one in trial.stimuli]
        for stimulus in [""] if complete else rated:
            value = values(trial, stimulus)
            if value is not None:
                rows.append({"trial": trial.id, "stimulus": stimulus, "value": value, "ms": 1500})
                if sides:
                    rows[-1]["first"] = firsts(trial) if firsts else trial.stimuli[0].id
    held = {
        "format": "codec-bench listening answers", "version": 1, "sheet": key.sheet, "kind": key.kind, "rater": rater,
        "saved": saved,
        "complete": True, "answers": rows,
    }  # fmt: skip
    summed = [[r["trial"], r["stimulus"], r["value"], r["ms"], r.get("first", ""), []] for r in rows]
    text = json.dumps(
        [held[name] for name in ("sheet", "kind", "rater", "saved", "complete")] + [summed], separators=(",", ":")
    )
    return {**held, "crc32": f"{zlib.crc32(text.encode('ascii')):08x}", **(changed or {})}


@pytest.fixture
def save(tmp_path):
    """Saves a file of answers under a name; arguments as of `answer_file`."""

    def write(name, *options, **more):
        path = tmp_path / name
        path.write_text(json.dumps(answer_file(*options, **more)), encoding="utf-8")
        return path

    return write

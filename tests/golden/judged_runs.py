"""Records of benchmarks whose answers judges have rated, without a model or a judge."""

from __future__ import annotations

from contextlib import closing

import numpy as np

from codec_bench.audio.encode import write_flac
from codec_bench.store.answers import AnswerRecord, AnswerWriter, QuestionRecord, Reading
from codec_bench.store.rows import ItemRecord
from codec_bench.types import Audio, Score


def judged_run(
    location,
    name,
    verdicts,
    *,
    model="m",
    scale=(0, 5),
    parsed=(),
    choices=(),
    subset=None,
    speakers=(),
    sounds=0,
    answer=None,
    higher=True,
):
    """Writes the record of a benchmark's run.

    Args:
        location: the run folder. name: of the benchmark.
        verdicts: by judge, one rating for each answer; None where it gave none. A letter is the
            option that an aligning judge read, and an empty text means that it read none.
        model: its name. scale: of the judges. parsed: the options that were read of the answers; None where none could
        be.
        choices: the options of every question. subset: by number, the value of the column `part`.
        speakers: of the questions. sounds: how many questions have a sound. answer: by number, the text of an answer.
        higher: whether higher ratings are better.
    """
    metrics = {}
    for number, judge in enumerate(verdicts):
        metric = "rating[mine]" + (f"@{judge}" if number else "")
        metrics[metric] = {
            "protocol": f"rating/mine-00000000/{judge}", "kind": "rating", "judge": judge, "rubric": "mine", "unit": "",
            "higher_is_better": higher, "range": list(scale), "aggregate": "mean",
        }  # fmt: skip
    count = len(next(iter(verdicts.values()), parsed))
    metrics = metrics or {"accuracy[exact]": {"protocol": "p", "kind": "answer", "range": [0, 1], "unit": ""}}
    fields = {"question": "?", **({"choices": list(choices)} if choices else {})}
    requests = [
        QuestionRecord(
            n, f"q{n}", fields, ("yes",), {"part": subset(n)} if subset else {}, prompt=f"<audio> Question {n}?",
            audio=_sound(location, n) if n < sounds else None, speaker=speakers[n] if speakers else None,
        )
        for n in range(count)
    ]  # fmt: skip
    with closing(AnswerWriter(location, {"asked": {}, "scored": {}})) as writer:
        writer.begin({model: {}}, metrics, ())
        writer.set_meta(benchmark={"name": name, "primary": next(iter(metrics))})
        texts = [answer(n) if answer else f"answer {n}" for n in range(count)]
        writer.write_answers([(question, AnswerRecord("ok", None, text)) for question, text in zip(requests, texts)])
        items, readings = [], {}
        for n in range(count):
            scores = {m: _score(verdicts[judge][n], metrics[m]["protocol"]) for m, judge in zip(metrics, verdicts)}
            items.append((n, ItemRecord(model, f"q{n}", "ok", None, scores)))
            read = parsed[n] if parsed else "yes"
            readings[n] = Reading(None, read, None if read else "no option")
        writer.write_marked(items, readings)
    return location


def _score(value, protocol):
    if value is None:
        return Score(None, "unparsed", "no rating", protocol, detail={"replies": ["I cannot say."]})
    if value == "":
        return Score(None, "unparsed", "no option", protocol, detail={"replies": ["none"], "stage": "neither"})
    if isinstance(value, str):
        return Score.ok(1.0, protocol, detail={"replies": [value], "letter": value, "stage": "aligned"})
    return Score.ok(float(value), protocol, detail={"replies": [f"Rating: {value:g}"]})


def _sound(location, number):
    name = f"audio/questions/{number:07d}.flac"
    (location / name).parent.mkdir(parents=True, exist_ok=True)
    tone = 0.3 * np.sin(2 * np.pi * 220 * (number % 5 + 1) * np.arange(8000) / 16000)
    write_flac(location / name, Audio(tone[None].astype(np.float32), 16000))
    return name

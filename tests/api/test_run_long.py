"""A file of twenty minutes, joined from recordings and sent in segments: nothing is lost, and cuts are reported."""

from __future__ import annotations

import json
from itertools import cycle

import numpy as np
import pytest
import yaml

from codec_bench.api.run_benchmark import run_benchmark
from codec_bench.audio.encode import write_flac
from codec_bench.audio.resample import prepare
from codec_bench.benchmark.run_request import run_folder
from codec_bench.types import Audio

RATE, SECONDS, LIMIT_S = 16_000, 1_200, 30.0
MODEL = '''
import json
import numpy as np
from codec_bench.models.base import ModelInfo
from codec_bench.models.batching import BatchModel
from codec_bench.models.audio_payloads import clips_of
from codec_bench.types import Response


class Ear(BatchModel):
    """Writes down the energy of what it hears, and answers with the louder half of it."""

    info = ModelInfo("ear", limit_s=30.0)
    identity = {"ear": 1}

    def __init__(self, log):
        self.log = log

    def answer(self, batch):
        out = []
        for request in batch:
            samples = next(clips_of(request)).read().samples[0].astype(np.float64)
            with open(self.log, "a") as file:
                file.write(json.dumps([len(samples), float(np.square(samples).sum())]) + "\\n")
            out.append(Response(text="B" if np.square(samples[: len(samples) // 2]).mean() > 0 else "A"))
        return out
'''
DEFINITION = {
    "version": 1, "title": "Mine", "summary": "A long sound.", "category": "QA", "kind": "understanding",
    "language": "en",
    "data": {"path": "rows.jsonl", "id": "id", "columns": {"audio": "audio", "choices": "c", "reference": "r"}},
    "prompt": {"messages": [{"content": [{"audio": "audio"}, "Is there a voice? A. No B. Yes"]}]},
    "postprocess": ["option-letter"], "metrics": ["accuracy[choice]"], "primary": "accuracy[choice]",
}  # fmt: skip


@pytest.fixture(scope="module")
def signal(spoken):
    """Twenty minutes of the clips one after the other, with pauses between them."""
    pause, parts, length = np.zeros(RATE // 4, np.float32), [], 0
    clips = [prepare(audio, RATE) for _, audio in spoken]
    for clip in cycle(clips):
        parts += [clip, pause]
        length += len(clip) + len(pause)
        if length >= SECONDS * RATE:
            return np.concatenate(parts)[: SECONDS * RATE]


@pytest.mark.long
@pytest.mark.parametrize("overlap_s", [None, 0.0, 2.0])
def test_twenty_minutes(signal, overlap_s, tmp_path, monkeypatch):
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    folder, log = tmp_path / "mine", tmp_path / "log"
    folder.mkdir()
    write_flac(folder / "long.flac", Audio(signal, RATE))
    (folder / "rows.jsonl").write_text(
        json.dumps({"id": "q", "audio": "long.flac", "c": ["No", "Yes"], "r": "B"}) + "\n"
    )
    actual = {} if overlap_s is None else {"too_long": "windows", "windows": {"join": "vote", "overlap_s": overlap_s}}
    (folder / "benchmark.yaml").write_text(yaml.safe_dump({**DEFINITION, **actual}))
    (tmp_path / "models.py").write_text(MODEL)
    model = f"{tmp_path / 'models.py'}:Ear"
    out = tmp_path / "out"
    outcome = run_benchmark(
        benchmark=str(folder),
        model=model,
        out=out,
        options={model: {"log": str(log)}},
        page=False,
        workers=1,
        save_audio="none",
    )
    for done in outcome.runs.values():
        done.close()
    summary = json.loads((run_folder(out, "mine", "ear") / "summary.json").read_text())
    output = np.asarray([json.loads(line) for line in log.read_text().splitlines()])
    cut, system = summary["answers"]["cut"], summary["systems"]["ear"]
    assert system["metrics"]["accuracy[choice]"]["value"] == 1 and (output[:, 0] <= LIMIT_S * RATE).all()
    energy = float(np.square(signal.astype(np.float64)).sum())
    if overlap_s is None:
        assert len(output) == 1 and cut["unheard"] == system["unheard"] == pytest.approx(1 - LIMIT_S / SECONDS)
        return
    assert cut == {"n": 0, "share": 0.0, "s": 0.0, "unheard": 0.0} and len(output) >= SECONDS / LIMIT_S
    twice = (len(output) - 1) * overlap_s * RATE
    assert output[:, 0].sum() == len(signal) + twice
    if not overlap_s:
        # 16 bits of a FLAC file.
        assert output[:, 1].sum() == pytest.approx(energy, rel=1e-3)

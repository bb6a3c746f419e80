"""Custom code that has changed: no result of its earlier form is used again."""

from __future__ import annotations

import sys

import pytest
from refusals import Containing, refuses

from codec_bench.api.evaluate import evaluate

FEATURE = """
from codec_bench.features.base import Feature
from told_of_ours import TEXT

class Hears(Feature):
    name, protocol, rate_hz, where = "hears", "hears/1", 16000, "cpu"

    def compute(self, signals):
        return [{"transcript": TEXT} for _ in signals]
"""
CODEC = """
import numpy as np
from codec_bench import Audio, CodecInfo, Codes, CodeStream
from step_of_ours import LEVELS

class Levels:
    def __init__(self, weights=None):
        self.levels = LEVELS if weights is None else int(open(weights).read())
        self.info = CodecInfo("levels", (16000,))

    def encode(self, batch):
        return [self._encode(audio) for audio in batch]

    def _encode(self, audio):
        top = self.levels - 1
        values = np.round((np.clip(audio.samples, -1, 1) + 1) / 2 * top).astype(int)
        return Codes((CodeStream(values, self.levels, 16000),), audio.num_samples, audio.sample_rate_hz)

    def decode(self, codes):
        top = self.levels - 1
        return [Audio(c.streams[0].values / top * 2 - 1, c.sample_rate_hz) for c in codes]
"""
METRIC = """
from codec_bench import Metric, Score
from step_of_ours import LEVELS

class Peak(Metric):
    name, kind, rate_hz, protocol = "peak", "single", 16000, "peak/1"

    def compute(self, batch):
        return [Score.ok(LEVELS * float(abs(item.estimate).max()), self.protocol) for item in batch]
"""


@pytest.fixture
def code_folder(tmp_path, monkeypatch, fresh):
    """A folder of custom code, from which the test runs."""
    for name, text in (("feature", FEATURE), ("codec", CODEC), ("metric", METRIC)):
        (tmp_path / f"{name}_of_ours.py").write_text(text)
    (tmp_path / "told_of_ours.py").write_text("TEXT = 'one two'\n")
    (tmp_path / "step_of_ours.py").write_text("LEVELS = 16\n")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if "of_ours" in name]:
        del sys.modules[name]


@pytest.mark.parametrize("form", ["./{}.py", "{}"], ids=["file", "module"])
@pytest.mark.parametrize("changed", ["feature_of_ours", "told_of_ours"], ids=["its file", "an import"])
def test_a_changed_recogniser_is_not_served_from_the_cache(code_folder, form, changed):
    metric = f"transcript[{form.format('feature_of_ours')}:Hears]"
    request_of_run = {
        "codec": "unprocessed",
        "data": "embedded",
        "metrics": metric,
        "limit": 1,
        "page": False,
        "workers": 1,
    }
    counts = []
    for out in ("a", "b", "c"):
        counts.append(next(evaluate(**request_of_run, out=code_folder / out).scores()).value)
        if out == "a":
            for path in code_folder.glob("*_of_ours.py"):
                text = path.read_text()
                if path.stem == changed:
                    text = text.replace("'one two'", "'one two three'").replace(": TEXT}", ': TEXT + " four"}')
                path.write_text(text)
    assert counts == [2, 3, 3]
    with refuses("other_settings", differences=Containing("hears")):
        evaluate(**request_of_run, out=code_folder / "a")


@pytest.mark.parametrize("form", ["./{}.py", "{}"], ids=["file", "module"])
@pytest.mark.parametrize(
    ("codec", "metric", "differs"),
    [("{}:Levels", "si_sdr", "levels"), ("unprocessed", "{}:Peak", "Peak")],
    ids=["codec", "metric"],
)
def test_a_run_is_not_continued_after_a_change_of_an_import(code_folder, run_it, form, codec, metric, differs):
    request_of_run = {
        "codec": codec.format(form.format("codec_of_ours")),
        "metrics": metric.format(form.format("metric_of_ours")),
        "data": "embedded",
        "limit": 2,
    }
    first = run_it(**request_of_run)
    assert first.counts()["finished"] == 2 and run_it(**request_of_run).counts()["finished"] == 2
    (code_folder / "step_of_ours.py").write_text("LEVELS = 64\n")
    with refuses("other_settings", differences=Containing(differs)):
        run_it(**request_of_run)


def test_a_run_is_not_continued_after_a_change_of_a_codecs_weights(code_folder, run_it):
    weights = code_folder / "levels.txt"
    weights.write_text("16")
    request_of_run = {"codec": "./codec_of_ours.py:Levels", "data": "embedded", "metrics": "si_sdr", "limit": 2}
    request_of_run["options"] = {"./codec_of_ours.py:Levels": {"weights": "levels.txt"}}
    run_it(**request_of_run)
    assert run_it(**request_of_run).counts()["finished"] == 2
    weights.write_text("64")
    with refuses("other_settings", differences=Containing("weights")):
        run_it(**request_of_run)


def test_a_run_is_not_continued_after_a_change_of_an_uncached_feature(code_folder, run_it):
    file = code_folder / "feature_of_ours.py"
    file.write_text(file.read_text().replace("    def compute", "    cached = False\n\n    def compute"))
    request_of_run = {"codec": "unprocessed", "data": "embedded", "metrics": "transcript[./feature_of_ours.py:Hears]"}
    run_it(**request_of_run, limit=1)
    assert run_it(**request_of_run, limit=1).counts()["finished"] == 1
    (code_folder / "told_of_ours.py").write_text("TEXT = 'one'\n")
    with refuses("other_settings", differences=Containing("feature_of_ours")):
        run_it(**request_of_run, limit=1)

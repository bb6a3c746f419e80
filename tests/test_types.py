"""A script that calls the public API as the documentation shows passes a strict type checker.

`make check` runs the long tests, right after mypy has read the package.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import codec_bench

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = """
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from codec_bench import (
    Audio, Codec, CodecInfo, Codes, CodecStream, CodeStream, Inputs, LatentCodec, Latents, Message, Metric, Model,
    ModelInfo, Request, Response, Sample, Score, Scorer, agreement, build, compare, converse, error_rate, evaluate,
    doctor, export, export_listening, gate_calibrate, gate_check, gate_freeze, import_listening, interval, judge_check,
    judge_compare, judge_strengths, leaderboard, list_names, load_codec, load_metric, merge, metric_agreement,
    metric_stability, open_run, paired_test, profile, read_arguments, report, run_benchmark, sample_size, score, show,
    site, validate, verify_batching, write_figures,
)
from codec_bench.rewards import build_compute_score, build_reward_func

run = evaluate(codec="opus-12k,g722", data="embedded", metrics=["stoi", "bitrate"], out="runs/a", limit=4, workers=2)
folder: Path = run.folder
again = score(generated="tts", data=[Sample("a", "a.wav", text="hello")], metrics="dnsmos", device="cpu")
for row in open_run(folder).scores():
    value: float | None = row.value
clip = Audio.read("a.flac")
tone = Audio(np.zeros(16000, np.float32), 16000)
codec = load_codec("encodec-24khz@6", device="cpu", weights=None)
codes: list[Codes] = codec.encode([clip, tone])
continuous = LatentCodec.encode
latents: Latents = Latents(np.zeros((64, 25), np.float32), 12.5, 48000, 24000)
unknown: float | None = latents.bits
with codec.streaming() as stream:
    piece: CodecStream = stream
scores = load_metric("dnsmos")(estimate=codec.decode(codes))
first: Score = scores[0]["dnsmos_sig"]
rate: float | None = error_rate(reference=["the cat sat"], estimate=["a cat sat"]).rate
pairs = compare(runs=[folder], systems="opus-12k,g722")
difference: float | None = pairs[0].comparisons[0].test.difference
low: float | None = interval([1.0, 2.0, 4.0], denominators=[2.0, 3.0, 5.0], clusters=["a", "b", None]).low
p: float | None = paired_test(np.ones(8), np.zeros(8), clusters=list("aabbccdd")).p
speakers: int = sample_size(run=folder, metric="stoi", difference=0.01).plans[0].speakers
exact: bool = verify_batching(name="opus-12k", data="embedded", limit=4, device="cpu").exact
found = profile(codec="opus-12k", data="embedded")
asked = run_benchmark(benchmark="aishell-1", model="gpt-4o-audio", limit=3)
board = leaderboard("ultraeval-understanding", [folder])
repeated = evaluate(**read_arguments(folder / "run.json", command="eval"))
merged: Path = merge(parts="parts", out="runs/whole", partial=True).folder
kept: int = build("recipe.yaml", out="set", limit=3).funnel.usable
pages: Path = site([run.folder], out="site", audio_mb=1.0).folder
found_wrong: list[str] = [one.state for one in (*validate(["opus-12k", "embedded"]), *doctor()) if one.state != "ok"]
names: list[str] = [row["name"] for row in list_names("metrics")]
license: str = show("dnsmos")["license"]
report([run.folder], by="speaker")
export(run, form="jsonl", out="scores.jsonl")
drawn: tuple[Path, ...] = write_figures([run, again], "figures", by="speaker").files


rho: float | None = agreement(runs=folder, human="human.csv").pairs[0].overall.coefficients["spearman"].value
alike: tuple[tuple[str, ...], ...] = metric_agreement(runs=[folder], metrics="stoi,dnsmos_ovrl", least=0.8).clusters
shift: float | None = metric_stability("stoi,snr", limit=2).rows[0].mean_shift
talked: Path = converse(model="./mine.py:Mine", limit=2).folder
apart: float | None = judge_check("gpt-4o-audio", per_kind=4).test.parts["hearing"].j.value
moved: float | None = judge_compare([folder], ["old", "new"], out="runs/new")[0].offset.value
strongest: float | None = judge_strengths([folder])[0].found.systems[0].points
page: Path = export_listening(runs=[run], kind="mushra", items=8).page
baseline: Path = gate_freeze([folder], out="baseline.parquet").file
margin: float = gate_calibrate(baseline, out="gate.yaml").metrics["stoi"].margin
regressed: bool = gate_check(run.folder, against=baseline, spec="gate.yaml").regressed
with Scorer("stoi", device="cpu") as scorer:
    scored: float | None = scorer.score([{"audio": clip, "reference": tone}])[0].scores["stoi"].value
    rewards: list[float] = build_reward_func(scorer, "stoi", reference="prompt")(completions=[clip], prompt=[tone])
    reward: float = build_compute_score(scorer, "stoi")("tts", clip, "hello", {"reference": tone})["score"]
raters: int = len(import_listening(["anna.json"], key="listening.key.json").raters)


class Mine(Codec):
    def __init__(self) -> None:
        self.info = CodecInfo("mine", sample_rates_hz=(16000,), channels=(1,))

    def encode(self, batch: Sequence[Audio]) -> list[Codes]:
        values = [np.zeros((1, 50), np.int64) for _ in batch]
        return [
            Codes((CodeStream(v, 1024, 50.0),), a.num_samples, a.sample_rate_hz) for v, a in zip(values, batch)
        ]

    def decode(self, codes: Sequence[Codes]) -> list[Audio]:
        return [Audio(np.zeros((1, c.num_samples), np.float32), c.sample_rate_hz) for c in codes]


class MyModel(Model):
    info = ModelInfo("mine")

    @property
    def identity(self) -> dict[str, str]:
        return {"checkpoint": "mine-3"}

    async def ask(self, request: Request) -> Response:
        turn: Message = request.messages[-1]
        return Response(text=str(turn.content[-1]))


class Peak(Metric):
    name = "peak"
    kind = "single"
    protocol = "peak/1"

    def compute(self, batch: Sequence[Inputs]) -> list[Score]:
        estimates = [item.estimate for item in batch if item.estimate is not None]
        return [Score.ok(float(np.abs(estimate).max()), self.protocol) for estimate in estimates]
"""
WRONG = """
from codec_bench import evaluate

evaluate(codec=3, data="embedded", metrics="stoi")
kept: list = []
"""


STRICT = """
[[tool.mypy.overrides]]
module = ["script"]
disallow_any_generics = true
disallow_subclassing_any = true
disallow_untyped_calls = true
disallow_untyped_decorators = true
warn_return_any = true
strict_equality = true
extra_checks = true
"""
"""What a strict mode adds to the project's settings, which stay for the package, so that its cache serves."""


def type_errors(text: str, folder: Path) -> list[str]:
    """What mypy says of a user's script in its strict mode."""
    (folder / "script.py").write_text(text, "utf-8")
    (folder / "mypy.toml").write_text((ROOT / "pyproject.toml").read_text("utf-8") + STRICT, "utf-8")
    cache = ROOT / ".mypy_cache"  # of `make check`, which makes this quick
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "mypy.toml", "--cache-dir", str(cache), "script.py"],
        cwd=folder, env={**os.environ, "MYPYPATH": str(ROOT)}, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert done.returncode in (0, 1) and not done.stderr, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("script.py:")]


def test_the_wheel_says_that_it_has_types():
    assert (Path(codec_bench.__file__).parent / "py.typed").is_file()


@pytest.mark.long
def test_a_script_as_the_documentation_shows_has_no_type_error(tmp_path):
    pytest.importorskip("mypy", reason="types are checked with mypy")
    assert type_errors(SCRIPT, tmp_path) == []


@pytest.mark.long
def test_a_wrong_call_and_an_untyped_one_are_detected(tmp_path):
    pytest.importorskip("mypy", reason="types are checked with mypy")
    (call, loose) = type_errors(WRONG, tmp_path)
    assert "[arg-type]" in call and "[type-arg]" in loose


def test_the_script_uses_every_public_name():
    used = set(re.findall(r"\w+", SCRIPT))
    assert not set(codec_bench.__all__) - used

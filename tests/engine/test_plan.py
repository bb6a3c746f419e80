"""The keys under which a plan stores results: with other weights, the key is another one."""

from __future__ import annotations

import os

import pytest
from refusals import Containing, refuses

from codec_bench.codecs import load_codec
from codec_bench.config import config_names, read_config
from codec_bench.engine.plan import build_plan
from codec_bench.store.writer import RunWriter
from codec_bench.weights import checkpoint
from codec_bench.weights.find import WeightsMissing

FILE = "utmos22_strong_step7459_v1.pt"


@pytest.fixture
def placed(monkeypatch, tmp_path):
    """Writes a file where the checkpoint of UTMOS is looked for, and says where."""

    def position(folder, content, time=1_700_000_000):
        file = tmp_path / folder / "utmos22-strong" / FILE
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        os.utime(file, (time, time))
        monkeypatch.setenv("CODEC_BENCH_WEIGHTS", str(tmp_path / folder))
        return file

    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    return position


def cache_id(options=None, languages=None):
    plan = build_plan(["unprocessed"], ["utmos"], options or {}, languages)
    return plan.features["utmos"].cache_id if "utmos" in plan.features else None


def test_the_same_weights_are_the_same_results(placed):
    placed("a", b"one")
    assert cache_id() == cache_id()


def test_other_weights_are_other_results(placed):
    ids = set()
    for folder, content, time in (("a", b"one", 1), ("a", b"three", 1), ("a", b"three", 2), ("b", b"one", 1)):
        placed(folder, content, time)
        ids.add(cache_id())
    assert len(ids) == 2, "of each content, wherever and from whenever it is"


def test_a_file_that_is_overwritten_in_its_folder_is_noticed(placed):
    file = placed("a", b"one")
    options = {"utmos": {"weights": str(file.parent)}}
    before = cache_id(options)
    placed("a", b"three")
    assert cache_id(options) != before


def test_a_feature_that_no_language_needs_is_not_looked_for(placed, monkeypatch, tmp_path):
    monkeypatch.setenv("CODEC_BENCH_WEIGHTS", str(tmp_path / "nothing"))
    assert cache_id(languages={"zh", "de"}) is None
    with refuses("weights_missing", hint="codec-bench weights fetch utmos22-strong"):
        cache_id(languages={"zh", "en"})


def test_all_weights_that_are_missing_are_named_with_one_command_and_their_size(monkeypatch, tmp_path):
    for index in ("CODEC_BENCH_WEIGHTS", "CODEC_BENCH_CACHE", "HF_HUB_CACHE", "MODELSCOPE_CACHE"):
        monkeypatch.setenv(index, str(tmp_path))
    expected = ["whisper-large-v3", "seaco-paraformer-zh", "wavlm-large-sv"]
    size = f"{sum(checkpoint(name).size for name in expected) / 1e9:.3g} GB in all"
    command = f"codec-bench weights fetch {' '.join(expected)};"
    with refuses("weights_missing", names=", ".join(map(repr, expected)), hint=f"{size}): {command}"):
        build_plan(["unprocessed"], read_config("preset", "seed-tts")["metrics"], {}, ["en", "zh"])


@pytest.mark.parametrize("preset", sorted(config_names("preset")))
def test_every_preset_says_how_large_the_weights_are_that_it_lacks(preset, monkeypatch, tmp_path):
    for index in ("CODEC_BENCH_WEIGHTS", "CODEC_BENCH_CACHE", "HF_HUB_CACHE", "MODELSCOPE_CACHE"):
        monkeypatch.setenv(index, str(tmp_path))
    try:
        build_plan(["unprocessed"], read_config("preset", preset)["metrics"], {}, ["en", "zh"])
    except WeightsMissing as details:
        sizes = [checkpoint(name).size or checkpoint(name).about for name in details.names]
        large = f"{sum(sizes) / 1e9:.3g} GB" if sum(sizes) >= 1e9 else f"{sum(sizes) / 1e6:.3g} MB"
        assert large in details.hint and "only the download tells" not in details.hint


def test_what_is_reported_of_sizes_that_nobody_states_is_the_size_of_float32_weights():
    torch = pytest.importorskip("torch")
    from codec_bench.networks.scoreq import ScoreqNet
    from codec_bench.networks.speech_config import WAV2VEC2_BASE

    with torch.device("meta"):
        for mode in ("nr", "ref"):
            net = ScoreqNet(WAV2VEC2_BASE, rates=mode == "nr")
            size = 4 * sum(weight.numel() for weight in net.parameters())
            for domain in ("natural", "synthetic"):
                assert checkpoint(f"scoreq-{domain}-{mode}").about == pytest.approx(size, rel=0.01)


@pytest.mark.parametrize(
    ("built", "expected"),
    [
        (lambda: load_codec("spark-bicodec"), ["spark-bicodec", "spark-wav2vec2-xlsr-53"]),
        (
            lambda: build_plan(["bigcodec", "spark-bicodec", "opus-6k"], ["speechbleu"], {}, ["en"]),
            ["hubert-base-ls960", "hubert-km200", "bigcodec", "spark-bicodec", "spark-wav2vec2-xlsr-53"],
        ),
    ],
    ids=["a codec with two", "a feature with two, and codecs"],
)
def test_the_weights_of_codecs_and_features_are_named_together_if_all_are_missing(
    built, expected, monkeypatch, tmp_path
):
    for index in ("CODEC_BENCH_WEIGHTS", "CODEC_BENCH_CACHE", "HF_HUB_CACHE", "MODELSCOPE_CACHE"):
        monkeypatch.setenv(index, str(tmp_path))
    with refuses("weights_missing", hint="codec-bench weights fetch " + " ".join(expected)):
        built()


def test_precisions_share_no_results_and_no_record(placed, tmp_path):
    placed("a", b"one")
    names = ["utmos", "utmos@float16", "utmos@bfloat16", "utmos@tf32"]
    plans = {name: build_plan(["unprocessed"], [name], {}, ["en"]) for name in names}
    assert len({plan.features[name].cache_id for name, plan in plans.items()}) == len(names)
    protocols = {name: plan.metrics[name].protocol for name, plan in plans.items()}
    assert len(set(protocols.values())) == len(names)
    RunWriter(tmp_path / "run", {"metrics": {"utmos": protocols["utmos"]}}).close()
    for name in names[1:]:
        with refuses("other_settings", differences=Containing("now utmos/utmos22-strong/speechmos-1")):
            RunWriter(tmp_path / "run", {"metrics": {"utmos": protocols[name]}})

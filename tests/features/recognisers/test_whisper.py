"""Transcripts equal faster-whisper's token for token in any batch. The model is tiny and its words are made up."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import subprocess
import sys

import numpy as np
import pytest
import tiny_whisper
from refusals import Containing, refuses

from codec_bench.audio.resample import prepare
from codec_bench.engine.cache import pack, unpack
from codec_bench.features import Unavailable, load_feature
from codec_bench.features.recognisers import cublas, whisper, whisper_checkpoint, whisper_ct2
from codec_bench.features.recognisers.whisper import WINDOW_S, Whisper, _Together, windows_that_fit
from codec_bench.machine.environment import cpu_count
from codec_bench.machine.memory import out_of_memory
from codec_bench.messages import Diagnostic
from codec_bench.metrics import Inputs, build_metric

RATE = 16_000
GREEDY = {
    "beam_size": 1,
    "best_of": 1,
    "temperature": 0.0,
    "without_timestamps": True,
    "no_speech_threshold": None,
    "log_prob_threshold": None,
    "compression_ratio_threshold": None,
}
ALONE = {**GREEDY, "condition_on_previous_text": False, "vad_filter": False, "word_timestamps": False}


@pytest.fixture(scope="module")
def features(whispers):
    return {name: Whisper(model=name, weights=str(folder)) for name, folder in whispers.items()}


@pytest.fixture(scope="module")
def feature(features):
    return features["whisper-tiny"]


@pytest.fixture(scope="module")
def oracles(whispers):
    from faster_whisper import WhisperModel

    return {
        name: WhisperModel(str(folder), device="cpu", compute_type="float32", cpu_threads=1)
        for name, folder in whispers.items()
    }


@pytest.fixture(scope="module")
def oracle(oracles):
    return oracles["whisper-tiny"]


@pytest.fixture(scope="module")
def speech(embedded):
    return [prepare(audio, RATE) for _, audio in embedded[:6]]


@pytest.fixture(scope="module")
def clips(speech):
    """Speech, noise and silence of 0.01 to 70 s, some at the edges of frames and of windows."""
    rng = np.random.default_rng(3)
    lengths = [160, 161, 319, 1_600, 7_777, 30 * RATE - 1, 30 * RATE, 30 * RATE + 159, 30 * RATE + 160]
    noises = [rng.normal(0, 10.0 ** rng.uniform(-3, -0.5), n).astype(np.float32) for n in lengths]
    noises = [noises[k] for k in (0, 2, 4, 5, 7, 8)]  # the others have the same words
    long = np.concatenate([*speech, *speech[::-1]] * 2)
    assert long.size > 70 * RATE
    return [*speech, *noises, np.zeros(RATE, np.float32), long[: 70 * RATE], long[5 * RATE : 42 * RATE]]


LANGUAGES = ["en", "zh", "de", "fr", "ja"]


def spoken(clips):
    return [LANGUAGES[k % len(LANGUAGES)] for k in range(len(clips))]


def text_of(oracle, clip, language, **options):
    """faster-whisper's segments and what it says of the file."""
    segments, info = oracle.transcribe(clip, language=language, **{**ALONE, **options})
    return list(segments), info


def check(result, segments):
    """A result against faster-whisper's segments, one a window that has text."""
    assert result["tokens"].dtype == np.int32
    assert result["tokens"].tolist() == [token for segment in segments for token in segment.tokens]
    assert result["transcript"] == "".join(segment.text for segment in segments).strip()


@pytest.fixture(scope="module")
def output(feature, clips):
    """Our results for every clip, all in one batch."""
    return feature.compute(clips, spoken(clips))


@pytest.fixture(scope="module")
def detected(feature, clips):
    """The same without languages."""
    return feature.compute(clips)


@pytest.fixture(scope="module")
def expected(oracle, clips):
    """faster-whisper's segments of every clip."""
    return [text_of(oracle, clip, language)[0] for clip, language in zip(clips, spoken(clips))]


@pytest.mark.compares("whisper-*", weights="stand-in")
def test_equals_faster_whisper_token_for_token(output, clips, expected):
    for result, segments, clip, language in zip(output, expected, clips, spoken(clips), strict=True):
        check(result, segments)
        assert (result["language"], result["language_detected"]) == (language, False)
        assert result["windows"] == max(1, -(-(clip.size // 160) // 3000))
        steps = [len(segment.tokens) + 1 for segment in segments]
        if len(segments) == result["windows"]:
            assert result["no_speech_prob"] == pytest.approx(
                max(s.no_speech_prob for s in segments), rel=1e-4, abs=1e-9
            )
            mean = np.average([segment.avg_logprob for segment in segments], weights=steps)
            assert result["avg_logprob"] == pytest.approx(mean, abs=1e-4)


def test_the_stand_in_is_worth_testing_on(output):
    lengths = {len(result["tokens"]) for result in output}
    assert len(lengths) > 5
    assert any("fault" in result for result in output)
    assert any("fault" not in result and result["windows"] > 1 for result in output)
    assert len({result["transcript"] for result in output}) > len(output) // 2
    silences = [result["no_speech_prob"] for result in output]
    assert min(silences) < 0.1 and max(silences) > 0.2


@pytest.mark.parametrize("name", ["whisper-large-v3", "whisper-tiny.en"])
def test_other_kinds_equal_faster_whisper(features, oracles, clips, name):
    some = clips[::5]
    languages = (
        ["yue" if k % 2 else "en" for k in range(len(some))] if name == "whisper-large-v3" else [None] * len(some)
    )
    for result, clip, language in zip(features[name].compute(some, languages), some, languages, strict=True):
        check(result, text_of(oracles[name], clip, language)[0])
        assert result["language"] == (language or "en")
        assert not result["language_detected"]


@pytest.mark.long
def test_equals_faster_whisper_on_speech(feature, oracle, spoken):
    signals = [prepare(audio, RATE) for _, audio in spoken[6:12]]
    for result, signal in zip(feature.compute(signals, ["en"] * len(signals)), signals, strict=True):
        check(result, text_of(oracle, signal, "en")[0])


@pytest.mark.parametrize("at_once", [1, 3])
def test_does_not_depend_on_the_batch(feature, clips, output, expected, rng, monkeypatch, at_once):
    monkeypatch.setattr(feature, "_together", _Together(at_once * WINDOW_S))
    order = rng.permutation(len(clips))[:6]
    languages = spoken(clips)
    results = feature.compute([clips[k] for k in order], [languages[k] for k in order])
    for result, k in zip(results, order, strict=True):
        check(result, expected[k])
        for key in ("avg_logprob", "no_speech_prob"):
            assert result[key] == pytest.approx(output[k][key], rel=1e-4, abs=1e-6)


@pytest.mark.compares("lid", "spoken-language", weights="stand-in")
@pytest.mark.parametrize("backend", ["ct2", "torch"])
def test_the_probability_of_a_language_is_faster_whispers(oracle, whispers, clips, backend):
    name = "whisper-tiny"
    weights = f"{whispers[name]}{'-transformers' if backend == 'torch' else ''}"
    some = clips[1::4]
    results = load_feature(f"spoken-language[{name}]@{backend}", weights=weights).compute(some)
    for result, clip in zip(results, some, strict=True):
        output = oracle.feature_extractor(clip)[:, : min(clip.size // 160, 3000)]
        language, probability, _ = oracle.detect_language(features=output)
        assert (result["language"], result["probability"]) == (language, pytest.approx(probability, rel=1e-4))
    item = Inputs("x", RATE, estimate_features={f"spoken-language[{name}]": results[0]})
    score = build_metric(f"lid[{name}]").compute([item])[0]
    assert (score.value, score.detail["language"]) == (results[0]["probability"], results[0]["language"])


def test_languages_are_detected_as_by_faster_whisper(oracle, clips, detected):
    assert len({result["language"] for result in detected}) > 2
    for result, clip in list(zip(detected, clips, strict=True))[::-3]:
        # faster-whisper's detection also sees the frame that lies half beyond the signal; ours and its decoding do not.
        output = oracle.feature_extractor(clip)[:, : min(clip.size // 160, 3000)]
        assert result["language"] == oracle.detect_language(features=output)[0]
        assert result["language_detected"]
        segments, info = text_of(oracle, clip, None if clip.size >= 30 * RATE else result["language"])
        assert info.language == result["language"]
        check(result, segments)


def test_detected_and_passed_languages_share_a_batch(feature, clips, detected):
    clips, detected = clips[-6:], [result["language"] for result in detected[-6:]]
    options = [None if k % 2 else "fr" for k in range(len(clips))]
    results = feature.compute(clips, options)
    assert [result["language"] for result in results] == [
        requests or collected for requests, collected in zip(options, detected)
    ]
    assert [result["language_detected"] for result in results] == [requests is None for requests in options]


def test_every_window_is_encoded_once(feature, clips, monkeypatch):
    encoded, clips = [], clips[-4:]

    class Counting:
        def __getattr__(self, name):
            return getattr(net, name)

        def encode(self, view):
            encoded.append(view.shape)
            return net.encode(view)

    net = feature._net.model
    monkeypatch.setattr(feature._net, "model", Counting())
    results = feature.compute(clips)
    assert sum(shape[0] for shape in encoded) == sum(result["windows"] for result in results)
    assert {tuple(shape[1:]) for shape in encoded} == {(80, 3000)}


def test_vad_equals_faster_whispers_batched_transcription(whispers, oracle, speech):
    from faster_whisper import BatchedInferencePipeline

    rng = np.random.default_rng(8)
    pauses = [rng.normal(0, 1e-4, int(RATE * rng.uniform(0.2, 3))).astype(np.float32) for _ in speech]
    long = np.concatenate([segment for pair in zip(speech, pauses) for segment in pair] * 2)
    vad = Whisper(model="whisper-tiny", point="vad", weights=str(whispers["whisper-tiny"]))
    pipeline = BatchedInferencePipeline(oracle)
    signals = [long, speech[0], np.concatenate([pauses[0], speech[1], pauses[1]])]
    results = vad.compute(signals, ["en"] * 3)
    assert results[0]["windows"] > 1
    for result, signal in zip(results, signals, strict=True):
        segments, _ = pipeline.transcribe(signal, language="en", batch_size=4, **GREEDY)
        check(result, list(segments))


def test_vad_detects_nothing_in_silence(whispers):
    vad = Whisper(model="whisper-tiny", point="vad", weights=str(whispers["whisper-tiny"]))
    options, detected = vad.compute([np.zeros(2 * RATE, np.float32)] * 2, ["en", None])
    assert options["transcript"] == "" and options["tokens"].size == 0 and options["windows"] == 0
    assert options["no_speech_prob"] == 1.0
    assert (options["language"], detected["language"], detected["language_detected"]) == ("en", "", False)


def test_28s_transcribes_every_part_by_itself(whispers, oracle, clips):
    fixed = Whisper(model="whisper-tiny", point="28s", weights=str(whispers["whisper-tiny"]))
    long = clips[-1]
    for language, space in (("en", " "), ("zh", "")):
        (result,) = fixed.compute([long], [language])
        parts = [
            text_of(oracle, long[start : start + 28 * RATE], language)[0] for start in range(0, long.size, 28 * RATE)
        ]
        assert result["windows"] == len(parts) == 2
        texts = ["".join(segment.text for segment in segments).strip() for segments in parts]
        assert result["transcript"] == space.join(text for text in texts if text)
        assert result["tokens"].tolist() == [t for segments in parts for segment in segments for t in segment.tokens]


def test_a_loop_is_bounded_and_reported(tmp_path, speech):
    endless = tiny_whisper.write_converted(tmp_path / "endless", end=-100.0)
    looping, short = Whisper(model="whisper-tiny", weights=str(endless)).compute([speech[0], speech[1]], ["en", "en"])
    for result in (looping, short):
        assert len(result["tokens"]) == 224
        assert "224 tokens" in result["fault"]


def test_a_fault_is_reported_only_at_the_bound(output):
    for result in output:
        if result["windows"] == 1:
            assert ("fault" in result) == (len(result["tokens"]) == 224)


def test_silence_keeps_what_whisper_invents(feature, oracle):
    silence = np.zeros(3 * RATE, np.float32)
    (result,) = feature.compute([silence], ["en"])
    segments, _ = text_of(oracle, silence, "en")
    check(result, segments)
    assert result["no_speech_prob"] == pytest.approx(segments[0].no_speech_prob, rel=1e-4)


def test_results_survive_the_cache(feature, speech):
    (result,) = feature.compute(speech[:1])
    read = unpack(pack(result))
    np.testing.assert_array_equal(read.pop("tokens"), result.pop("tokens"))
    assert read == result


def test_unusable_audio_harms_nobody(feature, speech):
    broken = speech[0].copy()
    broken[100] = np.nan
    signals = [np.zeros(0, np.float32), speech[0], np.ones(159, np.float32), broken, speech[1], speech[2]]
    results = feature.compute(signals, ["en", "en", "en", "en", "xx", "yue"])
    codes = [result.args[0].code if isinstance(result, Unavailable) else None for result in results]
    assert codes[1] is None and codes[0] == codes[2] and codes[4] == codes[5]
    assert len({codes[0], codes[3], codes[4], None}) == 4
    (alone,) = feature.compute([speech[0]], ["en"])
    assert results[1]["tokens"].tolist() == alone["tokens"].tolist()


def test_english_models_transcribe_english_only(features, whispers, speech):
    result, refused = features["whisper-tiny.en"].compute(speech[:2], [None, "de"])
    assert (result["language"], result["language_detected"]) == ("en", False)
    assert str(refused) == Diagnostic("english_only", model="whisper-tiny.en", language="de")
    distil = Whisper(model="whisper-distil-large-v3", weights=str(whispers["whisper-large-v3"]))
    result, refused = distil.compute(speech[:2], [None, "de"])
    assert (result["language"], result["language_detected"]) == ("en", False)
    assert str(refused) == Diagnostic("english_only", model="whisper-distil-large-v3", language="de")


def test_other_codes_of_a_language_are_known(feature, speech):
    results = feature.compute([speech[0]] * 4, ["tl", "fil", "jw", "jv"])
    assert [result["language"] for result in results] == ["tl", "tl", "jw", "jw"]


def test_too_little_memory_halves_the_windows_decoded_at_once(feature, clips, expected, monkeypatch):
    requests = []

    def tight(windows):
        requests.append(len(windows))
        if len(windows) > 3:
            raise RuntimeError("CUDA failed with error out of memory")
        return encode(windows)

    encode = feature._encode
    monkeypatch.setattr(feature, "_together", _Together(16 * WINDOW_S))
    monkeypatch.setattr(feature, "_encode", tight)
    for result, segments in zip(feature.compute(clips[:8], spoken(clips)[:8]), expected[:8], strict=True):
        check(result, segments)
    assert requests == [8, 4, 2, 2, 2, 2]


def on_a_gpu(feature, monkeypatch, room, windows=16):
    """The feature as if on a GPU with room for so many windows at once; how many it was asked for, or that memory was
    given back.
    """
    messages = []

    def together(some, codes):
        messages.append(len(some))
        if len(some) > room():
            raise RuntimeError("cuBLAS failed with status CUBLAS_STATUS_ALLOC_FAILED")

    monkeypatch.setattr(feature, "_kind", "cuda")
    monkeypatch.setattr(feature, "_together", _Together(windows * WINDOW_S))
    monkeypatch.setattr(feature, "_decode_together", together)
    monkeypatch.setattr(whisper, "give_back", lambda device: messages.append("gave back"))
    return messages


def some_windows(count):
    return [whisper._Window(0, np.zeros((10, 80), np.float32), True) for _ in range(count)]


def test_on_a_gpu_torchs_memory_is_released_before_fewer_windows_are_decoded_at_once(feature, monkeypatch):
    retained = iter([4, 16])
    text = on_a_gpu(feature, monkeypatch, lambda: next(retained))
    feature._decode(some_windows(8), ["en"])
    assert text == [8, "gave back", 8]


def test_fewer_windows_at_once_become_more_again(feature, monkeypatch):
    text = on_a_gpu(feature, monkeypatch, lambda: 4)
    feature._decode(some_windows(8), ["en"])
    assert text == [8, "gave back", 8, "gave back", 4, 4]
    text = on_a_gpu(feature, monkeypatch, lambda: 16 if len(text) > 3 else 4)
    feature._decode(some_windows(200), ["en"])
    sizes = [size for size in text if isinstance(size, int)]
    assert sizes[2] <= 8 and max(sizes[4:]) > 8 and sum(sizes[2:]) == 200


def test_one_window_that_does_not_fit_on_a_gpu_is_tried_again_once(feature, monkeypatch):
    text = on_a_gpu(feature, monkeypatch, lambda: 0)
    with pytest.raises(MemoryError, match="one window does not fit"):
        feature._decode(some_windows(1), ["en"])
    assert text == [1, "gave back", 1]


class WithoutCublas:
    """A model that loads and whose first product fails, as CTranslate2's does without cuBLAS 12."""

    n_mels, is_multilingual = 80, True

    def __init__(self, *_, **__):
        pass

    def encode(self, features, to_cpu=False):
        raise RuntimeError("Library libcublas.so.12 is not found or cannot be loaded")


@pytest.fixture
def gpu_model(whispers, monkeypatch):
    """A Whisper for a GPU, and in which order cuBLAS and CTranslate2's model were loaded."""
    import ctranslate2

    order = []
    monkeypatch.setattr(whisper_ct2, "load_cublas", lambda *_: order.append("cublas"))
    monkeypatch.setattr(ctranslate2, "get_supported_compute_types", lambda *_: {"float32"})
    monkeypatch.setattr(
        ctranslate2.models,
        "Whisper",
        lambda *options, **settings: order.append("model") or WithoutCublas(*options, **settings),
    )
    return Whisper("cuda:0", str(whispers["whisper-tiny"]), model="whisper-tiny"), order


def test_a_gpu_that_cannot_encode_is_one_sentence_when_the_model_loads(gpu_model):
    model, order = gpu_model
    with refuses(
        "computing_fails",
        name="whisper-tiny",
        device="cuda:0",
        cause=Containing("Library libcublas.so.12"),
        hint="whisper-tiny@torch",
    ):
        model.load()
    assert order == ["cublas", "model"]


def test_a_gpu_that_computes_no_numbers_is_one_sentence(gpu_model, monkeypatch):
    monkeypatch.setattr(WithoutCublas, "encode", lambda *_, **__: np.full((1, 2, 3), np.nan))
    with refuses("computes_nothing", device="cuda:0"):
        gpu_model[0].load()


def test_cublas_is_the_systems_or_the_packages_or_one_sentence(monkeypatch, tmp_path):
    tried = []

    def opened(position, mode):
        tried.append(position)
        if position != str(tmp_path / "lib" / "libcublas.so.12"):
            raise OSError(position)

    monkeypatch.setattr(cublas.sys, "platform", "linux")
    monkeypatch.setattr(cublas.ctypes, "CDLL", opened)
    monkeypatch.setattr(cublas.importlib.util, "find_spec", lambda _: None)
    with refuses("package_not_installed", package="nvidia-cublas-cu12", hint="codec-bench[gpu]"):
        cublas.load_cublas("whisper-tiny")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libcublas.so.12").touch()
    spec = importlib.machinery.ModuleSpec("nvidia.cublas", None, is_package=True)
    spec.submodule_search_locations.append(str(tmp_path))
    monkeypatch.setattr(cublas.importlib.util, "find_spec", lambda _: spec)
    assert cublas.load_cublas("whisper-tiny") == tried[-1] and tried[0] == "libcublas.so.12"


def test_a_window_that_does_not_fit_is_out_of_memory_for_the_engine(feature, speech, monkeypatch):
    def never(_):
        raise RuntimeError("CUDA failed with error out of memory")

    monkeypatch.setattr(feature, "_together", _Together(8 * WINDOW_S))
    monkeypatch.setattr(feature, "_encode", never)
    with pytest.raises(MemoryError) as caught:
        feature.compute(speech[:3], ["en"] * 3)
    assert out_of_memory(caught.value)


def test_other_errors_are_not_mistaken_for_lack_of_memory(feature, speech, monkeypatch):
    def broken(_):
        raise RuntimeError("Library libcublas.so.12 is not found or cannot be loaded")

    monkeypatch.setattr(feature, "_encode", broken)
    with pytest.raises(RuntimeError, match="libcublas"):
        feature.compute(speech[:1], ["en"])


def test_a_compute_type_that_the_device_lacks_is_refused_with_those_it_has(whispers):
    import ctranslate2

    able = ctranslate2.get_supported_compute_types("cpu")
    unable = next(kind for kind in whisper_checkpoint.COMPUTE_TYPES["ct2"] if kind not in able)
    feature = Whisper(model="whisper-tiny", weights=str(whispers["whisper-tiny"]), point=unable)
    with refuses("compute_type_unsupported", compute_type="float16", device="cpu", hint="float32"):
        feature.load()


def test_int8_is_another_computation(whispers, feature, speech):
    coarse = Whisper(model="whisper-tiny", weights=str(whispers["whisper-tiny"]), point="int8_float32")
    languages = ["en"] * 3
    rough, exact = coarse.compute(speech[:3], languages), feature.compute(speech[:3], languages)
    assert any(r["avg_logprob"] != e["avg_logprob"] for r, e in zip(rough, exact))


def test_a_model_that_does_not_fit_into_memory_is_no_broken_checkpoint(whispers, monkeypatch):
    import ctranslate2

    def full(*_, **__):
        raise RuntimeError("CUDA failed with error out of memory")

    monkeypatch.setattr(ctranslate2.models, "Whisper", full)
    with pytest.raises(MemoryError, match="whisper-tiny does not fit into the memory of 'cpu'"):
        Whisper(model="whisper-tiny", weights=str(whispers["whisper-tiny"])).load()


@pytest.mark.parametrize("package", ["ctranslate2", "faster_whisper"])
def test_a_missing_package_is_one_sentence(monkeypatch, package):
    result = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else result(name))
    with refuses(
        "package_not_installed",
        feature="recogniser",
        name="whisper-tiny",
        package="faster-whisper",
        hint="codec-bench[asr]",
    ):
        Whisper(model="whisper-tiny")


def test_importing_it_loads_nothing_heavy():
    heavy = "torch", "ctranslate2", "faster_whisper", "onnxruntime", "tokenizers"
    code = f"import sys, codec_bench.features.recognisers.whisper; print([n for n in {heavy} if n in sys.modules])"
    run = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.gpu
def test_equals_the_cpu_on_a_gpu(whispers, feature, clips):
    import torch

    if not torch.cuda.is_available():
        pytest.skip("no NVIDIA GPU")
    device = Whisper("cuda:0", str(whispers["whisper-tiny"]), model="whisper-tiny")
    languages = spoken(clips)
    there, here = device.compute(clips, languages), feature.compute(clips, languages)
    same = [t["tokens"].tolist() == h["tokens"].tolist() for t, h in zip(there, here, strict=True)]
    assert np.mean(same) > 0.9


@pytest.mark.parametrize("options", [None, "3"])
def test_on_a_cpu_it_uses_the_cores_of_this_process_or_what_a_worker_receives(whispers, monkeypatch, options):
    import ctranslate2

    requests, build = [], ctranslate2.models.Whisper
    monkeypatch.setattr(
        ctranslate2.models, "Whisper", lambda *a, **k: requests.append(k["intra_threads"]) or build(*a, **k)
    )
    if options is None:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    else:
        monkeypatch.setenv("OMP_NUM_THREADS", options)
    Whisper(model="whisper-tiny", weights=str(whispers["whisper-tiny"])).load()
    assert requests == [int(options or cpu_count())]


def test_the_windows_at_once_are_as_many_as_fill_half_of_the_memory():
    large, tiny = (whisper_checkpoint.facts_of(name) for name in ("whisper-large-v3", "whisper-tiny"))
    # The keys and values of large-v3's 32 layers: 1500 frames and 448 tokens of 1280 numbers of 4 bytes, twice.
    assert whisper_checkpoint.window_bytes(large, "float32") == 32 * 1948 * 1280 * 4 * 2
    assert whisper_checkpoint.window_bytes(large, "float16") == 32 * 1948 * 1280 * 2 * 2
    # In tiny it is the attention of its six heads over 1500 frames, and eight numbers for each of a frame's 384.
    assert whisper_checkpoint.window_bytes(tiny, "float32") == 4 * (6 * 1500**2 + 8 * 1500 * 384)
    gib = 2**30
    assert [windows_that_fit(large, "float32", room * gib) for room in (0.1, 12, 24, 130)] == [1, 10, 20, 109]
    assert windows_that_fit(large, "float16", 130 * gib) == whisper.WINDOWS_AT_ONCE["cuda"]

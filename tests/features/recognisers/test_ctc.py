"""CTC recognisers against transformers' own classes and processors, one signal at a time, on small seeded networks."""

from __future__ import annotations

import json

import numpy as np
import pytest
from refusals import Containing, refuses
from tiny_speech import write_ctc

from codec_bench.features import Unavailable
from codec_bench.features.recognisers import ctc, pieces
from codec_bench.features.recognisers.pocketsphinx import windows
from codec_bench.messages import Diagnostic

RATE = ctc.RATE_HZ
FIELD = 400
FLAVOURS = [
    (kind, norm, stable) for kind in ("hubert", "wav2vec2") for norm, stable in (("group", False), ("layer", True))
]


def reference(folder, kind, signals):
    """Logits and transcripts by transformers alone, one signal at a time."""
    import torch
    from transformers import (
        HubertForCTC,
        Wav2Vec2CTCTokenizer,
        Wav2Vec2FeatureExtractor,
        Wav2Vec2ForCTC,
        Wav2Vec2Processor,
    )

    processor = Wav2Vec2Processor(
        Wav2Vec2FeatureExtractor.from_pretrained(folder), Wav2Vec2CTCTokenizer.from_pretrained(folder)
    )
    model = {"hubert": HubertForCTC, "wav2vec2": Wav2Vec2ForCTC}[kind].from_pretrained(folder).eval()
    logits, texts = [], []
    with torch.inference_mode():
        for signal in signals:
            values = processor(signal, sampling_rate=RATE, return_tensors="pt").input_values
            logits.append(model(values).logits[0])
            texts += processor.batch_decode(logits[-1].argmax(-1)[None])
    return [values.numpy() for values in logits], texts


def speech_like(rng, lengths):
    """Noise whose level and colour change, with an offset, at levels far apart."""
    signals = []
    for length in lengths:
        wave = rng.normal(0, 1, length + 40)
        smooth = np.convolve(wave, np.hanning(40), "valid")[:length]
        knots = rng.random(length // 800 + 2)
        level = np.interp(np.arange(length) / 800, np.arange(knots.size), knots)
        signals.append((10 ** rng.uniform(-3, 0) * (smooth * level + 0.05)).astype(np.float32))
    return signals


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("ctc")
    return {flavour: write_ctc(root / "-".join(map(str, flavour)), *flavour) for flavour in FLAVOURS}


def load(folder, model="wav2vec2-base-960h", **options):
    feature = ctc.Ctc(model=model, weights=str(folder), **options)
    feature.load()
    return feature


@pytest.mark.parametrize("flavour", FLAVOURS[:1], ids=lambda flavour: "-".join(map(str, flavour)))
def test_the_times_of_words_are_those_of_transformers(folders, flavour, monkeypatch):
    from transformers import Wav2Vec2CTCTokenizer

    feature = load(folders[flavour])
    tokenizer = Wav2Vec2CTCTokenizer.from_pretrained(folders[flavour])
    (signal,) = speech_like(np.random.default_rng(3), [3 * RATE])
    (logits,), _ = reference(folders[flavour], flavour[0], [signal])
    expected = tokenizer.decode(logits.argmax(-1), output_word_offsets=True).word_offsets
    result = feature.timed(signal)
    assert [word for word, _, _ in result] == [one["word"] for one in expected] and len(result) > 1
    stride = feature._net.config.inputs_to_logits_ratio / RATE
    for (_, begin, end), one in zip(result, expected):
        assert begin == pytest.approx(one["start_offset"] * stride, abs=1e-3)
        assert end == pytest.approx(one["end_offset"] * stride, abs=1e-3)
    # Of a long signal the times go on from piece to piece.
    monkeypatch.setattr(pieces.PiecewiseRecogniser, "whole_s", 31.0)
    long = np.tile(signal, 22)
    cuts = list(windows(long))
    by_piece = [
        (word, begin + start / RATE) for start, end in cuts for word, begin, _ in feature.timed(long[start:end])
    ]
    assert len(cuts) > 1
    for (word, begin, _), (theirs, at_s) in zip(feature.timed(long), by_piece, strict=True):
        assert word == theirs and begin == pytest.approx(at_s, abs=2e-3)


def test_phones_are_no_words():
    assert ctc.Ctc.times_words and not ctc.CtcPhones.times_words


@pytest.mark.compares("hubert-large-ls960", "wav2vec2-*", weights="stand-in")
@pytest.mark.parametrize("flavour", FLAVOURS, ids=lambda flavour: "-".join(map(str, flavour)))
def test_a_batch_equals_transformers_one_by_one(folders, flavour):
    rng = np.random.default_rng(7)
    lengths = [FIELD, FIELD + 1, 719, 720, 16_000, *rng.integers(FIELD, 4 * RATE, 9)]
    signals = speech_like(rng, lengths)
    expected_logits, expected_texts = reference(folders[flavour], flavour[0], signals)
    feature = load(folders[flavour])
    logits, frames = feature.logits(signals)
    assert frames == [len(values) for values in expected_logits]
    scale = max(np.abs(values).max() for values in expected_logits)
    for actual, count, values in zip(logits.numpy(), frames, expected_logits):
        np.testing.assert_allclose(actual[:count], values, atol=1e-5 * scale)
    texts = [result["transcript"] for result in feature.compute(signals)]
    assert texts == expected_texts
    assert len(set(texts)) > len(texts) // 2  # else the comparison would prove little


def test_padding_would_leak_through_the_group_norm_unmasked(folders):
    """This shows that the tests above can fail: transformers' own batches of such a network differ from one by one."""
    import torch
    from transformers import Wav2Vec2ForCTC

    folder = folders["wav2vec2", "group", False]
    signals = speech_like(np.random.default_rng(8), [4_000, 40_000])
    (alone, _), _ = reference(folder, "wav2vec2", signals)
    padded = np.stack([np.pad(ctc.normalised(x), (0, 40_000 - x.size)) for x in signals])
    with torch.inference_mode():
        model = Wav2Vec2ForCTC.from_pretrained(folder).eval()
        mask = torch.tensor([[1] * 4_000 + [0] * 36_000, [1] * 40_000])
        leaked = model(torch.from_numpy(padded), attention_mask=mask).logits[0].numpy()
    assert np.abs(leaked[: len(alone)] - alone).max() > 1e-2 * np.abs(alone).max()


@pytest.mark.parametrize("flavour", [("wav2vec2", "group", False), ("hubert", "layer", True)])
def test_order_and_company_change_nothing(folders, flavour):
    rng = np.random.default_rng(9)
    signals = speech_like(rng, rng.integers(FIELD, 2 * RATE, 7))
    feature = load(folders[flavour])
    together = feature.compute(signals)
    order = rng.permutation(len(signals))
    assert [together[k] for k in order] == feature.compute([signals[k] for k in order])
    assert together == [feature.compute([signal])[0] for signal in signals]


def test_embedded_speech_equals_transformers(folders, embedded):
    from codec_bench.audio.resample import prepare

    signals = [prepare(audio, RATE) for _, audio in embedded[:4]]
    for flavour in FLAVOURS[1:3]:
        _, texts = reference(folders[flavour], flavour[0], signals)
        actual = load(folders[flavour]).compute(signals)
        assert [result["transcript"] for result in actual] == texts


def test_a_signal_is_normalised_only_where_the_checkpoint_wants_it(tmp_path):
    folder = write_ctc(tmp_path, "hubert", "layer", True, normalise=False)
    signals = speech_like(np.random.default_rng(10), [9_000, 16_000])
    expected, _ = reference(folder, "hubert", signals)
    result, frames = load(folder).logits(signals)
    for ours, count, theirs in zip(result.numpy(), frames, expected):
        np.testing.assert_allclose(ours[:count], theirs, atol=1e-5 * np.abs(theirs).max())


def test_normalisation_is_the_feature_extractors(rng):
    from transformers import Wav2Vec2FeatureExtractor

    for signal in (*speech_like(rng, [400, 16_000]), np.zeros(500, np.float32), np.full(500, 0.3, np.float32)):
        expected = Wav2Vec2FeatureExtractor(do_normalize=True)(signal, sampling_rate=RATE).input_values[0]
        np.testing.assert_array_equal(ctc.normalised(signal), expected)


def test_too_short_is_unavailable_and_harms_nobody(folders):
    feature = load(folders["hubert", "layer", True])
    (fine,) = speech_like(np.random.default_rng(11), [8_000])
    none, short, usable = feature.compute([np.zeros(0, np.float32), np.ones(FIELD - 1, np.float32), fine])
    for result in (none, short):
        assert isinstance(result, Unavailable)
    assert short.args[0] == Diagnostic("signal_short", samples=399, model="wav2vec2-base-960h", needed=400)
    assert usable == feature.compute([fine])[0]
    assert feature.compute([]) == []


def test_silence_is_read_as_the_network_reads_it(folders):
    folder = folders["wav2vec2", "group", False]
    silence = np.zeros(RATE, np.float32)
    _, texts = reference(folder, "wav2vec2", [silence])
    assert load(folder).compute([silence]) == [{"transcript": texts[0]}]


def test_long_signals_are_cut_where_quietest_and_each_piece_transcribed_alone(folders, monkeypatch):
    folder = folders["wav2vec2", "group", False]
    monkeypatch.setattr(pieces.PiecewiseRecogniser, "whole_s", 31.0)
    rng = np.random.default_rng(12)
    (long, complete, short) = speech_like(rng, [64 * RATE, 31 * RATE, 3 * RATE])
    cuts = list(windows(long))
    assert len(cuts) == 3
    _, parts = reference(folder, "wav2vec2", [long[start:end] for start, end in cuts])
    _, others = reference(folder, "wav2vec2", [complete, short])
    results = [result["transcript"] for result in load(folder).compute([long, complete, short])]
    assert results == [" ".join(filter(None, parts)), *others]


def test_published_files_with_old_names_and_without_training_parts_load(folders, tmp_path):
    """As on the hub: `pytorch_model.bin`, weight norms named `weight_g`, and no vector for masked frames."""
    import shutil

    import torch
    from safetensors.torch import load_file

    source = folders["wav2vec2", "group", False]
    old = shutil.copytree(source, tmp_path / "old")
    names = {"parametrizations.weight.original0": "weight_g", "parametrizations.weight.original1": "weight_v"}
    state = {}
    for name, value in load_file(old / "model.safetensors").items():
        for new, before in names.items():
            name = name.replace(new, before)
        if "masked_spec_embed" not in name:
            state[name] = value
    assert any(name.endswith("weight_g") for name in state)
    torch.save(state, old / "pytorch_model.bin")
    (old / "model.safetensors").unlink()
    signals = speech_like(np.random.default_rng(13), [5_000, 12_000])
    assert load(old).compute(signals) == load(source).compute(signals)


@pytest.mark.parametrize("model", ctc.WEIGHTS)
def test_the_catalogue_says_where_the_weights_are_and_how_to_fetch_them(model, folders, tmp_path, monkeypatch):
    import shutil

    from codec_bench.weights import checkpoint

    monkeypatch.setenv("CODEC_BENCH_WEIGHTS", str(tmp_path))
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    with refuses("weights_missing", hint=f"codec-bench weights fetch {ctc.WEIGHTS[model]}"):
        ctc.Ctc(model=model)
    entry = checkpoint(ctc.WEIGHTS[model])
    kind = model.split("-")[0]
    folder = tmp_path / entry.hub
    shutil.copytree(folders[kind, "layer", True], folder)
    assert entry.inside(folder) is not None
    (signal,) = speech_like(np.random.default_rng(14), [8_000])
    result = ctc.Ctc(model=model).compute([signal])
    assert result == load(folders[kind, "layer", True], model=model).compute([signal])


def test_protocols_name_recogniser_decoding_and_precision(folders):
    assert ctc.Ctc.protocol_id("hubert-large-ls960") == "hubert-large-ls960/greedy/whole-to-60s"
    assert ctc.Ctc.protocol_id("wav2vec2-base-960h", "bfloat16").endswith("/bfloat16")
    folder = folders["hubert", "layer", True]
    for point in (None, "tf32", "bfloat16"):
        feature = ctc.Ctc(model="hubert-large-ls960", weights=str(folder), point=point)
        assert feature.protocol == ctc.Ctc.protocol_id("hubert-large-ls960", point)
        assert feature.name == "hubert-large-ls960"
    with refuses("no_point_of_metric", point="float16"):
        ctc.Ctc.protocol_id("hubert-large-ls960", "float16")
    with refuses("unknown_name", name="hubert-large", hint="hubert-large-ls960"):
        ctc.Ctc.protocol_id("hubert-large")
    assert ctc.Ctc.languages == ("en",)


@pytest.mark.parametrize("flavour", [("wav2vec2", "group", False), ("hubert", "layer", True)])
def test_bfloat16_is_near_float32(folders, flavour):
    signals = speech_like(np.random.default_rng(15), [9_000, 16_000])
    exact, frames = load(folders[flavour]).logits(signals)
    rough, _ = load(folders[flavour], point="bfloat16").logits(signals)
    for values, rounded, count in zip(exact.numpy(), rough.numpy(), frames):
        # Seeded noise as a network magnifies roundings as no trained one would: transformers' own bfloat16 is as far
        # off.
        assert 0.9 < np.corrcoef(values[:count].ravel(), rounded[:count].ravel())[0, 1] < 1 - 1e-7


def test_folders_of_something_else_are_one_sentence(folders, tmp_path):
    import shutil

    source = folders["hubert", "layer", True]

    def changed(name, file="config.json", **values):
        folder = shutil.copytree(source, tmp_path / name)
        settings = json.loads((folder / file).read_text("utf-8"))
        (folder / file).write_text(json.dumps({**settings, **values}), "utf-8")
        return folder

    with refuses("no_such_weights"):
        ctc.Ctc(model="hubert-large-ls960", weights=str(tmp_path / "nothing"))
    (tmp_path / "empty").mkdir()
    with refuses("weights_folder_lacks", names=Containing("pytorch_model.bin")):
        ctc.Ctc(model="hubert-large-ls960", weights=str(tmp_path / "empty"))
    with refuses("weights_kind", folder="kind", kind="wavlm"):
        load(changed("kind", model_type="wavlm"))
    with refuses("weights_setting_unsupported", setting="conv_pos_batch_norm"):
        load(changed("leak", conv_pos_batch_norm=True))
    with refuses("tensors_wrong", path="shape", difference={"code": "tensors_reshaped"}):
        load(changed("shape", intermediate_size=48))
    with refuses("tensors_wrong", difference={"code": "tensors_missing"}):
        load(changed("deeper", num_hidden_layers=3))
    with refuses("weights_rate", rate_hz=8000):
        load(changed("rate", "preprocessor_config.json", sampling_rate=8000))
    with refuses("vocabulary_size", entries=34, expected=32):
        load(changed("letters", "vocab.json", **{"é": 32, "ü": 33}))
    broken = shutil.copytree(source, tmp_path / "broken")
    (broken / "config.json").write_text("{", "utf-8")
    with refuses("weights_not_read"):
        load(broken)


def test_importing_the_module_loads_no_torch():
    import subprocess
    import sys

    code = (
        "import sys, codec_bench.features.recognisers.ctc; sys.exit(bool({'torch', 'transformers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-P", "-c", code], check=False).returncode == 0

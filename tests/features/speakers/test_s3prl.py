"""An s3prl upstream's embedding is the mean of s3prl's own last hidden state; torchaudio is left as it was."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest
from hostile import Hostile
from refusals import Containing, refuses
from tiny_speech import write_s3prl

torch = pytest.importorskip("torch")

from codec_bench.features import Unavailable  # noqa: E402
from codec_bench.features.speakers import s3prl  # noqa: E402
from codec_bench.features.speakers.s3prl import S3prl, mended  # noqa: E402
from codec_bench.messages import Diagnostic  # noqa: E402

HERE = importlib.util.find_spec("s3prl") is not None
needs_s3prl = pytest.mark.skipif(not HERE, reason="s3prl is not installed")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A small WavLM in the layout of s3prl's converted checkpoints."""
    return write_s3prl(tmp_path_factory.mktemp("s3prl") / "small.pt")


@pytest.mark.compares("s3prl", weights="stand-in")
@needs_s3prl
def test_the_mean_of_the_last_hidden_state(checkpoint, rng):
    feature = S3prl("wavlm_local", weights=checkpoint)
    items = [rng.normal(0, 0.1, n).astype(np.float32) for n in (4000, 7001, 4000, 5000, 7001)]
    with mended():
        from s3prl import hub

        upstream = hub.wavlm_local(checkpoint).eval()
    actual = feature.compute(items)
    for item, result in zip(items, actual, strict=True):
        with torch.inference_mode():
            expected = upstream([torch.from_numpy(item)])["hidden_states"][-1][0].mean(0).numpy()
        assert result["embedding"].shape == (32,)
        assert np.abs(result["embedding"] - expected).max() < 1e-5 * np.abs(expected).max()
    assert np.abs(actual[0]["embedding"] - actual[2]["embedding"]).max() > 1e-3


@needs_s3prl
def test_an_upstream_without_a_checkpoint(rng):
    feature = S3prl("fbank_no_cmvn")
    items = [rng.normal(0, 0.1, n).astype(np.float32) for n in (8000, 9000)]
    results = feature.compute([items[0], np.zeros(8000, np.float32), np.zeros(0, np.float32), items[1]])
    assert [str(r) for r in results if isinstance(r, Unavailable)] == [Diagnostic("signal_silent")] * 2
    for item, result in zip(items, (results[0], results[3]), strict=True):
        alone = feature.compute([item])[0]["embedding"]
        assert np.abs(result["embedding"] - alone).max() < 1e-5 * np.abs(alone).max()


@needs_s3prl
def test_protocols_name_the_version_the_upstream_and_the_precision(checkpoint):
    from importlib.metadata import version

    assert S3prl("fbank").protocol == f"s3prl-{version('s3prl')}/fbank/mean-of-last"
    assert S3prl("fbank", point="bfloat16").protocol.endswith("/fbank/mean-of-last/bfloat16")
    with refuses("no_point_of_metric", name="s3prl[fbank]", point="int8"):
        S3prl("fbank", point="int8")


@needs_s3prl
def test_what_cannot_be_loaded_says_why(checkpoint, tmp_path):
    with refuses("unknown_name", hint="hubert_base"):
        S3prl("hubert_bse").load()
    with refuses("upstream_unnamed", feature="s3prl", hint="s3prl[hubert_base]"):
        S3prl()
    with refuses("upstream_weights", takes="needs a checkpoint"):
        S3prl("wavlm_local")
    with refuses("upstream_weights", takes="has its own checkpoint"):
        S3prl("hubert_base", weights=checkpoint)
    (tmp_path / "cut.pt").write_bytes(b"not a checkpoint")
    with refuses("upstream_not_loaded", upstream="wavlm_local"):
        S3prl("wavlm_local", weights=str(tmp_path / "cut.pt")).load()


@needs_s3prl
def test_a_checkpoint_is_never_unpickled(tmp_path):
    mark = tmp_path / "mark"
    torch.save({"cfg": Hostile(str(mark)), "model": {}}, tmp_path / "hostile.pt")
    with refuses("upstream_not_loaded", reason=Containing("be loaded")):
        S3prl("wavlm_local", weights=str(tmp_path / "hostile.pt")).load()
    assert not mark.exists()


@needs_s3prl
def test_torchaudio_is_mended_for_s3prl_alone():
    import torchaudio

    before = hasattr(torchaudio, "set_audio_backend"), hasattr(torchaudio, "sox_effects")
    with mended():
        assert torchaudio.set_audio_backend("soundfile") is None
        from torchaudio.sox_effects import apply_effects_tensor  # noqa: F401
    assert (hasattr(torchaudio, "set_audio_backend"), hasattr(torchaudio, "sox_effects")) == before
    assert ("torchaudio.sox_effects" in sys.modules) == before[1]


def test_without_s3prl_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(s3prl.importlib.util, "find_spec", lambda _: None)
    with refuses("package_not_installed", package="s3prl", hint="codec-bench[s3prl]"):
        S3prl("hubert_base")

"""The frames of an s3prl upstream are s3prl's own hidden states, of the layer that is named."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from refusals import refuses
from tiny_speech import write_s3prl

torch = pytest.importorskip("torch")
# Not imported here: every process of tests collects this file, and would hold it for good.
pytestmark = pytest.mark.skipif(find_spec("s3prl") is None, reason="s3prl is not installed")

from codec_bench.features import Unavailable, load_feature  # noqa: E402
from codec_bench.features.speakers.s3prl import mended  # noqa: E402


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A small WavLM in the layout of s3prl's converted checkpoints."""
    return write_s3prl(tmp_path_factory.mktemp("s3prl") / "small.pt")


@pytest.mark.compares("s3prl-frames", weights="stand-in")
@pytest.mark.parametrize(("name", "position"), [("wavlm_local", -1), ("wavlm_local@1", 1), ("wavlm_local@0", 0)])
def test_they_are_s3prls_own(checkpoint, rng, name, position):
    items = [rng.normal(0, 0.1, n).astype(np.float32) for n in (4000, 7001, 4000)]
    with mended():
        from s3prl import hub

        upstream = hub.wavlm_local(checkpoint).eval()
    actual = load_feature(f"s3prl-frames[{name}]", weights=checkpoint).compute(items)
    for item, result in zip(items, actual, strict=True):
        with torch.inference_mode():
            expected = upstream([torch.from_numpy(item)])["hidden_states"][position][0].numpy()
        assert result["frames"].shape == expected.shape and result["frames"].dtype == np.float32
        assert np.abs(result["frames"] - expected).max() < 1e-5 * np.abs(expected).max()


def test_what_cannot_be_had_says_why(checkpoint):
    feature = load_feature("s3prl-frames[wavlm_local@9]", weights=checkpoint)
    for _ in range(2):
        with refuses("layer_beyond", layers=3, layer=9):
            feature.load()
    with refuses("upstream_unnamed", feature="s3prl-frames", hint="write s3prl-frames[NAME]"):
        load_feature("s3prl-frames")
    with refuses("not_a_layer", layer="last"):
        load_feature("s3prl-frames[hubert_base@last]")
    (silent,) = load_feature("s3prl-frames[fbank]").compute([np.zeros(4000, np.float32)])
    assert isinstance(silent, Unavailable)

"""AudioSeal's detector against the package's numbers with stand-in weights, in batches of unequal signals, and the
metrics over it.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tiny_speech
import torch
from glides import glide
from refusals import Containing, refuses

from codec_bench.features import Unavailable
from codec_bench.metrics import build_metric
from codec_bench.metrics.base import Inputs

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "audioseal_small.json").read_text("utf-8"))
CLIPS = GOLDEN["clips"]


def signal(samples):
    return (0.3 * glide(samples).samples[0] + np.random.default_rng(samples).normal(0, 0.02, samples)).astype(
        np.float32
    )


@pytest.fixture(scope="module", params=[False, True], ids=["0.2", "before"])
def feature(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("audioseal")
    feature = tiny_speech.SmallAudioSeal(
        "cpu", tiny_speech.write_audioseal(folder, GOLDEN["shapes"], old=request.param)
    )
    feature.load()  # a test asks its network
    return feature


@pytest.mark.compares("audioseal", "watermark_kept", "watermark_bits", weights="stand-in")
def test_the_detector_is_the_packages(feature):
    result = feature.compute([signal(clip["samples"]) for clip in CLIPS])
    assert np.ptp([clip["bits"] for clip in CLIPS], axis=0).max() > 0.1
    for ours, clip in zip(result, CLIPS, strict=True):
        np.testing.assert_allclose(ours["bits"], clip["bits"], atol=1e-5)
        assert ours["share"] == pytest.approx(
            clip["share"], abs=1.5 / clip["samples"]
        )  # a sample may lie on the threshold


def test_signals_of_other_lengths_in_one_pass_change_nothing(feature):
    """On a CPU only equal lengths share a pass, so the test calls the network itself, as on a GPU."""
    lengths = [clip["samples"] for clip in CLIPS]
    waves = torch.full((len(lengths), max(lengths)), 0.7)  # what lies beyond an end must not matter
    for row, length in zip(waves, lengths):
        row[:length] = torch.from_numpy(signal(length))
    with torch.inference_mode():
        together = feature._net(waves, lengths).numpy()
    for row, clip in zip(together, CLIPS):
        np.testing.assert_allclose(row[1:], clip["bits"], atol=1e-5)


def test_unusable_audio_is_unavailable_and_harms_nobody(feature):
    fine = signal(4000)
    empty, silent, broken, usable = feature.compute(
        [fine[:0], np.zeros(4000, np.float32), np.full(4000, np.nan, np.float32), fine]
    )
    assert all(isinstance(one, Unavailable) for one in (empty, silent, broken))
    np.testing.assert_allclose(usable["bits"], feature.compute([fine])[0]["bits"], atol=1e-6)


def test_another_file_is_one_sentence(tmp_path):
    torch.save({"model": {"detector.1.bias": torch.zeros(3)}}, tmp_path / "detector_base.pth")
    with refuses("tensors_wrong", difference={"code": "tensors_differ", "missing": Containing("model")}):
        tiny_speech.SmallAudioSeal("cpu", str(tmp_path / "detector_base.pth")).load()


def score(name, reference, estimate):
    sides = [
        {"audioseal": {"share": share, "bits": np.asarray(bits, np.float32)}} for share, bits in (reference, estimate)
    ]
    return build_metric(name).compute([Inputs("a", 16_000, reference_features=sides[0], estimate_features=sides[1])])[0]


def test_the_mark_is_preserved_where_half_of_the_samples_carry_it():
    text = [0.9] * 8 + [0.1] * 8
    output = [0.9] * 12 + [0.2] * 4
    for share, retained in ((0.5, 1.0), (0.49, 0.0)):
        result = score("watermark_kept[audioseal]", (1.0, text), (share, output))
        assert (result.value, result.detail) == (retained, {"share": share, "share_of_reference": 1.0})
        assert score("watermark_bits[audioseal]", (1.0, text), (share, output)).value == 0.75


def test_a_reference_without_a_mark_is_refused():
    result = score("watermark_kept", (0.02, [0.5] * 16), (0.9, [0.5] * 16))
    assert (result.status, result.reason) == (
        "refused",
        "the reference carries no mark: it is found in 2% of its samples",
    )
    assert build_metric("watermark_kept[audioseal]").protocol == "watermark_kept/audioseal/detector-16bits/1"
    with refuses("no_variant", name="watermark_kept", variant="wavmark"):
        build_metric("watermark_kept[wavmark]")

"""The four metrics read one feature and report which windows they used."""

from __future__ import annotations

import pytest
from refusals import refuses

from codec_bench.metrics import Inputs, build_metric, expand

FEATURE = {"sig": 3.5, "bak": 4.0, "ovrl": 3.25, "p808": 3.75, "windows": 7}
NAMES = ["dnsmos_sig", "dnsmos_bak", "dnsmos_ovrl", "dnsmos_p808"]


def test_the_group_is_the_four():
    assert expand(["dnsmos"]) == NAMES
    assert expand(["dnsmos[all-windows]"]) == [f"{name}[all-windows]" for name in NAMES]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("suffix", "protocol"),
    [
        ("", "dnsmos/speechmos"),
        ("[all-windows]", "dnsmos/all-windows"),
        ("[ultraeval-audio]", "dnsmos/ultraeval-audio"),
        ("[versa]", "dnsmos/versa"),
        ("@torch", "dnsmos/speechmos"),
        ("[versa]@onnxruntime", "dnsmos/versa"),
    ],
)
def test_a_score_is_its_part_of_the_feature(name, suffix, protocol):
    metric = build_metric(name + suffix)
    assert (metric.name, metric.protocol, metric.kind) == (name + suffix, protocol, "single")
    assert metric.estimate_features == (f"dnsmos{suffix}",)
    assert metric.reference_features == () and not metric.signals
    other = FEATURE | {"sig": 1.5, "bak": 1.25, "ovrl": 1.0, "p808": 1.75, "windows": 1}
    items = [Inputs(str(n), 16_000, estimate_features={f"dnsmos{suffix}": f}) for n, f in enumerate((FEATURE, other))]
    # The networks were trained at 16 kHz on opinions between 1 and 5.
    assert (metric.rate_hz, metric.range) == (16_000, (1.0, 5.0))
    key = name.removeprefix("dnsmos_")
    for score, feature in zip(metric.compute(items), (FEATURE, other), strict=True):
        assert (score.status, score.protocol) == ("ok", protocol)
        assert score.value == feature[key]
        assert score.detail == {"windows": feature["windows"]}


def test_a_number_that_is_not_finite_is_a_failure():
    item = Inputs("x", 16_000, estimate_features={"dnsmos": FEATURE | {"sig": float("nan")}})
    (score,) = build_metric("dnsmos_sig").compute([item])
    assert (score.status, score.value) == ("failed", None)


def test_another_variant_is_refused():
    with refuses("no_variant", variant="some"):
        build_metric("dnsmos_bak[some]")


def test_another_way_of_computing_is_refused():
    with refuses("no_point_of_metric", point="bfloat16") as caught:
        build_metric("dnsmos_bak@bfloat16")
    assert "torch" in caught.value.hint

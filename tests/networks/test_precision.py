"""Names of precisions: what they are in protocols, and that there are no others."""

from __future__ import annotations

import pytest
from refusals import refuses

from codec_bench.features.precision_names import BY_AUTOCAST, BY_WEIGHTS, parse_precision, suffix
from codec_bench.networks.precision import computing


def test_each_way_of_computing_has_an_id_of_its_own():
    ids = [
        suffix(parse_precision("x", point, known)) for known in (BY_WEIGHTS, BY_AUTOCAST) for point in (None, *known)
    ]
    assert ids == ["", "/float16-weights", "/bfloat16-weights", "/tf32", "", "/bfloat16", "/tf32"]


@pytest.mark.parametrize(("known", "point"), [(BY_WEIGHTS, "float32"), (BY_WEIGHTS, "half"), (BY_AUTOCAST, "float16")])
def test_an_unknown_name_lists_the_known_ones(known, point):
    with refuses("no_point_of_metric", name="x", point=point) as caught:
        parse_precision("x", point, known)
    assert all(f"x@{name}" in caught.value.hint for name in known)


def test_on_a_gpu_sums_stay_in_float32_and_settings_come_back():
    torch = pytest.importorskip("torch")
    matmul = torch.backends.cuda.matmul
    names = ("fp32_precision", "allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction")
    before = [getattr(matmul, name) for name in names]
    with computing("cuda:0", "float16-weights"):
        assert [getattr(matmul, name) for name in names] == ["ieee", False, False]
    with computing("cuda:0", "tf32"):
        assert [getattr(matmul, name) for name in names] == ["tf32", False, False]
    assert [getattr(matmul, name) for name in names] == before


@pytest.mark.parametrize("globally", ["tf32", "ieee"])
def test_what_other_code_sets_for_all_of_torch_changes_no_precision(globally, monkeypatch):
    torch = pytest.importorskip("torch")
    operations = (torch.backends.cuda.matmul, torch.backends.cudnn.conv, torch.backends.cudnn.rnn)
    monkeypatch.setattr(torch.backends, "fp32_precision", globally)
    before = [operation.fp32_precision for operation in operations]
    for precision, expected in (("float32", "ieee"), ("float16-weights", "ieee"), ("tf32", "tf32")):
        with computing("cuda:0", precision):
            assert [operation.fp32_precision for operation in operations] == [expected] * 3
    assert [operation.fp32_precision for operation in operations] == before

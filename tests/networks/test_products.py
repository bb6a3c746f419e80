"""The large products of a network on a CPU: the same numbers through oneDNN as through torch, with and without gradients."""

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

from codec_bench.networks import half, products  # noqa: E402
from codec_bench.networks.speech_extractor import StridedConv  # noqa: E402

onednn = pytest.mark.skipif(not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="torch without oneDNN")


@pytest.fixture(params=[False, pytest.param(True, marks=onednn)], ids=["torch", "oneDNN"])
def through(request, monkeypatch):
    """Both ways, whatever processor this machine has."""
    monkeypatch.setattr(products, "through_onednn", lambda: request.param)
    return request.param


@torch.inference_mode()
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", [(1, 512), (37, 512), (3, 41, 512)])
def test_a_product_is_that_of_exact_arithmetic(through, shape, bias):
    rows, weight = torch.randn(shape), torch.randn(768, 512)
    added = torch.randn(768) if bias else None
    exact = rows.double() @ weight.double().T + (0.0 if added is None else added.double())
    assert torch.allclose(products.linear(rows, weight, added).double(), exact, rtol=0, atol=2e-4)


@torch.inference_mode()
def test_rows_that_lie_apart_in_memory_are_read_in_their_place(through):
    wide, weight = torch.randn(50, 2048), torch.randn(512, 512)
    exact = wide[3:, :512].double() @ weight.double().T
    assert torch.allclose(products.linear(wide[3:, :512], weight, None).double(), exact, rtol=0, atol=2e-4)
    total = torch.ones(50, 512)
    products.add_linear(total[:-3], wide[3:, :512], weight)
    assert torch.allclose(total[:-3].double(), 1.0 + exact, rtol=0, atol=2e-4)
    assert (total[-3:] == 1.0).all()


@torch.inference_mode()
def test_an_item_has_the_same_result_in_every_batch(through):
    layer = half.Linear(768, 768)
    rows = torch.randn(9, 33, 768)
    together = layer(rows)
    for alone, of in zip(rows, together, strict=True):
        assert torch.allclose(layer(alone[None])[0], of, rtol=0, atol=2e-6)


@torch.inference_mode()
@pytest.mark.parametrize(("kernel", "stride", "bias"), [(3, 2, False), (3, 2, True), (2, 2, False), (10, 5, True)])
def test_a_strided_convolution_is_that_of_torch(through, kernel, stride, bias):
    conv = StridedConv(512, 512, kernel, stride, bias)
    rows = torch.randn(20 * stride, 512)
    found = conv(rows)
    expected = F.conv1d(
        rows.double().T[None], conv.weight.double(), None if conv.bias is None else conv.bias.double(), stride
    )
    valid = expected[0].T
    assert torch.allclose(found[: len(valid)].double(), valid, rtol=0, atol=1e-4)


@onednn
def test_onednn_is_called_for_large_float32_products_without_gradients_alone(monkeypatch):
    called = []
    real = torch.ops.mkldnn._linear_pointwise

    def counted(*args):
        called.append(args)
        return real(*args)

    monkeypatch.setattr(products, "through_onednn", lambda: True)
    monkeypatch.setattr(torch.ops.mkldnn, "_linear_pointwise", counted)
    large, small, rows = half.Linear(768, 768), half.Linear(64, 64), torch.randn(4, 768)
    with torch.no_grad():
        large(rows)
        assert len(called) == 1
        small(rows[:, :64])
        large(rows[:0])
        large.to(torch.bfloat16)(rows)
    assert len(called) == 1
    large.float()(rows).sum().backward()
    assert large.weight.grad is not None and len(called) == 1


@pytest.mark.parametrize(("vendor", "expected"), [("AuthenticAMD", True), ("GenuineIntel", False), (None, False)])
def test_only_processors_of_amd_take_it(tmp_path, monkeypatch, vendor, expected):
    path = tmp_path / "cpuinfo"
    if vendor:
        path.write_text(f"processor\t: 0\nvendor_id\t: {vendor}\n")
    monkeypatch.setattr(products, "_CPU", path)
    asked = products.through_onednn.__wrapped__()
    assert asked is (expected and hasattr(torch.ops.mkldnn, "_linear_pointwise"))


@torch.inference_mode()
def test_the_work_of_a_product_is_counted_either_way(through):
    from codec_bench.profiling import complexity

    layer, rows = half.Linear(768, 512), torch.randn(2, 5, 768)
    with complexity._counting()([layer]) as counted:
        layer(rows)
    assert counted.macs == 10 * 768 * 512
    assert not counted.uncounted

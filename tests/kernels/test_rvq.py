"""Every implementation finds the codes of the specification and of transformers' own quantisers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from codec_bench.kernels.rvq import dispatch, plain, ref
from codec_bench.networks.precision import computing

FLIPS = 1e-4  # of the frames, where two codewords are equally near
NEAR = 1e-5  # of the distance


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def noise(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


# transformers' models are imported where they are used: their imports take 120 MB, also of a process that only collects
# the tests.
def encodec(seed=1, **config):
    from transformers.models.encodec import modeling_encodec as theirs

    quantizer = theirs.EncodecResidualVectorQuantizer(theirs.EncodecConfig(**config)).eval()
    for at, layer in enumerate(quantizer.layers):
        layer.codebook.embed.copy_(noise(*layer.codebook.embed.shape, seed=seed + at))
    return quantizer


def xcodec(seed=1, **config):
    from transformers.models.xcodec import modeling_xcodec as theirs

    quantizer = theirs.XcodecResidualVectorQuantization(theirs.XcodecConfig(**config)).eval()
    for at, layer in enumerate(quantizer.quantizers):
        layer.codebook.embed.copy_(noise(*layer.codebook.embed.shape, seed=seed + at))
    return quantizer


def dac(seed=1, **config):
    from transformers.models.dac import modeling_dac as theirs

    quantizer = theirs.DacResidualVectorQuantizer(theirs.DacConfig(**config)).eval().requires_grad_(False)
    for at, parameter in enumerate(quantizer.parameters()):
        parameter.copy_(
            noise(*parameter.shape, seed=seed + at) / parameter.shape[-1 if parameter.ndim < 3 else 1] ** 0.5
        )
    return quantizer


def mimi(seed=1, **config):
    from transformers.models.mimi import modeling_mimi as theirs

    quantizer = theirs.MimiSplitResidualVectorQuantizer(theirs.MimiConfig(**config)).eval().requires_grad_(False)
    for at, (name, values) in enumerate(quantizer.state_dict().items()):
        if name.endswith("embed_sum"):
            values.copy_(noise(*values.shape, seed=seed + at))
        elif name.endswith("cluster_usage"):
            values.copy_(noise(*values.shape, seed=seed + at).abs() + 0.5)
    return quantizer


def assert_same_codes(ours, theirs, distances):
    """Frames may part where the two codewords are equally far; what follows in such a frame is not compared.

    `distances(item, t, codebook, codes)` gives the squared distances from the frame's residual after the codes before.
    """
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype == torch.int64
    wrong = (ours != theirs).transpose(1, 2).flatten(0, 1)
    frames = wrong.any(1).nonzero().flatten().tolist()
    # A single frame may differ: with few frames it is more than the allowed share.
    assert len(frames) <= max(1, FLIPS * len(wrong)), f"{len(frames)} of {len(wrong)} frames differ"
    for frame in frames:
        item, t = divmod(frame, ours.shape[2])
        codebook = int(wrong[frame].int().argmax())
        table = distances(item, t, codebook, theirs[item, :, t])
        a, b = (float(table[codes[item, codebook, t]]) for codes in (ours, theirs))
        assert abs(a - b) <= NEAR * max(a, b), f"codebook {codebook}: distances {a} and {b}"


def euclidean_distances(latents, embed):
    def distances(item, t, codebook, codes):
        residual = latents[item, :, t].double()
        for actual in range(codebook):
            residual = residual - embed[actual, codes[actual]].double()
        return (residual - embed[codebook].double()).square().sum(1)

    return distances


def factorised_distances(latents, q):
    def distances(item, t, codebook, codes):
        residual = latents[item, :, t].double()
        for actual in range(codebook):
            residual = (
                residual - q.expand[actual].double() @ q.embed[actual, codes[actual]].double() - q.expand_bias[actual]
            )
        expected = torch.nn.functional.normalize(
            q.project[codebook].double() @ residual + q.project_bias[codebook], dim=0
        )
        return (expected - torch.nn.functional.normalize(q.embed[codebook].double(), dim=1)).square().sum(1)

    return distances


@pytest.mark.parametrize("use", ["blas", "torch"])
def test_encodec_has_the_codes_and_latents_of_transformers(use):
    quantizer, latents = encodec(), noise(3, 128, 1200)
    ours = dispatch.adopt(quantizer)
    theirs = quantizer.encode(latents, 6.0).transpose(0, 1)
    codes, ran = dispatch.search(latents, ours, 8, use=use)
    assert ran == use
    assert_same_codes(codes, theirs, euclidean_distances(latents, ours.embed))
    result = dispatch.lookup(theirs, ours, use=use)
    assert result.implementation == use
    torch.testing.assert_close(
        result.value, quantizer.decode(theirs.transpose(0, 1)).contiguous(), rtol=1e-6, atol=1e-5
    )


def test_all_32_codebooks_of_encodec():
    quantizer, latents = encodec(), noise(1, 128, 300)
    theirs = quantizer.encode(latents, 24.0).transpose(0, 1)
    ours = dispatch.adopt(quantizer)
    assert_same_codes(dispatch.search(latents, ours).value, theirs, euclidean_distances(latents, ours.embed))


@pytest.mark.parametrize(("count", "kbps"), [(2, 1.0), (8, 4.0)])
def test_xcodec_has_the_codes_and_latents_of_transformers(count, kbps):
    quantizer, latents = xcodec(), noise(2, 1024, 150)
    theirs = quantizer.encode(latents, kbps).transpose(0, 1)
    ours = dispatch.adopt(quantizer)
    codes = dispatch.search(latents, ours, count).value
    assert_same_codes(codes, theirs, euclidean_distances(latents, ours.embed))
    expected = quantizer.decode(theirs.transpose(0, 1)).contiguous()
    torch.testing.assert_close(dispatch.lookup(theirs, ours).value, expected, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("use", ["blas", "torch"])
def test_dac_has_the_codes_and_latents_of_transformers(use):
    quantizer, latents = dac(n_codebooks=9, hidden_size=1024), noise(2, 1024, 600)
    ours = dispatch.adopt(quantizer)
    theirs = quantizer(latents)[1]
    codes, ran = dispatch.search(latents, ours, use=use)
    assert ran == use
    assert_same_codes(codes, theirs, factorised_distances(latents, ours))
    expected = quantizer.from_codes(theirs)[0]
    torch.testing.assert_close(dispatch.lookup(theirs, ours, use=use).value, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("count", [1, 4])
def test_fewer_codebooks_of_dac_are_its_first_ones(count):
    quantizer, latents = dac(n_codebooks=5, hidden_size=64), noise(2, 64, 100)
    ours = dispatch.adopt(quantizer)
    theirs = quantizer(latents, n_quantizers=count)[1]
    assert torch.equal(dispatch.search(latents, ours, count).value, theirs)
    expected = quantizer.from_codes(theirs)[0]
    torch.testing.assert_close(dispatch.lookup(theirs, ours).value, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("count", [1, 2, 8])
def test_mimi_has_the_codes_and_latents_of_transformers(count):
    quantizer, latents = mimi(num_quantizers=8), noise(2, 512, 250)
    ours = dispatch.adopt(quantizer)
    theirs = quantizer.encode(latents, count).transpose(0, 1).contiguous()
    codes = dispatch.search(latents, ours, count).value
    for item, rows in zip(ours.parts, (slice(0, 1), slice(1, None))):
        if theirs[:, rows].numel():
            projected = item.project @ latents
            assert_same_codes(codes[:, rows], theirs[:, rows], euclidean_distances(projected, item.embed))
    torch.testing.assert_close(dispatch.lookup(theirs, ours).value, quantizer.decode(theirs), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("module", ["blas", "torch"])
def test_the_specification_finds_the_same(module):
    latents = noise(2, 16, 700)
    nearest = dispatch.Euclidean(noise(4, 50, 16, seed=1))
    codes = dispatch.search(latents, nearest, use=module).value
    expected = torch.from_numpy(ref.search_euclidean(latents.numpy(), nearest.embed.numpy()))
    assert_same_codes(codes, expected, euclidean_distances(latents, nearest.embed))
    np.testing.assert_allclose(
        dispatch.lookup(expected, nearest, use=module).value,
        ref.lookup_euclidean(expected.numpy(), nearest.embed.numpy()), rtol=1e-5, atol=1e-5,
    )  # fmt: skip
    shapes = (4, 50, 6), (4, 6, 16), (4, 6), (4, 16, 6), (4, 16)
    parts = [noise(*shape, seed=at) for at, shape in enumerate(shapes)]
    factorised = dispatch.Factorised(*parts)
    numbers = [item.numpy() for item in parts]
    codes = dispatch.search(latents, factorised, use=module).value
    expected = torch.from_numpy(ref.search_factorised(latents.numpy(), *numbers))
    assert_same_codes(codes, expected, factorised_distances(latents, factorised))
    embed, expand, expand_bias = numbers[0], *numbers[3:]
    words = (embed[at][one] @ expand[at].T + expand_bias[at] for at, one in enumerate(expected.numpy().swapaxes(0, 1)))
    result = dispatch.lookup(expected, factorised, use=module).value
    np.testing.assert_allclose(result, np.moveaxis(sum(words), 2, 1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("use", ["blas", "torch"])
def test_the_lowest_of_equal_codewords_is_selected(use):
    words = noise(1, 40, 8)
    words[0, [7, 21, 39]] = words[0, 3].clone()
    latents = words[0, 3].view(1, 8, 1).repeat(1, 1, 300)
    assert dispatch.search(latents, dispatch.Euclidean(words), use=use).value.unique().tolist() == [3]
    eye, none = torch.eye(8)[None], torch.zeros(1, 8)
    factorised = dispatch.Factorised(words, eye, none, eye, none)
    assert dispatch.search(latents, factorised, use=use).value.unique().tolist() == [3]
    assert ref.search_euclidean(latents.numpy(), words.numpy())[0, 0, 0] == 3


def test_a_codeword_finds_itself_and_the_latents_stay_as_they_are():
    quantiser = dispatch.Euclidean(noise(1, 64, 32))
    latents = quantiser.embed[0].T[None].contiguous()
    before = latents.clone()
    codes = dispatch.search(latents, quantiser).value
    assert codes.flatten().tolist() == list(range(64))
    assert torch.equal(dispatch.lookup(codes, quantiser).value, before)
    by_frames = quantiser.embed.transpose(1, 2)  # a view whose frames lie next to each other
    dispatch.search(by_frames, dispatch.Euclidean(noise(2, 5, 32, seed=1)))
    assert torch.equal(latents, before) and torch.equal(by_frames, before)


def test_an_item_does_not_depend_on_its_batch():
    latents = noise(5, 32, 333)
    shapes = (3, 64, 8), (3, 8, 32), (3, 8), (3, 32, 8), (3, 32)
    for quantiser in (
        dispatch.Euclidean(noise(3, 64, 32, seed=1)),
        dispatch.Factorised(*(noise(*shape, seed=at) for at, shape in enumerate(shapes))),
    ):
        together = dispatch.search(latents, quantiser).value
        alone = torch.cat([dispatch.search(item[None], quantiser).value for item in latents])
        assert (together != alone).float().mean() <= FLIPS


@pytest.mark.parametrize("use", ["blas", "torch"])
@pytest.mark.parametrize("shape", [(0, 4, 5), (3, 4, 0)])
def test_no_frames_and_no_items(use, shape):
    parts = [noise(*size) for size in ((2, 8, 3), (2, 3, 4), (2, 3), (2, 4, 3), (2, 4))]
    for quantiser in dispatch.Euclidean(noise(2, 8, 4)), dispatch.Factorised(*parts):
        codes = dispatch.search(torch.zeros(shape), quantiser, use=use).value
        assert codes.shape == (shape[0], 2, shape[2])
        assert dispatch.lookup(codes, quantiser, use=use).value.shape == shape


def test_what_does_not_fit_is_refused():
    quantiser = dispatch.Euclidean(noise(2, 8, 4))
    with pytest.raises(ValueError, match="3 codebooks were requested; the quantiser has 1 to 2"):
        dispatch.search(noise(1, 4, 5), quantiser, 3)
    with pytest.raises(ValueError, match=r"expected \(items, 4, frames\)"):
        dispatch.search(noise(1, 5, 5), quantiser)
    with pytest.raises(TypeError, match="expected float32"):
        dispatch.search(noise(1, 4, 5).double(), quantiser)
    with pytest.raises(TypeError, match="Linear is laid out like no quantiser"):
        dispatch.adopt(torch.nn.Linear(2, 2))


def test_what_runs_where(monkeypatch):
    narrow, wide = dispatch.Euclidean(noise(1, 8, 128)), dispatch.Euclidean(noise(1, 8, 300))
    assert dispatch.implementation("cpu", narrow) == "blas"
    assert dispatch.implementation("mps", narrow) == "torch"
    monkeypatch.setattr(dispatch, "triton_works", lambda device: False)
    assert dispatch.implementation("cuda:0", narrow) == "torch"
    monkeypatch.setattr(dispatch, "triton_works", lambda device: True)
    assert dispatch.implementation("cuda:0", narrow) == "triton"
    assert dispatch.implementation("cuda:0", wide) == "torch"  # it does not fit the registers


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no NVIDIA GPU")
@pytest.mark.parametrize("items", [1, 40])  # few and many tiles
@pytest.mark.parametrize("make", [encodec, dac, mimi])
def test_on_a_gpu(make, items):
    quantizer = make().cuda()
    ours = dispatch.adopt(quantizer)
    hidden = {encodec: 128, dac: 1024, mimi: 512}[make]
    latents = noise(items, hidden, 700).cuda()
    with computing(
        "cuda", "float32"
    ):  # torch's convolutions are in TF32 on a GPU, with which the reference has other codes
        if make is dac:
            theirs, distances = quantizer(latents)[1], factorised_distances(latents, ours)
        elif make is mimi:
            theirs = quantizer.encode(latents, 8).transpose(0, 1).contiguous()[:, 1:]
            distances = euclidean_distances(ours.parts[1].project @ latents, ours.parts[1].embed)
        else:
            theirs, distances = quantizer.encode(latents, 6.0).transpose(0, 1), euclidean_distances(latents, ours.embed)
        codes, ran = dispatch.search(latents, ours, None if make is dac else 8)
    assert ran == "triton"
    assert_same_codes(codes[:, 1:] if make is mimi else codes, theirs, distances)
    result = dispatch.lookup(codes, ours)
    assert result.implementation == ("torch" if make is dac else "triton")  # DAC's is a product of matrices
    expected = dispatch.lookup(codes, ours, use="torch").value
    torch.testing.assert_close(result.value, expected, rtol=1e-5, atol=1e-4)


def test_the_plain_search_leaves_its_input_alone():
    latents = noise(1, 6, 9)
    before = latents.clone()
    quantiser = dispatch.Euclidean(noise(3, 8, 6, seed=1))
    plain.search_euclidean(latents, quantiser.embed, quantiser.offsets)
    assert torch.equal(latents, before)

"""Vocos: its transform against torch's own and against a signal it must give back, and batches against items alone."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from codec_bench.networks.vocos import ISTFT, ConvNeXtBlock, ISTFTHead, VocosBackbone  # noqa: E402

LENGTHS = (2, 5, 33, 100)


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)
    with torch.inference_mode():
        yield


def noisy(net):
    """Moves every weight away from where it starts."""
    for parameter in net.parameters():
        parameter.add_(0.2 * torch.randn_like(parameter))
    return net.eval()


def ragged(width, lengths=LENGTHS):
    """Items, and a batch with noise where the padding is."""
    items = [torch.randn(width, n) for n in lengths]
    batch = 50 * torch.randn(len(items), width, max(lengths))
    for row, item in zip(batch, items, strict=True):
        row[:, : item.shape[1]] = item
    return items, batch, torch.tensor(lengths)


def test_a_centred_transform_is_torch_istft():
    spectrum = torch.randn(2, 33, 20, dtype=torch.complex64)
    expected = torch.istft(spectrum, 64, 16, window=torch.hann_window(64), center=True)
    ours = ISTFT(64, 16, "center")(spectrum)
    assert ours.shape == (2, 19 * 16)
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("n_fft", "hop"), [(64, 16), (60, 15), (48, 20)])
def test_a_transform_that_keeps_the_length_gives_a_signal_back(n_fft, hop):
    wave = torch.randn(1, 12 * hop)
    pad = (n_fft - hop) // 2
    around = torch.nn.functional.pad(wave, (pad, n_fft - hop - pad))
    spectrum = torch.stft(around, n_fft, hop, window=torch.hann_window(n_fft), center=False, return_complex=True)
    assert spectrum.shape[-1] == 12
    torch.testing.assert_close(ISTFT(n_fft, hop)(spectrum), wave, rtol=0, atol=1e-5)


def test_another_padding_is_refused():
    with pytest.raises(ValueError, match="same and center"):
        ISTFT(64, 16, "valid")


def test_the_head_is_magnitude_and_phase():
    head = noisy(ISTFTHead(8, 64, 16, "center"))
    hidden = torch.randn(1, 20, 8)
    magnitude, phase = head.out(hidden).transpose(1, 2).chunk(2, dim=1)
    spectrum = magnitude.exp() * torch.exp(1j * phase)
    expected = torch.istft(spectrum, 64, 16, window=torch.hann_window(64), center=True)
    torch.testing.assert_close(head(hidden), expected, rtol=0, atol=1e-6)


def test_no_magnitude_is_above_a_hundred():
    head = ISTFTHead(8, 64, 16)
    head.out.weight.zero_()
    head.out.bias.copy_(torch.cat([torch.full((33,), 200.0), torch.zeros(33)]))
    loud = head(torch.zeros(1, 9, 8))
    head.out.bias[:33] = torch.tensor(100.0).log()
    torch.testing.assert_close(loud, head(torch.zeros(1, 9, 8)), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("conditions", [None, 4])
@pytest.mark.parametrize("padding", ["same", "center"])
def test_a_batch_equals_its_items_alone(conditions, padding):
    backbone, head = noisy(VocosBackbone(20, 48, 96, 3, conditions)), noisy(ISTFTHead(48, 64, 16, padding))
    items, batch, lengths = ragged(20)
    waves = head(backbone(batch, lengths, 2 if conditions else 0), lengths)
    for item, wave in zip(items, waves, strict=True):
        alone = head(backbone(item[None], condition=2 if conditions else 0))[0]
        assert len(alone) == (item.shape[1] - (padding == "center")) * 16
        torch.testing.assert_close(wave[: len(alone)], alone, rtol=0, atol=1e-5)
        assert not wave[len(alone) :].any()


def test_a_condition_that_is_a_plain_norm_changes_nothing():
    plain, adaptive = noisy(VocosBackbone(20, 48, 96, 2)), VocosBackbone(20, 48, 96, 2, 4)
    state = adaptive.state_dict()
    for name, value in plain.state_dict().items():
        if name in state:
            state[name].copy_(value)
        else:  # norm.weight and norm.bias, of the backbone and of each block
            stem = name.rpartition(".")[0]
            state[f"{stem}.{'scale' if name.endswith('weight') else 'shift'}.weight"][3] = value
    item = torch.randn(1, 20, 30)
    torch.testing.assert_close(adaptive(item, condition=3), plain(item), rtol=0, atol=1e-6)
    assert (adaptive(item, condition=0) - plain(item)).abs().max() > 0.01


def test_a_block_is_what_the_paper_draws():
    block = noisy(ConvNeXtBlock(6, 12, kernel_size=5, dilation=2)).double()
    x = torch.randn(1, 6, 40, dtype=torch.float64)
    around = torch.nn.functional.pad(x, (4, 4))
    weight, hidden = block.dwconv.weight[:, 0], torch.empty_like(x)
    for t in range(40):
        hidden[0, :, t] = (around[0, :, t : t + 9 : 2] * weight).sum(1) + block.dwconv.bias
    hidden = hidden.transpose(1, 2)
    hidden = (hidden - hidden.mean(-1, keepdim=True)) / (hidden.var(-1, keepdim=True, correction=0) + 1e-6).sqrt()
    hidden = (hidden * block.norm.weight + block.norm.bias) @ block.pwconv1.weight.T + block.pwconv1.bias
    hidden = 0.5 * hidden * (1 + torch.erf(hidden / 2**0.5))
    hidden = (hidden @ block.pwconv2.weight.T + block.pwconv2.bias) * block.gamma
    torch.testing.assert_close(block(x), x + hidden.transpose(1, 2), rtol=0, atol=1e-12)

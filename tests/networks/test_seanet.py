"""SEANet against the `encodec` package's modules, at every short length and in ragged batches."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from codec_bench.codecs.neural.random_weights import fill_with_noise, seeded  # noqa: E402
from codec_bench.networks.seanet import SeanetDecoder, SeanetEncoder, SkippedLSTM, reflect  # noqa: E402
from codec_bench.networks.weight_norm import fold_weight_norm  # noqa: E402

RATIOS = (5, 4, 2)  # odd and even strides
COMMON = {"n_filters": 4, "dimension": 12, "ratios": list(RATIOS), "norm": "weight_norm", "causal": False, "lstm": 2}
LENGTHS = (*range(1, 24), 39, 40, 41, 79, 80, 81, 119, 200, 333, 401)


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)
    with torch.inference_mode():
        yield


@pytest.fixture(scope="module")
def pairs():
    """Ours and the package's, encoder and decoder, with the same weights."""
    modules = pytest.importorskip("encodec.modules")
    out = []
    for ours, theirs in (
        (SeanetEncoder(RATIOS, 4, 12), modules.SEANetEncoder(**COMMON)),
        (SeanetDecoder(RATIOS, 4, 12), modules.SEANetDecoder(**COMMON)),
    ):
        with torch.no_grad():
            for parameter in theirs.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
        ours.load_state_dict(fold_weight_norm(theirs.state_dict()))  # strict: names and shapes
        out.append((ours.eval(), theirs.eval()))
    return out


@pytest.mark.parametrize("half", [0, 1])
def test_a_ragged_batch_is_what_the_package_gives_for_each_item(half, pairs):
    ours, theirs = pairs[half]
    width, hop = ((1, 40), (12, 40))[half]
    lengths = LENGTHS if half == 0 else LENGTHS[:30]
    batch = 30 * torch.randn(len(lengths), width, max(lengths))  # noise where the padding is
    together = ours(batch, lengths)
    for row, length, mine in zip(batch, lengths, together, strict=True):
        expected = theirs(row[None, :, :length])[0]
        assert expected.shape[1] == (-(-length // hop) if half == 0 else length * hop)
        scale = expected.abs().max()
        torch.testing.assert_close(mine[:, : expected.shape[1]], expected, rtol=0, atol=float(2e-5 * scale))
        alone = ours(row[None, :, :length], [length])[0]
        torch.testing.assert_close(alone, expected, rtol=0, atol=float(2e-5 * scale))


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_reflection_is_torch_padding_where_that_can_be_done(stride):
    x = torch.randn(3, 2, 30)
    lengths = [30, 17, 11]
    out = reflect(x, lengths, 4, 3, stride)
    for row, length, item in zip(x, lengths, out, strict=True):
        behind = 3 + -length % stride
        expected = torch.nn.functional.pad(row[:, :length], (4, behind), mode="reflect")
        assert torch.equal(item[:, : expected.shape[1]], expected)


def test_an_lstm_in_both_directions_starts_backwards_at_each_end():
    layer = SkippedLSTM(6, 2, bidirectional=True)
    batch, lengths = torch.randn(3, 6, 20), [20, 3, 11]
    together = layer(batch, lengths)
    for row, length, mine in zip(batch, lengths, together, strict=True):
        item = row[None, :, :length].transpose(1, 2)
        expected = (layer.lstm(item)[0] + item.repeat(1, 1, 2)).transpose(1, 2)[0]
        torch.testing.assert_close(mine[:, :length], expected, rtol=0, atol=1e-6)


def test_folding_leaves_a_gain_without_direction_for_the_loader_to_name():
    conv = torch.nn.utils.parametrizations.weight_norm(torch.nn.ConvTranspose1d(3, 4, 5))
    old = torch.nn.utils.weight_norm(torch.nn.Linear(7, 2))
    with seeded():
        conv.parametrizations.weight.original0.add_(1.0)
        old.weight_g.add_(2.0)
    torch.testing.assert_close(fold_weight_norm(conv.state_dict())["weight"], conv.weight, rtol=1e-6, atol=1e-7)
    old(torch.zeros(1, 7))  # the older way computes the weight when it is called
    folded = fold_weight_norm(old.state_dict())
    torch.testing.assert_close(folded["weight"], old.weight, rtol=1e-6, atol=1e-7)
    assert sorted(folded) == ["bias", "weight"]
    lonely = {"a.weight_g": torch.ones(3, 1), "b.weight_g": torch.ones(3), "b.weight_v": torch.ones(3, 2)}
    assert sorted(fold_weight_norm(lonely)) == sorted(lonely)


def test_noise_for_weights_keeps_the_power():
    net = SeanetEncoder(RATIOS, 16, 64)
    with seeded():
        fill_with_noise(net)
    out = net.eval()(0.5 * torch.randn(1, 1, 8000), [8000])
    assert 0.02 < out.std() < 5

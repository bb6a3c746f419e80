"""Half precision of weights: what is rounded, what stays in float32, how far results move, and
that batches stay exact.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from tiny_speech import SMALL, small_utmos, standing_in

torch = pytest.importorskip("torch")

from codec_bench.features.precision_names import BY_WEIGHTS  # noqa: E402
from codec_bench.networks.ecapa import SpeakerNet  # noqa: E402
from codec_bench.networks.half_precision import HALF, reduce_weights  # noqa: E402
from codec_bench.networks.precision import computing  # noqa: E402
from codec_bench.networks.speech_config import EncoderConfig  # noqa: E402
from codec_bench.networks.speech_encoder import padded  # noqa: E402
from codec_bench.networks.xvector import XVectorConfig, XVectorNet  # noqa: E402

POST_NORM = EncoderConfig(
    "group_norm", 32, 2, 4, 64, False, SMALL.conv_layers, conv_pos=16, conv_pos_groups=2, relative_buckets=320
)
NETS = {
    "ecapa": lambda: standing_in(SpeakerNet(SMALL, channels=32, pooled=48, embedding=20)),
    "x-vector": lambda: standing_in(XVectorNet(POST_NORM, XVectorConfig((32, 32, 32, 32, 60), embedding=24))),
    "utmos": small_utmos,
}
IN_FLOAT32 = re.compile(
    r"norm|\bbns?\b|conv_layers\.0\.0|conv_layers\.\d\.2\.|grep|SE_Connect|blstm|projection|_emb\b|"
    r"relative_attention_bias|"
    r"feature_weight|layer_weights|pos_conv|^linear\.|^feature_extractor\.(weight|bias)"
)
"""Parts of names of parameters that are not rounded. (The positional convolution's are, once they are folded.)"""
DRIFT = {"float16": 1e-2, "bfloat16": 5e-2}
"""How far a small network of noise may be from float32, in parts of the result."""


def noises(rng, lengths=(5600, 9001, 7000)):
    """Noise of different colours."""
    return [np.convolve(rng.normal(0, 0.1, n), rng.normal(0, 1, 9))[:n].astype(np.float32) for n in lengths]


def results(net, signals):
    """What a network gives for signals in one batch."""
    with computing("cpu", "float32"):
        return np.asarray(net(*padded(signals, "cpu")).numpy(), np.float64)


@pytest.mark.parametrize("kind", NETS)
def test_products_are_in_half_precision_and_the_rest_is_not(kind):
    net = reduce_weights(NETS[kind](), "float16-weights")
    for name, value in net.named_parameters():
        exact = IN_FLOAT32.search(name) is not None
        assert value.dtype == (torch.float32 if exact else torch.float16), name
    encoder = next(module for name, module in net.named_modules() if name.endswith("encoder"))
    weight, bias = encoder.pos_conv[0].folded()
    assert weight.dtype == bias.dtype == torch.float16
    unreduced = NETS[kind]()
    assert reduce_weights(unreduced, "tf32") is unreduced
    assert {value.dtype for value in unreduced.parameters()} == {torch.float32}


@pytest.mark.parametrize("point", DRIFT)
@pytest.mark.parametrize("kind", NETS)
def test_results_are_near_and_do_not_depend_on_the_batch(kind, point, rng):
    signals = noises(rng)
    net = NETS[kind]()
    exact = results(net, signals)
    half = reduce_weights(net, BY_WEIGHTS[point])
    alone = np.concatenate([results(half, [x]) for x in signals])
    together = results(half, signals)
    scale = np.abs(exact).max()
    assert np.ptp(exact, axis=0).max() > 2 * DRIFT[point] * scale or kind == "utmos"  # the comparisons below can fail
    assert 0 < np.abs(alone - exact).max() < DRIFT[point] * scale
    # A sum over another number of frames may round to the neighbour: no more than half precision itself.
    assert np.abs(together - alone).max() < DRIFT[point] * scale / 2


@pytest.mark.parametrize("point", HALF)
def test_an_item_does_not_depend_on_the_rest_of_its_batch(point, rng):
    """Neither loud neighbours nor values beyond an item's end: the same batch with others in
    it gives the same numbers.
    """
    net = reduce_weights(NETS["ecapa"](), point)
    quiet, loud = noises(rng, (5600, 24_017)), noises(rng, (5600, 24_017))
    one = results(net, quiet)
    waves, lengths = padded([quiet[0], 50 * loud[1]], "cpu")
    waves[0, 5600:] = 3.0
    with computing("cpu", "float32"):
        other = net(waves, lengths).numpy()
    np.testing.assert_array_equal(one[0].astype(np.float32), other[0])

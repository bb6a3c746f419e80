"""Whisper's networks against transformers' own, and how many times a step of the decoder asks the device to compute."""

from __future__ import annotations

from collections import Counter

import pytest
import tiny_whisper
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from codec_bench.features.recognisers.whisper_torch import sizes_of
from codec_bench.networks import whisper
from codec_bench.networks.whisper import WhisperNet
from codec_bench.weights.state import load_tensors

VIEWS = ("view", "permute", "slice", "narrow", "select", "transpose", "unbind", "unsqueeze", "t")
LAYERS = 3


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The network of transformers, and ours of its weights."""
    from transformers import WhisperForConditionalGeneration

    folder = tmp_path_factory.mktemp("whisper") / "small"
    tiny_whisper.write_transformers(folder, decoder_layers=LAYERS)
    theirs = WhisperForConditionalGeneration.from_pretrained(folder).eval()
    sizes = sizes_of(folder)
    return theirs, WhisperNet(load_tensors(folder, sizes.shapes, dtype="float32", device="cpu"), sizes)


def assert_close(actual, expected):
    assert (actual - expected).abs().max() <= 1e-5 * expected.abs().max()


@torch.inference_mode()
def test_windows_are_encoded_as_by_transformers(both):
    theirs, ours = both
    mels = torch.randn(3, 80, 3000, generator=torch.Generator().manual_seed(1))
    assert_close(ours.encode(mels), theirs.get_encoder()(mels).last_hidden_state)


class Counted(TorchDispatchMode):
    """Counts the operations on the device, without views of memory."""

    def __init__(self):
        super().__init__()
        self.calls = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls[func.__name__.split(".")[0]] += 1
        return func(*args, **(kwargs or {}))

    @property
    def launches(self):
        return sum(count for name, count in self.calls.items() if name not in VIEWS)


@torch.no_grad()  # inference mode does not take reshape apart, which may be a copy
def test_every_step_is_transformers_whole_pass_also_after_windows_have_left(both):
    theirs, ours = both
    random = torch.Generator().manual_seed(2)
    encoded = torch.randn(5, 1500, 64, generator=random)
    tokens = torch.randint(0, 1000, (5, 9), generator=random)
    written = ours.begin(encoded, tokens.shape[1])
    remaining = torch.arange(5)
    for first, last in ((0, 4), (4, 5), (5, 6), (6, 7), (7, 8), (8, 9)):
        if (rows := {5: [3, 0, 1], 7: [2]}.get(first)) is not None:
            written.keep(torch.tensor(rows))
            remaining = remaining[rows]
        step_tokens = tokens[remaining, first:last]
        with Counted() as counted:
            out = ours.step(step_tokens, written)
        expected = theirs.get_decoder()(
            input_ids=tokens[remaining, :last], encoder_hidden_states=encoded[remaining], use_cache=False
        ).last_hidden_state
        assert_close(out, expected[:, first:])
        assert_close(ours.logits(out[:, -1]), theirs.proj_out(expected[:, -1]))
        assert counted.launches == 16 * LAYERS + 3, counted.calls


@torch.inference_mode()
def test_banned_tokens_are_never_the_most_probable(both):
    _, ours = both
    out = torch.randn(4, 64, generator=torch.Generator().manual_seed(3))
    first = ours.logits(out).argmax(1)
    logits = ours.logits(out, ours.logits_added(first.tolist()))
    assert logits.gather(1, first[:, None]).isneginf().all()
    assert not (logits.argmax(1)[:, None] == first).any()


@pytest.fixture
def without_cudnn():
    """torch as `own_device` leaves it."""
    before = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(False)
    yield
    torch.backends.cuda.enable_cudnn_sdp(before)


@torch.inference_mode()
def test_cudnn_may_compute_attention_only_where_a_shape_comes_again(both, monkeypatch, without_cudnn):
    _, ours = both
    seen = []

    def attention(q, k, v, **_):
        seen.append((q.shape[2], k.shape[2], torch.backends.cuda.cudnn_sdp_enabled()))
        return torch.zeros_like(q)

    monkeypatch.setattr(whisper.F, "scaled_dot_product_attention", attention)
    monkeypatch.setattr(whisper, "_repeats", lambda windows: len(windows) == 2)
    for windows in (2, 3):
        written = ours.begin(ours.encode(torch.zeros(windows, 80, 3000)), 6)
        for count in (4, 1, 1):
            ours.step(torch.zeros(windows, count, dtype=torch.int64), written)
    on_the_ladder, others = seen[: len(seen) // 2], seen[len(seen) // 2 :]
    assert {one[:2] for one in on_the_ladder if one[2]} == {(1500, 1500), (1, 1500)}
    assert {one[:2] for one in on_the_ladder if not one[2]} == {(4, 4), (4, 1500), (1, 5), (1, 6)}
    assert not any(one[2] for one in others)
    assert not torch.backends.cuda.cudnn_sdp_enabled()


def test_a_shape_comes_again_on_the_ladder_of_a_gpu():
    class Windows:
        def __init__(self, number, dtype=torch.float16, is_cuda=True):
            self.number, self.dtype, self.is_cuda = number, dtype, is_cuda

        def __len__(self):
            return self.number

    assert [number for number in range(1, 20) if whisper._repeats(Windows(number))] == [1, 2, 3, 4, 6, 8, 12, 16]
    assert not whisper._repeats(Windows(4, torch.float32)) and not whisper._repeats(Windows(4, is_cuda=False))

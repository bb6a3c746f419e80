"""The public API: what the examples in the docs show runs as it stands, and every public name
is there and documented.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from refusals import refuses

import codec_bench
from codec_bench.data import open_source
from codec_bench.models import load_model
from codec_bench.types import Message, Request

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples.md"


@pytest.mark.parametrize("name", codec_bench.__all__)
def test_every_public_name_is_there_and_documented(name):
    assert inspect.getdoc(getattr(codec_bench, name))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing_such"):
        codec_bench.nothing_such  # noqa: B018


def test_the_python_of_the_examples_runs(tmp_path, monkeypatch):
    import shutil

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    shutil.copy(next(iter(open_source("embedded"))).audio, "a.flac")
    blocks = re.findall(r"```python\n(.*?)```", EXAMPLES.read_text("utf-8"), flags=re.S)
    assert len(blocks) == 4
    space: dict = {}
    exec(blocks[0], space)
    assert set(space["scores"][0]) == {"dnsmos_sig", "dnsmos_bak", "dnsmos_ovrl", "dnsmos_p808"}
    assert all(s.status == "ok" for s in space["scores"][0].values())
    assert space["run"].counts()["failed_items"] == 0
    # The codec of the second block calls two functions that the reader is to write, so the test defines them.
    sketch = (
        "import numpy as np\n"
        "def quantise(a): return np.round((np.clip(a.samples, -1, 1) + 1) * 511.5).astype(int)\n"
        "def synthesise(c): return c.streams[0].values / 511.5 - 1\n"
    )
    Path("my_codec.py").write_text(sketch + blocks[1])
    codec = codec_bench.load_codec("./my_codec.py:MyCodec")
    clip = codec_bench.Audio.read("a.flac")
    (back,) = codec.decode(codec.encode([clip]))
    assert np.abs(back.samples - clip.samples).max() < 2 / 1023
    Path("my_metric.py").write_text(blocks[2])
    (peak,) = codec_bench.load_metric("./my_metric.py:Peak")(estimate=[clip])[0].values()
    assert peak.value == pytest.approx(np.abs(clip.samples).max(), rel=0.1)
    # The model of the fourth block calls one such function.
    Path("my_model.py").write_text("def answer(messages): return messages[-1].content[0].upper()\n" + blocks[3])
    model = load_model("./my_model.py:MyModel")
    request = Request("a", (Message("user", ("hello",)),))
    assert asyncio.run(model.ask(request)).text == "HELLO"


def test_load_metric_scores_pairs_and_says_why_not(rng):
    clean = codec_bench.Audio(np.sin(np.arange(32000) / 20) / 2, 16000)
    noisy = codec_bench.Audio(clean.samples + 0.01 * rng.standard_normal(clean.samples.shape).astype(np.float32), 16000)
    metric = codec_bench.load_metric("si_sdr")
    (score,) = metric(reference=[clean], estimate=[noisy])
    expected = 10 * np.log10(np.square(clean.samples).sum() / np.square(noisy.samples - clean.samples).sum())
    assert score["si_sdr"].value == pytest.approx(expected, abs=0.05)
    (score,) = metric(estimate=[noisy])
    assert score["si_sdr"].status == "refused" and "reference" in score["si_sdr"].reason
    (score,) = codec_bench.load_metric("wer[pocketsphinx]")(estimate=[noisy])
    assert score["wer[pocketsphinx]"].status == "refused"
    with refuses("item_count", items=1, name="reference", count=2):
        metric(estimate=[noisy, noisy], reference=[clean])
    (score,) = metric(estimate=[codec_bench.Audio(np.full(100, np.nan), 16000)], reference=[clean])
    assert score["si_sdr"].status == "failed" and "not finite" in score["si_sdr"].reason


def test_a_metric_that_gets_something_else_states_what_it_expects():
    samples = np.sin(np.arange(8000) / 20) / 2
    clip = codec_bench.Audio(samples, 16000)
    metric, output = codec_bench.load_metric("snr"), codec_bench.load_metric("wer[pocketsphinx]")
    for call, message in (
        (lambda: metric(reference=[clip], estimate=[samples]), {"code": "no_rate_stated", "name": "estimate 0"}),
        (
            lambda: metric(reference=["a.wav"], estimate=[clip]),
            {"code": "item_type", "name": "reference 0", "type": "str"},
        ),
        (
            lambda: metric(reference=[clip, None], estimate=[clip, clip]),
            {"code": "item_type", "name": "reference 1", "type": "NoneType"},
        ),
        (
            lambda: output(estimate=[clip], text=[3]),
            {"code": "item_type", "name": "text 0", "type": "int", "expected": "optional_text"},
        ),
        (
            lambda: output(estimate=[clip], text=["a"], language=["en", "de"]),
            {"code": "item_count", "items": 2, "name": "language", "count": 1},
        ),
        (lambda: codec_bench.load_codec(None), {"code": "codec_name_type", "type": "NoneType"}),
        (lambda: codec_bench.Audio.read(None), {"code": "sound_name_type", "type": "NoneType"}),
        (lambda: codec_bench.Audio.read(samples), {"code": "sound_name_type", "type": "ndarray"}),
    ):
        with refuses(**message):
            call()
    assert metric(reference=iter([clip]), estimate=(clip,))[0]["snr"].status == "undefined", "a copy"


@pytest.mark.parametrize(
    ("samples", "rate", "message"),
    [
        (np.zeros(8, np.int16), 16000, "holds int16; expected floats"),
        ([0, 1, 2], 16000, "holds int64; expected floats"),
        (np.zeros(8, complex), 16000, "holds complex128"),
        ("a.wav", 16000, "expected floats"),
        (None, 16000, "expected floats"),
        (np.zeros((1, 1, 8)), 16000, r"shape \(1, 1, 8\)"),
        (np.zeros(8), "16000", "rate is '16000'"),
        (np.zeros(8), None, "rate is None"),
        (np.zeros(8), 16000.5, "rate is 16000.5"),
        (np.zeros(8), float("nan"), "rate is nan"),
    ],
)
def test_audio_of_integers_or_without_a_rate_is_refused(samples, rate, message):
    """Integers lie beyond full scale and would be cut to noise by every metric."""
    with pytest.raises(ValueError, match=message):
        codec_bench.Audio(samples, rate)


def test_the_order_and_size_of_the_batch_do_not_matter():
    clips = [codec_bench.Audio.read(s.audio) for s in list(open_source("embedded"))[:4]]
    worse = [codec_bench.Audio(np.round(c.samples * 40) / 40, c.sample_rate_hz) for c in clips]
    metric = codec_bench.load_metric("pesq_wb")
    together = metric(reference=clips, estimate=worse)
    alone = [metric(reference=[c], estimate=[w])[0] for c, w in zip(clips, worse)]
    back = metric(reference=clips[::-1], estimate=worse[::-1])[::-1]
    for one in zip(together, alone, back):
        assert len({s["pesq_wb"].value for s in one}) == 1

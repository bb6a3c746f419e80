"""The compiled DNSMOS networks equal the specification, and the specification equals the published files."""

from __future__ import annotations

import importlib.util
import os
import platform
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from speechmos_scores import Remembering

from codec_bench.features.dnsmos_files import P808, P835, read_network
from codec_bench.kernels.dnsmos import cpu, ref, winograd
from codec_bench.kernels.dnsmos.pictures import Layer

HOP = 16_000


@pytest.fixture(scope="module")
def folder() -> Path:
    spec = importlib.util.find_spec("speechmos")
    if spec is None:
        pytest.skip("the networks come with the package speechmos, which is not installed")
    return Path(spec.origin).parent / "dnsmos_models"


@pytest.fixture(scope="module")
def weights(folder):
    return {n.file: read_network(folder / n.file, n) for n in (P835, P808)}


@pytest.fixture(scope="module")
def published(folder):
    """A function of a file's name and the network's input: onnxruntime's output."""
    pytest.importorskip("onnxruntime", reason="the oracle runs the files as they are")
    sessions = {n.file: Remembering(folder / n.file) for n in (P835, P808)}
    return lambda name, x: sessions[name].run(None, {"input_1": x.astype(np.float32)[None]})[0][0]


def sweep(samples: int, seed: int = 1) -> np.ndarray:
    """A gliding tone with syllables of noise: loud and quiet, tonal and not, different in every window."""
    rng = np.random.default_rng(seed)
    t = np.arange(samples) / 16_000
    tone = np.sin(2 * np.pi * (150 * t + 40 * np.sin(0.7 * t)) * (1 + t % 3))
    signal = 0.3 * tone * np.sin(3 * t) ** 2 + rng.standard_normal(samples) * 10.0 ** (-1.5 - 2 * np.sin(1.3 * t) ** 2)
    return np.clip(signal, -1, 1).astype(np.float32)


def picture(x: np.ndarray, padding: int) -> np.ndarray:
    rows, columns = (-(-n // winograd.TILE) * winograd.TILE + 2 * padding for n in x.shape[:2])
    out = np.zeros((rows, columns, x.shape[2]), np.float32)
    out[padding : padding + x.shape[0], padding : padding + x.shape[1]] = x
    return out


@pytest.mark.parametrize("pool", [False, True])
@pytest.mark.parametrize(
    ("rows", "columns", "inside", "outside"),
    [(4, 4, 32, 32), (12, 20, 32, 64), (13, 15, 64, 32), (25, 161, 128, 64), (1, 1, 64, 64), (8, 31, 64, 128)],
)
def test_a_convolution_is_the_direct_sum(rng, rows, columns, inside, outside, pool):
    x = rng.standard_normal((rows, columns, inside)).astype(np.float32)
    weights = rng.standard_normal((outside, inside, 3, 3)) / np.sqrt(9 * inside)
    bias = rng.standard_normal(outside)
    expected = ref.convolution(x.astype(np.float64), weights, bias)
    expected = ref.maxima(expected) if pool else expected
    tiles, size = -(-rows // winograd.TILE), winograd.TILE // 2 if pool else winograd.TILE
    y = np.full((tiles * size + 2, -(-columns // winograd.TILE) * size + 2, outside), np.float32(7.0))
    work = np.zeros(winograd.WORKSPACE, np.float32)
    Layer((weights, bias))(work, picture(x, 1), 0, y, 1, tiles, columns, pool=pool)
    height, width = expected.shape[:2]
    np.testing.assert_allclose(y[1 : 1 + height, 1 : 1 + width], expected, atol=5e-5)
    assert (y[1:-1, 1 + width : 1 + size * -(-columns // winograd.TILE)] == 0).all()
    assert (y[:, 0] == 7).all() and (y[0] == 7).all() and (y[-1] == 7).all()


@pytest.mark.parametrize("retained", [0.0, 0.02, 0.3])
def test_channels_that_are_zero_are_omitted_and_the_rest_is_the_direct_sum(rng, retained):
    rows, columns, inside, outside = 9, 161, 64, 32
    x = np.maximum(rng.standard_normal((rows, columns, inside)), 0).astype(np.float32)
    blobs = np.repeat(np.repeat(rng.random((3, 24, inside)) < retained, 3, axis=0), 7, axis=1)
    x[:, : blobs.shape[1]] *= blobs[:, :columns]
    weights, bias = rng.standard_normal((outside, inside, 3, 3)) / np.sqrt(9 * inside), rng.standard_normal(outside)
    y, work = np.zeros((14, 166, outside), np.float32), np.zeros(winograd.WORKSPACE, np.float32)
    Layer((weights, bias))(work, picture(x, 1), 0, y, 1, 3, columns)
    expected = ref.convolution(x.astype(np.float64), weights, bias)
    np.testing.assert_allclose(y[1 : 1 + rows, 1 : 1 + columns], expected, atol=5e-5)


@pytest.mark.parametrize("channel", [0, 31])
def test_what_is_not_a_number_is_not_omitted(channel):
    x = np.zeros((6, 6, 32), np.float32)
    x[3, 3, channel] = np.nan
    strip, listed, counts = (
        np.zeros(winograd.WORKSPACE, np.float32),
        np.zeros(6 * 32, np.uint64),
        np.zeros(6, np.uint64),
    )
    winograd._forward_rows(x.ravel(), 0, 6 * 32, strip, 6 * 32)
    winograd._list_channels(strip, 1, 32, listed, counts)
    assert counts[0] == 1 and listed[0] == channel


@pytest.mark.parametrize(("rows", "columns"), [(11, 17), (18, 161)])
def test_two_convolutions_from_one_channel_are_one_after_the_other(rng, rows, columns):
    x = 3 * rng.standard_normal((rows, columns, 1)).astype(np.float32)
    first = rng.standard_normal((128, 1, 3, 3)) / 3, rng.standard_normal(128)
    second = rng.standard_normal((64, 128, 3, 3)) / 40, rng.standard_normal(64)
    expected = ref.convolution(ref.convolution(x.astype(np.float64), *first), *second)
    source = picture(x, 2)
    limit = np.zeros(tuple(n - 2 for n in source.shape[:2]), np.float32)
    limit[1 : rows + 1, 1 : columns + 1] = np.inf
    tiles = -(-rows // winograd.TILE)
    y = np.zeros((tiles * winograd.TILE + 2, limit.shape[1], 64), np.float32)
    work = np.zeros(winograd.WORKSPACE, np.float32)
    Layer(second, first)(work, source, 0, y, 1, tiles, columns, limit=limit)
    np.testing.assert_allclose(y[1 : rows + 1, 1 : columns + 1], expected, atol=1e-3)


def test_the_specification_is_the_published_networks(weights, published):
    window = sweep(ref.WINDOW_SAMPLES)
    raw = ref.p835(window, weights["sig_bak_ovr.onnx"])
    np.testing.assert_allclose(raw, published("sig_bak_ovr.onnx", window), atol=1e-5)
    score = ref.p808(window, weights["model_v8.onnx"])
    levels = ref.mel_levels(window[: -ref.HOP_SAMPLES])
    np.testing.assert_allclose(score, published("model_v8.onnx", levels), atol=1e-5)


def test_the_mel_levels_are_librosas():
    librosa = pytest.importorskip("librosa", reason="speechmos makes its mel levels with librosa")
    assert np.array_equal(ref.mel_filters(), librosa.filters.mel(sr=16_000, n_fft=ref.MEL_SAMPLES, n_mels=ref.MELS))
    signal = sweep(ref.WINDOW_SAMPLES - ref.HOP_SAMPLES)
    power = librosa.feature.melspectrogram(y=signal, sr=16_000, n_fft=321, hop_length=160, n_mels=120)
    expected = (librosa.power_to_db(power, ref=np.max).T + 40) / 40
    np.testing.assert_allclose(ref.mel_levels(signal), expected, atol=1e-5)


def test_windows_that_share_are_the_windows_alone(weights, published):
    windows = 3
    signal = sweep(ref.WINDOW_SAMPLES + HOP * (windows - 1))
    p835, p808 = cpu.SigBakOvr(weights["sig_bak_ovr.onnx"]), cpu.P808(weights["model_v8.onnx"])
    with cpu.Crew(1) as crew:
        raw, scores = p835.start_run(crew, signal, windows)(), p808.start_run(crew, signal, windows)()
    for n in range(windows):
        window = signal[n * HOP : n * HOP + ref.WINDOW_SAMPLES]
        np.testing.assert_allclose(raw[n], published("sig_bak_ovr.onnx", window), atol=5e-5)
        levels = ref.mel_levels(window[: -ref.HOP_SAMPLES])
        np.testing.assert_allclose(scores[n], published("model_v8.onnx", levels)[0], atol=5e-5)


def test_threads_do_not_change_a_bit(weights):
    signal = sweep(ref.WINDOW_SAMPLES + HOP)
    p835, p808 = cpu.SigBakOvr(weights["sig_bak_ovr.onnx"]), cpu.P808(weights["model_v8.onnx"])
    results = []
    for threads in (1, 2, 5):
        with cpu.Crew(threads) as crew:
            waits = p835.start_run(crew, signal, 2), p808.start_run(crew, signal, 2)
            results.append([wait() for wait in waits])
    for other in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], other, strict=True))


@pytest.mark.parametrize("period", [160 * 215, 160 * 330, 160 * 137, 40 * 333, 1_000, 16_001, 1])
def test_a_repeating_signal_is_not_computed_again(weights, period):
    windows = 2
    signal = np.resize(sweep(period, seed=period), ref.WINDOW_SAMPLES + HOP * (windows - 1))
    p835, p808 = cpu.SigBakOvr(weights["sig_bak_ovr.onnx"]), cpu.P808(weights["model_v8.onnx"])
    with cpu.Crew(1) as crew:
        np.testing.assert_allclose(
            p835.start_run(crew, signal, windows, period)(), p835.start_run(crew, signal, windows)(), atol=3e-5
        )
        np.testing.assert_allclose(
            p808.start_run(crew, signal, windows, period)(), p808.start_run(crew, signal, windows)(), atol=3e-5
        )


def test_what_a_thread_raises_is_raised():
    def broken(scratch, n):
        raise ZeroDivisionError(n)

    for threads in (1, 2):
        with cpu.Crew(threads) as crew, pytest.raises(ZeroDivisionError):
            crew.each(broken, [(1,), (2,)])


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize(("count", "most", "least"), [(0, 5, 1), (1, 5, 1), (150, 150, 12), (900, 900, 42), (13, 4, 6)])
def test_pieces_cover_everything_once(threads, count, most, least):
    pieces = cpu.Crew(threads).pieces(count, most, least)
    assert [n for a, b in pieces for n in range(a, b)] == list(range(count))
    assert all(b - a >= min(least, count) for a, b in pieces)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names x86 processors")
@pytest.mark.parametrize(
    ("processor", "features"),
    [pytest.param("haswell", "+avx,+avx2,+fma", marks=pytest.mark.long), ("generic", "")],
)
def test_narrower_processors_compute_the_same(request, processor, features, tmp_path):
    cached = getattr(request.config, "cache", None)  # numba keeps what it compiled for a processor for later runs
    folder = cached.mkdir(f"numba-{processor}") if cached else tmp_path
    script = """
        import numpy as np
        from codec_bench.kernels.dnsmos import ref, winograd
        from codec_bench.kernels.dnsmos.pictures import Layer
        rng = np.random.default_rng(3)
        for inside, outside in ((32, 64), (64, 32)):
            x = np.zeros((14, 18, inside), np.float32)
            x[1:13, 1:16] = rng.standard_normal((12, 15, inside))
            weights, bias = rng.standard_normal((outside, inside, 3, 3)) / 20, rng.standard_normal(outside)
            y, work = np.zeros((14, 18, outside), np.float32), np.zeros(winograd.WORKSPACE, np.float32)
            Layer((weights, bias))(work, x, 0, y, 1, 3, 15)
            expected = ref.convolution(x[1:13, 1:16].astype(np.float64), weights, bias)
            np.testing.assert_allclose(y[1:13, 1:16], expected, atol=5e-5)
    """
    narrow = {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": features, "NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", textwrap.dedent(script)], env=os.environ | narrow, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr

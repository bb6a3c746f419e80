"""Each stage of a run on a device: in a batch, one by one, and its floor.

    python bench/gpu_stages.py [--stages STAGE ...] [--device cuda:0] [--reduced]

Networks have random weights in the published sizes, or with `--reduced` sizes for a CPU, which write no rows. A batch
has lengths of LibriSpeech's test-clean and the seconds of the stage's first batch in a run.

The floor is the larger of two times: of the products and convolutions at the rate of one large product, and of the
bytes (weights, input, output) at this device's rate. `share` is the floor's part of the time.
"""

from __future__ import annotations

import atexit
import json
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from common import Cases, Options, Rows, bench, cores, durations, each, interleaved, product_rate, ranked, waited
from reduced_scorers import RandomSpeaker, RandomUtmos
from torch.utils.flop_counter import FlopCounterMode
from whisper_folder import SIZES, TOKENS, write

from codec_bench import Audio
from codec_bench.codecs import load_codec
from codec_bench.engine.device import memory_bytes
from codec_bench.engine.loading import first_batch_s
from codec_bench.features import load_feature
from codec_bench.features.dnsmos import Dnsmos
from codec_bench.features.precision_names import BY_WEIGHTS
from codec_bench.features.recognisers.cublas import load_cublas
from codec_bench.networks import convolutions, speech_transformer
from codec_bench.networks.log_mel import log_mels

RATE_HZ = 16_000
STEPS = TOKENS + 1  # of Whisper's decoder, which also writes the end


@dataclass(frozen=True, eq=False)
class Stage:
    """One stage on a device: of all items together, and of each alone.

    Args:
        audio_s: of all items. moved: bytes read and written. flops: None lets torch count them.
    """

    batch: Callable[[], Any]
    alone: Callable[[], Any] | None
    audio_s: float
    items: int
    moved: float
    flops: float | None = None
    precision: str = "float32"


def first_s(feature: Any, device: str) -> float:
    """Padded seconds of the first batch of a feature class on this device."""
    return first_batch_s(feature, memory_bytes(device) if device != "cpu" else 0)


def noise(batch_s: float, rate_hz: int = RATE_HZ) -> list[np.ndarray]:
    """Clips of noise as in a run's batch of `batch_s` padded seconds: of lengths around LibriSpeech's median."""
    rng, lengths_s = np.random.default_rng(0), np.sort(durations(2000))
    middle = len(lengths_s) // 2
    count = min(middle, max(2, int(batch_s / lengths_s[middle])))
    lengths_s = lengths_s[middle - count // 2 :][:count]
    lengths_s *= min(1.0, batch_s / (count * lengths_s[-1]))
    return [rng.normal(0, 0.1, max(720, round(s * rate_hz))).astype(np.float32) for s in lengths_s]


def weight_bytes(net: Any) -> float:
    """Bytes of the parameters and buffers of a network."""
    return float(sum(t.numel() * t.element_size() for t in (*net.parameters(), *net.buffers())))


def of_feature(feature: Any, signals: Sequence[np.ndarray], precision: str = "float32") -> Stage:
    """The stage of a feature, and of its network if it has one alone."""
    feature.load()
    net = getattr(feature, "_net", None)
    moved = (0.0 if net is None else weight_bytes(net)) + sum(signal.nbytes for signal in signals)
    return Stage(
        lambda: feature.compute(signals), lambda: [feature.compute([signal])[0] for signal in signals],
        sum(signal.size for signal in signals) / RATE_HZ, len(signals), moved, precision=precision,
    )  # fmt: skip


def scorer(kind: Any, precision: str, device: str, reduced: bool) -> Stage:
    """The stage of the similarity's embedding or of the predicted opinion score."""
    feature = kind(device, None, None if precision == "float32" else precision, full=not reduced)
    return of_feature(feature, noise(1.5 if reduced else first_s(kind, device)), precision)


def dnsmos(device: str, reduced: bool) -> Stage:
    """Both networks of DNSMOS in torch."""
    signals = noise(1)[:1] if reduced else noise(first_s(Dnsmos, device))
    return of_feature(load_feature("dnsmos@torch", device=device), [one[: 9 * RATE_HZ + 160] for one in signals])


def log_mel(device: str, reduced: bool) -> Stage:
    """Whisper's spectrograms, 128 bands."""
    signals = noise(1.5 if reduced else 480)
    seconds = sum(signal.size for signal in signals) / RATE_HZ
    moved = sum(signal.nbytes for signal in signals) + seconds * 100 * 128 * 4
    return Stage(
        lambda: log_mels(signals, 128, device), lambda: [log_mels([s], 128, device) for s in signals],
        seconds, len(signals), moved, flops=seconds * 100 * 2 * 201 * 128,
    )  # fmt: skip


@cache
def whisper_folder(name: str, dtype: str) -> Path:
    """A Whisper in CTranslate2's layout, which is removed when the process ends."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return write(Path(folder, "whisper"), SIZES[name], tokens=STEPS, dtype=dtype)


PROMPT = ("<|startoftranscript|>", "<|en|>", "<|transcribe|>", "<|notimestamps|>")
Both = tuple[Callable[[], Any], Callable[[], Any]]  # encoding and decoding


def in_ctranslate2(folder: Path, device: str, kind: str, mels: np.ndarray) -> Both:
    """A Whisper in CTranslate2."""
    import ctranslate2

    if device != "cpu":
        load_cublas("whisper")
    where, _, index = device.partition(":")
    net = ctranslate2.models.Whisper(str(folder), device=where, device_index=int(index or 0), compute_type=kind)
    words = json.loads((folder / "vocabulary.json").read_text("utf-8"))
    features = ctranslate2.StorageView.from_array(mels)
    encoded = net.encode(features, to_cpu=False)
    prompts = [[words.index(word) for word in PROMPT]] * len(mels)
    return (
        lambda: net.encode(features, to_cpu=False),
        lambda: net.generate(encoded, prompts, beam_size=1, max_length=2 * STEPS, suppress_tokens=[]),
    )


def in_torch(converted: Path, device: str, kind: str, mels: np.ndarray) -> Both:
    """The same Whisper in torch, of the same numbers."""
    from ct2_whisper import write_transformers

    from codec_bench.features.recognisers.whisper_checkpoint import Tokens
    from codec_bench.features.recognisers.whisper_torch import TorchWhisper

    folder = converted.with_name("transformers")
    if not folder.exists():
        write_transformers(converted, folder)
    tokens = Tokens.read(folder, True)
    net = TorchWhisper("whisper-large-v3", folder, device, kind, tokens)
    features = torch.from_numpy(mels).to(device)
    prompts = [[tokens.tokenizer.token_to_id(word) for word in PROMPT]] * len(mels)
    encode = torch.inference_mode()(lambda: net.encode([features]))
    encoded = encode()
    return encode, torch.inference_mode()(lambda: net.decode(encoded, prompts))


def whisper(build: Callable[[Path, str, str, np.ndarray], Both], component: str, device: str, reduced: bool) -> Stage:
    """The encoder or the decoder of Whisper-large-v3 over full windows."""
    name, kind, windows, bytes_each = ("reduced", "float32", 2, 4) if reduced else ("large-v3", "float16", 64, 2)
    size, d = SIZES[name], SIZES[name].d_model
    mels = np.random.default_rng(0).normal(0, 0.5, (windows, size.n_mels, 3000)).astype(np.float32)
    encode, decode = build(whisper_folder(name, kind), device, kind, mels)
    if component == "encoder":
        moved = bytes_each * size.layers * 12 * d * d + windows * size.n_mels * 3000 * 4
        return Stage(encode, None, windows * 30.0, windows, moved, 2.0 * windows * size.encoder_macs, precision=kind)
    moved = STEPS * bytes_each * (size.step_weights + windows * size.decoder_layers * 2 * 1500 * d)
    return Stage(decode, None, windows * 30.0, windows, moved, 2.0 * windows * STEPS * size.step_macs, precision=kind)


def codec_stage(name: str, direction: str, device: str, reduced: bool) -> Stage:
    """The stage of encoding or decoding with a codec."""
    codec = load_codec(name, device=device, weights="random" if reduced else "random-full")
    rate_hz = codec.info.sample_rates_hz[0]
    items = [Audio(signal, rate_hz) for signal in noise(1 if reduced else codec.batch_s, rate_hz)]
    inputs: list[Any] = items if direction == "encode" else codec.encode(items)
    call = codec.encode if direction == "encode" else codec.decode
    net = getattr(codec, "_net", None)
    moved = (weight_bytes(net) / 2 if net is not None else 0.0) + sum(item.samples.nbytes for item in items)
    return Stage(
        lambda: call(inputs), lambda: [call([one]) for one in inputs],
        sum(item.duration_s for item in items), len(items), moved,
    )  # fmt: skip


STAGES: dict[str, Callable[[str, bool], Stage]] = {
    "sim": partial(scorer, RandomSpeaker, "float32"),
    "sim-float16": partial(scorer, RandomSpeaker, "float16"),
    "utmos": partial(scorer, RandomUtmos, "float32"),
    "utmos-float16": partial(scorer, RandomUtmos, "float16"),
    "whisper-encoder": partial(whisper, in_ctranslate2, "encoder"),
    "whisper-decoder": partial(whisper, in_ctranslate2, "decoder"),
    "whisper-torch-encoder": partial(whisper, in_torch, "encoder"),
    "whisper-torch-decoder": partial(whisper, in_torch, "decoder"),
    "dnsmos": dnsmos,
    "log-mel": log_mel,
    "mimi-decode": partial(codec_stage, "mimi-8cb", "decode"),
    "mimi-encode": partial(codec_stage, "mimi-8cb", "encode"),
    "dac-decode": partial(codec_stage, "dac-24khz-8cb", "decode"),
    "dac-encode": partial(codec_stage, "dac-24khz-8cb", "encode"),
    "encodec-decode": partial(codec_stage, "encodec-24khz@6", "decode"),
}


def rates(device: str, precision: str) -> tuple[float, float]:
    """Operations per second of a product, and bytes per second of a copy."""
    source = torch.zeros(1 << (28 if device.startswith("cuda") else 24), device=device)
    target = torch.empty_like(source)
    copied = interleaved({"": waited(lambda: target.copy_(source), device)}, repeats=6)[""].min()
    return product_rate(device, BY_WEIGHTS.get(precision, "float32")), source.nbytes / copied


def floor_s(stage: Stage, per_second: float, bytes_per_second: float) -> tuple[float, str]:
    """The least seconds that a stage can take here, and which bound it is."""
    flops = stage.flops
    if flops is None:
        # Triton's launches are not counted, so torch computes.
        convolved = mock.patch.object(convolutions, "FRAMES", sys.maxsize)
        attended = mock.patch.object(speech_transformer, "fuses", lambda q: False)
        with convolved, attended, FlopCounterMode(display=False) as counter:
            stage.batch()
        flops = float(counter.get_total_flops())
    products_s, moved_s = flops / per_second, stage.moved / bytes_per_second
    note = f"{flops / 1e9:.3g} GFLOP take {products_s:.3g} s, {stage.moved / 1e6:.3g} MB take {moved_s:.3g} s"
    return max(products_s, moved_s), note


def measure(name: str, stage: Stage, options: Options) -> Rows:
    """The rows of one stage."""
    # A reduced size only tries the stage: a large product would take a CPU minutes.
    floor, floor_note = floor_s(stage, *rates("cpu" if options.reduced else options.device, stage.precision))
    calls = {**({} if stage.alone is None else {"one by one": stage.alone}), "batch": stage.batch}
    times = interleaved({key: waited(call, options.device) for key, call in calls.items()}, repeats=options.repeats)
    times["floor"] = np.array([floor])
    about = f"{stage.items} items, {stage.audio_s:.1f} s of audio, {stage.precision}, {options.device}"
    rows = ranked(name, times, n=stage.items, note=floor_note)
    for row, seconds in zip(rows, times.values(), strict=True):
        row["note"] = f"{about}; share {floor / float(np.median(seconds)):.2g}; {floor_note}"
    return rows


def tried(name: str, options: Options) -> Rows:
    """The rows of one stage; none if a package is missing or in a trial."""
    try:
        rows = measure(name, STAGES[name](options.device, options.reduced), options)
    except ImportError as error:
        print(f"{name} skipped: {error}")
        return []
    except Exception as error:
        raise SystemExit(f"{type(error).__name__}: {' '.join(str(error).split())[:300]}") from error
    return [] if options.reduced else rows


@bench(
    "codec-bench", "torch", "transformers", "ctranslate2", "triton",
    stages=tuple(STAGES), device="cuda:0", reduced=False, repeats=5,
)  # fmt: skip
def main(options: Options) -> Cases:
    """Every requested stage."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(cores())  # the engine has all of them
    return (rows for rows in each(options.stages, partial(tried, options=options)) if rows)

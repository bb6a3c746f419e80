"""Check the numbers of torch, Triton and Whisper on every GPU."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from codec_bench.api.finding import Finding
from codec_bench.messages import Diagnostic, as_reason, of_error

if TYPE_CHECKING:
    from codec_bench.types import Audio

_SIZES = ("tiny", "tiny.en", "base", "base.en", "small", "small.en", "medium", "medium.en")
_LARGE = ("distil-large-v3", "distil-large-v3.5", "large-v3-turbo", "large-v3", "large-v2")
_SAME = 0.9  # the share of equal characters from which a difference may be rounding that decided between two words


def check_gpus(clip: Callable[[], Audio], listed: str) -> list[Finding]:
    """Check torch, Triton and a transcript on every visible GPU; [] without a GPU.

    Args:
        clip: returns a recording of English speech.
        listed: the machine's GPUs by name, or `none`; a listed GPU without CUDA is a finding.
    """
    from codec_bench.engine.device import cuda_count

    count = cuda_count()
    if not count:
        if listed == "none":
            return []
        return [
            Finding(
                "GPU driver", "wrong", Diagnostic("no_cuda", listed=listed),
                "look at CUDA_VISIBLE_DEVICES, and whether the container may use the GPU",
            )
        ]  # fmt: skip
    torch = _check_torch(count)
    if torch.state == "wrong":
        return [torch]
    devices = [f"cuda:{index}" for index in range(count)]
    return [torch, *map(_check_triton, devices), *(_check_transcript(device, clip) for device in devices)]


def _check_torch(count: int) -> Finding:
    """Check a matrix product on every GPU that torch can see."""
    import torch

    subject = "torch computes on the GPU"
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            visible = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if visible:
            for index in range(visible):
                ones = torch.ones(64, 64, device=f"cuda:{index}")
                if (ones @ ones).sum().item() != 64**3:
                    return Finding(subject, "wrong", Diagnostic("wrong_product", device=f"cuda:{index}"))
        reason = (
            as_reason(" ".join(str(warned[0].message).split()))
            if warned
            else Diagnostic("gpus_not_visible", visible=visible, gpus=count)
        )
    except RuntimeError as error:
        visible, reason = 0, of_error(error, with_type=False)
    if visible == count:
        return Finding(subject, "ok", Diagnostic("gpus_of_torch", gpus=count, version=torch.__version__))
    return Finding(subject, "wrong", reason, "update the driver, or install a torch for the driver's CUDA")


def _check_triton(device: str) -> Finding:
    """Check whether Triton compiles and launches a kernel."""
    from codec_bench.kernels.first_launch import triton_fault

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the reason is shown below
        fault = triton_fault(device)
    subject = f"Triton on {device}"
    if fault is None:
        return Finding(subject, "ok", Diagnostic("first_launch"))
    do = "pip install 'codec-bench[gpu]'; a first launch needs a C compiler and Python's headers"
    return Finding(subject, "note", Diagnostic("triton_fault", cause=fault), do)


def _check_transcript(device: str, clip: Callable[[], Audio]) -> Finding:
    """Compare Whisper's transcripts of a clip on a GPU and on the CPU."""
    from codec_bench.weights import lookup

    subject = f"Whisper on {device} and on the CPU"
    sizes = (f"whisper-{size}" for size in (*_SIZES, *_LARGE))
    name = next((one for one in sizes if lookup(one) or lookup(f"{one}-transformers")), None)
    if name is None:
        do = "codec-bench weights fetch whisper-tiny-transformers"
        return Finding(subject, "note", Diagnostic("no_whisper"), do)
    try:
        there, here = (_transcribe(name, device_name, clip()) for device_name in (device, "cpu"))
    except Exception as error:  # a library that fails on the device raises anything; that is a finding
        hint = getattr(error, "hint", None) or ""
        return Finding(
            subject,
            "wrong",
            Diagnostic("part_failed", name=name, cause=as_reason(getattr(error, "message", str(error)))),
            hint,
        )
    if there == here:
        return Finding(subject, "ok", Diagnostic("same_transcript", model=name, text=here))
    similarity = SequenceMatcher(None, there, here, autojunk=False).ratio()
    do = "" if similarity >= _SAME else "update the driver, or install a torch or ctranslate2 that is not newer than it"
    difference = Diagnostic("other_transcript", model=name, gpu=there, cpu=here)
    return Finding(subject, "note" if similarity >= _SAME else "wrong", difference, do)


def _transcribe(name: str, device: str, clip: Audio) -> str:
    """Transcribe an English clip with a recogniser on a device."""
    from codec_bench.audio.resample import prepare
    from codec_bench.features import load_feature

    feature: Any = load_feature(name, device=device)
    (result,) = feature.compute([prepare(clip, feature.rate_hz)], ["en"])
    if isinstance(result, Exception):
        raise result
    return str(result["transcript"]).strip()

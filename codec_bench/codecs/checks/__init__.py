"""Checks that find faulty codecs: all of them, or a few items for `eval`.

Which file to open
    `signals.py`: polarity, delay, level, clipping, silence.
    `rates_and_channels.py`: the same over five seconds at every declared rate, channel count and two levels.
    `behaviour.py`: batch, order, repetition, threads, very short input and silence.
    `labels.py`: declared facts against codes. `serialised_codes.py`: decoding in another process.
    `quick.py`: the cheap form. `streaming.py`: streams. `dropouts.py`: losses inside. `alignment.py`: delays.
    `batching.py`: batches against single clips (`compare.py` is `verify-batching`).
    `material.py`: the clips. `steps.py` runs all of them.
    `TO_DO` below advises the author of a codec for each check.

A finding is a dictionary with `check` (its name), `state`, `found` (a `Diagnostic`) and `value` (a number or None). The
state is `ok`, `suspect` (may be intended), `failed` (a fault), or `not applicable`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from codec_bench.messages import Diagnostic

State = Literal["ok", "suspect", "failed", "not applicable"]

TO_DO = {
    "load": "load the class by itself in Python; `--set NAME.OPTION=VALUE` gives it what it needs",
    "contract": "mend encode or decode until they give what the text says was expected",
    "polarity": "look for a sign that encode or decode turns over, such as a window or a wavelet",
    "hidden delay": "cut the delay off the beginning in decode, and code as many zeros after the end",
    "clock": "look for a rate that is rounded, or for a resampler whose way back is not its way there",
    "level": "look for a scale that encode takes out and decode does not put back",
    "clipping": "look for a scale or a clamp in decode; samples are floats, and 1.0 is full scale",
    "silence": "look for a length, a buffer or a threshold after which nothing is coded",
    "constant": "take the mean out in decode, or quantise zero to zero",
    "bitrate label": "let nominal_bitrate_bps say what is sent, or send what it says",
    "token label": "let tokens_per_s of the info say how many codes a second has, of all codebooks",
    "frame rate": "let frame_rate_hz of the info and of the streams say how many frames a second holds",
    "constant codebook": "look for a codebook that collapsed in training, or leave it out of the streams",
    "side information": "send it as codes or packets, or count it in side_bits",
    "odd input": "give the codec such input by itself in Python",
    "length": "fill the input up to a whole frame, and cut the output to codes.num_samples",
    "length of clips": "look for what treats short and long clips differently",
    "dropouts": "look for a buffer or a block whose sound is never written",
    "first frame": "look for a delay that is cut off without coding as many zeros after the end",
    "last frame": "count frames upwards, and flush what the encoder still holds",
    "loudness of clips": "look for what treats loud clips differently",
    "every rate": "give the codec such a sound by itself in Python",
    "channels": "look for a mean over channels, or for channels that are interleaved one way and read another",
    "digital silence": "let silence be one of the sounds that the codes can say",
    "input": "write into a copy of `audio.samples`",
    "repeatable": "draw noise from a seed, and keep nothing from one call to the next",
    "thread": "keep nothing in variables of a thread, and pass what decode needs with the codes",
    "batch": "mask what is padded, and keep the order; `codec-bench verify-batching` has the numbers",
    "causal label": "declare causal=False or a lookahead_s; scales and norms of a whole clip are not causal",
    "stream": "let a stream keep its state between steps, and compare its steps with the whole signal",
    "decoded elsewhere": "send all that decode needs as codes, packets or side information",
    "file": "send it as codes or packets, or count it in side_bits",
}
"""Advice to the author of a codec for each check that is suspect or failed."""


OF_TRAINING = (
    "polarity", "hidden delay", "clock", "level", "clipping", "silence", "dropouts", "constant", "channels",
    "length of clips", "first frame", "last frame", "loudness of clips", "digital silence", "constant codebook",
)  # fmt: skip
"""Checks that compare output with input: an untrained network makes other audio."""


def finding(check: str, state: State, diagnostic: Diagnostic, value: float | None = None) -> dict[str, Any]:
    """Build one finding; the module docstring explains its keys.

    Args:
        check: the check's name.
        diagnostic: the code and parameters of the sentence that explains it.
        value: the measured number, in the check's unit; None without one.
    """
    return {"check": check, "state": state, "found": diagnostic, "value": value}


def mask_training_checks(findings: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Set findings that depend on training to `not applicable`, for random weights."""
    return [
        {**f, "state": "not applicable", "found": Diagnostic("untrained", finding=f["found"])}
        if f["check"] in OF_TRAINING and f["state"] == "suspect"
        else f
        for f in findings
    ]


def faulty_findings(findings: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Select the findings that are failed or suspect, failed ones first."""
    return [f for state in ("failed", "suspect") for f in findings if f["state"] == state]

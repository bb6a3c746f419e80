"""Codes of codecs that break the contract of `encode`, `decode` or `vectors`."""

from __future__ import annotations

from collections.abc import Sequence


def _shape(shape: Sequence[int] | str) -> str:
    return shape if isinstance(shape, str) else str(tuple(shape))


def _count(codec: str, method: str, returned: int | str, batch: int) -> str:
    got = f"{returned} items" if isinstance(returned, int) else returned
    kind = "Codes" if method == "encode" else "Audio"
    return f"{codec}.{method} returned {got} for a batch of {batch}; expected a list of {batch} {kind}"


def _type(codec: str, method: str, returned: str, expected: str, latents: int | None = None) -> str:
    declared = "" if latents is None else f", because its info declares {latents} latents"
    return f"{codec}.{method} returned a {returned}; expected codec_bench.{expected}{declared}"


def _decoded(
    codec: str, shape: Sequence[int], rate_hz: int, expected_shape: Sequence[int], expected_rate_hz: int
) -> str:
    return (
        f"{codec}.decode returned {_shape(shape)} at {rate_hz} Hz (channels, samples); expected "
        f"{_shape(expected_shape)} at {expected_rate_hz} Hz: output must be as long as input"
    )


SENTENCES = {
    "error": {
        "returned_count": _count,
        "returned_type": _type,
        "not_array": "{codec}.encode gave {kind} as a {returned}; expected a numpy array (of a tensor: .cpu().numpy())",
        "codes_shape": lambda codec, shape: (
            f"{codec}.encode gave codes of shape {_shape(shape)}; expected (codebooks, frames)"
        ),
        "codes_dtype": "{codec}.encode gave codes of type {dtype}; expected whole numbers",
        "codes_range": "{codec}.encode gave codes from {low} to {high}; expected 0 to {highest}",
        "latents_shape": lambda codec, dtype, shape, latents: (
            f"{codec}.encode gave latents of type {dtype} and shape {_shape(shape)}; "
            f"expected floats ({latents}, frames)"
        ),
        "latents_not_finite": "{codec}.encode gave latents that are not finite",
        "decoded_shape": _decoded,
        "decoded_not_finite": "{codec}.decode returned samples that are not finite",
        "streams_differ": (
            "{codec} gave streams (codebooks, cardinality, frame rate, name) {streams} for one item and {first} for "
            "another; one operating point has one set of codebooks"
        ),
        "vectors_shape": lambda dtype, shape, frames: (
            f"its 'vectors' gave {dtype} of shape {_shape(shape)} for {frames} frames; expected finite floats "
            "(frames, dimensions)"
        ),
    }
}

"""Mismatches of data and metrics, in words."""

from __future__ import annotations

from collections.abc import Mapping

from codec_bench.messages.errors import first_of, plain
from codec_bench.stats.data_warnings import Warned
from codec_bench.stats.summary_types import SystemSummary

_MOST_NAMED = 6


def warned_notes(systems: Mapping[str, SystemSummary]) -> list[str]:
    """Return the warnings of `stats.data_warnings`, with their systems if not all."""
    names_by_text: dict[str, list[str]] = {}
    for name, system in systems.items():
        for one in system.warned or ():
            names_by_text.setdefault(warned_text(one), []).append(name)
    about = lambda names: "" if len(names) == len(systems) else f"{', '.join(names)}: "  # noqa: E731
    return [plain(f"{about(names)}{sentence}", most=2_000) for sentence, names in names_by_text.items()]


_TEXTS = {
    "another": "in {many} the audio equals that of {other} sample by sample. Check for one file under two names",
    "shared": "{many} have the audio of another item ({different:g} different recordings). Where the speaker is "
    "unknown, "
    "intervals and tests count each recording as one unit",
    "copied": "{many} have the audio of another file of the system and other texts, such as {other}. Check the file "
    "names",
    "repeated": "{many} repeat a question: the same audio and expected answer ({different:g} different questions). "
    "Where "
    "the speaker is unknown, intervals and tests count each question as one unit",
    "implausible": "{metric} is below {limit:g} in {many} (median {median:.3g}). The audio may be shifted, reordered "
    "or "
    "inverted, or the system does not preserve the waveform",
    "channels": "{many} have audio in {heard:.3g} of {channels:.3g} channels on average. Metrics measure the mean of "
    "the "
    "channels, which the empty ones make quieter",
    "rate": "{many} have as many samples as their references, at {rate_khz:g} kHz in place of {reference_khz:g} kHz. "
    "The "
    "rate in the files looks wrong; scores use it as stated",
    "folded": "the {channels:.3g} channels of {many} became equal. Metrics measure the mean of the channels and do not "
    "show this",
    "cancelled": "the {channels:.3g} channels of {many} cancel out: their mean, which metrics measure, is "
    "{lower_db:.0f} dB below them on average. Check the polarity of the channels",
    "around": "{many} have more silence than speech ({silence_s:.1f} s around {sound_s:.1f} s on average). {moved}",
    "empty": "{many} are band-limited to {top_khz:.1f} kHz, below what their rate ({rate_khz:g} kHz) or a metric "
    "allows. "
    "{moved}",
}


def warned_text(one: Warned) -> str:
    """Return one warning of `stats.data_warnings` as a sentence."""
    many = f"{one.n:,} of {one.of:,} items" if one.n < one.of else f"all {one.of:,} items"
    facts = {"many": many, "other": one.other, "metric": next(iter(one.moved), ""), "moved": _describe_shift(one.moved)}
    return _TEXTS[one.kind].format(**facts, **one.figures)


def _describe_shift(moved: Mapping[str, float | None]) -> str:
    """How far such data shift metrics, and which effects are unknown; "" for neither."""
    known = sorted(((shift, name) for name, shift in moved.items() if shift is not None), reverse=True)
    open_ = [name for name, shift in moved.items() if shift is None]
    parts = []
    if known:
        shifts = first_of([f"{name} by {shift:.2g}" for shift, name in known], _MOST_NAMED)
        spread = "of its spread over five codecs (codec-bench metrics --stability)"
        parts.append(f"Such data moved {shifts} {spread}")
    if open_:
        parts.append(f"The effect on {first_of(open_, _MOST_NAMED)} is unknown")
    return ". ".join(parts)

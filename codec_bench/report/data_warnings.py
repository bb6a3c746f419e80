"""Mismatches of data and metrics, in words."""

from __future__ import annotations

from collections.abc import Mapping

from codec_bench.errors import first_of, plain
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
    "another": "in {many} the sound equals that of {other} sample by sample, as if files of one folder had two names",
    "shared": "{many} have the sound of another item, sample by sample (different sounds: {different:g}); where the "
    "speaker is unknown, intervals and tests count each sound as one unit",
    "copied": "{many} have the sound of another file of the system, sample by sample, and other words to say, such as "
    "{other}; check the names of the files",
    "repeated": "{many} ask what another one asks, with the same file of sound and the same expected answer (different "
    "questions: {different:g}); where the speaker is unknown, intervals and tests count each question as one unit",
    "implausible": "{metric} is below {limit:g} in {many} (median {median:.3g}): this points at sound that is shifted, "
    "in another order or with its sign turned, or at a system that does not keep the waveform",
    "channels": "{many} have sound in {heard:.3g} of {channels:.3g} channels (on average): their mean, which is "
    "measured, is quieter by what the empty channels lack",
    "rate": "{many} have as many samples as their references, at {rate_khz:g} kHz in place of {reference_khz:g} kHz: "
    "the rate that their files state looks wrong, and all scores take them as played at that rate",
    "folded": "the {channels:.3g} channels of {many} came back as one sound; metrics measure the mean of the channels "
    "and do not show it",
    "around": "{many} have more silence than sound ({silence_s:.1f} s around {sound_s:.1f} s on average); {moved}",
    "empty": "{many} are band-limited to {top_khz:.1f} kHz, below the limit of their rate ({rate_khz:g} kHz) or of a "
    "metric; {moved}",
}


def warned_text(one: Warned) -> str:
    """Return one warning of `stats.data_warnings` as a sentence."""
    many = f"{one.n:,} of {one.of:,} items" if one.n < one.of else f"all {one.of:,} items"
    facts = {"many": many, "other": one.other, "metric": next(iter(one.moved), ""), "moved": _moved(one.moved)}
    return _TEXTS[one.kind].format(**facts, **one.figures)


def _moved(moved: Mapping[str, float | None]) -> str:
    known = sorted(((shift, name) for name, shift in moved.items() if shift is not None), reverse=True)
    open_ = [name for name, shift in moved.items() if shift is None]
    parts = []
    if known:
        shifts = first_of([f"{name} by {shift:.2g}" for shift, name in known], _MOST_NAMED)
        spread = "of its spread over five codecs (codec-bench metrics --stability)"
        parts.append(f"such data moved {shifts} {spread}")
    if open_:
        parts.append(f"it was not measured for {first_of(open_, _MOST_NAMED)}")
    return "; ".join(parts)

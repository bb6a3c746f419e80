"""Which sound the page carries: of the samples whose audio the record kept, worst cases and random ones in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_MISSES = 40


@dataclass(frozen=True, slots=True)
class Clip:
    """One embedded sound: of a sample (its index in the data) and a system (its index, -1 for the reference)."""

    sample: int
    system: int
    path: Path


def is_sound(path: Path) -> bool:
    """Whether a file is sound that browsers play, by its first bytes.

    The name is not believed: the data decides which files are references, and only sound may end up on the page.
    """
    try:
        with path.open("rb") as file:
            head = file.read(12)
    except OSError:
        return False
    mp3 = head.startswith(b"ID3") or (len(head) > 1 and head[0] == 0xFF and head[1] & 0xE6 == 0xE2)
    wav = head.startswith(b"RIFF") and head[8:12] == b"WAVE"
    return head.startswith((b"fLaC", b"OggS")) or wav or mp3 or head[4:8] == b"ftyp"


def choose_clips(
    candidates: Iterable[int], sounds: Callable[[int], Sequence[tuple[int, Path]]], budget_bytes: int
) -> list[Clip]:
    """Takes samples in the order given, each with all its sounds, while they fit.

    Args:
        candidates: samples by index, the ones worth hearing first; may repeat.
        sounds: gives a sample's sounds as (system or -1, file), none where none were kept.
        budget_bytes: of base64 text.

    Returns:
        The clips, by sample in the order taken. A sample that does not fit is passed over; after many in a row the
        search ends.
    """
    clips: list[Clip] = []
    seen: set[int] = set()
    misses = 0
    for sample in candidates:
        if sample in seen:
            continue
        seen.add(sample)
        group = [(system, path) for system, path in sounds(sample) if is_sound(path)]
        size = sum(4 * -(-path.stat().st_size // 3) for path in {path for _, path in group})
        if not group:
            continue
        if size > budget_bytes:
            misses += 1
            if misses > _MISSES:
                break
            continue
        budget_bytes -= size
        misses = 0
        clips += [Clip(sample, system, path) for system, path in group]
    return clips

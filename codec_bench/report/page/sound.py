"""Which sound the page holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_MISSES = 40


@dataclass(frozen=True, slots=True)
class PageClip:
    """One sound of the page.

    Args:
        sample: index of the sample in the data. system: index of the system, or -1 for the reference.
        path: the file.
    """

    sample: int
    system: int
    path: Path


def is_sound(path: Path) -> bool:
    """Whether a file is sound that browsers can play, judged by its first bytes.

    The name is not trusted: the data names the files, and nothing but sound may get into the page.
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
) -> list[PageClip]:
    """Takes samples in the given order, each with all its sounds, as long as they fit.

    Args:
        candidates: indices of samples, the most interesting first; an index may come several times.
        sounds: gives the sounds of a sample as (system or -1, file); empty if none were kept.
        budget_bytes: how many bytes of base64 text the sounds may have.

    Returns:
        The clips in the order in which they were taken. A sample that does not fit is left out; after many of them in a
        row the search ends.
    """
    clips: list[PageClip] = []
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
        clips += [PageClip(sample, system, path) for system, path in group]
    return clips

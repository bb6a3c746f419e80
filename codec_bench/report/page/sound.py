"""The audio of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_MISSES = 40


@dataclass(frozen=True, slots=True)
class PageClip:
    """One audio file of the page; the system is a position, or -1 for the reference."""

    sample: int
    system: int
    path: Path


def is_sound(path: Path) -> bool:
    """Whether a file is browser-playable audio, by its first bytes.

    The name is untrusted: the data names the files, and only audio may get into the page.
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
    """Select samples in order, each with all its audio, while they fit.

    Args:
        candidates: indices of samples, the most interesting first, possibly repeated.
        sounds: returns a sample's audio as (system or -1, file).
        budget_bytes: the most bytes of base64.

    Returns:
        The clips in order. A sample that does not fit is skipped; many of them in a row end the search.
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

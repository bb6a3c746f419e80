"""One self-contained HTML file of a profile: tables, rate-distortion curves, codebook histograms, players.

Conventions
    The file can be opened from disk and loads nothing. It has the content security policy, the style, the plots and the
    player of a run's page. Text from data is not trusted: the template escapes it, and the script sets it as text.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codec_bench.apps.profiling.page.collect import collect
from codec_bench.report.page.markup import SHARED, Layout, render, write_whole
from codec_bench.report.page.sound import is_sound

_LAYOUT = Layout(
    (__package__, "profile.html.j2"),
    ((SHARED, "style.css"), (SHARED, "tables.css"), (SHARED, "sample.css"), (__package__, "profile.css")),
    (
        (SHARED, "data.js"),
        (SHARED, "elements.js"),
        (SHARED, "words.js"),
        (SHARED, "core.js"),
        (SHARED, "marks.js"),
        (SHARED, "frames.js"),
        (SHARED, "labels.js"),
        (SHARED, "scales.js"),
        (SHARED, "plane.js"),
        (SHARED, "plots.js"),
        (SHARED, "player.js"),
        (__package__, "codebooks.js"),
        (__package__, "listen.js"),
        (__package__, "profile.js"),
    ),
)


def write_profile_page(
    profile: Mapping[str, Any],
    path: str | os.PathLike[str],
    *,
    references: Mapping[str, str | os.PathLike[str]] | None = None,
    audio_mb: float = 25.0,
) -> None:
    """Writes the page of a profile.

    Args:
        profile: the content of `profile.json`.
        path: the HTML file; it is written whole or not at all. The codecs' audio is in its folder.
        references: the sound files that were coded, by id; without them only the codecs can be played.
        audio_mb: how many megabytes of the page may be sound, in base64; clips that do not fit are left out.

    Raises:
        OSError: the file cannot be written.
    """
    target = Path(path)
    sounds = _Sounds(int(audio_mb * 1e6))
    clips = []
    for sample in (entry["id"] for entry in profile["players"]):
        tracks = [(-1, Path(references[sample]))] if references and sample in references else []
        for place, codec in enumerate(profile["codecs"].values()):
            if sample in codec["players"]:
                tracks.append((place, target.parent / codec["players"][sample]))
        clips.append((sample, sounds.take(tracks)))
    page, data = collect(profile, clips)
    write_whole(target, render(_LAYOUT, page, data, sounds.files))


class _Sounds:
    """The sound files in the page, each once, up to a size."""

    def __init__(self, budget_bytes: int) -> None:
        self._left = budget_bytes
        self.files: list[Path] = []

    def take(self, tracks: list[tuple[int, Path]]) -> list[tuple[int, int]]:
        """Adds the tracks of one clip, all or none; gives (place of the codec or -1, number of the sound) of each."""
        tracks = [(place, path) for place, path in tracks if is_sound(path)]
        size = sum(4 * -(-path.stat().st_size // 3) for _, path in tracks)
        if size > self._left:
            return []
        self._left -= size
        out = []
        for place, path in tracks:
            out.append((place, len(self.files)))
            self.files.append(path)
        return out

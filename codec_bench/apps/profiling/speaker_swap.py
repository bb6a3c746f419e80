"""Exchange the global part of two clips, to test whether it carries the voice.

Codes sent once per utterance, or side information in `CodecInfo.global_side`, come from another clip than the content.
`sim` of the output to the clip of the global part is high if that part carries the voice. References are the similarity
of the clip's own output (`kept`), and of the two clips (`apart`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations
from typing import Any

from codec_bench.apps.profiling.scoring import SectionScorer
from codec_bench.apps.profiling.settings import Settings
from codec_bench.codecs.adapt import decode, recode
from codec_bench.codecs.checks.material import Material
from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.messages import Diagnostic
from codec_bench.types import Codes, Sent


def measure(codec: Any, material: Material, settings: Settings, speakers: Mapping[str, str]) -> dict[str, Any]:
    """Exchange global parts of pairs of clips, and measure the voices."""
    clips, ids = material.first_clips, material.ids
    sent, waves = recode(codec, clips)
    global_side = codec.info.global_side
    if not _has_global(sent[0], global_side):
        raise NotApplicable(Diagnostic("no_global_codes"))
    pairs = pairs_of([speakers.get(name) for name in ids])[: settings.swap_pairs]
    if not pairs:
        raise NotApplicable(Diagnostic("no_second_speaker"))
    content, voice = ([clips[pair[index]] for pair in pairs] for index in (0, 1))
    changed = decode(codec, [exchange_voice(sent[a], sent[b], global_side) for a, b in pairs], content)
    scorer = SectionScorer((settings.voice_metric,))
    of = {
        "to_voice": scorer(voice, changed), "to_content": scorer(content, changed),
        "kept": scorer(content, [waves[a] for a, _ in pairs]), "apart": scorer(voice, content),
    }  # fmt: skip
    known = all(name in speakers for name in ids)
    return {
        "pairs": len(pairs),
        "speakers_known": known,
        "metric": settings.voice_metric,
        **{k: v[settings.voice_metric] for k, v in of.items()},
    }


def pairs_of(speakers: list[str | None]) -> list[tuple[int, int]]:
    """Pair (content, voice) clips of different or unknown speakers."""
    return [
        (a, b) for a, b in permutations(range(len(speakers)), 2) if speakers[a] is None or speakers[a] != speakers[b]
    ]


def exchange_voice(content: Sent, voice: Sent, global_side: tuple[str, ...] = ()) -> Codes:
    """Combine a clip's codes with another's global codes and side data."""
    assert isinstance(content, Codes) and isinstance(voice, Codes)
    streams = [b if a.frame_rate_hz == 0 else a for a, b in zip(content.streams, voice.streams)]
    exchanged = {key: voice.side[key] if key in global_side else value for key, value in content.side.items()}
    return replace(content, streams=tuple(streams), side=exchanged)


def _has_global(sent: Sent, global_side: tuple[str, ...]) -> bool:
    rates = [stream.frame_rate_hz for stream in sent.streams]
    is_global = any(rate == 0 for rate in rates) or any(key in sent.side for key in global_side)
    return is_global and any(rate > 0 for rate in rates)

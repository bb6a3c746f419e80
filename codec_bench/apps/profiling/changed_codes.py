"""Quality with fewer codebooks, with rounded latents, and with another voice.

A few whole clips are decoded with fewer codebooks by the codec's method `first`, and scored by
`Settings.robust_metrics` and the metrics of the profile. Means have no interval.

Bitrate and quality of a continuous codec with rounded latents.
Each latent is rounded to 2^b evenly spaced levels over the range of its dimension in the corpus
(`codecs/quantised.py`). `beyond` is the share of latents outside that range, which are clipped. `bps` counts b bits a
latent. Quality is the mean over a few clips, without an interval; `unrounded` is that of exact latents.

Exchange the global part of two clips, to test whether it carries the voice.
Codes sent once per utterance, or side information in `CodecInfo.global_side`, come from another clip than the content.
`sim` of the output to the clip of the global part is high if that part carries the voice. References are the similarity
of the clip's own output (`kept`), and of the two clips (`apart`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np

from codec_bench.apps.profiling.scoring import SectionScorer
from codec_bench.apps.profiling.settings import Settings
from codec_bench.codecs.adapt import decode, encode, recode
from codec_bench.codecs.checks.material import ProfileClips
from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.codecs.quantised import RANGE_CLIPS, Quantised, latent_range
from codec_bench.messages import Diagnostic, of_error
from codec_bench.messages.errors import UserError
from codec_bench.types import Codes, Latents, Sent


def measure_first_codebooks(
    codec: Any,
    material: ProfileClips,
    settings: Settings,
    metrics: Sequence[str] = (),
    texts: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Decode the first 1, 2, 4, ... codebooks of a few clips, and score the output.

    Args:
        metrics: the metrics of the profile.
        texts: transcripts of the clips, by id.

    Raises:
        NotApplicable: the codec has one codebook or several streams, or decodes only all codebooks.
    """
    clips = material.first_clips[: settings.robust_clips]
    spoken = [(texts or {}).get(name) for name in material.ids[: len(clips)]]
    first = getattr(codec, "first", None)
    sent = encode(codec, clips if first is not None else clips[:1])
    count = _codebooks(sent[0])
    if first is None:
        raise NotApplicable(Diagnostic("no_first"))
    scorer = SectionScorer((*settings.robust_metrics, *metrics))
    points = []
    for codebooks in codebook_counts(count):
        try:
            fewer = first(codebooks) if codebooks < count else codec
        except (UserError, NotImplementedError) as error:
            reason = of_error(error, with_type=False) if str(error) else Diagnostic("no_fewer_codebooks")
            raise NotApplicable(reason) from error
        cut = [_cut(item, codebooks) for item in sent]
        bps = float(np.mean([item.bits / item.duration_s for item in cut]))
        points.append({"codebooks": codebooks, "bps": bps, "quality": scorer(clips, decode(fewer, cut, clips), spoken)})
    return {"clips": len(clips), "codebooks": count, "metrics": scorer.facts, "points": points}


def codebook_counts(count: int) -> list[int]:
    """List the numbers of codebooks to try up to `count`: powers of two, and `count`."""
    return [2**k for k in range(count.bit_length()) if 2**k < count] + [count]


def _codebooks(sent: Sent) -> int:
    """Count the codebooks; raises NotApplicable unless one stream has two or more."""
    if not sent.streams:
        raise NotApplicable(Diagnostic("no_codebooks"))
    if len(sent.streams) != 1:
        raise NotApplicable(Diagnostic("several_streams", streams=len(sent.streams)))
    count = int(np.shape(sent.streams[0].values)[0])
    if count < 2:
        raise NotApplicable(Diagnostic("one_codebook"))
    return count


def _cut(item: Sent, codebooks: int) -> Codes:
    assert isinstance(item, Codes)
    (stream,) = item.streams
    return replace(item, streams=(replace(stream, values=np.array(stream.values[:codebooks])),))


def measure_latent_bits(
    codec: Any,
    material: ProfileClips,
    settings: Settings,
    metrics: Sequence[str] = (),
    texts: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Round the latents of a few clips to fewer and fewer bits, and score the output.

    Args:
        metrics: the metrics of the profile.
        texts: transcripts of the clips, by id.

    Raises:
        NotApplicable: the codec sends no latents.
    """
    if codec.info.latents is None:
        raise NotApplicable(Diagnostic("no_latents"))
    clips = material.first_clips[: settings.robust_clips]
    spoken = [(texts or {}).get(name) for name in material.ids[: len(clips)]]
    sent, waves = recode(codec, clips)
    latents = [item for item in sent if isinstance(item, Latents)]
    scorer = SectionScorer((*settings.robust_metrics, *metrics))
    span = latent_range(codec)
    points = []
    for bits in settings.latent_bits:
        rounding = Quantised(codec, bits, span)
        codes = [rounding.rounded(item) for item in latents]
        bps = sum(item.bits for item in codes) / sum(item.duration_s for item in codes)
        points.append({"bits": bits, "bps": bps, "quality": scorer(clips, decode(rounding, codes, clips), spoken)})
    return {
        "clips": len(clips),
        "range_clips": list(RANGE_CLIPS),
        "beyond": _share_outside(latents, span),
        "metrics": scorer.facts,
        "unrounded": scorer(clips, waves, spoken),
        "points": points,
    }


def _share_outside(latents: Sequence[Latents], span: tuple[np.ndarray, np.ndarray]) -> float:
    """Compute the share of latents outside the range of their dimension."""
    values = np.concatenate([np.asarray(item.values, np.float64) for item in latents], axis=1)
    return float(((values < span[0]) | (values > span[1])).mean())


def measure_speaker_swap(
    codec: Any, material: ProfileClips, settings: Settings, speakers: Mapping[str, str]
) -> dict[str, Any]:
    """Give clips the global codes of another speaker, and measure voice similarity.

    Raises:
        NotApplicable: the codec has no global codes, or the clips have only one speaker.
    """
    clips, ids = material.first_clips, material.ids
    global_side = codec.info.global_side
    if not _has_global(encode(codec, clips[:1])[0], global_side):
        raise NotApplicable(Diagnostic("no_global_codes"))
    sent, waves = recode(codec, clips)
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
    facts = {"pairs": len(pairs), "speakers_known": all(name in speakers for name in ids)}
    return {**facts, "metric": settings.voice_metric, **{k: v[settings.voice_metric] for k, v in of.items()}}


def pairs_of(speakers: list[str | None]) -> list[tuple[int, int]]:
    """Pair (content, voice) clips of different or unknown speakers."""
    pairs = permutations(range(len(speakers)), 2)
    return [(a, b) for a, b in pairs if speakers[a] is None or speakers[a] != speakers[b]]


def exchange_voice(content: Sent, voice: Sent, global_side: tuple[str, ...] = ()) -> Codes:
    """Combine the time-varying codes of one clip with the global codes of another.

    Args:
        content: keeps its streams that have a frame rate.
        voice: its other streams, which are sent once per clip, replace those of `content`.
        global_side: keys of the side data that are taken from `voice` too.
    """
    assert isinstance(content, Codes) and isinstance(voice, Codes)
    streams = [b if a.frame_rate_hz == 0 else a for a, b in zip(content.streams, voice.streams)]
    exchanged = {key: voice.side[key] if key in global_side else value for key, value in content.side.items()}
    return replace(content, streams=tuple(streams), side=exchanged)


def _has_global(sent: Sent, global_side: tuple[str, ...]) -> bool:
    rates = [stream.frame_rate_hz for stream in sent.streams]
    is_global = any(rate == 0 for rate in rates) or any(key in sent.side for key in global_side)
    return is_global and any(rate > 0 for rate in rates)

"""Latents rounded to a few bits, against plain loops and codecs that differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from refusals import refuses

from codec_bench.apps.profiling import changed_codes
from codec_bench.apps.profiling.robust_rows import rounded_figures
from codec_bench.apps.profiling.rows import reasons, sections
from codec_bench.apps.profiling.settings import Settings
from codec_bench.codecs import load_codec
from codec_bench.codecs.checks.material import ProfileClips
from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.codecs.quantised import RANGE_CLIPS
from codec_bench.data import open_source
from codec_bench.types import Latents

BLOCKS = Path(__file__).parents[2] / "codecs" / "assets" / "latent_codecs.py"
FOUR = np.array([-0.3, -0.1, 0.1, 0.3], np.float32)


def blocks():
    return load_codec(f"{BLOCKS}:Blocks")


class FourLevels:
    """The same codec, but every latent is one of four evenly spaced values: two bits are all it needs."""

    def __init__(self):
        self._of = blocks()
        self.info = self._of.info

    def encode(self, batch):
        return [
            Latents(
                FOUR[np.abs(np.asarray(item.values)[..., None] - FOUR).argmin(-1)],
                item.frame_rate_hz,
                item.num_samples,
                item.sample_rate_hz,
            )
            for item in self._of.encode(batch)
        ]

    def decode(self, latents):
        return self._of.decode(latents)


def measured(codec, files, **settings):
    small = {"robust_clips": 2, "latent_bits": (2, 4, 8), "robust_metrics": ("snr",), **settings}
    return changed_codes.measure_latent_bits(codec, ProfileClips(files, codec), Settings(**small))


def test_the_curve_is_that_of_a_plain_loop(files):
    files = files[2:]  # not those of the range
    codec, result = blocks(), measured(blocks(), files)
    held = {sample.id: sample.audio for sample in open_source("embedded")}
    ranges = [ProfileClips([(name, held[name])], codec).first_clips[0] for name in RANGE_CLIPS]
    seen = np.concatenate([item.values for item in codec.encode(ranges)], axis=1)
    clips = ProfileClips(files, codec).first_clips[:2]
    for point in result["points"]:
        ratios = []
        for clip, item in zip(clips, codec.encode(clips)):
            values = np.array(item.values, float)
            for row, of_row in zip(values, seen):
                low, step = of_row.min(), (float(of_row.max()) - of_row.min()) / (2 ** point["bits"] - 1)
                for frame, value in enumerate(row):
                    row[frame] = low + step * min(max(round((value - low) / step), 0), 2 ** point["bits"] - 1)
            (wave,) = codec.decode([Latents(values.astype(np.float32), item.frame_rate_hz, item.num_samples, 16000)])
            error = (wave.samples - clip.samples).astype(float)
            ratios.append(10 * np.log10(np.square(clip.samples, dtype=float).sum() / np.square(error).sum()))
        assert point["quality"]["snr"]["value"] == pytest.approx(np.mean(ratios), abs=0.01)
        assert point["bps"] == pytest.approx(
            64 * point["bits"] * 250, rel=0.02
        )  # the last frame of a clip is filled up
    values = [point["quality"]["snr"]["value"] for point in result["points"]]
    assert values == sorted(values) and result["unrounded"]["snr"]["value"] > values[-1]
    beyond = [
        sum(not low <= v <= high for v in row)
        for item in codec.encode(clips)
        for row, low, high in zip(item.values, seen.min(1), seen.max(1))
    ]
    assert (
        result["beyond"] == pytest.approx(sum(beyond) / sum(item.values.size for item in codec.encode(clips)))
        and sum(beyond) > 0
    )


def test_a_codec_that_needs_two_bits_is_distinguished_from_one_that_needs_more(files):
    small, many = (
        measured(codec, files, robust_metrics=("stoi",), latent_bits=(2, 8)) for codec in (FourLevels(), blocks())
    )
    dropped = [f["unrounded"]["stoi"]["value"] - f["points"][0]["quality"]["stoi"]["value"] for f in (small, many)]
    assert abs(dropped[0]) < 1e-3 and dropped[1] > 0.1 and small["beyond"] == 0.0


def test_what_is_discrete_says_so(files):
    with refuses("no_latents", error=NotApplicable):
        measured(load_codec("g711-ulaw"), files)
    with refuses("no_latents", error=NotApplicable):
        measured(load_codec(f"{BLOCKS}:Blocks", latent_bits=8), files)


def test_the_page_has_a_row_a_figure_and_the_reason(profiled):
    result = profiled(f"{BLOCKS}:Blocks", "g711-ulaw", skip=PROFILED_ELSEWHERE, settings={"latent_bits": [2, 8]}).facts
    (built,) = [section for section in sections(result) if section.title == "Rounded latents"]
    rows = {row.label: [cell.text for cell in row.cells] for row in built.rows}
    assert rows["bitrate by bits a latent"] == ["2: 32, 8: 128", "–"]
    assert rows["stoi by bits a latent"][0].startswith("2: ") and "unrounded: 1" in rows["stoi by bits a latent"][0]
    why = [reason for _, _, reason in reasons([built], ["blocks", "g711-ulaw"])]
    assert why == ["not applicable: what it sends is discrete already: it has no latents to round"]
    drawn = [
        figure
        for figure in rounded_figures(result, ["blocks", "g711"])
        if figure["title"] == "stoi against rounded latents"
    ]
    assert [[x for x, _ in line["points"]] for line in drawn[0]["lines"]] == [
        [pytest.approx(32, abs=1), pytest.approx(128, abs=3)]
    ]


PROFILED_ELSEWHERE = (
    "speed",
    "complexity",
    "latency",
    "streaming",
    "stability",
    "loss",
    "bit_errors",
    "codebooks",
    "swap",
    "cpu",
    "language",
    "transformer",
    "probes",
)

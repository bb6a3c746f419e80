"""Profiles of codecs.

Which file to open
    `api.py`         the verb; `command.py` the command, with its tables.
    `steps.py`       the measurements of one codec in order, in a worker process (`engine/codec_worker.py`).
    `settings.py`    clips, repeats and conditions; `codecs/checks/material.py` loads the audio.
    `several_codecs.py`   one profile of several codecs, and the run that scores them; `curves.py` rate-quality curves.
    `codebook_use.py`     bitrates and the use of codebooks.
    `speed.py`       speed, parameters and operations; `latency.py` look-ahead and streaming.
    `stability.py`   re-encoding and changes of the input. `loss.py` lost frames (`frame_loss.py`) and flipped bits.
    `changed_codes.py`    fewer codebooks, rounded latents, exchanged global codes; `scoring.py` scores a few clips.
    `phones.py`      mutual information of codes and phones; `abx.py` ABX error rates.
    `language.py`    token statistics and the entropy of n-grams; `token_model.py` a small language model.
    `probes.py`      probes of codes by small classifiers (`classifiers.py`).
    `rows.py`        rows of terminal and page with texts of `rows.yaml`, from `cells.py`, `robust_rows.py` and
                     `probe_rows.py`; `page/` shows them.
"""

from __future__ import annotations

from codec_bench.config.registry import Command

COMMANDS = {
    "profile": Command(
        "Measure",
        "Profile codecs: bitrate, speed, quality, mistakes.",
        "codec_bench.apps.profiling.command:profile",
        common=True,
    )
}
VERBS = {"profile": "codec_bench.apps.profiling.api"}

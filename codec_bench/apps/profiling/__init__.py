"""Profiles of codecs.

Which file to open
    `api.py`         the verb; `command.py` the command.
    `steps.py`       the measurements of one codec in order, in a worker process (`engine/own_worker.py`).
    `settings.py`    clips, repeats and conditions; `codecs/checks/material.py` loads the audio.
    `several_codecs.py`  one profile of several codecs, and the run that scores them; `curves.py` rate-quality curves.
    `rate.py`        bitrates and the use of codebooks (`codebook_use.py`).
    `speed.py`, `complexity.py`, `latency.py`, `streaming.py`, `stability.py`   one measurement each.
    `perturbations.py`  changes of the input for `stability.py`; `stability_rows.py` its rows.
    `loss.py`        lost frames (`frame_loss.py`), their quality (`scoring.py`) and `bit_errors.py`; `robust_rows.py`
    rows.
    `first_codebooks.py`, `latent_bits.py`, `speaker_swap.py`   fewer codebooks, rounded latents, exchanged global
    codes.
    `phones.py`      mutual information of codes and phones; `abx.py` ABX error rates.
    `language.py`    token statistics: `ngrams.py`, `zipf.py` and `token_model.py`, over `token_corpus.py`.
    `probes.py`      probes of codes by small classifiers (`classifiers.py`).
    `rows.py`        rows of terminal and page with texts of `rows.yaml`, from `cells.py`, `language_rows.py` and
                     `probe_rows.py`; `table.py` prints them, and `page/` shows them.
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

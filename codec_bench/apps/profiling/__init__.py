"""Profiles of codecs.

Which file to open
    `api.py`         the verb; `command.py` what is typed.
    `steps.py`       the measurements of one codec in their order. Each codec has a worker of its own
                     (`engine/own_worker.py`).
    `settings.py`    how thoroughly is measured; `codecs/checks/material.py` says on which audio.
    `several_codecs.py`  one profile of several codecs, and the run of the engine that gives the metrics; `curves.py`
                         has their curves and
                     delta rates.
    `rate.py`        bitrates and the use of codebooks (`codebook_use.py`).
    `speed.py`, `complexity.py`, `latency.py`, `streaming.py`, `stability.py`   one measurement each.
    `perturbations.py`  what is done to the input for `stability.py`; `stability_rows.py` its rows.
    `loss.py`        lost frames (`frame_loss.py`) and their quality (`scoring.py`); `bit_errors.py` single wrong bits;
                     `robust_rows.py` their rows.
    `first_codebooks.py`, `latent_bits.py`, `speaker_swap.py`   the first codebooks alone, rounded latents, and exchanged
                                                               global codes.
    `phones.py`      how much codes tell of phones, and `abx.py` the ABX error rates.
    `language.py`    what a language model will make of the codes: `ngrams.py`, `zipf.py` and `token_model.py`, over
                     `token_corpus.py`.
    `probes.py`      what small classifiers (`classifiers.py`) read from the codes.
    `rows.py`        the rows that terminal and page share, made of `cells.py` (`language_rows.py` and `probe_rows.py`
                     have those of tokens and probes); `table.py` prints them, and `page/` shows them.
"""

from __future__ import annotations

from codec_bench.registry import Command

COMMANDS = {
    "profile": Command(
        "Measure",
        "Profile codecs: bitrate, codebooks, speed, size, latency, stability, quality curves, and checks for common mistakes.",
        "codec_bench.apps.profiling.command:profile",
        common=True,
    ),
}
VERBS = {"profile": "codec_bench.apps.profiling.api"}

"""Codes of measurements of a profile that do not apply or failed."""

from __future__ import annotations


def _no_triphones(without_speaker: int) -> str:
    more = f"; {without_speaker} clips have no speaker" if without_speaker else ""
    return f"no clip has a speaker and an alignment of three phones in a row{more}"


SENTENCES = {
    "info": {
        "no_first": "it has no method `first`, which decodes fewer codebooks than it has",
        "no_fewer_codebooks": "it decodes no fewer codebooks than it has",
        "no_codebooks": "it sends no codes that have codebooks",
        "several_streams": "it sends {streams} streams of codes; codebooks can be dropped from one only",
        "one_codebook": "it has one codebook",
        "no_frame_rate": "it has no codes with a frame rate",
        "no_alignments": "none of the {clips} clips has an alignment; the ids must be those of the data",
        "no_latents": "what it sends is discrete already: it has no latents to round",
        "codes_unused": (
            "its output does not depend on its codes: it decodes its side information, which is not lost here"
        ),
        "no_bits": "it sends no bits",
        "too_few_speakers": (
            "probes without the same speaker need two speakers, and the data have {speakers} with a label"
        ),
        "too_few_clips_of_speakers": (
            "two speakers with two clips each are needed, and the data have fewer that are named"
        ),
        "too_few_emotions": "two emotions are needed, and the data name fewer (the column `emotion`)",
        "no_aligned_speakers": "no clip has both an alignment and a speaker",
        "too_few_phones": "two phones with {frames} frames are needed, and the data have fewer",
        "too_few_voiced": "there are too few voiced frames of named speakers",
        "unsteady_output": (
            "two outputs for the same input differ by {by:.2g}, so the effect of a change cannot be seen"
        ),
        "no_change_seen": "no change of the input changed the output",
        "too_many_entries": (
            "{codebooks} codebooks of {entries:,} entries are more than a model of {width} channels is for "
            "({most:,} in all)"
        ),
        "too_few_clips": "{clips} clips are needed to learn, to choose and to measure, and there are fewer",
        "too_few_codes": "there are {codes:,} codes to learn from; {needed:,} are needed",
        "too_few_frames": (
            "it sends {seconds:.3g} s in {frames} parts, none of which can be lost alone; {needed} are needed"
        ),
        "other_silence": "silence of the same length is sent in another number of frames",
        "not_coded": "the data were not coded whole, or the process that coded them has ended",
        "cpu_already": "all else was measured on the CPU too",
        "no_training": "no steps of training were requested",
        "no_triphones": _no_triphones,
        "no_pairs_within": "no speaker says two phones between the same neighbours, one of them twice",
        "no_pairs_across": (
            "no two speakers say a phone between the same neighbours, between which one of them says another phone"
        ),
        "no_anchor_value": "the anchor '{anchor}' has no value",
        "no_direction": "for this metric neither higher nor lower is better",
        "no_such_order": "no clip has {order} frames",
        "no_vectors": "it gives no vectors for its codes",
        "no_common_vectors": "its codes are several streams, which have no vectors in common",
        "no_concealment": "{codec} has no packet loss concealment",
        "no_module": "it has no torch module, and only torch's operations can be counted",
        "no_global_codes": "it has no codes that are sent once per utterance",
        "no_second_speaker": "its clips are all of one speaker; an exchange needs two",
        "pairs_unseen": (
            "the pairs of codes seen in {frames} frames have an estimated probability of {coverage:.0%}; "
            "{needed:.0%} are needed"
        ),
        "order_unseen": (
            "the data cannot carry order {order}: the n-grams seen in {codes:,} codes of a codebook have an estimated "
            "probability of {coverage:.0%}; {needed:.0%} are needed"
        ),
        "packets": "it sends packets of bits, which have no codebooks",
        "latents": "it gives latents, which are not discrete; see how far they move",
        "packets_not_compared": "it sends packets of bits, which have no codes to compare",
        "no_codes": "no codes were counted",
        "no_metric": "no metric was requested",
    },
    "error": {
        "clips_failed": "{clips} clips gave no estimate: {reason}",
        "fault_of": lambda sections, reason: f"{', '.join(sections)}: {reason}",
        "scores_failed": "{count} of the clips: {reason}",
        "codec_of_this_process": (
            "'{codec}' is of this process (a {type} in memory), and a codec is profiled in a separate process, which "
            "cannot import it"
        ),
        "codes_out_of_range": "codebook {codebook} has {count} codes outside [0, {cardinality})",
        "codec_cannot_be_loaded": "'{codec}' cannot be loaded: {reason}",
        "too_many_runs": "'{folder}' holds {count} other runs",
    },
}

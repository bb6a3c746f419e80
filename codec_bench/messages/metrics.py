"""Codes of metrics."""

from __future__ import annotations


def _length_difference(longer_s: float) -> str:
    return f"the estimate is {abs(longer_s):.2f} s {'longer' if longer_s > 0 else 'shorter'} than the reference"


SENTENCES = {
    "info": {
        "group_excludes": lambda group, reasons: f"the group '{group}' leaves out {'; '.join(reasons)}",
        "metrics_excluded": "{metrics}: {cause}",
        "no_codec_measured": "no codec is measured, so that no bits are sent",
        "needs_target": "needs a recording of the same words, and the reference audio is a prompt",
        "no_reference_in_data": "the data hold no reference audio",
        "weights_of_package": "the package of {feature} downloads its weights itself",
        "lengths_differ": lambda longer_s, tolerance_s: (
            f"{_length_difference(longer_s)}; a sample-by-sample comparison needs equal lengths "
            f"(a difference of up to {tolerance_s} s is cut or filled with zeros)"
        ),
        "frames_apart": lambda longer_s, tolerance_s, other=None: (
            f"{_length_difference(longer_s)}; a comparison frame by frame needs equal lengths "
            f"(a difference of up to {tolerance_s} s is cut off){f', and {other} aligns others' if other else ''}"
        ),
        "score_of_other_protocol": (
            "the score is by the protocol '{protocol}', and the metric by '{expected}', so they have no mean; give "
            "each protocol a separate metric"
        ),
        "no_estimate": "there is no estimate",
        "no_reference": "there is no reference audio to compare with",
        "no_side_audio": "there is no {side} audio for {name}",
        "not_discrete": (
            "it is not discrete: its {dimensions} real numbers {frame_rate_hz:g} times a second have no bitrate"
        ),
        "not_a_codec": "this system is not a codec: it sends no bits",
        "no_length": "the audio has no length",
        "zero_embedding": "the embedding is zero",
        "empty_text": "the text is empty",
        "no_words_heard": "none of the recognisers hears a word",
        "id_without_emotion": "the id '{id}' does not begin with an emotion and '_'",
        "text_not_among": "the text '{text}' is none of {labels}",
        "rate_above": "its error rate is above {percent:g} %",
        "no_transcript": "the result of '{name}' has no transcript",
        "recogniser_failed": "{name}: {cause}",
        "reference_has_words": "the reference has words, and this is measured where it has none",
        "no_label_of_set": "the text '{text}' is no label of the set",
        "too_quiet": "the {side} is shorter than 0.4 s or nowhere above -70 LUFS",
        "digital_silence": "the estimate is digital silence",
        "no_samples": "the estimate has no samples",
        "no_signal_samples": "the signals have no samples",
        "reference_silent": "the reference is silent",
        "pesq_silent": "the estimate is silent, and PESQ cannot align its level",
        "pesq_too_long": (
            "{duration_s:.1f} s of audio can overflow the PESQ code, safe up to {most_s:.0f} s: cut it into pieces"
        ),
        "pesq_too_short": "the audio is too short ({duration_s:.2f} s); PESQ needs 0.25 s",
        "pesq_no_utterance": "PESQ found no utterance of 0.2 s in common to both signals",
        "pesq_no_level": "PESQ could not align the level of a signal",
        "pesq_utterances": (
            "the reference has up to {utterances} utterances, and the PESQ code has room for 50: cut it into pieces"
        ),
        "no_pitch_frame": "the signals are too short: they have no pitch frame",
        "frames_apart_words": "{cause}; the column '{column}' may hold the times of the estimate's words",
        "pitch_constant_over_words": "the pitch of the {side} does not change from word to word",
        "side_silent": "the {side} is digital silence, in which no speech begins or ends",
        "few_frames": "a correlation needs two frames",
        "no_speaking_rate": "no words are recognised in the reference, so it has no speaking rate",
        "level_constant": "the level of the {side} does not change",
        "estimate_is_silent": "the estimate is silent",
        "scaled_copy": "the estimate is a scaled copy of the reference; SI-SDR is unbounded",
        "nothing_of_reference": "the estimate holds nothing of the reference; SI-SDR is unbounded",
        "scaled_copy_rounded": "the estimate is a scaled copy of the reference up to rounding; SI-SDR is unbounded",
        "exact_copy": "the estimate is an exact copy of the reference; SNR is unbounded",
        "few_samples_for_frames": "{samples} samples at {rate_hz} Hz are too few: two frames need {needed}",
        "few_samples_for_window": "{samples} samples are too few: a window of {window} needs more than half its length",
        "no_frames_at_level": "fewer than two frames of the reference have this level",
        "versa_without_number": "VERSA's reply has no finite number '{number}'",
        "versa_out_of_range": "VERSA's '{number}' is {value:g}, which is outside its range",
        "srmr_too_short": "the signal is shorter than 0.287 s, and that much makes one segment",
        "stoi_too_short": "fewer than 30 frames (about 0.4 s) of the reference, one segment, are not silent",
        "one_side_silent": "the reference or the estimate is silent",
        "few_frames_for_piece": "{frames} frames are too few: a piece has {patch} of {hop_ms:g} ms",
        "no_cepstra": "the {side} is silent, and silence has no cepstra to be aligned",
        "no_watermark": "the reference carries no mark: it is found in {share:.0%} of its samples",
        "no_reference_text": "no transcript in the manifest to compare with",
        "language_unknown_to_metric": "{metric} knows {languages} only, and the language is '{language}'",
        "language_unknown_to_rule": "the rule '{rule}' knows {languages} only, and the language is '{language}'",
        "language_unknown_to_recogniser": "{name} knows {languages} only, and the language is '{language}'",
        "trained_on_others": "{trained_on}, and the language is '{language}'; {others}",
    },
    "warning": {
        "words_without_speech": "words recognised where the recogniser finds no speech",
        "of_recogniser": "{recogniser}: {cause}",
    },
    "error": {
        "value_beyond_average": lambda value, numerator=None, denominator=None: (
            f"the metric returned {value}"
            f"{'' if numerator is None else f' from {numerator} over {denominator}'}, which no average can hold"
        ),
        "versa_raised": "VERSA raised {type}: {message}",
        "set_metrics": "{metrics} is computed over all items at once",
        "batch_of_tiny_items": "the {side} is a batch of {items} items of {samples} samples each",
        "feature_failed": "{feature} of the {side}: {cause}",
        "empty_transcript": "nothing is left of the transcript after normalisation",
        "pesq_error": "the PESQ code returned the error {value:.0f}",
        "few_voiced_words": "a correlation of words needs {needed} voiced on both sides; of {words}, {voiced} are",
        "signals_below_frame": ("the signals have {reference} and, aligned, {estimate} samples; a frame has {frame}"),
        "no_patch_of_speech": "no patch of the reference holds speech, or the signals are too short for a patch",
        "unvoiced_sides": lambda sides: (
            f"no frame of the {sides if isinstance(sides, str) else ' and the '.join(sides)} is voiced"
        ),
        "not_voiced_in_both": "no frame is voiced in both reference and estimate",
        "few_voiced_frames": "a correlation needs two frames that are voiced in both",
        "pitch_constant": "the pitch of the {side} does not change",
        "reference_unvoiced": "no frame of the reference is voiced",
        "reference_without_speech": "the reference has no speech",
        "reference_without_silence": "the reference has no silence",
        "sides_without_speech": "the {sides} has no speech",
        "no_speech_at_all": "neither side has speech",
        "unequal_embeddings": "the sound's embedding has {sound} numbers and the text's {text}",
        "recogniser_unnamed": (
            "{metric} needs a recogniser to be named, such as {metric}[whisper-large-v3] or {metric}[pocketsphinx]"
        ),
        "no_point_of_metric": "{name} has no '@{point}'",
        "several_recognisers_expected": "{metric} needs several recognisers; got {variant!r}",
        "no_metric_named": "no metric was named",
        "metric_named_twice": "the metric '{metric}' is named twice",
        "metric_aggregate": "the metric '{metric}' has the aggregate '{aggregate}', which is not known",
        "metric_attribute": "the metric '{metric}' has no '{attribute}'",
        "value_groups": "'{path}': value has {groups} groups; expected one, the number",
        "value_not_a_pattern": "'{path}': value is no regular expression: {cause}",
        "program_without_number": "{program} wrote no number that fits '{pattern}'",
        "recogniser_named_twice": "'{variant}' names the recogniser '{recogniser}' twice",
        "one_recogniser_expected": "'{name}' names {recognisers} recognisers, and {metric} has one",
        "not_a_recogniser": "{metric}[{variant}]: '{variant}' does not transcribe speech",
        "rule_counts_itself": "{metric} counts characters, and the published rule '{rule}' says what it counts itself",
        "group_with_brackets": (
            "'{group}' is a group with brackets or a precision, and a group of several metrics has neither"
        ),
        "nothing_of_group": lambda group, reasons: (
            f"no metric of the group '{group}' can be measured here ({'; '.join(reasons)})"
        ),
        "variant_without_language": "lid[{variant}] finds no language",
        "no_versa_entry": "'{path}' has no entry with the name '{name}'",
    },
}

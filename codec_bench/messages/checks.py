"""Codes of the checks of codecs; exceptions are `error` of the room `general`."""

from __future__ import annotations

from collections.abc import Sequence

from codec_bench.messages.errors import count_of


def _listed(names: Sequence[str], separator: str = ", ") -> str:
    return separator.join(names[:4]) + (f"{separator}and {len(names) - 4} more" if len(names) > 4 else "")


def _dropouts(start_ms: float, inside_ms: float, at_s: float, end_ms: float) -> str:
    """Name the silent parts at the start, inside and at the end."""
    parts = [
        f"the first {start_ms:.3g} ms" if start_ms else "",
        f"{inside_ms:.3g} ms from {at_s:.3g} s on" if inside_ms else "",
        f"the last {end_ms:.3g} ms" if end_ms else "",
    ]
    return " and ".join(filter(None, parts))


def _differences(flips: int, frames: int, wave: float | None, allowed: float) -> str:
    codes = f"in {flips} of {frames} frames of codes" if flips else ""
    if wave is None:
        return " and ".join(filter(None, (codes, "in length")))
    return " and ".join(filter(None, (codes, f"by up to {wave:.2g} (allowed: {allowed:g})" if wave > allowed else "")))


def _silent_parts(
    clips: int, seconds: float, name: str, start_ms: float, inside_ms: float, at_s: float, end_ms: float
) -> str:
    total = f"loud sound comes back as silence in {count_of(clips, 'clip')}, {seconds:.3g} s in all"
    return f"{total}; '{name}' loses {_dropouts(start_ms, inside_ms, at_s, end_ms)}"


def _clipped_samples(clipped: int, samples: int, beyond: int, name: str, cut_at: float, cut_in: str) -> str:
    """Count clipped samples, and name the file with most or its ceiling."""
    text = f"{clipped} of {samples} samples reach full scale where the reference does not"
    if beyond:
        text += f"; {beyond} lie beyond full scale and would be cut in a file of integer samples"
    if cut_at:
        return f"{text}; '{cut_in}' is cut at {cut_at:.2g}, below its reference"
    return text + (f"; most in '{name}'" if clipped else "")


def _delay(samples: float, ms: float, clips: int, by: str) -> str:
    of = ", by the preserved bands" if by == "bands" else ""
    return f"{samples:+.2f} samples ({ms:+.2f} ms), the median of {clips} clips{of}"


def _silent_clips(count: int, name: str) -> str:
    return f"{count} estimate{'s are' if count > 1 else ' is'} silent where the reference is not, such as '{name}'"


def _constant_codebooks(
    constant: int, codebooks: int, codebook: int, stream: int | None, value: int, percent: float = 100.0
) -> str:
    of = f" of stream {stream}" if stream else ""
    often = "always" if percent == 100 else f"in {min(percent, 99.99):.4g} % of the frames"
    return f"{constant} of {codebooks} codebooks are dead: codebook {codebook}{of} gives {value} {often}"


def _rates(declared: float, rates: Sequence[float]) -> str:
    listed = " and ".join(rate if isinstance(rate, str) else f"{rate:g}" for rate in rates)
    return f"declared {declared:g} Hz, its codes have {listed} Hz"


def _kinds_ok(kinds: int, delay_unknown: Sequence[str]) -> str:
    text = f"{count_of(kinds, 'kind')} of sound (rates and channels), loud, quiet and short, come back as they should"
    return text + (f"; the delay is unknown at {_listed(delay_unknown, '; ')}" if delay_unknown else "")


def _repeated(clips: int, wave: float) -> str:
    text = f"differs by up to {wave:.2g}" if wave else "gives the same output"
    return f"each of {count_of(clips, 'clip')} {text} the second time, in the opposite order and another thread"


def _batch_ok(clips: int, batches: int, wave: float, allowed: float, flips: int) -> str:
    more = f", and in {count_of(flips, 'frame')} of codes" if flips else ""
    text = f"{count_of(clips, 'clip')} in {batches} batches of unequal lengths differ from the same clips alone"
    return f"{text} by at most {wave:.2g} (allowed: {allowed:g}){more}"


def _batch_differs(
    differing: int,
    clips: int,
    batches: int,
    worst_s: float,
    flips: int,
    frames: int,
    wave: float | None,
    allowed: float,
) -> str:
    """Describe how far batches differ from single clips, in waves and codes."""
    text = f"{differing} of {count_of(clips, 'clip')} in {batches} batches of unequal lengths differ from the same"
    return f"{text} clips alone {_differences(flips, frames, wave, allowed)}; the clip of {worst_s:.3f} s differs most"


def _batch_unsteady(clips: int, batches: int, flips: int, frames: int, wave: float | None, allowed: float) -> str:
    difference = _differences(flips, frames, wave, allowed)
    text = f"{count_of(clips, 'clip')} in {batches} batches of unequal lengths differ {difference}"
    return f"{text}, and neither the batch nor the clip alone comes back the same again"


def _look_ahead(causal: bool, declared: int, beyond: int) -> str:
    text = "declared causal" if causal else "declared not causal"
    text += f" with a look-ahead of {declared} samples" if declared else ""
    return f"{text}; looks {beyond} samples beyond its frame"


def _sent_as(declared_bps: float, coded_bps: float, share: float) -> str:
    declared, coded = f"{declared_bps / 1000:.3g} kbit/s", f"{coded_bps / 1000:.3g} kbit/s"
    return f"declared {declared}, its codes take {coded} ({100 * share:+.1f} %)"


def _quality_falls(
    metric: str, value: float, bps: float, other_value: float, other_bps: float, other: str, clear: bool
) -> str:
    text = f"{metric} is {value:.4g} at {bps / 1000:.3g} kbit/s but {other_value:.4g} at {other_bps / 1000:.3g} kbit/s"
    return f"{text} ({other})" + ("" if clear else "; the intervals overlap")


SENTENCES = {
    "info": {
        "contract_kept": (
            "codes are in range; samples are finite, as many as in the input, at its rate and with its channels"
        ),
        "untrained": "unknown, because the weights are random; of these, {finding}",
        "same_output_needed": "the same input does not give the same output",
        "same_batch_needed": "the same batch does not give the same output",
        "first_files_unreadable": "the first files of the data cannot be read",
        "codec_failed": "the codec failed",
        "not_tried": "it was not requested",
        "one_process_only": "it runs in the process of the caller, and no other can import it",
        "slow_to_load": "loading it took {load_s:.0f} s, so no second process loaded it; validate does",
        "cannot_send": "{name} cannot be sent as bytes: {kind}",
        "no_streaming": "it cannot stream: it has no method `streaming`",
        "streaming_refused": "it cannot stream",
        # Results that are as expected.
        "no_dropouts": "no loud part of a clip comes back as silence",
        "sign_kept": "the waveform has its sign (correlation {correlation:.2f})",
        "delay": _delay,
        "no_silent_estimate": "no estimate of a clip with sound is silent",
        "level": "the level of the estimates is {level_db:+.1f} dB from that of their references (median)",
        "mean": "the mean of the estimates is {mean:+.2g} larger than that of their references at that level (median)",
        "clipped_samples": _clipped_samples,
        "bitrate": _sent_as,
        "length_kept": lambda samples: (
            "output is as long as input, at its rate and with its channels, for "
            f"{', '.join(map(str, samples))} samples and every clip"
        ),
        "file_not_read": "decode opens no file that encode has written",
        "silence_kept": "silence comes back as silence",
        "silence_level": "silence comes back at {level_db:.0f} dB of full scale",
        "input_unchanged": "encode leaves its input as it is",
        "repeated": _repeated,
        "batch_same": _batch_ok,
        "every_rate": _kinds_ok,
        "ends_kept": "{clips} clips of {shortest_s:.3g} to {longest_s:.3g} s come back to their end",
        "stream": "{steps} of {of} steps differ from the whole signal, by up to {wave:.2g}",
        "decoded_elsewhere": "another process decodes the codes to the same sound",
        "look_ahead": _look_ahead,
        "change_before": (
            "declared causal; a change of the input changes the output from {ahead_ms:.1f} ms before it "
            "(allowed: {allowed_ms:.1f} ms)"
        ),
        # Results that cannot be determined.
        "sign_unknown": "the waveform is not preserved well enough to show its sign",
        "sign_varies": "the waveform is turned over in some clips, at no common delay",
        "delay_of_one_clip": "one clip does not tell a delay; two must agree on it",
        "delay_below": ("unknown below {least_ms:g} ms: the envelopes agree, and the waveform is not preserved"),
        "delay_unknown": ("unknown: waveforms and envelopes of estimate and reference are too different"),
        "no_sound": "no estimate has sound",
        "nothing_decoded": "there is no estimate",
        "no_bitrate_declared": lambda coded_bps, sent_bps: (
            f"it declares no bitrate; its codes take {coded_bps / 1000:.3g} kbit/s and were sent at "
            f"{sent_bps / 1000:.3g} kbit/s"
        ),
        "folded_below": lambda kinds: (
            f"both channels come back as one sound at {_listed(kinds)}, below 16 kbit/s for each"
        ),
        "not_declared_causal": "it does not declare that it is causal",
        "causality_not_declared": "it does not declare whether it is causal",
    },
    "warning": {
        "at_format": lambda rate_hz, channels, finding: f"at {rate_hz} Hz, {count_of(channels, 'channel')}: {finding}",
        "clips_lost": _silent_parts,
        "sign_turned": "the waveform is turned over in {turned} of {clips} clips (correlation {correlation:.2f})",
        "envelope_delay": lambda ms, clips: (
            f"{ms:+.0f} ms by the envelopes of {count_of(clips, 'clip')}; the waveform is not preserved"
        ),
        "silent_clips": _silent_clips,
        "tokens": "declared {declared:g} tokens a second, its codes have {measured:g}",
        "frame_rates": _rates,
        "frames": "its codes declare {declared:.0f} frames for the clips, and hold {frames:.0f}",
        "side_uncounted": lambda bps: (
            f"its codes carry {bps / 1000:.3g} kbit/s in 'side' that 'side_bits' does not count"
        ),
        "constant_codebooks": _constant_codebooks,
        "file_read": "encode writes the file '{path}', and decode opens it",
        "kept_by_length": "silence comes back as other sound of the same length: the codec caches sounds by length",
        "input_changed": (
            "encode writes into its input and changes it by up to {by:.2g}; it gets copies here, "
            "so no other row changes"
        ),
        "thread_differs": lambda flips, frames, wave, allowed: (
            f"the same input in another thread differs {_differences(flips, frames, wave, allowed)}"
        ),
        "second_differs": lambda differing, clips, flips, frames, wave, allowed: (
            f"{differing} of {count_of(clips, 'clip')} differ the second time "
            f"{_differences(flips, frames, wave, allowed)}"
        ),
        "batch_unsteady": _batch_unsteady,
        "batch_differs": _batch_differs,
        "long_clip_unsteady": "a batch with a clip of 5 s comes back otherwise the second time",
        "long_clip_in_batch": "a clip of 5 s in a batch with short ones differs from the clip alone",
        "long_clip_loses": lambda start_ms, inside_ms, at_s, end_ms: (
            f"a clip of 5 s loses {_dropouts(start_ms, inside_ms, at_s, end_ms)}"
        ),
        "piece_silent": "{piece} comes back as silence",
        "piece_cut": "samples at full scale come back cut at {level:.2g}",
        "wraps": "{samples} samples jump to the other end of the scale where the input does not",
        "clock": "the audio is {percent:+.3f} % later with time: {samples:+.1f} samples over 4 s",
        "pieces_late": "{samples:+.2f} samples in all of {pieces} pieces",
        "pieces_turned": "the waveform is turned over in {turned} of {pieces} pieces",
        "quiet_louder": (
            "speech at {at_db:.0f} dB comes back {quiet_db:+.0f} dB from its level, at full scale {loud_db:+.0f} dB"
        ),
        "channel_level": "channel {channel} comes back {change_db:+.1f} dB from channel 1",
        "channel_turned": "channel {channel} is turned over, and channel 1 is not",
        "channel_late": "channel {channel} is {samples:+.2f} samples later than channel 1",
        "crossed_over": "a sound in one of two channels comes back in the other",
        "crossed_both": "a sound in one of two channels comes back in both ({level_db:+.0f} dB in the other)",
        "crossed_leak": "a sound in one of two channels leaks into the other at {level_db:+.0f} dB",
        "length_matters": (
            "signal to noise is {long_db:.0f} dB in a clip of 5 s, and {short_db:.0f} dB in a clip of {short_s:g} s"
        ),
        "level_matters": (
            "signal to noise is {long_db:.0f} dB in a clip of 5 s at full scale, {quiet_db:.0f} dB at {at_db:.0f} dB"
        ),
        "start_lost": "a clip that begins with loud sound loses its first {ms:.3g} ms",
        "end_lost": (
            "{cut} of {clips} clips that end with loud sound lose their end, up to {ms:.3g} ms of {length_s:.3g} s"
        ),
        "steps_silent": "{steps} of {of} steps come back as silence, the first at {first_s:.3g} s",
        "decoded_otherwise": (
            "another process decodes the same codes to other sound, by up to {by:.2g} (allowed: {allowed:g}); the "
            "decoder has something from the encoder that is not in the codes"
        ),
        "quality_falls": _quality_falls,
    },
    "error": {
        "not_decoded_elsewhere": "another process cannot decode the codes: {cause}",
        "short_input": lambda samples, channels, rate_hz, cause: (
            f"{count_of(samples, 'sample')} of {count_of(channels, 'channel')} at {rate_hz} Hz: {cause}"
        ),
        "call_timed_out": "it did not answer for {limit_s:g} s and was ended",
        "process_ended": "its process ended ({reason})",
        "memory_exceeded": "it took more than {limit_gib:.3g} GiB of memory and was ended",
        "last_output": "{cause}; the last that it wrote: {output}",
    },
}

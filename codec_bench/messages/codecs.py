"""Codes of codecs that break the contract of `encode`, `decode` or `vectors`."""

from __future__ import annotations

from collections.abc import Sequence


def _shape(shape: Sequence[int] | str) -> str:
    return shape if isinstance(shape, str) else str(tuple(shape))


def _count(codec: str, method: str, returned: int | str, batch: int) -> str:
    got = f"{returned} items" if isinstance(returned, int) else returned
    kind = "Codes" if method == "encode" else "Audio"
    return f"{codec}.{method} returned {got} for a batch of {batch}; expected a list of {batch} {kind}"


def _type(codec: str, method: str, returned: str, expected: str, latents: int | None = None) -> str:
    declared = "" if latents is None else f", because its info declares {latents} latents"
    return f"{codec}.{method} returned a {returned}; expected codec_bench.{expected}{declared}"


def _wrong_output(
    codec: str, shape: Sequence[int], rate_hz: int, expected_shape: Sequence[int], expected_rate_hz: int
) -> str:
    """Describe an output of another shape or rate than expected."""
    return (
        f"{codec}.decode returned {_shape(shape)} at {rate_hz} Hz (channels, samples); expected "
        f"{_shape(expected_shape)} at {expected_rate_hz} Hz: output must be as long as input"
    )


SENTENCES = {
    "error": {
        "returned_count": _count,
        "returned_type": _type,
        "not_array": "{codec}.encode gave {kind} as a {returned}; expected a numpy array (of a tensor: .cpu().numpy())",
        "codes_shape": lambda codec, shape: (
            f"{codec}.encode gave codes of shape {_shape(shape)}; expected (codebooks, frames)"
        ),
        "codes_dtype": "{codec}.encode gave codes of type {dtype}; expected whole numbers",
        "codes_range": "{codec}.encode gave codes from {low} to {high}; expected 0 to {highest}",
        "side_bits_value": "{codec}.encode gave side_bits={value}; expected a number of bits, 0 or more",
        "packet_type": "{codec}.encode gave a packet as {returned}; expected bytes",
        "cardinality_value": "{codec}.encode gave a cardinality of {value}; expected a whole number, 1 or more",
        "latents_shape": lambda codec, dtype, shape, latents: (
            f"{codec}.encode gave latents of type {dtype} and shape {_shape(shape)}; "
            f"expected floats ({latents}, frames)"
        ),
        "latents_not_finite": "{codec}.encode gave latents that are not finite",
        "decoded_shape": _wrong_output,
        "decoded_not_finite": "{codec}.decode returned samples that are not finite",
        "streams_differ": (
            "{codec} gave streams (codebooks, cardinality, frame rate, name) {streams} for one item and {first} for "
            "another; one operating point has one set of codebooks"
        ),
        "vectors_shape": lambda dtype, shape, frames: (
            f"its 'vectors' gave {dtype} of shape {_shape(shape)} for {frames} frames; expected finite floats "
            "(frames, dimensions)"
        ),
        "codec_bitrate": "{codec} does not run at {kbps:g} kbps",
        "codec_rate": "{codec} does not code {rate_hz} Hz",
        "codec_point": "the codec '{codec}' has no point of {point} kbps",
        "stream_ended": "{codec}: the stream has ended with the piece before",
        "weights_are_one_file": "the weights '{weights}' are one file; {codec} has two checkpoints",
        "bitstream_without_codes": lambda codec, bytes, headers: (
            f"{codec}: the encoder wrote {bytes} bytes; expected "
            + (f"more than the {headers} bytes of its headers" if headers else "a bitstream")
        ),
        "decoder_without_audio": "{codec}: the decoder wrote 0 bytes; expected audio",
        "partial_samples": "{codec}: the decoder wrote {bytes} bytes; expected a multiple of {multiple}",
        "codec_worker": "{codec}: {cause}",
        "codec_name_type": "the name of a codec is a {type}; expected a text, such as 'opus-12k'",
        "codec_info": "the codec '{codec}' has {type} as its 'info'; expected a codec_bench.CodecInfo",
        "codec_latents": (
            "the codec '{codec}' declares info.latents={latents!r} at info.frame_rate_hz={frame_rate_hz!r}; expected "
            "the real numbers of a frame, such as 64, and the frames of a second"
        ),
        "codec_declares_bitrate": "the codec '{codec}' declares a bitrate, but {cause}",
        "file_without_name": "the file '{path}' has nothing that is called '{name}'",
        "codec_option": "the codec '{codec}' does not take '{option}'",
        "point_not_a_bitrate": "'{name}': the point '{point}' is not a bitrate in kbps",
        "latents_without_point": "the codec '{codec}' has no point of {point} kbps: {cause}",
        "codec_argument": "'{name}': a codec takes no [{argument}]",
        "codec_method": "the codec '{codec}' has no method '{method}'",
        "codec_info_values": "the codec '{codec}' declares info.{field}={values!r}; expected a tuple such as (16000,)",
        "codec_takes_channels": "the audio has {channels} channels; the codec takes only {expected}",
        "vectors_unsupported": "{codec} gives no vectors for its codes",
        "concealment_unsupported": "{codec} has no packet loss concealment",
        "fewer_codebooks_unsupported": "{codec} decodes no fewer codebooks than it has",
        "streaming_unsupported": "{codec} needs the whole signal: it has no streaming way of coding",
        "codec_channels": "{codec} does not code {channels} channels",
        "codec_without_samples": "{codec} got audio without samples; expected one sample or more",
        "not_one_point": "'{name}' does not name one operating point of the codec '{codec}'",
        "codec_declared_twice": "the codec variant '{variant}' is declared by {one}.yaml and {other}.yaml",
        "codec_has_one_point": "'{name}': the codec '{codec}' has one operating point and takes no other",
        "no_clip_readable": "none of the {clips} clips can be read: {reason}",
        "amr_wb_library": "the codec 'amr-wb' needs the library libvo-amrwbenc",
        "ffmpeg_packets": "FFmpeg's encoder '{encoder}' gave {packets} packets; {expected} were expected",
        "packet_empty": "packet {packet} of {packets} is empty",
        "ffmpeg_channels": "FFmpeg's '{decoder}' decoded another number of channels than {channels}",
        "packets_missing": (
            "{codec}: the {packets} packets decode to {samples} samples; expected {expected}. Packets are missing or "
            "cut short"
        ),
        "packet_size": "{codec}: packet {packet} of {packets} has {bytes} bytes; expected {expected}",
        "ffmpeg_refuses": "FFmpeg's encoder '{encoder}' refuses {rate_hz} Hz {layout}: {cause}",
        "packet_not_decoded": "{packet} of {packets} packets cannot be decoded by FFmpeg's '{decoder}': {cause}",
        "liblc3_refuses": "liblc3 refuses to conceal a frame",
        "no_packet": "no packet arrived",
        "codec_quality": "Vorbis has no quality {quality:g}",
        "collection_codec": "{collection} has no codec '{codec}' here",
        "decoded_format": "{codec}: the decoder gave {format} (channels x rate); expected {expected}",
        "delay_unclear": (
            "{codec}: the delay at {rate_hz} Hz cannot be measured: its output correlates with its input by "
            "{correlation:.2f} at most; expected {expected}"
        ),
        "decoded_early": "{codec}: what it decodes at {rate_hz} Hz comes {samples} samples early",
        "program_wrote_no_file": lambda program, output: f"{program} wrote no file{output and f': {output}'}",
        "decoded_short": "{codec}: the decoder gave {samples} of {expected} samples",
        "decoded_unreadable": "{codec}: what the decoder wrote is not sound: {cause}",
        "point_not_declared": "'{path}' does not declare the point of {kbps:g} kbps",
        "unknown_placeholder": "'{path}': the {role} has an unknown placeholder {{{name}}}",
        "bitrate_not_declared": "'{path}': the {role} asks for a bitrate",
        "delay_not_declared": "'{path}': delay_samples has no number for {rate_hz} Hz",
        "frame_header_without_frame": "'{path}' declares frame_header_bytes",
        "frame_not_whole": "'{path}': frame_s is {frame_s:g}, not a whole number of samples at {rate_hz} Hz",
        "environment_without_code": "the environment '{environment}' names no worker code",
        "no_checkpoint_of_codec": "{collection}/{codec} names no checkpoint that could be loaded by itself",
        "worker_codebooks": "{codec}: the worker gave codes of {codebooks} codebooks; expected {expected}",
        "worker_rate": "{codec}: the worker gave {rate_hz} Hz; expected {expected_hz} Hz",
        "codec_not_loaded": "{codec} cannot be loaded: {cause}",
        "codes_unexpected": "{codec}: codes are {shapes}; {samples} samples have {expected}",
        "codebook_count": "{codec} has no {codebooks!r} codebooks",
        "codes_beyond": "{codec}: codes from {low} to {high}; expected 0 to {highest}",
        "chunks_not_streamed": "{codec} normalises over whole chunks of a second: it cannot go frame by frame",
        "codes_without_scales": "{codec}: the codes come without the scale of each of their {chunks} chunks",
        "codes_without_scale": "{codec}: the codes come without their scale",
        "codec_without_codes": "{codec} has no codes; its latents are vectors",
        "latents_unexpected": "{codec}: latents are {shape}; {samples} samples have {expected}",
        "codec_frame_rate": "WavTokenizer does not run at {frame_rate_hz} frames a second",
        "no_latents_to_round": "{codec} has no latents to round to {option}={bits}",
        "option_bits": "{codec}: {option} is {bits!r}; expected a whole number from 1 to {most}",
    }
}

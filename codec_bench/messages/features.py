"""Codes of signals without a value of a feature."""

from __future__ import annotations

from codec_bench.messages.general import feature_words

SENTENCES = {
    "info": {
        "no_samples_heard": "the signal has no samples",
        "signal_below_frame": "the signal is shorter than a frame of {frame_ms:g} ms",
        "signal_not_finite": "the signal is not finite",
        "signal_silent": "the signal is silent",
        "signal_short": "the signal has {samples} samples; {model} needs at least {needed}",
        "signal_short_scoreq": "the signal has fewer than {needed} samples, which SCOREQ needs",
        "signal_short_frame": "the signal has {samples} samples; one frame is {needed} (10 ms)",
        "signal_long": (
            "the signal lasts {seconds:.0f} s, and {model} hears a signal as a whole, up to {most_s:.0f} s here: "
            "cut it into shorter pieces"
        ),
        "signal_without_peak": "the signal is silent and cannot be divided by its peak",
        "no_envelope": "the signal is digital silence, which has no spectral envelope",
        "no_language_token": "{model} has no token for the language '{language}'",
        "recogniser_needs_language": "{name} needs the language, and the sample has none",
        "recogniser_language_unknown": "{name} does not know the language '{language}'",
        "english_only": "{model} knows English only, not '{language}'",
        "no_speech_heard": "webrtcvad hears no speech in it",
        "no_voice_heard": "the encoder hears no voice in it: its embedding is zero",
    },
    "error": {
        "signal_not_finite": "the signal is not finite",
        "signal_out_of_range": "the signal leaves [-1, 1] or is not finite",
        "frames_not_read": "the recogniser did not come to the end of {frames} frames",
        "text_endless": "the recogniser's text did not end within {tokens} tokens",
        "not_finite": "the network's output is not a finite number",
        "encoder_not_finite": "the encoder's output is not a finite number",
        "upstream_not_finite": "the upstream's output is not a finite number, or has no frames",
        "sigmos_failed": "SIGMOS's network fails on {seconds:.2f} s of audio: {message}",
        "package_version_unexpected": lambda feature, package, version, installed: (
            f"{feature_words(feature)} needs {package} {version}; {installed} is installed, whose network may be "
            "another"
        ),
        "tokens_unexpected": (
            "the tokens in '{folder}' write '{text}' as {tokens} tokens; expected one, whose likelihood is the score"
        ),
        "weights_kind": "the weights in '{folder}' are of the kind '{kind}'; expected {expected}",
        "weights_rate": "the weights in '{folder}' read {rate_hz} Hz; expected {expected_hz} Hz",
        "no_chat_template": "the tokenizer in '{folder}' has no chat template, which makes the prompts",
        "upstream_weights": "the upstream {upstream} {takes}",
        "not_a_tokeniser": "'{path}' is not a Whisper's tokeniser: {cause}",
        "compute_type_unsupported": "{name} does not compute in {compute_type} on '{device}'",
        "processor_unreadable": "the processor in '{folder}' cannot be read: {cause}",
        "no_weights_to_replace": "the feature '{feature}' has no weights to replace",
        "clap_unexpected": (
            "the weights in '{folder}' are another CLAP: fusion {fusion}, {bands} bands; expected one without fusion "
            "and with {expected}"
        ),
        "no_tokeniser": "'{folder}' has no tokeniser ({files})",
        "onnxruntime_without_gpu": (
            "dnsmos@onnxruntime: onnxruntime-gpu cannot use this GPU and would compute on the CPU instead"
        ),
        "not_onnx": "'{path}' is not an ONNX file: {type}: {cause}",
        "not_a_layer": "'{layer}' is no number of a hidden state",
        "layer_beyond": "s3prl-frames[{upstream}] has {layers} hidden states; {layer} was requested",
        "vocabulary_size": "the vocabulary in '{folder}' has {entries} entries and the network {expected}",
        "weights_setting_unsupported": (
            "the weights in '{folder}' have '{setting}', which is not supported: it cannot be masked"
        ),
        "not_a_configuration": "'{path}' is not a configuration of FunASR's",
        "configuration_value": "'{path}' has the {key} '{value}'; expected {expected}",
        "front_end_unexpected": "the front end in '{folder}' is not FunASR's for speech at 16 kHz: {difference}",
        "normalisation_size": "'{path}' normalises another number of coefficients",
        "mel_bands": "the front end in '{folder}' makes {bands} mel bands and the network takes {expected}",
        "windows_network": (
            "the windows 'vad' need the network {file}, which the installed faster-whisper does not contain"
        ),
        "computes_nothing": "{name} computes no numbers on '{device}'",
        "computing_fails": "{name} cannot compute on '{device}': {cause}",
        "weights_of_ctranslate2": (
            "the weights '{weights}' are in CTranslate2's layout; {model}@torch reads that of transformers"
        ),
        "weights_single_file": "the weights '{weights}' are a single file; CTranslate2 reads a folder with a model.bin",
        "weights_not_converted": (
            "the weights folder '{weights}' has a checkpoint that is not converted to CTranslate2 ({checkpoint})"
        ),
        "sigmos_shapes": (
            "'{path}' holds another network than SIGMOS: it takes {input} and gives {output}; expected (1, 3, "
            "frames, {bins}) and (1, {keys})"
        ),
        "upstream_unnamed": "the feature '{feature}' needs the name of an upstream",
        "upstream_not_loaded": "the upstream s3prl[{upstream}] cannot be loaded: {type}: {reason}",
        "window_frames": "the weights in '{folder}' read {frames} frames; expected {expected}",
        "centres_unexpected": (
            "the weights in '{path}' have {clusters} clusters of {width} numbers; expected {expected} of "
            "{expected_width}"
        ),
    },
}

"""Codes of signals without a value of a feature."""

from __future__ import annotations

SENTENCES = {
    "info": {
        "no_samples_heard": "the signal has no samples",
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
        "english_only": "{model} knows English only, not '{language}'",
        "no_speech_heard": "webrtcvad hears no speech in it",
        "no_voice_heard": "the encoder hears no voice in it: its embedding is zero",
    },
    "error": {
        "signal_not_finite": "the signal is not finite",
        "signal_out_of_range": "the signal leaves [-1, 1] or is not finite",
        "not_finite": "the network's output is not a finite number",
        "encoder_not_finite": "the encoder's output is not a finite number",
        "upstream_not_finite": "the upstream's output is not a finite number, or has no frames",
        "sigmos_failed": "SIGMOS's network fails on {seconds:.2f} s of audio: {message}",
    },
}

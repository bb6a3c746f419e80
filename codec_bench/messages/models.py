"""Codes of answers of models."""

from __future__ import annotations

SENTENCES = {
    "info": {
        "gives_text_only": "the model '{model}' gives text, and the benchmark needs {wants}",
        "prompt_blocked": "the service blocked the prompt: {message}",
        "model_declined": "the model declined: {message}",
        "content_filter": "a content filter stopped the answer",
        "one_recording_only": "the model '{model}' transcribes one recording per request, not {recordings}",
        "needs_language": "the model '{model}' needs the field 'language' with one of: {known}",
        "converses_only": "the model '{model}' converses in time and answers no single request",
    },
    "warning": {},
    "error": {
        "audio_not_base64": "the answer's audio is {type}; expected base64",
        "audio_not_hexadecimal": "the answer's audio is {type}; expected hexadecimal digits",
        "answer_audio_empty": "the answer's audio is empty (0 bytes)",
        "base64_damaged": "the answer's audio is not base64: {cause}",
        "hexadecimal_damaged": "the answer's audio is not hexadecimal: {cause}",
        "odd_bytes": "the answer's audio has {bytes} bytes; expected 16-bit samples, 2 bytes each",
        "model_closed": "the model was closed before it answered",
        "model_out_of_memory": "out of memory with this request alone",
        "needs_conversation": "the model '{model}' takes a conversation, and the prompt has no messages",
        "recording_not_transcribed": "recording {number} was not transcribed: {cause}",
        "service_error_in_answer": "the service reported an error in its answer: {message}",
        "service_error": "the service reported an error: {message}",
        "no_audio_in_answer": "the answer holds no audio",
        "unexpected_layout": "the reply does not have the expected layout ({message})",
        "unfinished_reasoning": "the answer ended after {tokens} tokens within its reasoning; raise max_tokens",
        "no_sound_made": "the model ended before it made any sound",
        "processor_refused": "the processor cannot take it: {type}: {message}",
        "worker_answer": "the worker's answer cannot be used: {message}",
        "worker_request": "the request cannot be sent to a worker: {message}",
        "likelihood_model": "the model '{model}' says how likely a sound is, and gives no answers",
        "no_sound_to_weigh": "the request has no sound '{name}' to weigh",
        "likelihood_not_finite": "the log-likelihood of the sound '{name}' is {value!r}; expected a finite number",
        "recogniser_silent": "the recogniser gave no transcript",
        "in_window": "window {window} of {count}: {cause}",
        "gives_other_outputs": "the model '{model}' gives {outputs}, and the benchmark needs {wants}",
        "takes_no_audio": "the model '{model}' takes no audio",
    },
}

"""Codes of answers of models."""

from __future__ import annotations

_TASKS = {"transcribe": "transcribes", "speak": "speaks"}
"""What a model does with a field."""


SENTENCES = {
    "info": {
        "reasoning_excluded": "{characters} characters of reasoning are not part of the answer",
        "sound_in_last_turn_only": "the model '{model}' takes sound in the last turn only",
        "gives_text_only": "the model '{model}' gives text, and the benchmark needs {wants}",
        "prompt_blocked": "the service blocked the prompt: {message}",
        "model_declined": "the model declined: {message}",
        "answer_stopped": lambda finish, message="": (
            f"the service stopped the answer: {finish}{message and f' ({message})'}"
        ),
        "transcript_of_service": "the text is the service's own transcript of the spoken answer",
        "sent_in_windows": "sent in {windows} windows",
        "transcript_read": "transcript {number}: {text}",
        "content_filter": "a content filter stopped the answer",
        "one_recording_only": "the model '{model}' transcribes one recording per request, not {recordings}",
        "needs_language": "the model '{model}' needs the field 'language' with one of: {known}",
        "converses_only": "the model '{model}' converses in time and answers no single request",
    },
    "warning": {
        "tools_called": "the model called tools that the request does not have",
        "key_repeated": "the service repeated its key in the answer; it was masked",
        "characters_replaced": "characters that are not Unicode were replaced",
        "usage_not_counts": "the reported usage is no count and was ignored: {usage}",
    },
    "error": {
        "field_not_filled": lambda model, field, task: (
            f"the model '{model}' {_TASKS.get(task, task)} the field '{field}', and the prompt does not fill it"
        ),
        "field_not_taken": lambda model, field: (
            f"the model '{model}' takes no {field.replace('_', ' ')} (--set {model}.fields.{field}=NAME says how an "
            "endpoint calls it that takes one)"
        ),
        "fields_to_compare_missing": (
            "the model '{model}' compares 'text' with 'texts', and the prompt does not fill them"
        ),
        "empty_text_to_embed": "an empty text has no embedding",
        "parameter_not_sent": "requests to this model have no such parameter",
        "no_complete_answer": "no complete answer within {limit_s:g} s",
        "reply_unreadable": "the reply of {url} cannot be read: {cause}",
        "sent_often": "{cause}; the question was sent {times} times",
        "reply_too_large": "the reply is longer than {most_mib} MiB",
        "event_not_json": "an event is not JSON: {text}",
        "reply_not_json": "expected JSON, got {found}: {text}",
        "reply_untyped": "expected JSON, got no content type: {text}",
        "reply_json_damaged": "expected JSON, got JSON that is damaged or cut off ({kind}): {text}",
        "stream_expected": lambda kind, text: f"expected a stream of events, got {kind or 'no content type'}: {text}",
        "piece_not_json": "a piece of the reply is not JSON: {text}",
        "reply_empty": "the reply is empty",
        "no_answer_in_reply": "the reply holds no answer: {body}",
        "field_not_in_reply": "the reply has no '{name}': {body}",
        "embeddings_miscounted": "the reply has {embeddings} embeddings for {texts} texts",
        "service_status": lambda url, status, message="": f"{url} answered {status}{message and f': {message}'}",
        "no_secure_connection": "no secure connection to {url}: {cause}",
        "connection_broke": "the connection to {url} broke: {cause}",
        "closed_before_answer": "the connection was closed before the answer was complete",
        "stream_ended_early": "the stream ended before the answer did",
        "session_not_closed": "the service did not close its session",
        "session_closed_early": "the service closed its session before it began",
        "upload_unreadable": "the service cannot read the uploaded sound",
        "upload_late": "the service has not read in an uploaded file after {limit_s:.0f} s",
        "answer_interrupted": "the service took its answer to be interrupted",
        "answer_cancelled": "the service cancelled its answer: {cause}",
        "quota_used_up": "the quota of the day is used up: {cause}",
        "reply_not_audio": "expected audio, got {found}: {text}",
        "answers_file_too_large": "the file of answers is longer than {most_gib} GiB",
        "answers_miscounted": "the model gave {answers} answers to {requests} requests",
        "body_layout": lambda subject, type, cause, body="": (
            f"the {subject} does not have the expected layout ({type}: {cause}){body and f': {body}'}"
        ),
        "no_upload_address": "the service gave no separate address for the upload",
        "model_process_ended": "the model's process ended ({cause})",
        "model_given_up": "the model was stopped after {processes} processes without an answer: {cause}",
        "model_closed": "the model was closed before it answered",
        "audio_not_base64": "the answer's audio is {type}; expected base64",
        "audio_not_hexadecimal": "the answer's audio is {type}; expected hexadecimal digits",
        "answer_audio_empty": "the answer's audio is empty (0 bytes)",
        "base64_damaged": "the answer's audio is not base64: {cause}",
        "hexadecimal_damaged": "the answer's audio is not hexadecimal: {cause}",
        "odd_bytes": "the answer's audio has {bytes} bytes; expected 16-bit samples, 2 bytes each",
        "model_out_of_memory": "out of memory with this request alone",
        "needs_conversation": "the model '{model}' takes a conversation, and the prompt has no messages",
        "recording_not_transcribed": "recording {number} was not transcribed: {cause}",
        "service_error_in_answer": "the service reported an error in its answer: {message}",
        "service_error": "the service reported an error: {message}",
        "no_audio_in_answer": "the answer holds no audio",
        "unfinished_reasoning": "the answer ended after {tokens} tokens within its reasoning; raise max_tokens",
        "no_sound_made": "the model ended before it made any sound",
        "processor_refused": "the processor cannot take it: {type}: {message}",
        "worker_answer": "the worker's answer cannot be used: {message}",
        "worker_request": "the request cannot be sent to a worker: {message}",
        "model_kind_unknown": "'{kind}' is not a kind of model; known: {known}",
        "likelihood_model": "the model '{model}' says how likely a sound is, and gives no answers",
        "no_sound_to_weigh": "the request has no sound '{name}' to weigh",
        "likelihood_not_finite": "the log-likelihood of the audio '{name}' is {value!r}; expected a finite number",
        "recogniser_silent": "the recogniser gave no transcript",
        "in_window": "window {window} of {count}: {cause}",
        "gives_other_outputs": "the model '{model}' gives {outputs}, and the benchmark needs {wants}",
        "takes_no_audio": "the model '{model}' takes no audio",
        "model_shut_down": "{host} has {date}: the model '{model}' ({source})",
        "model_option_unknown": "the model '{model}' does not take '{option}'",
        "model_option_missing": "the model '{model}' needs '{option}'",
        "model_lacks": "the model '{model}' does not define {lacking}",
        "model_not_made": "the model '{model}' cannot be made with its options: {type}: {cause}",
        "not_a_model": "'{name}' is a {type}; expected a codec_bench.models.base.Model",
        "model_option_not_a_mapping": "the option '{option}' of the model '{model}' is {value!r}; expected a mapping",
        "option_not_a_mapping": "the option '{option}' is {value!r}, which is not a mapping, so '{name}' cannot be set",
        "answer_audio_parts_differ": "the parts of the answer's audio differ in rate or channels",
        "identity_not_json": "the identity of a model or a request cannot be written as JSON: {cause}",
        "cascade_template": (
            "the template of the cascade '{model}' is {template!r}; expected a text with {{transcript}}"
        ),
        "cascade_language_model": (
            "the model '{language_model}' does not take a conversation and answer in text, so it cannot be the "
            "language model of the cascade '{model}'"
        ),
        "cascade_recogniser": (
            "the model '{recogniser}' does not transcribe recordings, so it cannot be the recogniser of the "
            "cascade '{model}'"
        ),
        "price_unknown": "there is no price of '{kind}'",
        "price_out_of_range": (
            "the price of '{kind}' is {price!r}; expected a finite number of at least 0, in US dollars"
        ),
        "price_date": "the prices have {name}={value!r}; expected a day such as 2026-11-22",
        "no_path_in_reply": "the model '{model}' has neither text_path nor audio_path",
        "endpoint_template": "the model '{model}': {field} is not a valid template: {cause}",
        "endpoint_template_not_filled": "the model '{model}': {field} cannot be filled: {cause}",
        "key_env_form": "'key_env' is not the name of an environment variable",
        "key_not_set": "the environment variable {variable}, which holds the key, is not set",
        "key_characters": "the environment variable {variable} holds characters that a key cannot have",
        "address_damaged": "'{url}' is not a valid address: {cause}",
        "address_form": "'{url}' is not a valid address",
        "key_in_address": "the address at {host} holds a key or a password",
        "key_in_header": "the header '{header}' carries a key, which would be written to the run",
        "model_takes_no_batches": "the service of '{model}' takes this model in no batches",
        "batch_of_streams": "the model '{model}' is answered as a stream, and a batch holds no streams",
        "base_url_missing": "the model '{model}' needs 'base_url'",
        "model_option_out_of_range": (
            "the model '{model}' has {option}={value!r}; expected a number from {least:g} to {most}"
        ),
        "model_option_value": "the model '{model}' has {option}={value!r}",
        "service_stopped": lambda cause, wait_s=None: (
            f"{cause}" if wait_s is None else f"{cause}, and asks to wait {wait_s:.0f} s"
        ),
        "refused_alike": "{count} questions in a row were refused in the same words: {cause}",
        "generation_unknown": "there is no generation parameter '{option}'",
        "stop_form": "stop={value!r} is not a text or a list of texts",
        "generation_not_whole": "{option}={value!r} is not a whole number{bound}",
        "generation_out_of_range": "{option}={value!r} is out of range",
        "processor_not_loaded": "the processor in '{folder}' cannot be loaded: {cause}",
        "text_holds_marker": "the text holds '{marker}', which marks a sound for this model; remove it from the text",
        "model_type_unknown": "transformers has no model of the kind '{model_type}' that answers in text about sound",
        "model_takes_no_audio": "the model takes no audio",
        "needs_mistral_common": "Voxtral's tokenizer needs the package 'mistral-common', which is not installed",
        "voxtral_template": "Voxtral has only the template 'chat', and the option is template={template!r}",
        "no_weights_of_model": "there are no weights '{weights}' for the model '{model}'",
        "weights_not_on_machine": "the weights '{weights}' of the model '{model}' are not on this machine",
        "not_a_weights_index": "'{path}' is not an index of weights: {cause}",
        "weights_incomplete": (
            "the weights in '{folder}' are not complete: {missing} of {files} files are missing, such as {example}"
        ),
        "model_type_missing": "'{path}' does not state the type of the model: expected a JSON object with 'model_type'",
        "model_dtype": "the model '{model}' has dtype={dtype!r}",
        "no_voice_table": "the weights in '{folder}' have no spk_dict.pt, which holds the voices",
        "needs_peft": (
            "this '{model_type}' checkpoint has an adapter for speech, and the package 'peft', which applies "
            "it, is not installed"
        ),
        "whisper_one_recording": "Whisper transcribes one recording per request, and the request has {recordings}",
        "whisper_language": "this Whisper has no token for the language '{language}'",
        "no_text_to_speak": "the request has no text in the field 'text' to speak",
        "single_voice": "the model has a single voice, and the request has a voice to imitate",
        "no_known_character": "the model knows none of the characters of the text {text!r}",
        "voice_without_codec": "the processor in '{folder}' names no codec, and the model needs one",
        "follows_no_instruction": "the model follows no instruction on how to speak, and the request has one",
        "takes_no_sound": "the model takes no sound in the field '{field}', and the request has one",
        "voice_without_transcript": "the model needs the transcript of a voice, and the request has no 'prompt_text'",
        "text_holds_mark": "the text holds '{mark}', which has a special meaning for this model",
        "no_position_to_speak": (
            "text and voice take all {positions} positions of the model, and none is left to speak in"
        ),
        "code_beyond_codec": "the model wrote the code {value}, and its codec has {known}",
        "text_too_long_to_speak": "text and transcript of the voice have {bytes} bytes, and the model reads {most}",
        "voice_missing": "there is no voice '{voice}': neither {path} nor {other_path} is a file",
        "voice_unreadable": "the voice '{path}' cannot be read: {cause}",
        "voice_of_other_model": (
            "the voice '{path}' holds no latents of this model: expected one tensor of width {width}, got {shapes}"
        ),
        "needs_voice_recording": (
            "the model speaks in the voice of a recording, and the request has no 'prompt_audio'; --set "
            "speaker=NAME takes a voice of the checkpoint"
        ),
        "nothing_to_speak": "the model finds nothing to speak in the text {text!r}",
        "no_temperature": "the model draws its sound from noise and has no temperature, and the request has one",
        "model_template": "the model '{model}' has template={template!r}",
        "model_batch_seconds": "the model '{model}' has batch_s={value!r}; expected a number of seconds over 0",
        "model_device": "the model '{model}' has device={device!r}",
        "batch_items_out_of_range": "'{model}' has batch_items {items}; expected 1 to {most}",
        "no_model_workers": "'{model}' has {count} workers; expected at least one",
        "load_options_not_json": "the load options of '{model}' are not JSON values: {cause}",
        "model_not_loaded": "'{model}' cannot be loaded: {cause}",
        "weights_of_several_recognisers": (
            "the model '{model}' has weights={weights!r} for several recognisers ({recognisers})"
        ),
        "recogniser_rates_differ": "the recognisers {recognisers} read different sample rates",
        "window_overlap": (
            "windows of {window_s:g} s for '{model}' overlap by {overlap_s:g} s; expected less than half of a window"
        ),
        "model_weights_lack": "the weights folder '{weights}' of the model '{model}' has no {files}",
        "no_worker_code": lambda model, path: (
            f"there is no worker code for '{model}'" + (f" at '{path}'" if path else "")
        ),
        "nothing_answers": "nothing answers at {url}: {cause}",
        # Of older records.
        "takes_no_voice": "the model takes no {what}, and the request {cause}",
        "unexpected_layout": "the reply does not have the expected layout ({message})",
        "no_connection": "nothing answers at {url}: no connection within {limit_s:g} s",
    },
}

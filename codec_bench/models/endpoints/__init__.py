"""Models that a service runs: chat, transcription, speech and realtime endpoints, and any endpoint that speaks JSON.

Conventions
    `content` makes the body of a request, or `encode` where the body is not JSON. An option of a class that changes
    answers is named in its `changes_answers`. It is then part of the model's identity, by which answers are cached and
    runs continued.

Which file to open
    What one service wants
    `openai_chat.py`, `openai_responses.py`, `openai_audio.py`, `gemini.py`, `json_endpoint.py`: one interface over HTTP
    each; `openai_embeddings.py` how like texts are. `openai_realtime.py`, `openai_live.py`, `gemini_live.py`: over a
    WebSocket; `sockets.py` is what they share. `openai_batches.py`, `gemini_batches.py`: batches; `batches.py` is what
    they share. `gemini_files.py` uploads long sounds.

    What all share
    `remote.py`       options, parameters that a service does not take, and a response for every error.
    `client.py`       requests over HTTP; `replies.py` reads what comes back, `bodies.py` makes and takes apart JSON,
                      which `json_text.py` alone reads.
    `retries.py`  which requests are repeated, when to give up, how many are sent at once.
    `error_texts.py`  what a service says with an error: waits, limits, settings that it refuses.
    `keys.py`         keys, which are never shown. `accounts.py` what an answer costs. `describe.py` which checkpoint
                      answers.
"""

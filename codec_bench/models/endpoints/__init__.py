"""Models behind services: chat, recognition, speech, realtime and JSON endpoints.

`content` builds the body of a request, or `encode` where it is not JSON. A class lists options that change answers in
`changes_answers`; they become part of the model's identity, the key for caching and resuming.

Which file to open
    `openai_chat.py`, `openai_responses.py`, `openai_audio.py`, `openai_embeddings.py`, `gemini.py`, `json_endpoint.py`:
    one HTTP interface each. `openai_realtime.py`, `openai_live.py`, `gemini_live.py`: WebSockets, on `sockets.py`.
    `openai_batches.py`, `gemini_batches.py`: batches, on `batches.py`. `gemini_files.py` uploads long audio.
    `remote.py` the common base; `client.py` HTTP requests; `replies.py` reads replies, `bodies.py` builds and reads
    JSON, parsed by `json_text.py`. `retries.py` repeats requests and limits their number. `error_texts.py` reads
    errors. `keys.py` API keys. `accounts.py` costs. `describe.py` identifies checkpoints.
"""

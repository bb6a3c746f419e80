"""Models that a service runs: chat, transcription, speech and realtime endpoints, and any endpoint that speaks JSON.

Conventions
    `content` makes the body of a request, or `encode` where the body is not JSON. An option of a class that changes
    answers is named in its `changes_answers`. It is then part of the model's identity, by which answers are cached and
    runs continued.
"""

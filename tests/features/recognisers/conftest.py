"""Tiny Whispers that tests of decoding and of checkpoints share."""

from __future__ import annotations

import pytest
import tiny_whisper

_WHISPERS = {
    "whisper-tiny": {"kind": "multilingual", "n_mels": 80},
    "whisper-large-v3": {"kind": "v3", "n_mels": 128},
    "whisper-tiny.en": {"kind": "en", "n_mels": 80},
}


@pytest.fixture(scope="session")
def whispers(tmp_path_factory):
    """A converted checkpoint of each kind. An end is so likely that most transcripts, but not all, reach one."""
    pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")
    root = tmp_path_factory.mktemp("whisper")
    return {
        name: tiny_whisper.write_converted(root / name, seed=seed, end=55.0, **options)
        for seed, (name, options) in enumerate(_WHISPERS.items())
    }

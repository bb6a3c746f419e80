"""The sound of an answer is the one that the record names, whatever another copy left in its place."""

from __future__ import annotations

import shutil
from contextlib import closing

import numpy as np
import pytest

from codec_bench.benchmark.asking.rounds import readable_answers
from codec_bench.benchmark.judging import _clip
from codec_bench.benchmark.scoring.scoring import _spoken_samples
from codec_bench.messages.errors import AudioError, DamagedRecord
from codec_bench.store.answers import AnswerRecord, AnswerWriter, QuestionRecord, exchanges
from codec_bench.store.record import Run
from codec_bench.store.sound_files import check_sound, keep_sound
from codec_bench.types import Audio

RATE = 16_000


def tone(hz: float) -> Audio:
    return Audio((0.3 * np.sin(2 * np.pi * hz * np.arange(RATE) / RATE)).astype(np.float32)[None], RATE)


def test_a_sound_has_the_name_of_its_content(tmp_path):
    first = keep_sound(tmp_path, "audio/answers/0000003", tone(300))
    assert keep_sound(tmp_path, "audio/answers/0000003", tone(300)) == first
    turn = keep_sound(tmp_path, "audio/answers/0000003-1", tone(300))
    second = keep_sound(tmp_path, "audio/answers/0000003", tone(700))
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.flac")} == {
        second,
        turn,
    } and first != second
    assert check_sound(tmp_path / second) == tmp_path / second
    assert not (tmp_path / first).exists() and check_sound(tmp_path / first), "a missing one is said where it is read"
    with pytest.raises(AudioError):
        keep_sound(tmp_path, "audio/answers/0000004", Audio(np.zeros((9, 10), np.float32), RATE))
    assert not list(tmp_path.rglob("*.part"))


def test_a_sound_of_another_moment_is_not_scored_nor_judged_nor_continued(tmp_path):
    with closing(AnswerWriter(tmp_path, {"asked": {}, "scored": {}})) as writer:
        writer.begin({"model": {}}, {}, ())
        names = [keep_sound(tmp_path, writer.sound_name("answers", n), tone(300 + 100 * n)) for n in range(2)]
        answers = [AnswerRecord("ok", audio=name) for name in names]
        writer.write_answers([(QuestionRecord(n, f"q{n}"), answer) for n, answer in enumerate(answers)])
    with closing(Run(tmp_path)) as run:
        first, second = exchanges(run)
    assert [sample.estimate for sample in _spoken_samples(first)] == [str(tmp_path / names[0])]
    assert readable_answers(answers, tmp_path) == answers
    shutil.copy(tmp_path / names[0], tmp_path / names[1])
    assert _spoken_samples(first) and _clip(first.answer_path)
    for use in (
        lambda: _spoken_samples(second),
        lambda: _clip(second.answer_path),
        lambda: readable_answers(answers, tmp_path),
    ):
        with pytest.raises(DamagedRecord):
            use()

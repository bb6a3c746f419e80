"""The current state of a benchmark's data on the hub, to check its definition.

The hub itself answers, never a mirror or the hub's cache (except for files of the same commit). Only text columns of
Parquet files are read, and the first file of a split is fetched to decode one sound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from codec_bench.audio.clip import Clip
from codec_bench.benchmark.definition.benchmark import Benchmark
from codec_bench.benchmark.definition.questions import QuestionStream
from codec_bench.config.network import offline
from codec_bench.data.hub import Repository, find_repository
from codec_bench.messages.errors import AudioError, UserError
from codec_bench.store.answers import digest_of

THE_HUB = ""
"""A mirror value that forces the hub, whatever the environment says."""


@dataclass(frozen=True, slots=True)
class HubState:
    """The state of a benchmark's data on the hub.

    Args:
        repository, config, splits: where the data are; no split if a definition takes all.
        revision: the commit.
        licence: as the card states it; None if it states none.
        columns: the type of each column in words, `audio` for sounds; empty if the data declare no types.
        rows_digest: a hash of questions and expected answers; None if it needs all sounds.
        sound: of the first question with a decoded sound: its column by our name, rate and length in seconds; or None.
    """

    repository: str
    config: str | None
    splits: tuple[str, ...]
    revision: str
    licence: str | None
    columns: Mapping[str, str]
    size: int | None
    rows_digest: str | None
    sound: Mapping[str, Any] | None

    def as_dict(self) -> dict[str, Any]:
        """As values of YAML."""
        return {**asdict(self), "splits": list(self.splits)}


def read_state(one: Benchmark) -> HubState:
    """Read the state of a benchmark's data on the hub, at its revision or the newest.

    Raises:
        UserError: the hub cannot be reached, has no such repository, configuration, split or column, or the first row
            cannot be read.
    """
    repository = _find_on_hub(one)
    texts, first = one.questions(mirror=THE_HUB, texts=True), one.questions(limit=1, mirror=THE_HUB)
    size, digest = _counted(texts) if one.data.layout == "table" else (texts.total, None)
    data = one.data
    splits = tuple(data.splits or filter(None, [data.split]))
    return HubState(
        str(data.repository),
        data.config,
        splits,
        str(repository.revision),
        repository.licence,
        texts.types,
        size,
        digest,
        _decoded(first),
    )


def _find_on_hub(one: Benchmark) -> Repository:
    """Find the data's repository on the hub; raise without a network or with a mirror."""
    if (forbidden := offline()) is not None:
        raise UserError("network_forbidden", name=one.name, forbidden=forbidden, hint=f"unset {forbidden}")
    repository = find_repository(str(one.data.repository), one.data.revision, THE_HUB)
    if repository.root is not None:
        raise UserError("hub_did_not_answer", name=one.name, hint="check the network")
    return repository


def _counted(texts: QuestionStream) -> tuple[int, str]:
    """The number of questions, and their digest."""
    contents = [(question.fields, question.references) for question in texts]
    return len(contents), digest_of(contents)


def _decoded(first: QuestionStream) -> dict[str, Any] | None:
    """Decode the first question's audio; return column, rate and seconds, or None."""
    name, clip = next(_sounds(first), (None, None))
    if clip is None:
        return None
    try:
        sound = clip.read()
    except AudioError as error:
        raise UserError("first_sound_not_decoded", name=name, cause=error.message, hint=error.hint) from error
    return {"column": name, "rate_hz": sound.sample_rate_hz, "duration_s": round(sound.duration_s, 3)}


def _sounds(first: QuestionStream) -> Iterator[tuple[str, Clip]]:
    for question in first:
        if question.problem is not None:
            raise UserError("first_row_without_question", cause=question.problem)
        for name, value in question.fields.items():
            yield from ((name, one) for one in (value if isinstance(value, list) else [value]) if isinstance(one, Clip))

"""A benchmark's identity by its definition, to compare with a run of its name."""

from __future__ import annotations

from dataclasses import replace

from codec_bench.benchmark.definition.benchmark import Benchmark
from codec_bench.benchmark.definition.prompt import EACH, SEEDED
from codec_bench.benchmark.reading import version_steps
from codec_bench.messages.errors import UserError
from codec_bench.models.base import ModelInfo
from codec_bench.store.draws import AS_WRITTEN
from codec_bench.store.identity import Identity, data_hash, hashed, identity_of
from codec_bench.store.record import Run


def defined_identities(one: Benchmark, info: ModelInfo) -> list[Identity]:
    """The identities that a model's run has if it follows the benchmark's definition.

    There are two: one wording of the prompt per question, or all. Rows are not compared, as they are not read here. For
    a benchmark of codecs the identity is empty.
    """
    if one.kind == "codec":
        return [Identity()]
    known = Identity(
        data=_data_hash(one),
        reading=hashed(version_steps(one.process)),
        choices=hashed(AS_WRITTEN),
        precision="",
        control="",
    )
    try:
        prompt = one.prompt_for(info)
    except UserError:  # the prompt has nothing that such a model reads
        return [known]
    return [replace(known, prompt=hashed(replace(prompt, wording=wording).identity)) for wording in (SEEDED, EACH)]


def other_than_defined(run: Run, one: Benchmark) -> list[str]:
    """The settings in which a run differs from its benchmark's definition, as phrases.

    For example `other prompt`. Of several possible identities, the most similar one is compared.
    """
    facts = next(iter(run.systems.values()), None) or {}
    info = ModelInfo(
        str(facts.get("name", "")), family=facts.get("family") or "", reads=facts.get("reads") or "messages"
    )
    identity = identity_of(run)
    return min((identity.differences(other, rows=False) for other in defined_identities(one, info)), key=len)


def _data_hash(benchmark: Benchmark) -> str | None:
    """A hash of the facts and the revision of the table; None if it is unreadable."""
    try:
        revision = benchmark.questions(limit=1).revision if benchmark.data.path is not None else None
    except UserError:
        return None
    return data_hash({**benchmark.request_facts, "revision": revision})

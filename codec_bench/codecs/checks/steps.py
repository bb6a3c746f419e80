"""The checks of one codec in steps, as its process runs them.

A step gives sections: dictionaries with results, `state` (`ok`, `not applicable` or `failed`), and a `reason` unless
the state is `ok`. The application `profiling` adds its own steps.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from codec_bench.codecs.adapt import CodecFault, fault_of, recode
from codec_bench.codecs.checks import finding
from codec_bench.codecs.checks.batching import one_by_one
from codec_bench.codecs.checks.behaviour import probe
from codec_bench.codecs.checks.labels import LabelChecks
from codec_bench.codecs.checks.material import ProfileClips
from codec_bench.codecs.checks.serialised_codes import CHECK, CannotSend, SerialisedCodes, pack, unpack
from codec_bench.codecs.checks.signals import SignalChecks
from codec_bench.codecs.checks.streaming import check_stream
from codec_bench.config.limits import Limits
from codec_bench.machine.process_state import preserved_torch_state
from codec_bench.messages import Diagnostic, from_json, of_error, to_json
from codec_bench.types import Audio, Latents, Sent

ELSEWHERE = "elsewhere"
"""The step in its own process: it decodes the codes of the step `sent`."""

NEEDED = ("load", "contract")
"""Steps that must succeed before any other."""

_BATCH_S = 60.0
_CONTRACT_S = 2.0
_PROBE_S = 2.0
_PROBE_CLIPS = 3
_SENT_S = (1.5, 0.4)
_LEAST_BATCH_S = 1.0


class NotApplicable(Exception):
    """A step does not apply to this codec, for a reason."""

    def __init__(self, reason: Diagnostic) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class CheckJob:
    """The request to the process that checks one codec.

    Args:
        options: further arguments of its class.
        settings: limits of the process.
        steps: names of the steps, in order; `load` is always done.

    Attributes:
        PROGRAM: the class that does the steps, as `module:Class`.
        SECTIONS: every step with the names of its results.
    """

    PROGRAM: ClassVar[str] = "codec_bench.codecs.checks.steps:Checking"
    SECTIONS: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "load": ("info", "load"),
        "contract": ("contract",),
        "corpus": ("findings",),
        **{step: (step,) for step in ("probe", "stream", "sent", "elsewhere")},
    }

    codec: str
    files: tuple[tuple[str, str], ...]
    device: str
    settings: Limits
    steps: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)


class Watched:
    """A codec that announces each call, so that the parent notices one that hangs."""

    def __init__(self, codec: Any, announce: Callable[[], None]) -> None:
        self._codec, self._announce = codec, announce
        self.info = codec.info

    def encode(self, batch: Sequence[Any]) -> Any:
        """Announce the call, and encode."""
        self._announce()
        with preserved_torch_state(self._codec):
            return self._codec.encode(batch)

    def decode(self, codes: Sequence[Any]) -> Any:
        """Announce the call, and decode."""
        self._announce()
        with preserved_torch_state(self._codec):
            return self._codec.decode(codes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codec, name)


class Checking:
    """Runs the steps of one codec's checks.

    Args:
        announce: called before every call of the codec.

    Attributes:
        serialised: serialised codes. The step `sent` sets it; in another process the step `elsewhere` reads it.
    """

    serialised: SerialisedCodes | None = None

    def __init__(self, request: Any, announce: Callable[[], None]) -> None:
        self._request, self._announce = request, announce
        self._codec: Any = None
        self._device = request.device
        self._material: ProfileClips  # set by the step `load`, which is always the first
        self._batch_s = _BATCH_S

    def sections(self, name: str) -> dict[str, dict[str, Any]]:
        """Run a step of the checks, such as `load`; return its results by section.

        Results are JSON values with a `state`; a step that fails or does not apply has a `reason`.
        """
        try:
            results = {section: {"state": "ok", **values} for section, values in self.step(name).items()}
        except NotApplicable as reason:
            results = uniform_sections(self._request, name, "not applicable", reason.reason)
        except Exception as error:  # own code may raise anything: its section has failed, and the other steps go on
            results = uniform_sections(self._request, name, "failed", fault_of(error))
        plain: dict[str, dict[str, Any]] = from_json(json.loads(json.dumps(to_json(results), default=_plain)))
        return plain

    def step(self, name: str) -> dict[str, dict[str, Any]]:
        """Run a step; return its results by section.

        Raises:
            NotApplicable: the step does not apply to this codec.
            Exception: the codec raised it.
        """
        return getattr(self, f"_{name}")()

    def _load(self) -> dict[str, dict[str, Any]]:
        """Load the codec and open the clips; return its facts and load measurements."""
        took = self._loaded()
        codec = self._codec
        if getattr(codec, "where", "device") == "cpu":  # it runs on the CPU, whatever device was requested
            self._device = "cpu"
        self._batch_s = float(getattr(codec, "batch_s", _BATCH_S))
        self._material = ProfileClips(self._request.files, codec)
        return {"info": asdict(codec.info), "load": took}

    def _loaded(self) -> dict[str, Any]:
        """Load the codec; return measurements of loading, made by subclasses only."""
        from codec_bench.codecs import load_codec

        codec = load_codec(self._request.codec, device=self._request.device, **self._request.options)
        self._codec = Watched(codec, self._announce)
        return {}

    def _contract(self) -> dict[str, dict[str, Any]]:
        """Code two clips of different lengths as one batch, which checks types and shapes."""
        clips = self._material.cut(2, _CONTRACT_S)
        lengths = [max(1, clip.num_samples * (3 - k) // 3) for k, clip in enumerate(clips)]
        recode(self._codec, [Audio(c.samples[:, :n], c.sample_rate_hz) for c, n in zip(clips, lengths)])
        return {"contract": {"items": len(clips)}}

    def _corpus(self) -> dict[str, dict[str, Any]]:
        """Code every clip; check output signals, declared rates and shapes of codes."""
        looks, labels, shapes = SignalChecks(), LabelChecks(), OneShape(self._codec.info.name)
        for name, segment, codes, out in self._recoded():
            shapes.add(codes)
            labels.add(codes)
            looks.add(name, segment, out)
        rate_hz = self._material.first_clips[0].sample_rate_hz
        return {"findings": {"findings": [*looks.findings(rate_hz), *labels.findings(self._codec.info)]}}

    def _recoded(self) -> Iterator[tuple[str, Audio, Sent, Audio]]:
        """Code every clip; yield the id, input, codes and output of each of its inputs."""
        for batch in self._material.batches(self._batch_s):
            pieces: list[Audio] = []
            owners: list[str] = []
            for name, audio in batch:
                ready = self._material.ready(audio)
                pieces += ready
                owners += [name] * len(ready)
            codes, decoded = self._coded(pieces)
            yield from zip(owners, pieces, codes, decoded)

    def _coded(self, pieces: list[Audio]) -> tuple[list[Sent], list[Audio]]:
        """Encode and decode a batch.

        If memory runs out, code it in halves, and halve the batch size of later batches.
        """
        from codec_bench.machine.memory import give_back, out_of_memory

        try:
            return self._coded_once(pieces)
        except Exception as error:
            if not out_of_memory(error) or len(pieces) == 1:
                raise
        give_back(self._device)
        self._batch_s = max(_LEAST_BATCH_S, self._batch_s / 2)
        half = len(pieces) // 2
        first, second = self._coded(pieces[:half]), self._coded(pieces[half:])
        return first[0] + second[0], first[1] + second[1]

    def _coded_once(self, pieces: list[Audio]) -> tuple[list[Sent], list[Audio]]:
        return recode(self._codec, pieces)  # with copies, since a decoder may write into the codes

    def _probe(self) -> dict[str, dict[str, Any]]:
        return {"probe": {"findings": probe(self._codec, self._material.cut(_PROBE_CLIPS, _PROBE_S))}}

    def _stream(self) -> dict[str, dict[str, Any]]:
        return {"stream": {"findings": [check_stream(self._codec, self._material.cut(_PROBE_CLIPS, _PROBE_S))]}}

    def _sent(self) -> dict[str, dict[str, Any]]:
        """Encode and serialise two clips to `self.serialised`, for another process."""
        pieces = [self._material.cut(2, seconds)[-1] for seconds in _SENT_S]
        results = one_by_one(self._codec, pieces)
        try:
            self.serialised = pack([codes for codes, _ in results], [wave for _, wave in results])
        except CannotSend as reason:
            raise NotApplicable(of_error(reason)) from reason
        return {"sent": {"bytes": sum(map(len, self.serialised.codes))}}

    def _elsewhere(self) -> dict[str, dict[str, Any]]:
        assert self.serialised is not None  # this step is requested only if there is one
        return {"elsewhere": {"findings": [unpack(self._codec, self.serialised)]}}


def uniform_sections(request: CheckJob, step: str, state: str, reason: Diagnostic) -> dict[str, dict[str, Any]]:
    """Give every section of a step one state and one reason."""
    return {name: {"state": state, "reason": reason} for name in request.SECTIONS[step]}


def _plain(value: Any) -> Any:
    """Convert NumPy numbers to Python's, and anything else that JSON lacks to text."""
    return value.item() if hasattr(value, "item") else str(value)


class OneShape:
    """Checks that all clips have the same streams of codes."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._first: list[tuple[Any, ...]] | None = None

    def add(self, codes: Sent) -> None:
        """Compare the streams of one clip with those of the first clip that was added.

        Raises:
            CodecFault: its streams have another number, size or cardinality than earlier items'.
        """
        shape: list[tuple[Any, ...]]
        shape = [(s.values.shape[0], s.cardinality, float(s.frame_rate_hz), s.name) for s in codes.streams]
        if isinstance(codes, Latents):
            shape = [(len(codes.values), "latents", float(codes.frame_rate_hz), "latents")]
        if self._first is None:
            self._first = shape
        if self._first != shape:
            raise CodecFault(Diagnostic("streams_differ", codec=self._name, streams=str(shape), first=str(self._first)))


def gather_findings(sections: dict[str, Any]) -> None:
    """Move the findings of all steps to the section `findings`, in place.

    The sections `probe`, `stream`, `elsewhere` and `sent` are removed. A failed step becomes a failed finding. If
    output is not repeatable, suspect findings of checks that need equal output become `not applicable`.
    """
    listed = list(sections["findings"].get("findings", []))
    sent = sections.pop("sent")
    for step, check in (("probe", "odd input"), ("stream", "stream"), ("elsewhere", CHECK)):
        section = sections.pop(step, None)
        if section is None:  # a profile streams anyway, and its section stays
            listed += sections.get("streaming", {}).pop("findings", [])
            continue
        listed += section.get("findings", [])
        if section["state"] == "failed":
            reason = section["reason"]
            undecoded = Diagnostic("not_decoded_elsewhere", cause=reason) if step == "elsewhere" else reason
            listed.append(finding(check, "failed", undecoded))
        elif step == "elsewhere" and "findings" not in section:
            reason = sent["reason"] if sent["state"] in ("failed", "not applicable") else section["reason"]
            listed.append(finding(check, "failed" if sent["state"] == "failed" else "not applicable", reason))
    if any(f["check"] == "repeatable" and f["state"] == "suspect" for f in listed):
        because = Diagnostic("same_output_needed")
        for index, f in enumerate(listed):
            if f["check"] in (CHECK, "stream") and f["state"] == "suspect":
                listed[index] = finding(f["check"], "not applicable", because)
    sections["findings"]["findings"] = listed

"""The measurements of one codec, in steps.

A step gives one or more sections of the profile. A section is a dictionary with its numbers, its `state` (`ok`,
`not applicable` or `failed`), and a `reason` unless the state is `ok`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from codec_bench.audio.encode import write_flac
from codec_bench.codecs.adapt import decode, encode, recode
from codec_bench.codecs.checks.batching import one_by_one
from codec_bench.codecs.checks.behaviour import probe
from codec_bench.codecs.checks.labels import LabelChecks
from codec_bench.codecs.checks.sent import CannotSend, Parcel, pack, unpack
from codec_bench.codecs.checks.signals import SignalChecks
from codec_bench.profiling import complexity, latency, speed, stability, streaming
from codec_bench.profiling.content import Content
from codec_bench.profiling.material import Material
from codec_bench.profiling.rate import RateCounter
from codec_bench.profiling.settings import NotApplicable, Settings

STEPS: Mapping[str, tuple[str, ...]] = {
    "load": ("info", "load"),
    "contract": ("contract",),
    "speed": ("speed",),
    "corpus": ("rate", "batched", "findings", "phones", "abx"),
    "complexity": ("complexity",),
    "latency": ("latency",),
    "streaming": ("streaming",),
    "stability": ("stability",),
    "probe": ("probe",),
    "sent": ("sent",),
    "elsewhere": ("elsewhere",),
}
"""Every step with the sections that it gives. Speed comes before the corpus, so that its memory is that of one clip."""

CHECKED = ("load", "contract", "corpus", "probe", "sent", "elsewhere")
"""The steps that show whether a codec is right."""

ELSEWHERE = "elsewhere"
"""The step that runs in a process of its own: it decodes what the step `sent` left."""

NEEDED = ("load", "contract")
"""Steps that must succeed; if one fails, nothing else is measured."""

_CONTRACT_S = 2.0
_PROBE_S = 2.0
_PROBE_CLIPS = 3
_SENT_S = (1.5, 0.4)
_LEAST_BATCH_S = 1.0


@dataclass(frozen=True, slots=True)
class Request:
    """What the process of one codec is asked to measure.

    Args:
        codec: its name. options: further arguments of its class.
        files: (id, path) of every clip.
        device: `cpu` or `cuda:N`.
        settings: as for `profile`.
        steps: the steps to do, in order. `load` is always done.
        players: files to write the decoded audio of some clips to, by the id of the clip.
        parcel: what the step `elsewhere` decodes.
        alignments: the file or folder that says when the phones of the clips are said, or None.
        speakers: of the clips, by their ids, where they are known.
    """

    codec: str
    files: tuple[tuple[str, str], ...]
    device: str
    settings: Settings
    steps: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    players: Mapping[str, str] = field(default_factory=dict)
    parcel: Parcel | None = None
    alignments: str | None = None
    speakers: Mapping[str, str] = field(default_factory=dict)


class Watched:
    """A codec that announces each of its calls, so that the parent notices a call that does not return."""

    def __init__(self, codec: Any, announce: Callable[[], None]) -> None:
        self._codec, self._announce = codec, announce
        self.info = codec.info

    def encode(self, batch: Sequence[Any]) -> Any:
        """As the codec's own."""
        self._announce()
        return self._codec.encode(batch)

    def decode(self, codes: Sequence[Any]) -> Any:
        """As the codec's own."""
        self._announce()
        return self._codec.decode(codes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codec, name)


class Measuring:
    """Does the steps of one codec.

    Args:
        request: what to do.
        announce: called before every call of the codec.

    Attributes:
        parcel: what another process is to decode, once the step `sent` has run and if there is anything.
    """

    parcel: Parcel | None = None

    def __init__(self, request: Request, announce: Callable[[], None]) -> None:
        self._request, self._announce = request, announce
        self._codec: Any = None
        self._device = request.device
        self._material: Material  # set by the step `load`, which is always the first

    def step(self, name: str) -> dict[str, dict[str, Any]]:
        """Runs a step and gives its sections.

        Raises:
            NotApplicable: the step does not apply to this codec.
            Exception: the codec raised it.
        """
        return getattr(self, f"_{name}")()

    def _load(self) -> dict[str, dict[str, Any]]:
        from codec_bench.codecs import load_codec

        request = self._request
        codec, took = speed.load(
            lambda: load_codec(request.codec, device=request.device, **request.options), request.device
        )
        self._codec = Watched(codec, self._announce)
        if getattr(codec, "where", "device") == "cpu":  # it runs on the CPU, whatever device was asked for
            self._device = "cpu"
        self._material = Material(request.files, codec)
        return {"info": asdict(codec.info), "load": {**took, "threads": speed.threads()}}

    def _contract(self) -> dict[str, dict[str, Any]]:
        """The first two clips, cut to different lengths, as one batch."""
        pieces = self._material.cut(2, _CONTRACT_S)
        pieces = [
            type(p)(p.samples[:, : max(1, p.num_samples * (3 - k) // 3)], p.sample_rate_hz)
            for k, p in enumerate(pieces)
        ]
        recode(self._codec, pieces)
        return {"contract": {"items": len(pieces)}}

    def _speed(self) -> dict[str, dict[str, Any]]:
        found = speed.single(self._codec, self._material, self._request.settings, self._device)
        return {"speed": {**found, "threads": speed.threads(), "device": self._device}}

    def _corpus(self) -> dict[str, dict[str, Any]]:
        codec, material = self._codec, self._material
        rate, looks, labels = RateCounter(codec.info), SignalChecks(), LabelChecks()
        request = self._request
        content = Content(request.alignments, request.speakers, request.settings.seed)
        clock = speed.BatchClock(self._device, float(getattr(codec, "batch_s", 60.0)))
        split = 0
        sample_rate_hz = material.few[0].sample_rate_hz
        for batch in material.batches(clock.batch_s):
            pieces: list[Any] = []
            owners: list[str] = []
            for name, audio in batch:
                ready = material.ready(audio)
                split += len(ready) > 1
                pieces += ready
                owners += [name] * len(ready)
            codes, decoded = self._coded(pieces, clock)
            for name, item, piece, out in zip(owners, codes, pieces, decoded):
                rate.add(item)
                labels.add(item)
                content.add(name, item)
                looks.add(name, piece, out)
                if name in request.players and not Path(request.players[name]).exists():
                    write_flac(request.players[name], out)
        unreadable = [{"id": name, "reason": reason} for name, reason in material.unreadable.items()]
        return {
            "rate": {**rate.result(), "channel_by_channel": split, "unreadable": unreadable},
            "batched": {**clock.result(), "threads": speed.threads(), "device": self._device},
            "findings": {"findings": [*looks.findings(sample_rate_hz), *labels.findings(codec.info)]},
            **content.sections(codec, self._announce),
        }

    def _coded(self, pieces: list[Any], clock: speed.BatchClock) -> tuple[list[Any], list[Any]]:
        """Codes and decoded audio of a batch. If memory does not suffice, the batch is split into halves."""
        from codec_bench.memory import give_back, out_of_memory

        clock.begin()
        try:
            start = perf_counter()
            codes = encode(self._codec, pieces)
            middle = perf_counter()
            decoded = decode(self._codec, codes, pieces)
            end = perf_counter()
        except Exception as error:
            if not out_of_memory(error) or len(pieces) == 1:
                raise
        else:
            clock.add(sum(p.duration_s for p in pieces), len(pieces), middle - start, end - middle)
            return list(codes), list(decoded)
        give_back(self._device)
        clock.batch_s = max(_LEAST_BATCH_S, clock.batch_s / 2)
        half = len(pieces) // 2
        first, second = self._coded(pieces[:half], clock), self._coded(pieces[half:], clock)
        return first[0] + second[0], first[1] + second[1]

    def _complexity(self) -> dict[str, dict[str, Any]]:
        return {"complexity": complexity.measure(self._codec, self._material, self._request.settings)}

    def _latency(self) -> dict[str, dict[str, Any]]:
        return {"latency": latency.measure(self._codec, self._material, self._request.settings)}

    def _streaming(self) -> dict[str, dict[str, Any]]:
        return {"streaming": streaming.measure(self._codec, self._material, self._request.settings)}

    def _stability(self) -> dict[str, dict[str, Any]]:
        return {"stability": stability.measure(self._codec, self._material, self._request.settings)}

    def _probe(self) -> dict[str, dict[str, Any]]:
        return {"probe": {"findings": probe(self._codec, self._material.cut(_PROBE_CLIPS, _PROBE_S))}}

    def _sent(self) -> dict[str, dict[str, Any]]:
        """Codes two clips, which another process is to decode."""
        pieces = [self._material.cut(2, seconds)[-1] for seconds in _SENT_S]
        results = one_by_one(self._codec, pieces)
        try:
            self.parcel = pack([codes for codes, _ in results], [wave for _, wave in results])
        except CannotSend as reason:
            raise NotApplicable(str(reason)) from reason
        return {"sent": {"bytes": sum(map(len, self.parcel.codes))}}

    def _elsewhere(self) -> dict[str, dict[str, Any]]:
        assert self._request.parcel is not None  # this step is asked for only if there is one
        return {"elsewhere": {"findings": [unpack(self._codec, self._request.parcel)]}}

"""The measurements of one codec in steps, with sections of the profile.

`codecs/checks/steps.py` describes a section.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

from codec_bench.apps.profiling import changed_codes, language, latency, loss, probes, speed, stability
from codec_bench.apps.profiling.abx import AbxItems
from codec_bench.apps.profiling.codebook_use import RateCounter
from codec_bench.apps.profiling.phones import PhoneCounter
from codec_bench.apps.profiling.token_model import TokenCorpus
from codec_bench.audio.encode import write_flac
from codec_bench.codecs.adapt import copy_codes, decode, encode
from codec_bench.codecs.checks import steps
from codec_bench.codecs.checks.material import ProfileClips
from codec_bench.codecs.checks.steps import Checking, NotApplicable, Watched
from codec_bench.data.alignments import read_alignments
from codec_bench.messages import Diagnostic
from codec_bench.types import Audio, Sent

STEPS: Mapping[str, tuple[str, ...]] = {
    "load": ("info", "load"),
    "contract": ("contract",),
    "speed": ("speed",),
    "corpus": ("rate", "batched", "findings", "phones", "abx"),
    "complexity": ("complexity",),
    "latency": ("latency",),
    "streaming": ("streaming",),
    "stability": ("stability",),
    "loss": ("loss",),
    "bit_errors": ("bit_errors",),
    "codebooks": ("codebooks_kept",),
    "latents": ("latent_bits",),
    "swap": ("speaker_swap",),
    "cpu": ("speed_on_cpu",),
    "language": ("language",),
    "transformer": ("transformer",),
    "probes": ("probes",),
    "probe": ("probe",),
    "sent": ("sent",),
    "elsewhere": ("elsewhere",),
}
"""Every step with its sections. Speed comes before the corpus, to measure the memory of one clip."""

OPTIONAL = tuple(step for step in STEPS if step not in ("load", "contract", "corpus", "probe", "sent", "elsewhere"))
"""The steps that can be skipped: all but those that check the codec or feed others."""


@dataclass(frozen=True, slots=True)
class ProfileJob(steps.CheckJob):
    """The measurements requested from one codec's process (`settings: Settings`).

    Args:
        players: files for the decoded audio of some clips, by clip id.
        alignments: the file or folder with phone alignments.
        speakers, texts, emotions: by clip id, where known.
    """

    PROGRAM: ClassVar[str] = "codec_bench.apps.profiling.steps:Measuring"
    SECTIONS: ClassVar[Mapping[str, tuple[str, ...]]] = STEPS

    players: Mapping[str, str] = field(default_factory=dict)
    alignments: str | None = None
    speakers: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    emotions: Mapping[str, str] = field(default_factory=dict)


def _section(
    name: str, measure: Callable[..., dict[str, Any]], *fields: str
) -> Callable[[Any], dict[str, dict[str, Any]]]:
    """Build the step of one section; `measure` receives these request fields."""

    def step(self: Measuring) -> dict[str, dict[str, Any]]:
        arguments = (getattr(self._request, field_name) for field_name in fields)
        return {name: measure(self._codec, self._material, self._request.settings, *arguments)}

    return step


class Measuring(Checking):
    """Does the steps of one codec's profile."""

    _is_coded = False

    def _loaded(self) -> dict[str, Any]:
        """Load the codec, and return the time and memory of loading."""
        from codec_bench.codecs import load_codec

        request = self._request
        self._tokens = TokenCorpus()
        self._alignments = {} if request.alignments is None else read_alignments(Path(request.alignments))
        codec, took = speed.load(
            lambda: load_codec(request.codec, device=request.device, **request.options), request.device
        )
        self._codec = Watched(codec, self._announce)
        return {**took, "threads": speed.threads()}

    def _speed(self) -> dict[str, dict[str, Any]]:
        timings = speed.measure_single(self._codec, self._material, self._request.settings, self._device)
        return {"speed": {**timings, "threads": speed.threads(), "device": self._device}}

    def _corpus(self) -> dict[str, dict[str, Any]]:
        """Code the corpus once; return bitrate, batch speed, phones and checks by section."""
        request = self._request
        self._rate = RateCounter(self._codec.info)
        self._of_phones: tuple[PhoneCounter, AbxItems] | None = None
        if self._alignments:
            self._of_phones = PhoneCounter(self._alignments), AbxItems(self._alignments, request.speakers)
        self._clock = speed.BatchClock(self._device, self._batch_s)
        self._channels: dict[str, int] = {}
        checked = super()._corpus()
        self._is_coded = True
        self._clock.batch_s = self._batch_s
        unreadable = [{"id": name, "reason": reason} for name, reason in self._material.unreadable.items()]
        split = sum(channels > 1 for channels in self._channels.values())
        return {
            "rate": {**self._rate.result(), "channel_by_channel": split, "unreadable": unreadable},
            "batched": {**self._clock.result(), "threads": speed.threads(), "device": self._device},
            **checked,
            **self._phones(),
        }

    def _phones(self) -> dict[str, dict[str, Any]]:
        """Return the sections `phones` and `abx`: results, or a reason why there are none."""
        if self._of_phones is None:
            nothing = {"state": "not measured", "reason": "there are no alignments"}
            return {"phones": nothing, "abx": nothing}
        (phones, abx), seed = self._of_phones, self._request.settings.seed
        vectors = getattr(self._codec, "vectors", None)
        return {
            "phones": _or_reason(lambda: phones.result(seed)),
            "abx": _or_reason(lambda: abx.result(seed, self._announce, vectors)),
        }

    def _recoded(self) -> Iterator[tuple[str, Audio, Sent, Audio]]:
        """Yield clips with codes and output, and count codes, phones and saved audio."""
        players = self._request.players
        for name, clip, codes, out in super()._recoded():
            yield name, clip, codes, out  # the checks look first: refused clips are not counted
            self._channels[name] = self._channels.get(name, 0) + 1
            self._rate.add(codes)
            self._tokens.add(name, codes)
            for measure in self._of_phones or ():
                measure.add(name, codes)
            if name in players and not Path(players[name]).exists():
                write_flac(players[name], out)

    def _coded_once(self, pieces: list[Audio]) -> tuple[list[Sent], list[Audio]]:
        """Encode and decode a timed batch; return copies of the codes, and the output."""
        self._clock.begin()
        start = perf_counter()
        codes = encode(self._codec, pieces)
        encoded = perf_counter()
        sent = [copy_codes(item) for item in codes]
        middle = perf_counter()
        decoded = decode(self._codec, codes, pieces)
        end = perf_counter()
        self._clock.add(sum(p.duration_s for p in pieces), len(pieces), encoded - start, end - middle)
        return sent, list(decoded)

    def _language(self) -> dict[str, dict[str, Any]]:
        return {"language": language.language(self._corpus_of_tokens(), seed=self._request.settings.seed)}

    def _transformer(self) -> dict[str, dict[str, Any]]:
        """Fit a small transformer to the codes; called by the name of its step."""
        settings = self._request.settings
        spoken = language.SpokenContent(self._request.texts, self._alignments)
        return {
            "transformer": language.transformer(
                self._corpus_of_tokens(), spoken, steps=settings.lm_steps, seed=settings.seed, alive=self._announce
            )
        }

    def _probes(self) -> dict[str, dict[str, Any]]:
        """Run the probes, and return the section `probes`."""
        request = self._request
        labels = probes.Labels(request.speakers, request.emotions, self._alignments)
        corpus, seed = self._corpus_of_tokens(), request.settings.seed
        return {"probes": probes.measure(corpus, labels, self._material.read(), seed=seed, alive=self._announce)}

    def _corpus_of_tokens(self) -> TokenCorpus:
        """Return the corpus's codes; NotApplicable after a restart."""
        if not self._is_coded:
            raise NotApplicable(Diagnostic("not_coded"))
        return self._tokens

    _complexity = _section("complexity", speed.measure_complexity)
    _latency = _section("latency", latency.measure)
    _streaming = _section("streaming", latency.measure_streaming)
    _stability = _section("stability", stability.measure)
    _loss = _section("loss", loss.measure)
    _bit_errors = _section("bit_errors", loss.measure_bit_errors)
    _codebooks = _section("codebooks_kept", changed_codes.measure_first_codebooks, "metrics", "texts")
    _latents = _section("latent_bits", changed_codes.measure_latent_bits, "metrics", "texts")
    _swap = _section("speaker_swap", changed_codes.measure_speaker_swap, "speakers")

    def _cpu(self) -> dict[str, dict[str, Any]]:
        """Measure a GPU codec's speed on the CPU; raises NotApplicable if it runs there."""
        from codec_bench.codecs import load_codec

        request = self._request
        if self._device == "cpu":
            raise NotApplicable(Diagnostic("cpu_already"))
        codec = Watched(load_codec(request.codec, device="cpu", **request.options), self._announce)
        timings = speed.measure_single(codec, ProfileClips(request.files, codec), request.settings, "cpu")
        return {"speed_on_cpu": {**timings, "threads": speed.threads(), "device": "cpu"}}


def _or_reason(measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return measure()
    except NotApplicable as reason:
        return {"state": "not applicable", "reason": str(reason)}

"""A recogniser of `codec_bench.features` as a model that answers with transcripts."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from codec_bench.config.registry import Spec
from codec_bench.features import REGISTRY as FEATURES
from codec_bench.features import Feature, load_feature
from codec_bench.features.recognisers.names import known_languages, protocol_of_recogniser, resolve_recognisers
from codec_bench.machine.memory import placed
from codec_bench.messages import Diagnostic, of_error
from codec_bench.messages.errors import UserError
from codec_bench.models.audio_payloads import clips_of
from codec_bench.models.base import EMPTY, ModelInfo
from codec_bench.models.batching import BatchModel
from codec_bench.text.language import base_language
from codec_bench.types import Request, Response
from codec_bench.weights import WeightsMissing, noting, weights_identity


class Recogniser(BatchModel):
    """Transcribes a request's recording in the language of the field `language`.

    The transcripts are those of `wer[NAME]`, whatever the batch. Recordings may have any length: each recogniser splits
    them by its own protocol. Texts of the request are ignored.

    Args:
        feature: a recogniser such as `pocketsphinx` or `whisper-large-v3@28s`, or a choice by language such as
            `seed-tts`.
        device: `auto` (the first GPU, or the CPU if there is none), `cpu` or `cuda:N`.
        weights: a folder to load in place of the published weights.
        batch_s: padded seconds in the first batches; None for the recogniser's own.

    Raises:
        UserError: there is no such recogniser, or `weights` is set for several recognisers.
    """

    def __init__(
        self,
        info: ModelInfo,
        *,
        feature: str,
        device: str = "auto",
        weights: str | None = None,
        batch_s: float | None = None,
    ) -> None:
        self.weights, self._requested_device = weights, str(device)
        self._by_language, self._otherwise = resolve_recognisers("recogniser", feature)
        self.info = replace(info, languages=info.languages or known_languages(self._by_language, self._otherwise))
        self._names = list(dict.fromkeys([*self._by_language.values(), *filter(None, [self._otherwise])]))
        if weights is not None and len(self._names) > 1:
            raise UserError(
                "weights_of_several_recognisers",
                model=info.name,
                weights=weights,
                recognisers=", ".join(self._names),
                hint="leave out weights, or name one recogniser",
            )
        self.batch_s = float(batch_s) if batch_s is not None else 60.0
        self._has_batch_s = batch_s is not None
        self._loaded: dict[str, Feature] = {}

    @property
    def identity(self) -> Mapping[str, Any]:
        """The recognisers' protocols, languages and local weights' content, for records."""
        with noting() as checkpoints:
            for name in self._names:
                with suppress(WeightsMissing):  # a language may never be needed
                    load_feature(name, device="cpu", weights=self.weights)
        protocols = {name: protocol_of_recogniser(name) for name in self._names}
        code = {name: hashed for name in self._names if (hashed := FEATURES.code_hash(Spec.parse(name).name))}
        return {
            "kind": type(self).__name__,
            "protocols": protocols,
            "by_language": dict(self._by_language),
            "weights": weights_identity(checkpoints, self.weights),
            "limit_s": self.info.limit_s,
            "window_s": self.info.window_s,
            **({"code": code} if code else {}),
        }

    def choose_device(self) -> str:
        """Resolve the device option; `auto` is the first GPU, else the CPU."""
        if self._requested_device != "auto":
            return self._requested_device
        import torch

        return "cuda:0" if torch.cuda.is_available() else "cpu"

    async def start(self) -> None:
        """Load the recognisers.

        Raises:
            UserError: weights or a package are missing, or the device has no room.
        """
        await asyncio.to_thread(self.load)

    def load(self) -> None:
        """Load all recognisers on the device, blocking; sets `rate_hz` and `batch_s`."""
        for name in self._names:
            if name not in self._loaded:
                feature = load_feature(name, device=self.device, weights=self.weights)
                placed(f"the recogniser '{name}'", self.device, feature.load)
                self._loaded[name] = feature
        rates = {feature.rate_hz for feature in self._loaded.values()}
        if len(rates) != 1:
            raise UserError("recogniser_rates_differ", recognisers=", ".join(self._names))
        self.rate_hz = rates.pop()
        if not self._has_batch_s:
            self.batch_s = min(feature.batch_s for feature in self._loaded.values())

    async def close(self) -> None:
        """Free the memory of the recognisers."""
        await super().close()
        self._loaded.clear()

    def answer(self, batch: Sequence[Request]) -> list[Response]:
        """Return one transcript per request, in order."""
        self.load()
        answers: dict[int, Response] = {}
        groups: defaultdict[str, list[int]] = defaultdict(list)
        for index, request in enumerate(batch):
            clips, name = list(clips_of(request)), self._name(request)
            if len(clips) != 1:
                answers[index] = Response.refused(
                    Diagnostic("one_recording_only", model=self.info.name, recordings=len(clips))
                )
            elif name is None:
                known = ", ".join(self._by_language)
                answers[index] = Response.refused(Diagnostic("needs_language", model=self.info.name, known=known))
            else:
                groups[name].append(index)
        for name, places in groups.items():
            for index, response in zip(places, self._transcribe(name, [batch[index] for index in places]), strict=True):
                answers[index] = response
        return [answers[index] for index in range(len(batch))]

    def _name(self, request: Request) -> str | None:
        spoken = _language(request)
        return self._by_language.get(spoken, self._otherwise) if spoken else self._otherwise

    def _transcribe(self, name: str, batch: Sequence[Request]) -> list[Response]:
        """Transcribe the recording of each request with the recogniser `name`."""
        feature = self._loaded[name]
        signals = [next(clips_of(request)).read().samples[0] for request in batch]
        options = {"languages": [_language(request) for request in batch]} if feature.reads_language else {}
        return [_response(result) for result in feature.compute(signals, **options)]


def _language(request: Request) -> str | None:
    named = request.fields.get("language")
    return base_language(named) if isinstance(named, str) and named.strip() else None


def _response(result: Any) -> Response:
    """Convert a recogniser's result, or the exception in its place, to a response."""
    if isinstance(result, Exception):  # the recording is empty, or not in a language that the recogniser knows
        return Response.refused(of_error(result, with_type=False))
    text = result.get("transcript")
    if not isinstance(text, str):
        return Response.failed(Diagnostic("recogniser_silent"))
    response = Response(text=text, finish="stop", notes=() if text else (EMPTY,))
    fault = result.get("fault")  # text that was decoded before a fault is not a transcript
    return replace(response, status="failed", reason=fault, finish=None) if fault else response

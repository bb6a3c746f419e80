"""Codecs of clashing packages, in a worker with its own environment.

`configs/collection/*.yaml` names the environment and holds the facts; `configs/env` its packages and worker code. The
worker's `load` gets `checkpoint` and the codec's arguments. Its `answer` gets items with `wants`: `codes` of an
`audio`, or `audio` of `streams` (lists of codebooks x frames) and `side` (a list of real numbers or []).
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from codec_bench.audio.resample import fit_length
from codec_bench.codecs.base import check_input
from codec_bench.codecs.collection import SIDE_INFO, CollectionCodec
from codec_bench.messages.errors import UserError, WeightsError
from codec_bench.types import Audio, Codes, CodeStream
from codec_bench.workers import wire
from codec_bench.workers.environment import find_environment, make_environment, read_env
from codec_bench.workers.host import WorkerEnded, WorkerSettings
from codec_bench.workers.pool import LoopThread, WorkerPool, device_variables

_FLOAT_BITS = 32.0


class IsolatedCodec(CollectionCodec):
    """A codec in a worker process; the first one in an environment creates it.

    Args:
        collection: the file of `configs/collection`.
        codec: the codec's name in the collection.
        device: `cpu` or `cuda:N`.
        weights: a folder or hub id in place of the codec's own checkpoint.

    Raises:
        UserError: there is no such codec, or the environment or the worker cannot be started.
        WeightsError: the codec names no checkpoint, so `weights` has to.
    """

    def __init__(self, collection: str, codec: str, device: str = "cpu", weights: str | None = None) -> None:
        self.require_weights(weights, codec, collection)
        self.info = self.describe(codec, collection)
        self._facts, held = self._member(codec, collection), self._held(collection)
        spec = read_env(str(held.env))
        options = self._facts.arguments | ({"checkpoint": weights} if weights else {})
        python = make_environment(spec).python
        if spec.code is None:
            raise UserError("environment_without_code", environment=spec.name)
        settings = WorkerSettings(self.info.name, python, spec.code.resolve(), options, spec.variables)
        self._loop = LoopThread()
        self._pool = WorkerPool(settings, device_variables(1, [device]))
        # When this process ends, its socket closes, and the guardian ends the worker.
        weakref.finalize(self, self._loop.close, self._pool).atexit = False
        try:
            self._loop.run(self._pool.start())
        except WorkerEnded as error:
            raise UserError("codec_not_loaded", codec=self.info.name, cause=error.reason) from error

    @classmethod
    def find_weights(cls, codec: str, collection: str | None = None) -> str | None:
        """Return the folder of the worker's environment; None if it does not exist."""
        environment = find_environment(read_env(str(cls._held(collection).env)))
        return None if environment is None else str(environment.folder)

    @classmethod
    def require_weights(cls, weights: str | None, codec: str, collection: str | None = None) -> None:
        """Raise WeightsError if neither the codec nor the caller names a checkpoint."""
        if weights is None and cls._member(codec, collection).arguments.get("checkpoint") is None:
            raise WeightsError(
                "no_checkpoint_of_codec", collection=collection, codec=codec, hint=cls._held(collection).install
            )

    def encode(self, batch: Sequence[Audio]) -> list[Codes]:
        """Encode each item in the worker process."""
        for audio in batch:
            check_input(audio, self.info)
        sounds = [{"samples": np.ascontiguousarray(a.samples), "sample_rate_hz": a.sample_rate_hz} for a in batch]
        answers = self._ask([{"wants": "codes", "audio": sound} for sound in sounds])
        return [self._read(answer, audio) for answer, audio in zip(answers, batch, strict=True)]

    def decode(self, codes: Sequence[Codes]) -> list[Audio]:
        """Decode each item."""
        items = [
            {
                "wants": "audio", "streams": [np.asarray(stream.values).tolist() for stream in item.streams],
                "side": np.asarray(item.side.get(SIDE_INFO, ()), np.float32).tolist(),
                "num_samples": item.num_samples, "sample_rate_hz": item.sample_rate_hz,
            }
            for item in codes
        ]  # fmt: skip
        return [self._read_audio(answer, item) for answer, item in zip(self._ask(items), codes, strict=True)]

    def _ask(self, items: list[dict[str, Any]]) -> list[Any]:
        """Send requests to the worker in batches; return one answer each, in order.

        Raises:
            UserError: a request failed.
        """
        packed = [wire.pack(item) for item in items]
        batches = [packed[at : at + wire.BATCH_ITEMS] for at in range(0, len(packed), wire.BATCH_ITEMS)]
        replies = [reply for batch in batches for reply in self._loop.run(self._pool.ask(batch))]
        for reply in replies:
            reason = reply.reason or reply.answer.get("error")
            if reason is not None:
                raise UserError("codec_worker", codec=self.info.name, cause=reason)
        return [reply.answer for reply in replies]

    def _read(self, answer: Any, audio: Audio) -> Codes:
        """Check the codes of a worker's answer, and wrap them with their side information."""
        facts = self._facts
        arrays = [np.asarray(values) for values in answer.get("streams", ())]
        shapes, expected = [m.shape[:1] for m in arrays if m.ndim == 2], [(count,) for count, _ in facts.streams()]
        if shapes != expected or any(m.dtype.kind not in "iu" for m in arrays):
            raise UserError("worker_codebooks", codec=self.info.name, codebooks=shapes, expected=expected)
        streams = tuple(
            CodeStream(values.astype(np.int64), size, facts.frame_rate_hz)
            for values, (_, size) in zip(arrays, facts.streams(), strict=True)
        )
        side_info = np.asarray(answer.get("side", ()), np.float32)
        held = {SIDE_INFO: side_info} if side_info.size else {}
        bits = _FLOAT_BITS * side_info.size
        return Codes(streams, audio.num_samples, audio.sample_rate_hz, side_bits=bits, side=held)

    def _read_audio(self, answer: Any, item: Codes) -> Audio:
        """Check the rate of a worker's decoded audio; cut or pad it to the item's length."""
        sound = answer["audio"]
        if sound["sample_rate_hz"] != item.sample_rate_hz:
            raise UserError(
                "worker_rate", codec=self.info.name, rate_hz=sound["sample_rate_hz"], expected_hz=item.sample_rate_hz
            )
        wave = np.frombuffer(sound["samples"], np.float32).reshape(sound["channels"], -1)
        return Audio(fit_length(wave, item.num_samples), item.sample_rate_hz)

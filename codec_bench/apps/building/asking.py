"""Requests to models from several threads through one event loop, for batches."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from codec_bench.apps.building.recipe_spoken import Used
from codec_bench.benchmark.asking.sending import send_request
from codec_bench.config.custom_code import is_custom_code
from codec_bench.messages.errors import UserError
from codec_bench.models import load_model
from codec_bench.models.base import Model
from codec_bench.models.cache import ResponseCache
from codec_bench.text.language import base_language
from codec_bench.types import Request, Response

T = TypeVar("T")


class ModelCalls:
    """Started models, with a cache of their responses.

    Args:
        cache: not used for models that cannot tell their checkpoints apart (`Model.tells_apart`).
    """

    def __init__(self, cache: ResponseCache) -> None:
        self._cache = cache
        self._lock = threading.Lock()
        self._waiting: dict[str, Future[Response]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="models", daemon=True)
        self._started: dict[int, tuple[Model, asyncio.Semaphore]] = {}
        self._thread.start()

    def load(self, used: Used, folder: Path, language: str | None = None) -> Model:
        """Load and start a model; code and paths of the recipe are relative to `folder`.

        Args:
            language: that it speaks or transcribes; None if it does neither.

        Raises:
            UserError: the model does not support the language; or as `load_model` and `Model.start`.
        """
        is_local = is_custom_code(used.model) and (folder / used.model.partition(":")[0]).is_file()
        model = load_model(str(folder / used.model) if is_local else used.model, used.options)
        known = model.info.languages
        if language is not None and known and base_language(language) not in map(base_language, known):
            raise UserError(
                "model_lacks_language",
                model=used.model,
                known=", ".join(known),
                language=language,
                hint=f"name a model that knows it; if this one does, say so in its options: languages: [{language}]",
            )
        self._started[id(model)] = (model, asyncio.Semaphore(model.concurrency))
        self._submit(model.start()).result()
        return model

    def ask(self, model: Model, request: Request, *, draw: int = 0) -> Response:
        """Send a request to a model, or return its cached response.

        Equal requests at the same time share one call. Only responses without an error are cached.

        Args:
            draw: the number of a repetition; another number gets another response.
        """
        if not model.tells_apart:
            return self._submit(self._answer(model, request)).result()
        identity = {**model.identity, **({"draw": draw} if draw else {})}
        with self._lock:
            ((key, cached),) = self._cache.look_up(identity, [request])
            if cached is not None:
                return cached
            waiting = None if key is None else self._waiting.get(key)
            mine = waiting is None
            if waiting is None:
                waiting = self._submit(self._answer(model, request))
                if key is not None:
                    self._waiting[key] = waiting
        try:
            response = waiting.result()
            if mine and key is not None and response.status == "ok":
                with self._lock:
                    self._cache.put(key, response, model.info.name)
                    self._cache.flush()
        finally:
            if mine and key is not None:
                with self._lock:
                    del self._waiting[key]
        return response

    async def _answer(self, model: Model, request: Request) -> Response:
        async with self._started[id(model)][1]:
            return await send_request(model, request)

    def _submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def close(self) -> None:
        """Close all models, the event loop and the cache."""
        for model, _ in self._started.values():
            self._submit(model.close()).result()
        self._started.clear()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._cache.close()

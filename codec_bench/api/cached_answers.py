"""List and evict cached answers of models (`codec-bench answers`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from codec_bench.messages.errors import UserError
from codec_bench.models.cache import ResponseCache, StoredModel


def list_cached_answers() -> list[StoredModel]:
    """Number, size and last use of each model's cached answers, or raise UserError."""
    with _open_cache() as cache:
        return cache.list_models()


def evict_answers(model: str | None) -> int:
    """Evict a model's cached answers, or all for None; return their count."""
    with _open_cache() as cache:
        names = [one.model for one in cache.list_models()]
        if model is not None and model not in names:
            raise UserError("no_cached_answers", model=model, hint=f"there are {', '.join(names) or 'none'}")
        return cache.evict(model)


@contextmanager
def _open_cache() -> Iterator[ResponseCache]:
    """Open the user's cache for the block; raises UserError if unusable."""
    cache = ResponseCache.of_user()
    if cache.trouble is not None:
        raise UserError(cache.trouble)
    try:
        yield cache
    finally:
        cache.close()

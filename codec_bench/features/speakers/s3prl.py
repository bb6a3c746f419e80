"""Embeddings of any s3prl upstream: the last hidden state's mean."""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from codec_bench.features.base import Feature, Result, Unavailable
from codec_bench.features.precision_names import parse_precision, suffix
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import MissingExtra, UnknownName, UserError, WeightsError
from codec_bench.networks.precision import computing
from codec_bench.weights.state import check_archive

RATE_HZ = 16_000
TAKES_A_FILE = ("_local", "_custom")
"""Suffixes of upstreams that need the user's checkpoint."""
SAFE_LOADING = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"


class S3prl(Feature):
    """The mean last hidden state of an upstream, such as `s3prl[hubert_base]`.

    Protocol `s3prl-VERSION/NAME/mean-of-last`. Only signals of equal length share a batch, so an embedding does not
    depend on other signals. Checkpoints are read with `weights_only`; one with more than tensors and plain values is
    refused. If s3prl's cache (`~/.cache/s3prl`) lacks the checkpoint of a named upstream, s3prl itself fetches it.

    Result: `{"embedding": float32 (width,)}`.

    Paper: S. Yang et al., "SUPERB", Interspeech 2021. Reference implementation: s3prl 0.4.18 itself, signal by signal.

    Args:
        variant: the upstream, a name of `s3prl.hub`.
        weights: a checkpoint for an upstream that takes one (`hubert_local`, `wav2vec2_custom`, `wavlm_local`, ...).
        point: `tf32` or `bfloat16` in place of float32; each has its own protocol.

    Raises:
        MissingExtra: s3prl is not installed. UserError: no upstream, or a file for one that takes none.
    """

    name = "s3prl"
    rate_hz = RATE_HZ
    where = "device"
    batch_s = 60.0
    result: ClassVar[str] = "embedding"

    def __init__(
        self, variant: str | None = None, device: str = "cpu", weights: str | None = None, point: str | None = None
    ) -> None:
        super().__init__(device, weights)
        if variant is None:
            raise UserError(
                "upstream_unnamed",
                feature=self.name,
                hint=f"write {self.name}[NAME], for example {self.name}[hubert_base]",
            )
        if (weights is not None) != variant.endswith(TAKES_A_FILE):
            takes = "needs a checkpoint" if weights is None else "has its own checkpoint"
            raise UserError(
                "upstream_weights",
                upstream=f"{self.name}[{variant}]",
                takes=takes,
                hint=f"give weights only to upstreams that end in _local or _custom, such as {self.name}[hubert_local]",
            )
        self._upstream, self._precision = variant, parse_precision(f"{self.name}[{variant}]", point)
        self.protocol = protocol(variant) + suffix(self._precision)
        self._net: Any = None

    def load(self) -> None:
        """Build the upstream.

        Raises:
            UnknownName: s3prl has no such upstream. WeightsError: its checkpoint cannot be fetched or read.
        """
        if self._net is None:
            self._net = load_upstream(self._upstream, self.weights).to(self.device).eval()

    def compute(self, signals: Sequence[np.ndarray]) -> list[Result | Unavailable]:
        """Embed signals `(samples,)`, float32 at 16 kHz."""
        self.load()
        results: list[Result | Unavailable] = [Unavailable(Diagnostic("signal_silent")) for _ in signals]
        by_length: dict[int, list[int]] = {}
        for index, signal in enumerate(signals):
            if signal.size and np.ptp(signal) > 0:
                by_length.setdefault(signal.size, []).append(index)
        groups = [*by_length.values()]
        for places, embeddings in zip(groups, self._embed([[signals[index] for index in g] for g in groups])):
            for index, embedding in zip(places, embeddings, strict=True):
                if embedding.size and np.isfinite(embedding).all():
                    results[index] = {self.result: embedding}
                else:
                    results[index] = Unavailable(Diagnostic("upstream_not_finite"))
        return results

    def _embed(self, groups: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
        """Embed groups of signals of equal length, by `_pooled` of the last hidden state."""
        from codec_bench.networks.transfer import fetched, sent

        with computing(self.device, self._precision), redirect_stdout(sys.stderr):
            there = iter(sent([np.array(signal, np.float32) for group in groups for signal in group], self.device))
            return fetched([self._pooled([*islice(there, len(group))]) for group in groups])

    def _pooled(self, waves: list[Any]) -> Any:
        return self._last(waves).mean(1)

    def _last(self, waves: list[Any]) -> Any:
        """Compute the last hidden state of waves, float32 `(batch, frames, width)`."""
        output = self._net(waves)
        last = output["last_hidden_state"] if "last_hidden_state" in output else output["hidden_states"][-1]
        return last.float()


def protocol(upstream: str) -> str:
    """Return the protocol id of an upstream's embedding in float32.

    Raises:
        MissingExtra: s3prl is not installed.
    """
    if importlib.util.find_spec("s3prl") is None:
        raise MissingExtra("s3prl_upstream", "s3prl", "s3prl", name=upstream)
    return f"s3prl-{version('s3prl')}/{upstream}/mean-of-last"


@contextmanager
def mended() -> Iterator[None]:
    """Restore two removed names of torchaudio while s3prl is imported or builds.

    torchaudio 2.9 removed `set_audio_backend` and `sox_effects`, from which s3prl 0.4.18 imports. No upstream needs
    them.
    """
    import torchaudio

    with ExitStack() as stack:
        if not hasattr(torchaudio, "set_audio_backend"):
            torchaudio.set_audio_backend = lambda _: None
            stack.callback(delattr, torchaudio, "set_audio_backend")
        if importlib.util.find_spec("torchaudio.sox_effects") is None:
            effects = types.ModuleType("torchaudio.sox_effects")
            vars(effects).update(apply_effects_tensor=_raise_removed, apply_effects_file=_raise_removed)
            sys.modules[effects.__name__] = torchaudio.sox_effects = effects
            stack.callback(delattr, torchaudio, "sox_effects")
            stack.callback(sys.modules.pop, effects.__name__)
        stack.enter_context(redirect_stdout(sys.stderr))  # s3prl prints; standard output is for data
        yield


@contextmanager
def _tensors_only() -> Iterator[None]:
    """Make every `torch.load` in this context, also in s3prl, use `weights_only`."""
    before = os.environ.get(SAFE_LOADING)
    os.environ[SAFE_LOADING] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE_LOADING]
        else:
            os.environ[SAFE_LOADING] = before


def _raise_removed(*_: Any, **__: Any) -> None:
    raise NotImplementedError("torchaudio has no sox effects since 2.9")


def load_upstream(name: str, weights: str | None) -> Any:
    """Build an upstream of s3prl, reading its checkpoint with `weights_only`.

    Raises:
        UnknownName: s3prl has no such upstream. WeightsError: its checkpoint cannot be fetched or read.
    """
    if weights is not None:
        check_archive(Path(weights).expanduser())
    with mended(), _tensors_only():
        upstreams = _upstreams()
        if name not in upstreams:
            raise UnknownName("s3prl_upstream", name, upstreams)
        try:
            return upstreams[name](weights) if weights is not None else upstreams[name]()
        except Exception as error:  # s3prl's code raises anything: assertions, HTTP errors, UnpicklingError
            reason = str(error).strip().split("\n")[0] or "unknown reason"
            raise WeightsError(
                "upstream_not_loaded",
                upstream=name,
                type=type(error).__name__,
                reason=reason,
                hint=f"without a network, copy its checkpoint here and use s3prl[{name.split('_')[0]}_local]",
            ) from error


def _upstreams() -> dict[str, Callable[..., Any]]:
    """Map the names of s3prl's upstream models to their functions."""
    from s3prl import hub

    return {
        name: value
        for name, value in vars(hub).items()
        if inspect.isfunction(value) and value.__module__.endswith(".hubconf") and not name.startswith("_")
    }

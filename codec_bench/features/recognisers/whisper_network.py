"""The interface of Whisper's network, whichever library computes it.

A window is 30 s of log-mel spectrogram. Batches are float32 `(windows, n_mels, 3000)` on the network's device. All
prompts of a call have the same number of tokens.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codec_bench.features.base import Word
from codec_bench.machine.memory import out_of_memory

if TYPE_CHECKING:
    import torch

WINDOW_FRAMES = 3_000
MAX_LENGTH = 448
"""Whisper's context in tokens. At most half as many are written, so an endless text ends after 224."""


def most_tokens(prompt: Sequence[int]) -> int:
    """Return the limit of tokens after a prompt."""
    return min(MAX_LENGTH // 2, MAX_LENGTH - len(prompt) + 1)


@dataclass(frozen=True, slots=True)
class WhisperOutput:
    """The decoded text of one window.

    Args:
        tokens: of the text, without the end.
        log_probability: natural, of the tokens and the end, among the allowed ones.
        no_speech: probability that the window holds no speech.
    """

    tokens: list[int]
    log_probability: float
    no_speech: float


class WhisperNetwork(ABC):
    """A loaded checkpoint on a device.

    Attributes
        n_mels: its mel bands. multilingual: whether it has tokens of languages.
    """

    n_mels: int
    multilingual: bool

    @abstractmethod
    def encode(self, batches: Iterable[torch.Tensor]) -> Any:
        """Encode all windows of the batches, for the other methods."""

    @abstractmethod
    def computes(self) -> bool:
        """Return whether the encoder's output for a silent window is finite.

        Raises:
            RuntimeError: the device, or a library that it needs, cannot compute it.
        """

    @abstractmethod
    def detect_languages(self, encoded: Any) -> list[tuple[str, float]]:
        """Return each window's most probable language code and its probability.

        The network is multilingual.
        """

    def words(
        self, encoded: Any, tokens: Sequence[int], language: str, begin_s: float, frames: int, before_s: float
    ) -> list[Word]:
        """Align the words of one window, where the library can.

        Args:
            encoded: the encoder's output for the window alone.
            tokens: the window's text.
            begin_s: the window's start in the signal.
            frames: the window's frames without padding.
            before_s: the end of the last word before the window.
        """
        raise NotImplementedError

    @abstractmethod
    def decode(self, encoded: Any, prompts: Sequence[Sequence[int]]) -> list[WhisperOutput]:
        """Decode each window greedily without timestamps.

        Args:
            encoded: from `encode`.
            prompts: the tokens before the text, for each window.
        """


def joined_batches(batches: Iterable[torch.Tensor]) -> torch.Tensor:
    """Concatenate batches; a single batch is returned without a copy."""
    import torch

    parts = list(batches)
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def refuse_if_too_large(name: str, device: str, error: Exception) -> None:
    """Raise a MemoryError if an error reports too little memory."""
    if out_of_memory(error):
        raise MemoryError(f"{name} does not fit into the memory of '{device}'") from error

"""What Whisper's network must do, whichever library computes it.

Conventions
    A window is 30 s of log-mel spectrogram. Batches are float32 `(windows, n_mels, 3000)` on the network's device.
    All prompts of a call have the same number of tokens.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codec_bench.features.base import Word
from codec_bench.memory import out_of_memory

if TYPE_CHECKING:
    import torch

WINDOW_FRAMES = 3_000
MAX_LENGTH = 448
"""Whisper's context in tokens. At most half as many new tokens are written, so an endless text ends after 224."""


def most_tokens(prompt: Sequence[int]) -> int:
    """How many tokens a text may have after its prompt."""
    return min(MAX_LENGTH // 2, MAX_LENGTH - len(prompt) + 1)


@dataclass(frozen=True, slots=True)
class WhisperOutput:
    """What was decoded from one window.

    Args:
        tokens: of the text, without the end.
        log_probability: natural logarithm of the probability of the tokens and the end, among those that were allowed.
        no_speech: probability that the window holds no speech.
    """

    tokens: list[int]
    log_probability: float
    no_speech: float


class WhisperNetwork(ABC):
    """A checkpoint that was loaded on a device.

    Attributes
        n_mels: the mel bands that it reads. multilingual: whether it knows tokens of languages.
    """

    n_mels: int
    multilingual: bool

    @abstractmethod
    def encode(self, batches: Iterable[torch.Tensor]) -> Any:
        """The encoder's output for all windows of the batches, as the other calls take it."""

    @abstractmethod
    def computes(self) -> bool:
        """Whether the encoder's output for a silent window is numbers.

        Raises:
            RuntimeError: the device, or a library that it needs, cannot compute it.
        """

    @abstractmethod
    def detect_languages(self, encoded: Any) -> list[tuple[str, float]]:
        """The most probable language of each window, as Whisper's code, and its probability among all languages.

        The network is multilingual.
        """

    def words(
        self, encoded: Any, tokens: Sequence[int], language: str, begin_s: float, frames: int, before_s: float
    ) -> list[Word]:
        """The words of one window with their times in the signal, where the library can align them.

        Args:
            encoded: of the window alone. tokens: its text. begin_s: where the window begins. frames: that are its own.
            before_s: where the last word before it ends.
        """
        raise NotImplementedError

    @abstractmethod
    def decode(self, encoded: Any, prompts: Sequence[Sequence[int]]) -> list[WhisperOutput]:
        """The most probable token at each step, without timestamps, for each window; `prompts` has one for each."""


def joined_batches(batches: Iterable[torch.Tensor]) -> torch.Tensor:
    """One batch of several; a single one is not copied."""
    import torch

    parts = list(batches)
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def refuse_if_too_large(name: str, device: str, error: Exception) -> None:
    """Raises a MemoryError if an error says that memory did not suffice."""
    if out_of_memory(error):
        raise MemoryError(f"{name} does not fit into the memory of '{device}'") from error

"""Whisper's network in torch, for checkpoints of transformers.

Every window has 3000 frames and every prompt of a batch as many tokens as the others, so nothing is padded.

The keys and values of the encoder's output are nearly all that a step reads. Copying those of the remaining windows
costs two steps of them. Once a quarter has ended, that pays off within eight steps.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from codec_bench.features.recognisers.transformers_checkpoint import check_kind, config_of
from codec_bench.features.recognisers.whisper_checkpoint import Tokens
from codec_bench.features.recognisers.whisper_network import (
    WINDOW_FRAMES,
    WhisperNetwork,
    WhisperOutput,
    joined_batches,
    most_tokens,
    refuse_if_too_large,
)
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import WeightsError
from codec_bench.networks.batch_shapes import in_rows, rows_of
from codec_bench.weights.state import load_tensors

if TYPE_CHECKING:
    import torch

    from codec_bench.networks.whisper import Sizes

KIND = "whisper"
BETWEEN_LOOKS = {"cpu": 1, "cuda": 4}
"""Tokens between checks which texts have ended. On a GPU, the host waits at each check."""
_SIZE_KEYS = {
    "n_mels": ("num_mel_bins", 80), "width": ("d_model", 384), "vocabulary": ("vocab_size", 51_865),
    "audio_positions": ("max_source_positions", 1_500), "text_positions": ("max_target_positions", 448),
    "encoder_layers": ("encoder_layers", 4), "encoder_heads": ("encoder_attention_heads", 6),
    "encoder_wide": ("encoder_ffn_dim", 1_536), "decoder_layers": ("decoder_layers", 4),
    "decoder_heads": ("decoder_attention_heads", 6), "decoder_wide": ("decoder_ffn_dim", 1_536),
}  # fmt: skip
"""Keys of config.json, and transformers' defaults."""
STAY = 0.75
"""The share of windows left from which on the batch stays as it is."""


class TorchWhisper(WhisperNetwork):
    """A checkpoint in the layout of transformers.

    Args:
        name: of the recogniser, for messages. folder: of the checkpoint.
        compute_type: `float32`, `float16` or `bfloat16`, of weights and computation.

    Raises:
        WeightsError: the checkpoint is broken, or of another kind of model. MemoryError: it does not fit into memory.
    """

    def __init__(self, name: str, folder: Path, device: str, compute_type: str, tokens: Tokens) -> None:
        from codec_bench.networks.whisper import OUTPUT, WhisperNet

        check_kind(name, folder, KIND)
        sizes = sizes_of(folder)
        self.tokens, self._looks = tokens, BETWEEN_LOOKS[device.split(":")[0]]
        self.n_mels = sizes.n_mels
        # Only vocabularies of several languages have the empty token, by which CTranslate2 knows them too.
        self.multilingual = tokens.tokenizer.token_to_id("") is not None
        # The converter to CTranslate2 takes these from the same place.
        first = _begin_suppressed(folder)
        unused = () if sizes.has_output else (OUTPUT,)
        try:
            state = load_tensors(folder, sizes.shapes, dtype=compute_type, device=device, unused=unused)
            self._net = WhisperNet(state, sizes)
        except RuntimeError as error:
            refuse_if_too_large(name, device, error)
            raise
        # Added to the logits of every token, and of the first: 0, or the least number for suppressed tokens.
        self._banned = self._net.logits_added(tokens.suppressed)
        self._banned_first = self._net.logits_added([*tokens.suppressed, *first])

    def encode(self, batches: Iterable[torch.Tensor]) -> torch.Tensor:
        """Encode windows to `(windows, 1500, width)`, on the model's device."""
        return joined_batches(in_rows(self._net.encode, [batch.to(self._net.dtype)]) for batch in batches)

    def computes(self) -> bool:
        """Return whether the encoder's output for a silent window is finite."""
        import torch

        with torch.inference_mode():
            silence = torch.zeros((1, self.n_mels, WINDOW_FRAMES), device=self._net.device)
            return bool(self.encode([silence]).isfinite().all())

    def detect_languages(self, encoded: torch.Tensor) -> list[tuple[str, float]]:
        """Return each window's most probable language and its probability."""
        import torch

        from codec_bench.networks.transfer import sent

        codes, ids = zip(*self.tokens.languages.items())
        starts = torch.full((encoded.shape[0], 1), self.tokens.start, device=encoded.device)
        logits = self._net.logits(self._net.step(starts, self._net.begin(encoded, 1))[:, 0])
        shares = logits[:, sent([np.asarray(ids, np.int64)], encoded.device)[0]].float().softmax(1)
        best = torch.stack([value.double() for value in shares.max(1)], 1)
        return [(codes[int(index)], share) for share, index in best.tolist()]

    def decode(self, encoded: torch.Tensor, prompts: Sequence[Sequence[int]]) -> list[WhisperOutput]:
        """Decode each window greedily, after its prompt tokens of equal number."""
        import torch

        from codec_bench.networks.transfer import sent

        (prompt_ids,) = sent([np.asarray([list(prompt) for prompt in prompts], np.int64)], encoded.device)
        most, start = most_tokens(prompts[0]), prompts[0].index(self.tokens.start)
        written = self._net.begin(encoded, prompt_ids.shape[1] + most)
        out = self._net.step(prompt_ids, written)
        nothing = self._net.logits(out[:, start]).softmax(1, torch.float32)[:, self.tokens.no_speech]
        texts = [_Text() for _ in prompts]
        alive, unseen = list(texts), []
        for step in range(most):
            logits = self._net.logits(out[:, -1], self._banned if step else self._banned_first)
            log_probabilities, best = logits.log_softmax(1, torch.float32).max(1)
            unseen.append((log_probabilities, best))
            if len(unseen) == self._looks or step + 1 == most:
                self._append_steps(unseen, alive)
                unseen = []
                going = [row for row, text in enumerate(alive) if not text.ended]
                if not going or step + 1 == most:
                    break
                rows = rows_of(len(going))
                if rows <= STAY * len(alive):
                    ended = [row for row, text in enumerate(alive) if text.ended]
                    stay = [*going, *ended[: rows - len(going)]]
                    (remaining,) = sent([np.asarray(stay, np.int64)], encoded.device)
                    written.keep(remaining)
                    best, alive = best[remaining], [alive[row] for row in stay]
            out = self._net.step(best[:, None], written)
        return [
            WhisperOutput(text.tokens, text.log_probability, silent) for text, silent in zip(texts, nothing.tolist())
        ]

    def _append_steps(self, steps: list[tuple[torch.Tensor, torch.Tensor]], alive: list[_Text]) -> None:
        """Fetch the tokens of some decoding steps, and append them to the texts.

        Args:
            steps: log-probabilities and tokens of each step, `(texts,)` each.
            alive: the texts that are decoded.
        """
        import torch

        # Both together: the host waits at each read. Float32 holds every token exactly.
        seen = torch.stack([torch.stack([one.float() for one in pair]) for pair in steps])
        for log_probabilities, tokens in seen.tolist():
            for text, token, log_probability in zip(alive, tokens, log_probabilities):
                text.add(int(token), log_probability, self.tokens.end)


def sizes_of(folder: Path) -> Sizes:
    """Read the sizes of a checkpoint's networks from its config.json.

    Raises:
        WeightsError: it lacks one, or describes an unsupported variant of Whisper.
    """
    from codec_bench.networks.whisper import Sizes

    config = config_of(folder)
    try:
        sizes = {field: int(config.get(key, default)) for field, (key, default) in _SIZE_KEYS.items()}
    except (ValueError, TypeError) as error:
        raise WeightsError("weights_not_read", path=folder, type=type(error).__name__, reason=error) from error
    activation, is_scaled = config.get("activation_function", "gelu"), config.get("scale_embedding", False)
    if activation != "gelu" or is_scaled:
        raise WeightsError(
            "weights_of_another_model",
            folder=folder,
            difference=Diagnostic("activation_differs", activation=activation, is_scaled=is_scaled),
        )
    return Sizes(**sizes, has_output=not config.get("tie_word_embeddings", True))


def _begin_suppressed(folder: Path) -> list[int]:
    """Read the tokens that may not begin a text; old checkpoints list them elsewhere."""
    path = folder / "generation_config.json"
    try:
        config = json.loads(path.read_text("utf-8")) if path.is_file() else config_of(folder)
        return [int(token) for token in config.get("begin_suppress_tokens") or []]
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise WeightsError("weights_not_read", path=path, type=type(error).__name__, reason=error) from error


@dataclass(slots=True)
class _Text:
    """The tokens decoded so far for one window, and their log-probability."""

    tokens: list[int] = field(default_factory=list)
    log_probability: float = 0.0
    ended: bool = False

    def add(self, token: int, log_probability: float, end: int) -> None:
        """Append a token and its log-probability, unless the end token came before.

        Args:
            end: the id of the end token, which is not appended.
        """
        if self.ended:
            return
        self.log_probability += log_probability
        self.ended = token == end
        if not self.ended:
            self.tokens.append(token)

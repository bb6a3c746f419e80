"""Whisper's network in torch, by the classes of transformers: the way out where CTranslate2 finds no cuBLAS 12.

Why a batch gives what each of its windows gives alone
    Every window has 3000 frames and every prompt of a batch as many tokens as the others, so nothing is padded. A window
    whose text has ended leaves the batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from codec_bench.features.recognisers.transformers_checkpoint import check_kind
from codec_bench.features.recognisers.whisper_checkpoint import Tokens
from codec_bench.features.recognisers.whisper_network import (
    WINDOW_FRAMES,
    Decoded,
    WhisperNetwork,
    joined_batches,
    most_tokens,
    refuse_if_too_large,
)
from codec_bench.networks.ladder import in_rows

if TYPE_CHECKING:
    import torch

KIND = "whisper"
BETWEEN_LOOKS = {"cpu": 1, "cuda": 8}
"""Tokens that are written before it is seen which texts have ended. On a GPU, the host waits for the device whenever it looks."""
ROOM = 64
"""Tokens for which the cache of the decoder takes memory at a time."""


class TorchWhisper(WhisperNetwork):
    """A checkpoint in the layout of transformers.

    Args:
        name: of the recogniser, for messages.
        folder: of the checkpoint.
        device: `cpu` or `cuda:N`.
        compute_type: `float32`, `float16` or `bfloat16`: that of the weights and of what is computed with them.
        tokens: of the checkpoint.

    Raises:
        WeightsError: the checkpoint is broken, or that of another kind of model. MemoryError: it does not fit into memory.
    """

    def __init__(self, name: str, folder: Path, device: str, compute_type: str, tokens: Tokens) -> None:
        import torch
        from transformers import WhisperForConditionalGeneration

        from codec_bench.weights.pretrained import load_pretrained

        check_kind(name, folder, KIND)
        net = load_pretrained(WhisperForConditionalGeneration, str(folder), {})
        self.tokens, self._looks = tokens, BETWEEN_LOOKS[device.split(":")[0]]
        self.n_mels = net.config.num_mel_bins
        # Only vocabularies of several languages have the empty token, by which CTranslate2 knows them too.
        self.multilingual = tokens.tokenizer.token_to_id("") is not None
        # The converter to CTranslate2 takes these from the same place.
        first = net.generation_config.begin_suppress_tokens or []
        try:
            self._net = net.to(device, getattr(torch, compute_type)).eval()
        except RuntimeError as error:
            refuse_if_too_large(name, device, error)
            raise
        self._banned = torch.tensor(tokens.suppressed, device=device)
        self._banned_first = torch.tensor([*tokens.suppressed, *first], device=device)

    def encode(self, batches: Iterable[torch.Tensor]) -> torch.Tensor:
        """The encoder's output `(windows, 1500, width)`, on the model's device."""
        encoder = self._net.get_encoder()
        return joined_batches(
            in_rows(lambda mels: encoder(mels).last_hidden_state, [batch.to(self._net.dtype)]) for batch in batches
        )

    def computes(self) -> bool:
        """Whether the encoder's output for a silent window is numbers."""
        import torch

        with torch.inference_mode():
            silence = torch.zeros((1, self.n_mels, WINDOW_FRAMES), device=self._net.device)
            return bool(self.encode([silence]).isfinite().all())

    def detect_languages(self, encoded: torch.Tensor) -> list[str]:
        """The most probable language of each window."""
        import torch

        from codec_bench.networks.transfer import sent

        codes, ids = zip(*self.tokens.languages.items())
        starts = torch.full((encoded.shape[0], 1), self.tokens.start, device=encoded.device)
        logits = self._logits(self._step(starts, encoded, self._cache()).last_hidden_state[:, 0])
        found = logits[:, sent([np.asarray(ids, np.int64)], encoded.device)[0]].argmax(1)
        return [codes[place] for place in found.tolist()]

    def decode(self, encoded: torch.Tensor, prompts: Sequence[Sequence[int]]) -> list[Decoded]:
        """The most probable token at each step, for each window."""
        import torch

        from codec_bench.networks.transfer import sent

        (given,) = sent([np.asarray([list(prompt) for prompt in prompts], np.int64)], encoded.device)
        out = self._step(given, encoded, self._cache())
        start = prompts[0].index(self.tokens.start)
        silent = self._logits(out.last_hidden_state[:, start]).softmax(1)[:, self.tokens.no_speech].tolist()
        texts = [_Text() for _ in prompts]
        alive, unseen, most = list(texts), [], most_tokens(prompts[0])
        for step in range(most):
            logits = self._logits(out.last_hidden_state[:, -1])
            logits[:, self._banned if step else self._banned_first] = -math.inf
            log_probabilities, best = logits.log_softmax(1).max(1)
            unseen.append(torch.stack([best.to(log_probabilities.dtype), log_probabilities]))
            if len(unseen) == self._looks or step + 1 == most:
                self._look(torch.stack(unseen).tolist(), alive)
                unseen = []
                rows = [row for row, text in enumerate(alive) if not text.ended]
                if not rows or step + 1 == most:
                    break
                if len(rows) < len(alive):
                    (kept,) = sent([np.asarray(rows, np.int64)], encoded.device)
                    out.past_key_values.batch_select_indices(kept)
                    encoded, best, alive = encoded[kept], best[kept], [alive[row] for row in rows]
            out = self._step(best[:, None], encoded, out.past_key_values)
        return [Decoded(text.tokens, text.log_probability, nothing) for text, nothing in zip(texts, silent)]

    def _look(self, steps: list[list[list[float]]], alive: list[_Text]) -> None:
        """Writes the tokens and logarithms of some steps `(steps, 2, texts)` to the texts that they belong to."""
        for tokens, log_probabilities in steps:
            for text, token, log_probability in zip(alive, tokens, log_probabilities):
                text.add(int(token), log_probability, self.tokens.end)

    def _cache(self) -> Any:
        """An empty cache of the decoder: what it computed of its own tokens, and of the encoder's output."""
        from transformers.cache_utils import DynamicCache, EncoderDecoderCache

        made = EncoderDecoderCache(DynamicCache(), DynamicCache())
        made.self_attention_cache.layers = [_layer_in_place()() for _ in range(self._net.config.decoder_layers)]
        return made

    def _step(self, given: torch.Tensor, encoded: torch.Tensor, cache: Any) -> Any:
        """The decoder's output for tokens `(windows, tokens)` that follow those in the cache."""
        return self._net.get_decoder()(
            input_ids=given, encoder_hidden_states=encoded, past_key_values=cache, use_cache=True
        )

    def _logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Float32 `(windows, vocabulary)`, of hidden states `(windows, width)`."""
        logits: torch.Tensor = self._net.proj_out(hidden).float()
        return logits


@cache
def _layer_in_place() -> type:
    """The class of a layer's cache that has memory for tokens to come, so that no token copies those before it."""
    from transformers.cache_utils import DynamicLayer

    class InPlace(DynamicLayer):
        def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
            super().lazy_initialization(key_states, value_states)
            self._rooms = [states[:, :, :0] for states in (key_states, value_states)]
            self._filled = 0

        def update(
            self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **more: Any
        ) -> tuple[torch.Tensor, torch.Tensor]:
            if not self.is_initialized:
                self.lazy_initialization(key_states, value_states)
            before, self._filled = self._filled, self._filled + key_states.shape[2]
            for place, states in enumerate((key_states, value_states)):
                room = self._rooms[place]
                if room.shape[2] < self._filled:
                    most = -(-self._filled // ROOM) * ROOM
                    self._rooms[place] = states.new_empty((*states.shape[:2], most, states.shape[3]))
                    self._rooms[place][:, :, :before] = room[:, :, :before]
                self._rooms[place][:, :, before : self._filled] = states
            return self._shown()

        def batch_select_indices(self, indices: torch.Tensor) -> None:
            self._rooms = [room[indices] for room in self._rooms]
            self._shown()

        def _shown(self) -> tuple[torch.Tensor, torch.Tensor]:
            keys, values = self.keys, self.values = [room[:, :, : self._filled] for room in self._rooms]
            return keys, values

    return InPlace


@dataclass(slots=True)
class _Text:
    """What has been written of one window."""

    tokens: list[int] = field(default_factory=list)
    log_probability: float = 0.0
    ended: bool = False

    def add(self, token: int, log_probability: float, end: int) -> None:
        """Adds a token, unless the text has ended before it."""
        if self.ended:
            return
        self.log_probability += log_probability
        self.ended = token == end
        if not self.ended:
            self.tokens.append(token)

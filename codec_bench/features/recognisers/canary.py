"""Transcripts by NVIDIA's Canary: Parakeet's encoder and a decoder.

Front end and encoder are Parakeet's; `parakeet.py` explains why padding changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from codec_bench.features.base import Result
from codec_bench.features.recognisers.parakeet import EUROPEAN, masked, spectrograms
from codec_bench.features.recognisers.pieces import RATE_HZ, PieceTranscript, PiecewiseRecogniser
from codec_bench.features.recognisers.transformers_checkpoint import GREEDY, check_kind, parts_of
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import WeightsError
from codec_bench.networks.precision import computing

KIND = "canary"
MAX_TOKENS = 512
"""Half of the decoder's positions. Forty seconds of fast speech take less than half of them."""


class Canary(PiecewiseRecogniser):
    """Transcripts by Canary with capitals, punctuation and digits, decoded greedily.

    The network needs the language of the signal. It was trained on up to 40 s; a longer signal is cut
    (`PiecewiseRecogniser`).

    Result: `transcript` and `language` (the input). `fault` reports a text that did not end.

    Paper: M. Sekoyan et al., "Canary-1B-v2 & Parakeet-TDT-0.6B-v3", 2025, arXiv 2509.14128. Reference implementation:
    transformers 5.23 `CanaryForConditionalGeneration.generate` with `CanaryProcessor`, each signal alone: the same
    tokens in float32.

    Args:
        model: a key of `models`. device: `cpu` or `cuda:N`.
        weights: a transformers folder or a hub id in the local cache; None for the published ones.
        point: `tf32` or `bfloat16`; None for float32.

    Raises:
        WeightsError: the weights are missing or belong to another model.
    """

    name = "canary"
    languages = EUROPEAN
    reads_language = needs_language = True
    models: ClassVar[Mapping[str, str]] = {"canary-1b-v2": "canary-1b-v2"}
    whole_s = 40.0

    def _network(self) -> Any:
        """Load the network, and the front end and tokeniser that fit it."""
        from codec_bench.weights.pretrained import class_of, load_pretrained

        net = class_of("CanaryForConditionalGeneration")
        check_kind(self.name, self._folder, KIND)
        self._extractor, self._tokenizer = parts_of(self._folder, RATE_HZ, "ParakeetFeatureExtractor", "AutoTokenizer")
        if not self._tokenizer.chat_template:
            raise WeightsError("no_chat_template", folder=self._folder)
        return load_pretrained(net, str(self._folder), {})

    @property
    def shortest(self) -> int:
        """The fewest samples: two frames, since the front end divides by their variance."""
        return 2 * int(self._extractor.hop_length)

    def transcribe(self, pieces: Sequence[np.ndarray], languages: Sequence[str | None]) -> list[PieceTranscript]:
        """Transcribe each segment in its language."""
        from codec_bench.networks.transfer import sent

        (prompts,) = sent([np.asarray([self._prompt(str(code)) for code in languages], np.int64)], self.device)
        mels, counts = spectrograms(self._extractor, pieces, self.device)
        with computing(self.device, self._precision):
            generated = masked(self._generated, mels, counts, [prompts])
        end = self._net.config.eos_token_id
        transcripts = []
        for tokens, code in zip(generated[:, prompts.shape[1] :].tolist(), languages):
            last = tokens.index(end) if end in tokens else None
            text = self._tokenizer.decode(tokens[:last], skip_special_tokens=True).strip()
            fault = None if last is not None else Diagnostic("text_endless", tokens=MAX_TOKENS)
            transcripts.append(PieceTranscript(text, str(code), fault))
        return transcripts

    def _generated(self, inputs: Mapping[str, Any], prompts: Any) -> Any:
        """Generate greedily; return the tokens with those of the prompts."""
        return self._net.generate(
            **inputs, decoder_input_ids=prompts, max_new_tokens=MAX_TOKENS, **GREEDY,
            decoder_start_token_id=self._net.config.decoder_start_token_id,
        )  # fmt: skip

    def _prompt(self, language: str) -> list[int]:
        """Return the decoder's prompt, which is equally long for all languages."""
        prompt = {"type": "text", "source_language": language, "target_language": language, "punctuation": True}
        ids: list[int] = self._tokenizer.apply_chat_template(
            [{"role": "user", "content": [{"type": "audio"}, prompt]}],
            tokenize=True,
            add_generation_prompt=True,
            return_dict=False,
        )
        return ids

    def result(self, parts: Sequence[PieceTranscript], language: str | None) -> Result:
        """Join the transcripts of a signal's segments, in order."""
        return {**super().result(parts, language), "language": language, "language_detected": False}

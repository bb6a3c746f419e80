"""Auto-ATT: how human speech sounds to a trained Qwen2-Audio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from codec_bench.features.base import Feature, Result, Unavailable, too_short
from codec_bench.features.pitch import unusable
from codec_bench.features.precision_names import parse_precision, suffix
from codec_bench.features.recognisers.transformers_checkpoint import check_kind, parts_of
from codec_bench.messages.errors import WeightsError
from codec_bench.networks.precision import Precision, computing
from codec_bench.weights import find

RATE_HZ = 16_000
KIND = "qwen2_audio"
SHORTEST = 961
"""The shortest signal in samples. With a single frame, transformers would mistake it for a placeholder."""
WORTH = {"Good": 3.0, "Fair": 2.0, "Bad": 1.0}
"""The three answers and their values."""
SYSTEM = "You are a helpful assistant."
QUESTION = (
    "Suppose you are an expert in judging and evaluating the quality of audios.\n"
    "Your judgement should be chosen from the following three catefories: Good, Fair, Bad.\n"
    "Bad: The sound clearly has synthetic or machine characteristics. There is significant distortion, monotonous"
    " intonation, or unnatural speech speed. The pronunciation and intonation lack variation, and the listening "
    "experience is more mechanized.\n"
    "Fair: The sound has some human qualities but still does not seem natural enough. The intonation and speech "
    "speed may be incoherent or appear rigid. There is slight distortion or artifacts that make it difficult to "
    "determine if it is machine-generated.\n"
    "Good: The sound is completely natural and almost indistinguishable from a real person. The intonation, "
    "speech speed, and emotions are smooth and authentic. No obvious artifacts or distortions are present.\n"
    "Please note, only the category (Good, Fair, Bad) needs to be output.\n"
    "Now please rate this audio:"
)
"""The training question, letter by letter: other words give other scores."""
PRECISIONS: dict[str, Precision] = {"bfloat16": "bfloat16-weights", "tf32": "tf32"}
ON_CPU, ON_GPU = 4, 32
"""The most signals per pass."""


class AutoAtt(Feature):
    """How human speech sounds, 1 to 3. Higher is better; for Mandarin.

    Qwen2-Audio gets the speech and the question whether it is Good, Fair or Bad. A softmax over the next token's logits
    of these words gives their shares, which weight 3, 2 and 1. It reads the first 30 s, as the published program does;
    `heard_s` is their length. Prompts are padded on the left and masked, and spectrograms are 30 s long, so batches do
    not change the scores.

    Result: `{"score": float, "good": float, "fair": float, "bad": float, "heard_s": float}`; the three are the shares.

    Paper: X. Wang et al., "Audio Turing Test: Benchmarking the Human-likeness of Large Language Model-based
    Text-to-Speech Systems in Chinese", 2025, arXiv 2505.11200. Reference implementation: inference.py
    (github.com/AudioTuring/Auto-ATT-Inference eff2e49) over transformers 5.23 in float32, signal by signal, to 1e-5.
    That program computes in the checkpoint's bfloat16.

    Args:
        weights: a transformers folder in place of the published checkpoint, or None.
        point: `bfloat16` for weights in bfloat16 (17 GB in place of 34), `tf32`, or None for float32.

    Raises:
        WeightsError: the weights are missing. UserError: no such precision.
    """

    name = "auto-att"
    rate_hz = RATE_HZ
    where = "device"
    batch_s = 240.0

    def __init__(self, device: str = "cpu", weights: str | None = None, point: str | None = None) -> None:
        super().__init__(device, weights)
        self._precision = parse_precision(self.name, point, PRECISIONS)
        self.protocol = self.protocol_id(point)
        self._folder = find(self.name, weights).folder
        self._net: Any = None

    @classmethod
    def protocol_id(cls, point: str | None = None) -> str:
        """Return the protocol id, without the weights."""
        return f"auto-att/first-30s/1{suffix(parse_precision(cls.name, point, PRECISIONS))}"

    def load(self) -> None:
        """Load the network, its front end and its tokens.

        Raises:
            WeightsError: they do not fit together, or belong to another kind of model.
        """
        if self._net is not None:
            return
        from transformers import AutoProcessor, Qwen2AudioForConditionalGeneration

        from codec_bench.weights.pretrained import load_pretrained

        check_kind(self.name, self._folder, KIND)
        parts_of(self._folder, RATE_HZ, "WhisperFeatureExtractor", "AutoTokenizer")
        self._processor: Any = AutoProcessor.from_pretrained(str(self._folder), local_files_only=True)
        ids = {word: self._processor.tokenizer.encode(word, add_special_tokens=False) for word in WORTH}
        if cut := [word for word, tokens in ids.items() if len(tokens) != 1]:
            raise WeightsError("tokens_unexpected", folder=self._folder, text=cut[0], tokens=len(ids[cut[0]]))
        turns = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": [{"type": "audio", "audio_url": ""}, {"type": "text", "text": QUESTION}]},
        ]
        self._prompt = self._processor.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
        dtype = "bfloat16" if self._precision == "bfloat16-weights" else "float32"
        net = load_pretrained(Qwen2AudioForConditionalGeneration, str(self._folder), {}, dtype)
        self._net = net.to(self.device).eval()
        self._words = self._net.lm_head.weight[[tokens[0] for tokens in ids.values()]]

    def compute(self, signals: Sequence[np.ndarray]) -> list[Result | Unavailable]:
        """Score signals `(samples,)`, float32 at 16 kHz."""
        self.load()
        results: dict[int, Result | Unavailable] = {
            index: why for index, signal in enumerate(signals) if (why := _obstacle(signal)) is not None
        }
        usable = sorted(
            (index for index in range(len(signals)) if index not in results), key=lambda at: signals[at].size
        )
        most = ON_CPU if self.device == "cpu" else ON_GPU
        for places in (usable[start : start + most] for start in range(0, len(usable), most)):
            shares = self._shares([self._inputs(signals[index]) for index in places])
            results.update(
                (index, self._result(row, signals[index])) for index, row in zip(places, shares, strict=True)
            )
        return [results[index] for index in range(len(signals))]

    def _inputs(self, signal: np.ndarray) -> Mapping[str, Any]:
        """Build the prompt and the spectrogram of one signal, as a batch of one."""
        inputs: Any = self._processor(text=[self._prompt], audio=[signal], sampling_rate=RATE_HZ, return_tensors="pt")
        return inputs

    def _shares(self, rows: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """Compute the softmax over the three score words after each prompt.

        Args:
            rows: the processor's inputs of each prompt with its audio.

        Returns:
            float64 `(rows, 3)`.
        """
        import torch

        from codec_bench.networks.transfer import fetched, sent

        width = max(row["input_ids"].shape[1] for row in rows)
        pads = {"input_ids": self._processor.tokenizer.pad_token_id, "attention_mask": 0}
        batch = {
            key: torch.cat(
                [torch.nn.functional.pad(row[key], (width - row[key].shape[1], 0), value=pad) for row in rows]
            )
            for key, pad in pads.items()
        }
        batch["position_ids"] = (batch["attention_mask"].cumsum(-1) - 1).clamp(min=0)
        for key in ("input_features", "feature_attention_mask"):
            batch[key] = torch.cat([row[key] for row in rows])
        inputs = dict(zip(batch, sent([value.numpy() for value in batch.values()], self.device), strict=True))
        inputs["input_features"] = inputs["input_features"].to(self._net.dtype)
        with computing(self.device, self._precision):
            last = self._net.model(**inputs, use_cache=False).last_hidden_state[:, -1]
            logits = torch.nn.functional.linear(last, self._words)
            (shares,) = fetched([logits.float().softmax(-1)])
        return shares.astype(np.float64)

    def _result(self, shares: np.ndarray, signal: np.ndarray) -> Result:
        used = min(signal.size, self._processor.feature_extractor.n_samples)
        shares_by_word = {word.lower(): float(share) for word, share in zip(WORTH, shares, strict=True)}
        return {"score": float(shares @ list(WORTH.values())), **shares_by_word, "heard_s": used / RATE_HZ}


def _obstacle(signal: np.ndarray) -> Unavailable | None:
    """Return why a signal has no score, or None."""
    return unusable(signal) or too_short(signal, "Auto-ATT", SHORTEST)

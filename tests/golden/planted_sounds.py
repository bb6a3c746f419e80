"""Sounds of kinds that can be told apart, and small networks that tell them: what is heard is known before it is
measured.

The networks are those of CLAP and of emotion2vec+ with made-up weights, except for their last layers, which are fitted
here to sounds of each kind. So a right answer needs the whole way from the samples to the label.
"""

from __future__ import annotations

import numpy as np
import torch

RATE_HZ = 48_000
EVENTS = ("clock_tick", "rain", "siren", "crickets")
EMOTIONS = ("neutral", "happy", "sad", "angry", "fearful", "disgusted", "surprised")


def event(kind: str, seed: int, seconds: float = 1.0) -> np.ndarray:
    """A sound of a kind of `EVENTS`, float32 `(samples,)` at 48 kHz, at a level and with details of its own."""
    rng = np.random.default_rng([EVENTS.index(kind), seed])
    time = np.arange(round(RATE_HZ * seconds)) / RATE_HZ
    noise, pitch = rng.normal(0, 1, time.size), rng.uniform(0.95, 1.05)
    built = {
        "clock_tick": lambda: noise * (((time + rng.uniform(0, 0.2)) % 0.2) < 0.002),
        "rain": lambda: noise,
        "siren": lambda: np.sin(2 * np.pi * pitch * (900 * time - 40 * np.cos(2 * np.pi * 2 * time))),
        "crickets": lambda: np.sin(2 * np.pi * 5000 * pitch * time) * (np.sin(2 * np.pi * 75 * time) > 0),
    }[kind]()
    return (rng.uniform(0.2, 0.8) * built / np.abs(built).max()).astype(np.float32)


def voice(emotion: str, seed: int, seconds: float = 0.6) -> np.ndarray:
    """A buzz whose pitch and trembling are those of an emotion, float32 `(samples,)` at 16 kHz."""
    kind = EMOTIONS.index(emotion)
    rng = np.random.default_rng([kind, seed])
    time = np.arange(round(16_000 * seconds)) / 16_000
    pitch = 90 * 1.4**kind * rng.uniform(0.98, 1.02)
    output = sum(np.sin(2 * np.pi * pitch * k * time + k) / k for k in range(1, 8))
    output *= 1 + 0.5 * np.sin(2 * np.pi * (2 + kind) * time)
    return (rng.uniform(0.3, 0.7) * output / np.abs(output).max()).astype(np.float32)


def fitted(features: np.ndarray, kinds: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights `(kinds, numbers)` and biases that give 1 for the kind of features `(sounds, numbers)` and 0 for the
    others, by ridge regression.
    """
    middle, spread = features.mean(0), features.std(0) + 1e-6
    x = (features - middle) / spread
    expected = np.eye(kinds.max() + 1)[kinds]
    weights = np.linalg.solve(x.T @ x + 3.0 * np.eye(x.shape[1]), x.T @ (expected - expected.mean(0))).T / spread
    return torch.from_numpy(weights).float(), torch.from_numpy(expected.mean(0) - weights @ middle).float()


def write_reading_clap(folder) -> None:
    """A folder with a small CLAP whose tokens are the words of the sentences about ESC-50's events."""
    import tiny_speech
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    from codec_bench.metrics.event_accuracy import ESC_50, PROMPT

    words = dict.fromkeys(" ".join(PROMPT.format(label) for label in ESC_50).split())
    retained = ["<s>", "<pad>", "</s>", "<unk>", *words]
    tiny_speech.write_clap(folder, vocabulary=len(retained))
    tokens = Tokenizer(models.WordLevel({word: n for n, word in enumerate(retained)}, unk_token="<unk>"))
    tokens.pre_tokenizer = pre_tokenizers.Whitespace()
    special = {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokens, model_max_length=9, **special).save_pretrained(folder)


def _outermost(text: np.ndarray, position: int) -> np.ndarray:
    """The direction in which one of the points stands out most from the others, `(numbers,)`: the shortest vector
    between it and their hull.
    """
    differences = text[position] - np.delete(text, position, 0)
    result = differences.mean(0)
    for _ in range(3000):
        step = differences[(differences @ result).argmin()] - result
        result = result + np.clip(-(result @ step) / max(step @ step, 1e-30), 0, 1) * step
    return result / np.linalg.norm(result)


def teach_clap(folder, each: int = 4) -> None:
    """Fits the last layers of a small CLAP, in the folder that is looked in: each kind of `EVENTS` lands where its
    sentence stands out.
    """
    import transformers

    from codec_bench.features.clap import Clap, TextEncoder
    from codec_bench.metrics.event_accuracy import ESC_50, PROMPT

    text = np.stack(TextEncoder().embeddings([PROMPT.format(label) for label in ESC_50]))
    feature, output = Clap(weights=str(folder)), []
    feature.load()
    feature._net.audio_projection.register_forward_hook(lambda _, inputs, out: output.append(inputs[0].numpy()))
    feature.compute([event(kind, 1000 + n) for kind in EVENTS for n in range(each)])
    weights, biases = fitted(np.concatenate(output), np.repeat(np.arange(len(EVENTS)), each))
    apart = np.stack([_outermost(text, ESC_50.index(kind.replace("_", " "))) for kind in EVENTS])
    net = transformers.ClapModel.from_pretrained(folder)
    with torch.no_grad():
        first, last = net.audio_projection.linear1, net.audio_projection.linear2
        for value in (first.weight, first.bias, last.weight, last.bias):
            value.zero_()
        first.weight[: len(EVENTS)], first.bias[: len(EVENTS)] = (
            weights,
            biases - 0.4,
        )  # of one kind alone is more left than 0
        last.weight[:, : len(EVENTS)] = torch.from_numpy(apart).T
    net.save_pretrained(folder)


def teach_emotion2vec(path, each: int = 6) -> None:
    """Fits the last layer of a small emotion2vec+ in a file: it names the emotion of each `voice`."""
    from tiny_speech import SmallEmotion2vec

    from codec_bench.features.emotion2vec import EMOTIONS as NAMES

    result = SmallEmotion2vec(weights=str(path)).compute(
        [voice(kind, 1000 + n) for kind in EMOTIONS for n in range(each)]
    )
    weights, biases = fitted(np.stack([one["embedding"] for one in result]), np.repeat(np.arange(len(EMOTIONS)), each))
    held = torch.load(path, weights_only=True)
    held["model"]["proj.weight"].zero_()
    held["model"]["proj.bias"].fill_(-5.0)
    for row, name in enumerate(EMOTIONS):
        held["model"]["proj.weight"][NAMES.index(name)] = 20 * weights[row]
        held["model"]["proj.bias"][NAMES.index(name)] = 20 * biases[row]
    torch.save(held, path)

"""Codecs whose profile is known beforehand, and codecs that do what a profile has to survive."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from codec_bench import Audio, CodecInfo, Codes, CodeStream, Latents

RATE = 16000
FRAME = 80


class Pcm:
    """16-bit samples, one code each: nothing is delayed, and next to nothing is lost."""

    where = "cpu"
    shift = 0

    def __init__(self):
        self.info = CodecInfo("pcm", (RATE,), frame_rate_hz=RATE, nominal_bitrate_bps=16.0 * RATE, causal=True)

    def change(self, samples):
        return samples

    def encode(self, batch):
        return [self.encode_one(audio) for audio in batch]

    def encode_one(self, audio):
        values = np.round(np.clip(self.change(audio.samples), -1, 1) * 32767).astype(int) + 32768
        return Codes((CodeStream(values, 65536, float(RATE)),), audio.num_samples, audio.sample_rate_hz)

    def decode(self, codes):
        return [Audio((c.streams[0].values - 32768) / 32767, c.sample_rate_hz) for c in codes]


class Late(Pcm):
    """Delays by 40 samples and does not make up for it."""

    def change(self, samples):
        return np.pad(samples, ((0, 0), (40, 0)))[:, : samples.shape[1]]


class LooksAhead(Pcm):
    """Each sample of its output is the mean of the input there and 40 samples later, which it denies."""

    def change(self, samples):
        later = np.pad(samples, ((0, 0), (0, 40)))[:, 40:][:, : samples.shape[1]]
        return 0.5 * (samples + later)


class Quieter(Pcm):
    """Loses 12 dB."""

    def change(self, samples):
        return samples / 4


class Loud(Pcm):
    """Adds 20 dB, and clips."""

    def change(self, samples):
        return samples * 10


class Silent(Pcm):
    """Gives back silence."""

    def decode(self, codes):
        return [Audio(np.zeros((1, c.num_samples)), c.sample_rate_hz) for c in codes]


class Mislabelled(Pcm):
    """Says that it spends half of what it spends."""

    def __init__(self):
        super().__init__()
        self.info = CodecInfo("half", (RATE,), frame_rate_hz=RATE, nominal_bitrate_bps=8.0 * RATE)


class Complete(Pcm):
    """Removes the mean of the whole signal."""

    def change(self, samples):
        return 0.5 * (samples - 20 * samples.mean())


class Framed(Pcm):
    """The level of each frame of 80 samples, in two codebooks of 32; can be streamed."""

    def __init__(self):
        rate = RATE / FRAME
        self.info = CodecInfo("framed", (RATE,), frame_rate_hz=rate, nominal_bitrate_bps=10 * rate, causal=True)

    def encode_one(self, audio):
        length = -(-audio.num_samples // FRAME) * FRAME
        frames = np.pad(audio.samples[0], (0, length - audio.num_samples)).reshape(-1, FRAME)
        level = np.round(np.clip(np.sqrt(np.square(frames).mean(axis=1)), 0, 1) * 1023).astype(int)
        return Codes((CodeStream(np.stack([level // 32, level % 32]), 32, RATE / FRAME),), audio.num_samples, RATE)

    def decode(self, codes):
        out = []
        for item in codes:
            high, low = item.streams[0].values
            tone = np.resize([1.0, -1.0], FRAME)
            out.append(Audio(np.outer((high * 32 + low) / 1023, tone).ravel()[: item.num_samples], RATE))
        return out

    @contextmanager
    def streaming(self):
        yield Stream(self)


class Stream:
    step_samples = FRAME

    def __init__(self, codec):
        self.codec = codec

    def encode(self, segment):
        return self.codec.encode_one(segment)

    def decode(self, codes):
        return self.codec.decode([codes])[0]


class Averaging(Pcm):
    """A running mean over 16 samples: it can be streamed with its last 15 samples carried along."""

    carries = True

    def change(self, samples):
        padded = np.pad(samples, ((0, 0), (15, 0)))
        return np.lib.stride_tricks.sliding_window_view(padded, 16, axis=1).mean(axis=2)

    @contextmanager
    def streaming(self):
        yield Carrying(self)


class Carrying(Stream):
    def __init__(self, codec):
        super().__init__(codec)
        self.past = np.zeros((1, 15), np.float32)

    def encode(self, segment):
        joined = np.concatenate([self.past, segment.samples], axis=1)
        self.past = joined[:, -15:] if self.codec.carries else np.zeros((1, 15), np.float32)
        codes = self.codec.encode_one(Audio(joined, RATE))
        values = codes.streams[0].values[:, 15:]
        return Codes((CodeStream(values, 65536, float(RATE)),), segment.num_samples, RATE)


class Forgetting(Averaging):
    """The same without carrying anything: every step begins in silence."""

    carries = False


class Uniform(Framed):
    """Two codebooks of 32: in the first every code as often as every other, in the second half of them never, and both
    without regard to the words."""

    def encode_one(self, audio):
        frames = -(-audio.num_samples // FRAME)
        first = np.arange(frames) % 32
        second = np.arange(frames) // 32 % 16
        return Codes((CodeStream(np.stack([first, second]), 32, RATE / FRAME),), audio.num_samples, RATE)


class GainShy(Framed):
    """Two codebooks: the second is the level, so that a gain changes it; the first only counts frames."""

    def encode_one(self, audio):
        (stream,) = super().encode_one(audio).streams
        values = np.stack([np.arange(stream.values.shape[1]) % 32, stream.values[0] * 4 % 32])
        return Codes((CodeStream(values, 32, stream.frame_rate_hz),), audio.num_samples, RATE)


class Blocks(Pcm):
    """16-bit samples in frames of 80: what is lost of one frame is not missed in another."""

    def __init__(self):
        rate = RATE / FRAME
        self.info = CodecInfo("blocks", (RATE,), frame_rate_hz=rate, nominal_bitrate_bps=16.0 * RATE, causal=True)

    def encode_one(self, audio):
        values = super().encode_one(audio).streams[0].values[0]
        frames = np.pad(values, (0, -values.size % FRAME), constant_values=32768).reshape(-1, FRAME)
        return Codes((CodeStream(self.sent(frames), 65536, RATE / FRAME),), audio.num_samples, audio.sample_rate_hz)

    def decode(self, codes):
        out = []
        for c in codes:
            values = self.received(c.streams[0].values).reshape(-1)[: c.num_samples]
            out.append(Audio((values - 32768) / 32767, c.sample_rate_hz))
        return out

    def sent(self, frames):
        return frames.T

    def received(self, values):
        return values.T


class Smuggling(Blocks):
    """Sends the same codes, but decodes the samples that lie beside them."""

    def encode(self, batch):
        return [replace(item, side={"samples": audio.samples}) for item, audio in zip(super().encode(batch), batch)]

    def decode(self, codes):
        return [Audio(item.side["samples"], item.sample_rate_hz) for item in codes]


class Differences(Blocks):
    """The same samples as differences from the sample before: what is lost is missing for ever."""

    def sent(self, frames):
        return (np.diff(frames.reshape(-1), prepend=32768) % 65536).reshape(-1, FRAME).T

    def received(self, values):
        return ((np.cumsum(values.T.reshape(-1)) + 32768) % 65536).reshape(-1, FRAME)


class Leaky:
    """A predictor of one tap in floats: what is wrong at the end of a frame fades by `POLE` with every sample."""

    where, POLE = "cpu", 0.98

    def __init__(self):
        self.info = CodecInfo("leaky", (RATE,), frame_rate_hz=RATE / FRAME, latents=FRAME)

    def encode(self, batch):
        out = []
        for audio in batch:
            wave = np.pad(audio.samples[0].astype(float), (0, -audio.num_samples % FRAME))
            rest = wave - self.POLE * np.concatenate([[0.0], wave[:-1]])
            out.append(Latents(rest.reshape(-1, FRAME).T, RATE / FRAME, audio.num_samples, RATE))
        return out

    def decode(self, codes):
        from scipy.signal import lfilter

        waves = [lfilter([1.0], [1.0, -self.POLE], np.asarray(c.values).T.reshape(-1)) for c in codes]
        return [Audio(wave[: c.num_samples], RATE) for wave, c in zip(waves, codes)]


class Coarse(Pcm):
    """The sample in two codebooks of 256, of which the first is a coarse step that little noise leaves as it is."""

    def encode_one(self, audio):
        values = super().encode_one(audio).streams[0].values[0]
        return Codes(
            (CodeStream(self.sent(np.stack([values // 256, values % 256])), 256, float(RATE)),), audio.num_samples, RATE
        )

    def decode(self, codes):
        out = []
        for c in codes:
            high, low = self.sent(c.streams[0].values)
            out.append(Audio((high * 256 + low - 32768) / 32767, RATE))
        return out

    def sent(self, values):
        return values

    def first(self, codebooks):
        return {1: Coarsest, 2: type(self)}[codebooks]()


class Coarsest(Coarse):
    """Its first codebook alone: 8 bits a sample."""

    def decode(self, codes):
        return [Audio((c.streams[0].values[0] * 256 + 128 - 32768) / 32767, RATE) for c in codes]


class Voice(Pcm):
    """The level of the clip is sent once, and the rest as samples of full level."""

    def encode_one(self, audio):
        level = int(np.ceil(255 * np.abs(audio.samples).max()))
        samples = super().encode_one(Audio(audio.samples * 255 / max(1, level), RATE)).streams[0]
        return Codes((samples, CodeStream(np.array([[level]]), 256, 0.0, "level")), audio.num_samples, RATE)

    def decode(self, codes):
        return [
            Audio(wave.samples * c.streams[1].values[0, 0] / 255, RATE) for c, wave in zip(codes, super().decode(codes))
        ]


class VoiceWithExtra(Voice):
    """The level is no stream of codes but lies beside them."""

    def __init__(self):
        super().__init__()
        self.info = replace(self.info, global_side=("level",))

    def encode_one(self, audio):
        built = super().encode_one(audio)
        return replace(built, streams=built.streams[:1], side={"level": built.streams[1].values}, side_bits=8.0)

    def decode(self, codes):
        level = [CodeStream(np.asarray(c.side["level"]), 256, 0.0) for c in codes]
        return super().decode([replace(c, streams=(*c.streams, one)) for c, one in zip(codes, level)])


class Dithered(Coarse):
    """The same samples, but the coarse step is coded together with the fine one, so that any noise changes both."""

    def sent(self, values):
        return np.stack([values[0] ^ values[1], values[1]])


class Network(Framed):
    """A strided convolution and a transposed one, of which the codes keep nothing but a sign."""

    def __init__(self, width=4, device="cpu"):
        import torch

        rate = RATE / FRAME
        self.info = CodecInfo("network", (RATE,), frame_rate_hz=rate, nominal_bitrate_bps=width * rate, causal=True)
        torch.manual_seed(0)
        self.down = torch.nn.Conv1d(1, width, FRAME, stride=FRAME, bias=False)
        self.up = torch.nn.ConvTranspose1d(width, 1, FRAME, stride=FRAME, bias=False)

    def encode_one(self, audio):
        import torch

        length = -(-audio.num_samples // FRAME) * FRAME
        samples = np.pad(audio.samples, ((0, 0), (0, length - audio.num_samples)))
        with torch.inference_mode():
            values = (self.down(torch.from_numpy(samples)[None])[0] > 0).numpy().astype(int)
        return Codes((CodeStream(values, 2, RATE / FRAME),), audio.num_samples, RATE)

    def decode(self, codes):
        import torch

        with torch.inference_mode():
            waves = [self.up(torch.from_numpy(c.streams[0].values).float()[None] - 0.5)[0].numpy() for c in codes]
        return [Audio(wave[:, : c.num_samples], RATE) for wave, c in zip(waves, codes)]

    def streaming(self):
        raise NotImplementedError


class Raises(Pcm):
    def encode(self, batch):
        raise RuntimeError("cannot find\nmy tables")


class WillNotLoad(Pcm):
    def __init__(self):
        raise OSError("no such checkpoint")


def hang():
    """Never returns, and says so to the test's clock."""
    if "CODEC_BENCH_TEST_HANGS" in os.environ:
        open(os.path.join(os.environ["CODEC_BENCH_TEST_HANGS"], str(os.getpid())), "w").close()
    while True:
        time.sleep(0.05)


class Hangs(Pcm):
    def decode(self, codes):
        hang()


class HangsInStreams(Framed):
    """Is fine but for its streams."""

    @contextmanager
    def streaming(self):
        hang()
        yield Stream(self)


class Dies(Pcm):
    def encode(self, batch):
        os._exit(7)


class DiesOnSilence(Pcm):
    def encode(self, batch):
        if any(not audio.samples.any() for audio in batch):
            os._exit(7)
        return super().encode(batch)


class HangsOnSecondUse(Pcm):
    """Hangs in the engine's workers, where no profile measures it."""

    def encode(self, batch):
        if _in_engine():
            hang()
        return super().encode(batch)


class HangsForSome(HangsOnSecondUse):
    """Hangs there over clips of more than 3.2 s."""

    def encode(self, batch):
        return super().encode(batch) if any(audio.duration_s > 3.2 for audio in batch) else Pcm.encode(self, batch)


class HangsOnSecondLoading(Pcm):
    """Hangs in the engine's workers before it is built."""

    def __init__(self):
        super().__init__()
        if _in_engine():
            hang()


class DiesOnSecondLoading(Pcm):
    """Ends the engine's workers before it is built."""

    def __init__(self):
        super().__init__()
        if _in_engine():
            os._exit(7)


def _in_engine():
    import sys

    return "codec_bench.apps.profiling.steps" not in sys.modules


class ChangesItsShape(Framed):
    """Gives one codebook for short clips and two for others."""

    def encode_one(self, audio):
        (stream,) = super().encode_one(audio).streams
        values = stream.values if audio.duration_s > 3.0 else stream.values[:1]
        return Codes((CodeStream(values, 32, stream.frame_rate_hz),), audio.num_samples, RATE)

    def decode(self, codes):
        return [Audio(np.full((1, c.num_samples), 0.1), RATE) for c in codes]


class White(Pcm):
    """Its codes are drawn by chance from a seed that the sound gives, so that they are white and say nothing of it."""

    entries = 16

    def __init__(self):
        self.info = CodecInfo(type(self).__name__.lower(), (RATE,), frame_rate_hz=RATE / FRAME)

    def encode_one(self, audio):
        frames = -(-audio.num_samples // FRAME)
        return Codes(
            (CodeStream(self.codes(audio, frames), self.entries, RATE / FRAME),),
            audio.num_samples,
            audio.sample_rate_hz,
        )  # fmt: skip

    def codes(self, audio, frames):
        rng = np.random.default_rng(audio.num_samples)
        return rng.integers(0, self.entries, (1, frames))

    def decode(self, codes):
        return [Audio(np.full((1, c.num_samples), 0.01, np.float32), c.sample_rate_hz) for c in codes]


class Followed(White):
    """Its codes are the level of each frame, which changes slowly."""

    def codes(self, audio, frames):
        padded = np.pad(audio.samples[0], (0, frames * FRAME - audio.num_samples)).reshape(frames, FRAME)
        level = 10 * np.log10(np.mean(padded.astype(float) ** 2, axis=1) + 1e-9)
        return np.clip(np.round((level + 90) / 5), 0, self.entries - 1).astype(int)[None]

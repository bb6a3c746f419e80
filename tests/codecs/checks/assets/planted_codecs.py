"""A right codec of several rates and channel counts, and one for every defect that only a wider look finds."""

from __future__ import annotations

import os
import tempfile
import threading
import zlib

import numpy as np

from codec_bench import Audio, CodecInfo, Codes, CodeStream

STEPS = 32767


class Wide:
    """Samples of 16 bits, as a packet for every 20 ms."""

    where = "cpu"
    rates, channels, causal, bps = (16000, 44100), (1, 2), True, None

    def __init__(self):
        name = type(self).__name__
        self.info = CodecInfo(name, self.rates, self.channels, 50.0, nominal_bitrate_bps=self.bps, causal=self.causal)

    def encode(self, batch):
        return [self.encode_one(audio.samples.astype(np.float64), audio.sample_rate_hz) for audio in batch]

    def encode_one(self, x, rate):
        sent = np.round(np.clip(self.change(x, rate), -1, 1) * STEPS).astype("<i2")
        hop = rate // 50
        packets = tuple(sent[:, k : k + hop].tobytes() for k in range(0, x.shape[1], hop))
        return Codes((), x.shape[1], rate, packets, side={"channels": len(x)})

    def change(self, x, rate):
        return x

    def decode(self, codes):
        return [Audio(self.distort(self.decode_one(item), item.sample_rate_hz), item.sample_rate_hz) for item in codes]

    def decode_one(self, item):
        blocks = [np.frombuffer(packet, "<i2").reshape(item.side["channels"], -1) for packet in item.packets]
        return np.concatenate(blocks, axis=1) / STEPS

    def distort(self, x, rate):
        return x


class Narrow(Wide):
    """Of one rate and channel, for defects that depend on neither."""

    rates, channels = (16000,), (1,)


def later(x, by):
    return np.pad(x, ((0, 0), (by, 0)))[:, : x.shape[1]]


def coarse(x):
    """4 bits."""
    return np.round(x * 7) / 7


class FloatsOf64(Wide):
    """Is right: its output are float64."""

    def distort(self, x, rate):
        return x.astype(np.float64)


class Denormals(Wide):
    """Is right: adds what no ear and no file of samples holds."""

    def distort(self, x, rate):
        return np.where(np.abs(x) < 1e-5, 1e-40, x)


class OtherThread(Narrow):
    """Half as loud in every thread but that in which it was built."""

    def __init__(self):
        super().__init__()
        self.mine = threading.get_ident()

    def distort(self, x, rate):
        return x if threading.get_ident() == self.mine else 0.5 * x


class ShortClipsExact(Narrow):
    def change(self, x, rate):
        return x if x.shape[1] < rate else coarse(x)


class LoudClipsCoarse(Narrow):
    def change(self, x, rate):
        return coarse(x) if np.abs(x).max() > 0.9 else x


class CachesByLength(Narrow):
    """Gives the first clip of each length again."""

    def __init__(self):
        super().__init__()
        self.retained = {}

    def encode_one(self, x, rate):
        return self.retained.setdefault((x.shape, rate), super().encode_one(x, rate))


class Drifts(Wide):
    """Its clock is wrong by 0.1 %."""

    causal = None

    def distort(self, x, rate):
        t = np.arange(x.shape[1])
        return np.stack([np.interp(t / 1.001, t, row) for row in x])


class ClipsAtMinus1(Narrow):
    """Cuts at -1 dB of full scale."""

    def distort(self, x, rate):
        return np.clip(x, -(10 ** (-1 / 20)), 10 ** (-1 / 20))


class LosesALastFrame(Narrow):
    """Of clips with 3, 10, 17 ... frames."""

    def distort(self, x, rate):
        hop = rate // 50
        frames = -(-x.shape[1] // hop)
        return np.where(np.arange(x.shape[1]) < (frames - 1) * hop, x, 0.0) if frames % 7 == 3 else x


class SwapsInBatches(Narrow):
    """Of five and more, two clips of which have each other's sound."""

    def decode(self, codes):
        outputs = super().decode(codes)
        if len(outputs) >= 5:
            a, b = outputs[:2]
            rate = a.sample_rate_hz
            outputs[:2] = (
                Audio(np.resize(b.samples, a.samples.shape), rate),
                Audio(np.resize(a.samples, b.samples.shape), rate),
            )
        return outputs


class HeldByTheEncoder(Narrow):
    """Sends nothing; its decoder is the object that has encoded."""

    def encode(self, batch):
        self.held = [audio for audio in batch]
        return [Codes((), a.num_samples, a.sample_rate_hz, (b"\0",)) for a in batch]

    def decode(self, codes):
        return self.held


class DeclaresATenth(Wide):
    rates, channels, bps = (16000,), (1,), 25600.0


class AddsAConstant(Narrow):
    def distort(self, x, rate):
        return x + 0.05


class FoldsToMono(Wide):
    def change(self, x, rate):
        return np.broadcast_to(x.mean(axis=0), x.shape)


class LeaksBetweenChannels(Wide):
    """A tenth of the power of each channel is in the other."""

    def change(self, x, rate):
        return x + 0.316 * x[::-1] if len(x) == 2 else x


class SwapsChannels(Wide):
    def distort(self, x, rate):
        return x[::-1]


class LateAt44100(Wide):
    """By one sample."""

    def distort(self, x, rate):
        return later(x, 1) if rate == 44100 else x


class LateInStereo(Wide):
    """By two samples."""

    def distort(self, x, rate):
        return later(x, 2) if len(x) == 2 else x


class TurnsEverySeventh(Wide):
    turn = 0

    def distort(self, x, rate):
        self.turn += 1
        return x if self.turn % 7 else -x


class TurnsQuietClips(Narrow):
    def distort(self, x, rate):
        return -x if np.abs(x).max() < 0.1 else x


class SilentAfter3s(Narrow):
    def distort(self, x, rate):
        return np.where(np.arange(x.shape[1]) < 3 * rate, x, 0.0)


class SendsSideAsText(Narrow):
    def encode(self, batch):
        return [
            Codes((), a.num_samples, a.sample_rate_hz, (b"\0",), side={"is": a.samples.tobytes().hex()}) for a in batch
        ]

    def decode(self, codes):
        sent = [np.frombuffer(bytes.fromhex(c.side["is"]), np.float32) for c in codes]
        return [Audio(x.reshape(-1, c.num_samples), c.sample_rate_hz) for x, c in zip(sent, codes)]


class PassesOnDisk(Narrow):
    """Sends a number, which names a file with the sound."""

    def encode(self, batch):
        outputs = []
        for audio in batch:
            key = zlib.crc32(audio.samples.tobytes()) % 65536
            np.save(self.path(key), audio.samples)
            outputs.append(Codes((), audio.num_samples, audio.sample_rate_hz, (key.to_bytes(2, "little"),)))
        return outputs

    def path(self, key):
        return os.path.join(tempfile.gettempdir(), f"planted-{os.getppid()}-{key}.npy")

    def decode(self, codes):
        return [Audio(np.load(self.path(int.from_bytes(c.packets[0], "little"))), c.sample_rate_hz) for c in codes]


class SaysCausal(Narrow):
    """Scales by the peak of the whole clip."""

    def encode_one(self, x, rate):
        peak = float(np.abs(x).max()) or 1.0
        sent = super().encode_one(np.round(x / peak * 100) / 100, rate)
        return Codes((), sent.num_samples, rate, sent.packets, 32, {**sent.side, "peak": peak})

    def decode_one(self, item):
        return super().decode_one(item) * item.side["peak"]


class LeaksOverLongClips(Narrow):
    """In a batch with other clips, one of more than 4 s has the mean of all in it."""

    def decode(self, codes):
        outputs = super().decode(codes)
        for k, (item, out) in enumerate(zip(codes, outputs)):
            if len(outputs) > 1 and item.num_samples > 4 * item.sample_rate_hz:
                other = np.resize(outputs[k - 1].samples, out.samples.shape)
                outputs[k] = Audio(out.samples + 0.05 * other, item.sample_rate_hz)
        return outputs


class RaisesAboveMono16k(Wide):
    def change(self, x, rate):
        if rate != 16000 or len(x) != 1:
            raise ValueError("this sound is too much")
        return x


class NoiseAt44100(Wide):
    """Keeps nothing but the level there."""

    def distort(self, x, rate):
        if rate != 44100:
            return x
        level = np.stack([np.convolve(np.abs(one), np.ones(800) / 800, mode="same") for one in x])
        return level * np.random.default_rng(0).standard_normal(x.shape[1])


class Ends(Wide):
    """Writes nothing after the sample that `kept` names."""

    def retained(self, samples, rate):
        return samples

    def distort(self, x, rate):
        return np.where(np.arange(x.shape[1]) < self.retained(x.shape[1], rate), x, 0.0)


class LosesTheLastFrame(Ends):
    def retained(self, samples, rate):
        return (-(-samples // (rate // 50)) - 1) * (rate // 50)


class LosesTwoFrames(Ends):
    def retained(self, samples, rate):
        return (-(-samples // (rate // 50)) - 2) * (rate // 50)


class LosesHalfASecond(Ends):
    def retained(self, samples, rate):
        return samples - rate // 2


class LosesAPartialFrame(Ends):
    """What a whole frame does not hold."""

    def retained(self, samples, rate):
        return samples // (rate // 50) * (rate // 50)


class KeepsWholeSeconds(Ends):
    """What a whole second does not hold is lost, if there is one."""

    def retained(self, samples, rate):
        return samples // rate * rate or samples


class LosesTheSecondSecond(Wide):
    def distort(self, x, rate):
        seconds = np.arange(x.shape[1]) // rate
        return np.where(seconds == 1, 0.0, x)


class LosesTheFirstFrame(Wide):
    def distort(self, x, rate):
        return np.where(np.arange(x.shape[1]) < rate // 50, 0.0, x)


class LosesEveryFiftiethFrame(Wide):
    def distort(self, x, rate):
        return np.where(np.arange(x.shape[1]) // (rate // 50) % 50 == 49, 0.0, x)


class NormalisesLoudness(Wide):
    """Sends every clip at one level; its decoder does not know which it had."""

    causal = None

    def change(self, x, rate):
        return x * 0.1 / max(1e-6, float(np.sqrt((x**2).mean())))


class TurnsTheRightChannel(Wide):
    def distort(self, x, rate):
        return x * np.array([[1.0], [-1.0]])[: len(x)]


class RightChannelLate(Wide):
    """By three samples."""

    def distort(self, x, rate):
        return np.concatenate([x[:1], later(x[1:], 3)])


class RightChannelQuiet(Wide):
    """By 12 dB."""

    def distort(self, x, rate):
        return x * np.array([[1.0], [0.25]])[: len(x)]


class FoldsAtHalfTheBitrate(Wide):
    """Sends the mean of two channels."""

    def encode_one(self, x, rate):
        built = super().encode_one(x.mean(axis=0, keepdims=True), rate)
        return Codes((), built.num_samples, rate, built.packets, side={"channels": 1, "copies": len(x)})

    def decode_one(self, item):
        return np.repeat(super().decode_one(item), item.side["copies"], axis=0)


class KeepsABuffer(Wide):
    """Begins every clip with the last 10 ms of the clip before it."""

    causal = None

    def __init__(self):
        super().__init__()
        self.last = 0.0

    def distort(self, x, rate):
        built = x.copy()
        built[:, : rate // 100] += 0.5 * self.last
        self.last = float(x[0, -rate // 100 :].mean()) + 0.01
        return built


class CountsItsCalls(Wide):
    """Its gain falls by a thousandth with every clip."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def distort(self, x, rate):
        self.calls += 1
        return x * 0.999**self.calls


class DropsFramesAtRandom(Wide):
    """One of 200."""

    def distort(self, x, rate):
        frames = np.arange(x.shape[1]) // (rate // 50)
        return np.where(np.random.default_rng().random(frames[-1] + 1)[frames] < 0.005, 0.0, x)


class DropsCallsAtRandom(Wide):
    """Half a second of one clip in twenty."""

    rng = np.random.default_rng(3)

    def distort(self, x, rate):
        dropped = self.rng.random() < 0.05
        return np.where(np.arange(x.shape[1]) < rate // 2, 0.0, x) if dropped else x


class DrawsItsCodes(Wide):
    """Dithers before it quantises, without a seed."""

    def change(self, x, rate):
        return x + np.random.default_rng().uniform(-1e-3, 1e-3, x.shape)


class TiedToItsOrder(Wide):
    """Codes a clip more coarsely after a longer one."""

    def __init__(self):
        super().__init__()
        self.before = 0

    def change(self, x, rate):
        shorter, self.before = x.shape[1] < self.before, x.shape[1]
        return np.round(x * 1000) / 1000 if shorter else x


class Streams(Wide):
    """Is right, and streams frames of 20 ms."""

    rates, channels = (16000,), (1,)

    def streaming(self):
        return Steps(self)

    def of_step(self, audio, count):
        return audio


class Steps:
    step_samples = 320

    def __init__(self, codec):
        self.codec, self.count = codec, 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def encode(self, segment):
        return self.codec.encode([segment])[0]

    def decode(self, codes):
        self.count += 1
        return self.codec.of_step(self.codec.decode([codes])[0], self.count)


class SilencesEveryFiftiethStep(Streams):
    def of_step(self, audio, count):
        return Audio(0 * audio.samples, audio.sample_rate_hz) if count % 50 == 0 else audio


class StreamsTurnedOver(Streams):
    def of_step(self, audio, count):
        return Audio(-audio.samples, audio.sample_rate_hz)


class StreamEndsEarly(Streams):
    """Gives nothing from the hundredth step on."""

    def of_step(self, audio, count):
        return Audio(audio.samples[:, :0], audio.sample_rate_hz) if count >= 100 else audio


class ConstantCodebook(Wide):
    """Sends 16 bits as two codebooks of 8, the first of which has collapsed."""

    rates, channels = (16000,), (1,)

    def encode_one(self, x, rate):
        values = (np.round(np.clip(x, -1, 1) * 127) + 128).astype(np.int64)
        rows = np.concatenate([np.full_like(values, 17), values])
        return Codes((CodeStream(rows, 256, rate),), x.shape[1], rate)

    def decode_one(self, item):
        return (item.streams[0].values[1:] - 128) / 127

    def __init__(self):
        super().__init__()
        self.info = CodecInfo("ConstantCodebook", self.rates, self.channels, 16000.0, nominal_bitrate_bps=256_000.0)

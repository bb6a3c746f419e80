"""Timings and memory of codecs that take a known time and a known amount."""

from __future__ import annotations

import mmap
import time

import pytest
from refusals import refuses

from codec_bench import Audio
from codec_bench.apps.profiling import speed
from codec_bench.apps.profiling.settings import Settings
from codec_bench.apps.profiling.steps import Measuring, ProfileJob
from codec_bench.codecs import load_codec
from codec_bench.codecs.checks.material import ProfileClips
from codec_bench.codecs.checks.steps import NotApplicable


def slowed(odd, encode_s, decode_s, megabytes=0):
    codec = load_codec(odd("Pcm"))

    class Slowed(type(codec)):
        def encode(self, batch):
            time.sleep(encode_s)
            if megabytes:
                # Straight from the system: an allocator may have as much left over from other tests.
                with mmap.mmap(-1, megabytes * 2**20) as waste:
                    waste[:: mmap.PAGESIZE] = bytes(len(waste) // mmap.PAGESIZE)
            return super().encode(batch)

        def decode(self, codes):
            time.sleep(decode_s)
            return super().decode(codes)

    return Slowed()


def test_the_warming_call_does_not_count_and_the_median_does(files, odd, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(speed, "perf_counter", lambda: now[0])
    seconds = {"encode": iter((9.0, 0.04, 0.06, 0.05)), "decode": iter((9.0, 0.02, 0.01, 0.03))}

    class Timed(type(load_codec(odd("Pcm")))):
        def encode(self, batch):
            now[0] += next(seconds["encode"])
            return super().encode(batch)

        def decode(self, codes):
            now[0] += next(seconds["decode"])
            return super().decode(codes)

    codec = Timed()
    result = speed.measure_single(codec, ProfileClips(files, codec), Settings(clip_s=0.5, repeats=3), "cpu")
    expected = {"encode_real_time_factor": 0.1, "decode_real_time_factor": 0.04, "real_time_factor": 0.14}
    expected |= {"fastest": 0.12, "slowest": 0.16}
    assert {name: result[name] for name in expected} == pytest.approx(expected)


def test_real_time_factors_are_the_seconds_that_pass(files, odd):
    codec = slowed(odd, 0.04, 0.02)
    result = speed.measure_single(codec, ProfileClips(files, codec), Settings(clip_s=0.5, repeats=3), "cpu")
    assert result["repeats"] == 3 and result["clip_s"] == 0.5
    # Another process may slow this one down, but nothing can make it faster.
    assert result["encode_real_time_factor"] >= 0.08 and result["decode_real_time_factor"] >= 0.04
    assert 0.12 <= result["fastest"] <= result["real_time_factor"] <= result["slowest"]
    assert "gpu_bytes" not in result["memory"]


def test_peak_memory_is_seen_though_it_is_released(files, odd):
    lean, wasteful = slowed(odd, 0, 0), slowed(odd, 0, 0, megabytes=300)
    settings = Settings(clip_s=0.5, repeats=1)
    small = speed.measure_single(lean, ProfileClips(files, lean), settings, "cpu")["memory"]
    large = speed.measure_single(wasteful, ProfileClips(files, wasteful), settings, "cpu")["memory"]
    after = speed.measure_single(lean, ProfileClips(files, lean), settings, "cpu")["memory"]
    if small["resident_since_start"]:
        pytest.skip("this system does not forget the highest memory use of a process")
    assert large["resident_bytes"] - small["resident_bytes"] > 250 * 2**20
    assert large["resident_bytes"] - after["resident_bytes"] > 250 * 2**20


def test_batches_add_up_to_hours_of_audio_per_hour():
    clock = speed.BatchClock("cpu", 60.0)
    for encode_s, decode_s in ((1.0, 0.5), (0.5, 0.0)):
        clock.begin()
        clock.add(100.0, 4, encode_s, decode_s)
    result = clock.result()
    assert result["audio_hours_per_hour"] == 100.0
    assert result["encode_hours_per_hour"] == pytest.approx(200 / 1.5) and result["decode_hours_per_hour"] == 400.0
    assert (result["items"], result["batches"], result["audio_s"]) == (8, 2, 200.0)


def test_loading_is_timed_and_its_errors_are_the_codecs_own(odd):
    def build():
        time.sleep(0.05)
        return load_codec(odd("Pcm"))

    codec, took = speed.load(build, "cpu")
    assert codec.info.name == "pcm" and took["load_s"] >= 0.05
    with pytest.raises(OSError, match="no such checkpoint"):
        speed.load(lambda: load_codec(odd("WillNotLoad")), "cpu")


def test_a_batch_that_does_not_fit_is_halved(files):
    request = ProfileJob("tests/engine/assets/custom_code.py:OutOfMemory", files, "cpu", Settings(), ())
    measuring = Measuring(request, lambda: None)
    measuring.step("load")
    sections = measuring.step("corpus")
    assert sections["batched"]["batches"] == 2 and sections["batched"]["items"] == 4
    assert sections["batched"]["batch_s"] == 30.0
    assert sections["rate"]["items"] == 4


def test_stereo_and_other_rates_are_converted_as_the_codec_takes_them(tmp_path, odd, rng):
    from codec_bench.audio.encode import write_flac

    path = tmp_path / "stereo.flac"
    write_flac(path, Audio(0.1 * rng.standard_normal((2, 44100)), 44100))
    measuring = Measuring(ProfileJob(odd("Pcm"), (("a", str(path)),), "cpu", Settings(), ()), lambda: None)
    measuring.step("load")
    rate = measuring.step("corpus")["rate"]
    assert rate["channel_by_channel"] == 1 and rate["items"] == 2
    assert rate["nominal_bps"] == 256000.0 and rate["seconds"] == pytest.approx(2.0)


def test_a_codec_on_a_gpu_is_timed_on_the_cpu_too(files, monkeypatch):
    from codec_bench.apps.profiling.steps import STEPS, Measuring, ProfileJob
    from codec_bench.codecs import load_codec

    loaded = []
    codec = "tests/apps/profiling/assets/odd_codecs.py:Framed"
    request = ProfileJob(codec, files, "cuda:0", Settings(clip_s=0.5, repeats=1), tuple(STEPS))
    measuring = Measuring(request, lambda: None)
    monkeypatch.setattr("codec_bench.codecs.load_codec", lambda name, device: loaded.append(device) or load_codec(name))
    result = measuring.step("cpu")["speed_on_cpu"]
    assert loaded == ["cpu"] and result["device"] == "cpu" and result["real_time_factor"] > 0
    with refuses("cpu_already", error=NotApplicable):
        Measuring(ProfileJob(codec, files, "cpu", Settings(), tuple(STEPS)), lambda: None).step("cpu")

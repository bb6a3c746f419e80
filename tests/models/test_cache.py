import sqlite3
import threading

import numpy as np
import pytest

from codec_bench.audio.clip import Clip
from codec_bench.audio.encode import write_flac
from codec_bench.config import file_content
from codec_bench.models.cache import ResponseCache
from codec_bench.types import Audio, Message, Request, Response

IDENTITY = {"model": "m", "base_url": "http://x/v1"}


@pytest.fixture
def cache(tmp_path):
    cache = ResponseCache(tmp_path / "r.sqlite")
    yield cache
    cache.close()


def again(cache, tmp_path):
    cache.close()
    return ResponseCache(tmp_path / "r.sqlite")


def test_an_answer_comes_back(cache, tmp_path):
    response = Response(
        text="a\0ü世", usage={"output_tokens": 3.0, "cost_usd": 0.1}, latency_s=1.0, finish="stop",
        cut_s=2.5, attempts=3, notes=("n",),
    )  # fmt: skip
    cache.put("k", response, "m")
    for one in (lambda: cache, lambda: again(cache, tmp_path)):
        (got,) = one().get_many(["k", "other"]).values()
        assert (got.text, got.usage, got.finish, got.cut_s, got.notes) == (
            response.text, response.usage, "stop", 2.5, ("n",))  # fmt: skip
        assert got.cached and got.latency_s is None and got.attempts == 0


@pytest.mark.parametrize("response", [Response.failed("no"), Response.refused("no"), Response("undefined", "no")])
def test_failures_are_not_preserved(cache, response):
    cache.put("k", response, "m")
    assert cache.get_many(["k"]) == {}


@pytest.mark.parametrize("coding", ["16", "24", "float", "loud", "nan", "stereo", "extremes", "many channels"])
def test_sound_comes_back_exactly(cache, tmp_path, rng, coding):
    samples = rng.uniform(-1, 1, (2 if coding == "stereo" else 9 if coding == "many channels" else 1, 999))
    if coding in ("16", "stereo", "many channels"):
        samples = np.round(samples * 32767) / 32768
    elif coding == "24":
        samples = np.round(samples * 8388607) / 8388608
    elif coding == "loud":
        samples *= 1.7
    elif coding == "nan":
        samples[0, 3] = np.nan
    elif coding == "extremes":
        samples = np.array([[-1.0, 32767 / 32768, 0.0]])
    audio = Audio(samples.astype(np.float32), 24_000)
    cache.put("k", Response(audio=audio), "m")
    got = again(cache, tmp_path).get_many(["k"])["k"].audio
    assert got.sample_rate_hz == 24_000 and np.array_equal(got.samples, audio.samples, equal_nan=True)


def test_16_bit_speech_is_stored_small(cache, tmp_path, kit):
    audio = kit.tone(5, 24_000)
    audio = Audio(np.round(audio.samples * 32768) / 32768, 24_000)
    cache.put("k", Response(audio=audio), "m")
    cache.flush()
    (size,) = sqlite3.connect(tmp_path / "r.sqlite").execute("SELECT LENGTH(audio) FROM responses").fetchone()
    assert size < audio.samples.size * 2


def variants(kit):
    tone, other = Clip(kit.tone()), Clip(kit.tone(hz=441.0))
    turn = Message("user", (tone, "what?"))
    yield IDENTITY, Request("q", (turn,))
    yield {**IDENTITY, "model": "n"}, Request("q", (turn,))
    yield IDENTITY, Request("q", (Message("user", (tone, "what??")),))
    yield IDENTITY, Request("q", (Message("user", ("what?", tone)),))
    yield IDENTITY, Request("q", (Message("user", (other, "what?")),))
    yield IDENTITY, Request("q", (Message("user", (tone, "what", "?")),))
    yield IDENTITY, Request("q", (Message("system", (tone, "what?")),))
    yield IDENTITY, Request("q", (turn, turn))
    yield IDENTITY, Request("q", (turn,), wants="audio")
    yield IDENTITY, Request("q", (turn,), parameters={"temperature": 0})
    yield IDENTITY, Request("q", (turn,), fields={"language": "en"})
    yield IDENTITY, Request("q", fields={"audio": tone})
    yield IDENTITY, Request("q", fields={"prompt_audio": tone})


def test_whatever_changes_an_answer_changes_the_key(kit):
    keys = [ResponseCache(None).key_of(identity, request) for identity, request in variants(kit)]
    assert len(set(keys)) == len(keys)


def test_what_changes_no_answer_does_not(kit, tmp_path):
    tone = Audio(np.round(kit.tone().samples * 32768) / 32768 + 0.0, 16_000)  # a file has no negative zero
    write_flac(tmp_path / "a.flac", tone)
    make = lambda id, clip: Request(id, (Message("user", (clip, "what?")),), parameters={"a": 1, "b": 2})  # noqa: E731
    key_of = ResponseCache(None).key_of
    first = key_of(IDENTITY, make("q1", Clip(tone)))
    reordered = dict(reversed(IDENTITY.items()))
    assert first == key_of(reordered, make("q2", Clip(str(tmp_path / "a.flac"))))


def test_a_file_is_decoded_once_and_again_when_it_changed(cache, tmp_path, kit, monkeypatch):
    reads = []
    monkeypatch.setattr(file_content, "TICK_NS", 0)  # it counts as a file that was not changed a moment ago
    real = Clip.read
    monkeypatch.setattr(Clip, "read", lambda self: reads.append(self.source) or real(self))
    file = tmp_path / "a.flac"
    write_flac(file, kit.tone())
    request = Request("q", (Message("user", (Clip(str(file)),)),))

    def key(cache):
        return cache.look_up(IDENTITY, [request])[0][0]

    first = key(cache)
    assert key(cache) == first and key(again(cache, tmp_path)) == first and len(reads) == 1
    write_flac(file, kit.tone(0.6))
    assert key(ResponseCache(tmp_path / "r.sqlite")) != first and len(reads) == 2


def test_looking_up(cache, kit, tmp_path):
    requests = [kit.question(f"{n}?") for n in range(1200)]
    keys = [key for key, _ in cache.look_up(IDENTITY, requests)]
    for n in range(0, 1200, 2):
        cache.put(keys[n], Response(text=str(n)), "m")
    results = [response for _, response in again(cache, tmp_path).look_up(IDENTITY, requests)]
    assert [r.text if r else None for r in results] == [str(n) if n % 2 == 0 else None for n in range(1200)]


def test_a_sound_that_cannot_be_read_has_no_key(cache, tmp_path):
    request = Request("q", (Message("user", (Clip(str(tmp_path / "absent.wav")),)),))
    assert cache.look_up(IDENTITY, [request]) == [(None, None)]


def test_it_stays_within_its_bound_and_keeps_what_was_used_last(tmp_path):
    cache = ResponseCache(tmp_path / "r.sqlite", max_bytes=1 << 20)
    for n in range(40):
        cache.put(f"k{n}", Response(text="x" * 50_000), "m")
        cache.flush()
        cache.get_many(["k0"])
    cache.flush()
    retained = cache.get_many([f"k{n}" for n in range(40)])
    assert "k0" in retained and "k39" in retained and "k1" not in retained and len(retained) * 50_000 < 1.2 * (1 << 20)
    cache.close()


def test_a_cache_that_cannot_be_used_costs_no_run(tmp_path, kit):
    (tmp_path / "r.sqlite").write_bytes(b"this is no database, whatever its name says" * 100)
    cache = ResponseCache(tmp_path / "r.sqlite")
    assert "off" in cache.trouble and cache.look_up(IDENTITY, [kit.question()]) == [(None, None)]
    cache.put("k", Response(text="a"), "m")
    assert cache.get_many(["k"]) == {}
    cache.close()


def test_an_answer_that_comes_during_a_write_waits_for_its_end(cache, monkeypatch):
    write, threads, during = cache._write, [], []

    def slow(db, now):
        if not threads:
            threads.append(threading.Thread(target=cache.put, args=("b", Response(text="b"), "m")))
            threads[0].start()
            threads[0].join(0.05)
            during.append(sorted(cache._new_models))
        write(db, now)

    monkeypatch.setattr(cache, "_write", slow)
    cache.put("a", Response(text="a"), "m")
    cache.flush()
    threads[0].join()
    assert during == [["a"]] and sorted(cache.get_many(["a", "b"])) == ["a", "b"]


def test_two_processes_may_write(tmp_path):
    one, two = ResponseCache(tmp_path / "r.sqlite"), ResponseCache(tmp_path / "r.sqlite")
    for n in range(50):
        (one, two)[n % 2].put(f"k{n}", Response(text=str(n)), "m")
    one.close()
    two.close()
    assert len(ResponseCache(tmp_path / "r.sqlite").get_many([f"k{n}" for n in range(50)])) == 50

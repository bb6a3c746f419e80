from time import process_time

from codec_bench.models.endpoints.replies import EventLines


def test_events_survive_every_cut():
    stream = (
        ": comment\r\n\r\nevent: x\ndata: {\"a\": \"ü\u2028b\"}\n\ndata: two\r\ndata:lines\r\n\r\rdata: [DONE]\n\n"
    ).encode()  # fmt: skip
    complete = ['{"a": "ü\u2028b"}', "two\nlines", "[DONE]"]
    for size in range(1, len(stream) + 1):
        lines = EventLines()
        got = [e for at in range(0, len(stream), size) for e in lines.feed(stream[at : at + size])]
        assert got + lines.finish() == complete, size


def test_events_without_the_last_empty_line():
    lines = EventLines()
    assert lines.feed(b"data: a\n\ndata: b") == ["a"] and lines.finish() == ["b"]


def cpu_s(mib):
    """Seconds of CPU that one event of so many MiB takes, in the pieces of a socket."""
    lines, segment = EventLines(), b"x" * (64 << 10)
    began = process_time()
    lines.feed(b"data: ")
    for _ in range(mib << 4):
        assert lines.feed(segment) == []
    (event,) = lines.feed(b"\n\n")
    assert len(event) == mib << 20
    return process_time() - began


def test_a_long_line_takes_time_in_proportion_to_its_length():
    """Four times the length is four times the work, and 16 times if each piece reads again what came before."""
    short, long = (min(cpu_s(mib) for _ in range(3)) for mib in (4, 16))
    assert long < 9 * short

from codec_bench.models.endpoints.replies import EventLines


def test_events_survive_every_cut():
    stream = (
        ": comment\r\n\r\nevent: x\ndata: {\"a\": \"ü\u2028b\"}\n\ndata: two\r\ndata:lines\r\n\r\rdata: [DONE]\n\n"
    ).encode()  # fmt: skip
    whole = ['{"a": "ü\u2028b"}', "two\nlines", "[DONE]"]
    for size in range(1, len(stream) + 1):
        lines = EventLines()
        got = [e for at in range(0, len(stream), size) for e in lines.feed(stream[at : at + size])]
        assert got + lines.finish() == whole, size


def test_events_without_the_last_empty_line():
    lines = EventLines()
    assert lines.feed(b"data: a\n\ndata: b") == ["a"] and lines.finish() == ["b"]

"""Progress of a run: not reported, passed to a function, or shown in a terminal or a notebook."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from refusals import refuses

from codec_bench.api.executors import show_progress
from codec_bench.engine.running import Running, report_nothing


def test_the_recipient_is_what_the_caller_says(monkeypatch):
    def mine(*report):
        pass

    loud, still = Running(progress=mine), Running()
    for running, progress, messages in (
        (still, None, report_nothing),
        (still, False, report_nothing),
        (loud, None, mine),
        (still, mine, mine),
    ):
        with show_progress(running, progress) as result:
            assert result.progress is messages
    with show_progress(still, True) as result:
        assert result.progress.__self__.stage == "starting"
        result.progress("running", 1, 2, 0, 3.0)
        line = result.progress.__self__
    assert line.line().startswith("finished: 1 of 2 items")
    for wrong in ("yes", 1):
        with refuses("option_value", expected="progress"), show_progress(still, wrong):
            pass


def test_in_a_notebook_a_line_is_shown_unasked_and_nothing_if_it_is_not_wished(monkeypatch):
    shown = []
    handle = SimpleNamespace(update=lambda data, raw: shown.append(data["text/plain"]))
    display = SimpleNamespace(display=lambda data, raw, display_id: shown.append(data["text/plain"]) or handle)
    kernel = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    with show_progress(Running(), False) as result:
        assert result.progress is report_nothing and shown == []
    with pytest.raises(KeyboardInterrupt), show_progress(Running(), None) as result:
        result.progress("running", 3, 7, 1, 5.0)
        raise KeyboardInterrupt
    assert shown[0] == "starting" and shown[-1].startswith("running: 3 of 7 items, 1 failed"), "where it was stopped"
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    with show_progress(Running(), None) as result:
        assert result.progress is report_nothing, "IPython that is imported and not running is no notebook"

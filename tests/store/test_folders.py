"""The folder of a run that was given none: found again if it is unfinished, never while another process uses it."""

from __future__ import annotations

import fcntl
import json
import os

import pytest
from refusals import refuses

from codec_bench.messages.errors import RunLocked, UserError
from codec_bench.store.folders import FolderLock, mark_finished, named_folder, own_folder

REQUESTS = {"systems": ["a"], "options": {"b": {"weights": "secret-place"}}}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def position(requested=REQUESTS, command="evaluate", **options):
    with own_folder(command, requested, **options) as result:
        return result


def test_an_unfinished_folder_is_continued_and_a_finished_one_is_not():
    first = position()
    assert "(new)" in first.words and first.is_own
    again = position()
    assert again.path == first.path and "continues the unfinished run of" in again.words
    mark_finished(first.path)
    new = position()
    assert new.path != first.path and f"the same run in {first.path} is finished" in new.words
    assert position().path == new.path
    mark_finished(new.path)
    retained = position(also_finished=True)
    assert retained.path == new.path and "continues the finished run" in retained.words


def test_a_folder_in_which_nothing_was_started_is_removed_after_an_error(tmp_path):
    for make in (lambda: named_folder("run"), lambda: own_folder("evaluate", REQUESTS)):
        with pytest.raises(UserError), make() as caught:
            raise UserError("no such codec")
        assert not caught.path.exists()
        with pytest.raises(UserError), make() as caught:
            (caught.path / "run.sqlite").write_bytes(b"begun")
            raise UserError("the server is gone")
        assert caught.path.exists()
    (tmp_path / "mine").mkdir()
    with pytest.raises(UserError), named_folder("mine"):
        raise UserError("no such codec")
    assert (tmp_path / "mine").is_dir()


def test_only_the_same_request_is_continued():
    first = position()
    assert position({**REQUESTS, "seed": 1}).path != first.path
    assert position(command="score").path != first.path
    assert position(json.loads(json.dumps(REQUESTS))).path == first.path
    assert "secret-place" not in (first.path / "begun.json").read_text(), "options may be private"


def test_a_folder_that_another_process_uses_is_left_alone():
    first = position()
    with open(first.path / "run.lock") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)  # as another process would hold it
        second = position()
        assert second.path != first.path
        assert f"the same run in {first.path} is being written by another process" in second.words
        with refuses("run_locked"):
            named_folder(first.path)
        with named_folder(first.path, shared=True) as shared:
            assert shared.lock is None
    assert position().path in (first.path, second.path)


def test_the_folder_is_held_until_the_block_ends():
    with own_folder("evaluate", REQUESTS) as held, own_folder("evaluate", REQUESTS) as other:
        assert other.path != held.path
    with named_folder("x"), pytest.raises(RunLocked):
        FolderLock(held.path.parent.parent / "x")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"command": 1}', '{"begun": 3}'])
def test_a_damaged_note_is_no_folder_to_continue(content):
    first = position()
    (first.path / "begun.json").write_text(content)
    assert position().path != first.path
    mark_finished(first.path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_reported(tmp_path):
    (tmp_path / "runs").mkdir(mode=0o500)
    with pytest.raises(UserError, match="cannot be written"):
        position()


def test_a_file_in_the_place_of_the_folder_is_reported(tmp_path):
    (tmp_path / "runs").write_text("")
    with refuses("file_not_writable"):
        position()

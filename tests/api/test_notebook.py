"""The notebook of the examples runs in a real kernel: its codec lives in a cell, and so does its progress."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import nbclient
import nbformat
import pytest

from codec_bench import evaluate, open_run

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook.ipynb"


class Listening(nbclient.NotebookClient):
    """Keeps what the kernel says to change in what it displayed."""

    def process_message(self, msg, cell, cell_index):
        if msg["msg_type"] == "update_display_data":
            self.updates.append(msg["content"]["data"])
        return super().process_message(msg, cell, cell_index)


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """The notebook after it ran, its folder, and the changes of what it displayed."""
    path = tmp_path_factory.mktemp("notebook")
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "CODEC_BENCH_CACHE"):
            patch.setenv(variable, str(path / variable.lower()))
        book = nbformat.read(NOTEBOOK, as_version=4)
        client = Listening(book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(path)}})
        client.updates = []
        client.execute()
    return book, path, client.updates


def outputs(book, text):
    """What the cell that holds a text put out."""
    (cell,) = [cell for cell in book.cells if text in cell.source and cell.cell_type == "code"]
    return cell.outputs


def test_the_run_of_a_cell_shows_its_table(executed):
    book, position, _ = executed
    shown = outputs(book, "run = evaluate")
    assert [output.output_type for output in shown] == ["display_data", "execute_result"], (
        "no warning and no other line"
    )
    table = shown[-1].data["text/html"]
    run = open_run(position / "runs" / "notebook")
    assert list(run.systems) == ["unprocessed", "mu-law@256", "mu-law@32", "opus-12k"]
    assert all(name in table for name in run.systems) and run.counts()["failed_items"] == 0
    (signal,) = outputs(book, "worst = min")
    assert re.fullmatch(r"\w+: \d+\.\d dB\n", signal.text)


def test_the_progress_is_one_line_below_the_cell_that_is_updated(executed):
    book, _, updates = executed
    line = outputs(book, "run = evaluate")[0].data
    assert re.fullmatch(r"finished: 32 of 32 items(, .* so far)?", line["text/plain"])
    assert line["text/html"] == f"<div>{line['text/plain']}</div>"
    texts = [update["text/plain"] for update in updates]
    assert texts[-1] == line["text/plain"] and not any("\x1b" in text or "\r" in text for text in texts)


def test_the_codec_of_the_cell_has_the_numbers_of_the_same_codec_in_a_file(executed, tmp_path):
    book, position, _ = executed
    (source,) = [cell.source for cell in book.cells if "class MuLaw" in cell.source]
    (tmp_path / "mu_law.py").write_text(source)
    by_path = evaluate(
        codec=f"{tmp_path / 'mu_law.py'}:MuLaw", data="embedded", metrics="si_sdr,mel_distance,bitrate", limit=8,
        out=tmp_path / "run", page=False, save_audio="none",
    )  # fmt: skip
    run = open_run(position / "runs" / "notebook")
    mine, other = ({(s.id, s.metric): s.value for s in one.scores("mu-law@256")} for one in (run, by_path))
    assert mine == pytest.approx(other, rel=1e-12) and len(mine) == 24
    # The run can be continued: it knows the codec by the text of its class.
    text = source[source.index("class MuLaw") :]
    codes = {run.meta["fingerprint"]["systems"][name]["code"] for name in ("mu-law@256", "mu-law@32")}
    assert codes == {hashlib.sha256(text.encode()).hexdigest()[:16]}

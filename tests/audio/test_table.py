"""A locator gives the sound of one row, in whatever form the row holds it. Reading in order decodes nothing twice."""

from __future__ import annotations

import io
import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
from refusals import refuses

from codec_bench.audio.clip import Clip
from codec_bench.config import file_content
from codec_bench.decoding import table
from codec_bench.decoding.table import Locator, find_locator
from codec_bench.types import Audio

RATE = 16_000
# 16-bit samples differ by half a step of 1/32768. MP3 is not exact, so its length and correlation are compared.
STEP = 1 / 32768


def sound(number: int) -> np.ndarray:
    return (0.3 * np.sin(np.arange(4000 + number) * (0.02 + 0.001 * number))).astype(np.float32)


def encoded(number: int, kind: str = "FLAC") -> bytes:
    file = io.BytesIO()
    soundfile.write(file, sound(number), RATE, format=kind)
    return file.getvalue()


def write(path, column, name="audio", group=8, **more):
    columns = {name: column, **more}
    pq.write_table(pa.table(columns), path, row_group_size=group)
    return str(path)


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    monkeypatch.setattr(table, "_CACHE", table._TableCache(table.CACHED_BYTES))


@pytest.mark.parametrize("kind", ["FLAC", "WAV", "MP3", "OGG"])
def test_bytes_of_every_kind_of_file(tmp_path, kind):
    cells = [{"bytes": encoded(at, kind), "path": f"{at}.xyz"} for at in range(5)]
    file = write(tmp_path / "t.parquet", cells, group=2)
    for at in (4, 0, 3):
        audio = Audio.read(f"{file}::audio::{at}")
        assert audio.sample_rate_hz == RATE
        if kind in ("FLAC", "WAV"):
            np.testing.assert_allclose(audio.samples[0], sound(at), atol=STEP)
        else:
            count = min(audio.num_samples, len(sound(at)))
            assert np.corrcoef(audio.samples[0, :count], sound(at)[:count])[0, 1] > 0.99


def test_plain_bytes_and_dictionary_of_samples_and_samples_with_a_rate(tmp_path):
    plain = write(tmp_path / "bytes.parquet", [encoded(0), encoded(1)])
    np.testing.assert_allclose(Audio.read(f"{plain}::audio::1").samples[0], sound(1), atol=STEP)
    arrays = write(
        tmp_path / "a.parquet", [{"array": sound(at).tolist(), "sampling_rate": 8000 + at} for at in range(3)]
    )
    audio = Audio.read(f"{arrays}::audio::2")
    assert audio.sample_rate_hz == 8002
    np.testing.assert_allclose(audio.samples[0], sound(2), rtol=1e-7)
    column = pa.array([sound(at) for at in range(2)], pa.list_(pa.float32()))
    extra = write(tmp_path / "b.parquet", column, sampling_rate=[22050, 44100])
    audio = Audio.read(f"{extra}::audio::1")
    assert audio.sample_rate_hz == 44100
    np.testing.assert_array_equal(audio.samples[0], sound(1))
    stereo = [[sound(0).tolist(), (-sound(0)).tolist()]]
    file = write(tmp_path / "s.parquet", pa.array(stereo, pa.list_(pa.list_(pa.float32()))), sample_rate=[RATE])
    np.testing.assert_array_equal(Audio.read(f"{file}::audio::0").samples, np.stack([sound(0), -sound(0)]))


def test_several_sounds_in_a_row(tmp_path):
    cells = [[{"bytes": encoded(at * 3 + item), "path": None} for item in range(at)] for at in range(4)]
    file = write(tmp_path / "t.parquet", cells, "audios")
    np.testing.assert_allclose(Audio.read(f"{file}::audios::3.2").samples[0], sound(11), atol=STEP)
    with refuses("cell_item", sounds=2, item=2):
        Audio.read(f"{file}::audios::2.2")


def test_paths_are_next_to_the_table_or_above_it(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "clips").mkdir()
    (tmp_path / "data" / "here.wav").write_bytes(encoded(1, "WAV"))
    (tmp_path / "clips" / "there.wav").write_bytes(encoded(2, "WAV"))
    names = ["here.wav", "clips/there.wav", str(tmp_path / "clips" / "there.wav"), "nowhere.wav"]
    texts = write(tmp_path / "data" / "t.parquet", names)
    structs = write(tmp_path / "data" / "s.parquet", [{"bytes": None, "path": name} for name in names])
    for file in (texts, structs):
        for at, number in enumerate((1, 2, 2)):
            assert Audio.read(f"{file}::audio::{at}").num_samples == 4000 + number
        with refuses("no_file", path="nowhere.wav"):
            Audio.read(f"{file}::audio::3")


def test_what_is_wrong_names_the_row(tmp_path):
    broken = encoded(0)[:-600]
    file = write(tmp_path / "t.parquet", [{"bytes": encoded(0), "path": "a"}, None, {"bytes": b"", "path": "a"},
                                          {"bytes": broken, "path": "a"}, {"bytes": b"no sound at all", "path": "a"},
                                          {"bytes": None, "path": None}], n=list(range(6)))  # fmt: skip
    for index, code, shown in (
        ("audio::1", "cell_null", {}),
        ("audio::2", "sound_empty", {}),
        ("audio::3", "bytes_missing|not_decoded|samples_missing", {}),
        ("audio::4", "not_a_sound", {}),
        ("audio::5", "cell_null", {}),
        ("audio::6", "table_row", {"rows": 6, "row": 6}),
        ("sound::0", "table_column", {"column": "sound", "known": "audio, n"}),
        ("n::0", "cell_without_sound", {"type": "int"}),
    ):
        with refuses(code, **shown) as caught:
            Audio.read(f"{file}::{index}")
        assert "t.parquet" in caught.value.message
    samples = write(tmp_path / "f.parquet", pa.array([sound(0)], pa.list_(pa.float32())))
    with refuses("cell_without_rate"):
        Audio.read(f"{samples}::audio::0")
    (tmp_path / "x.parquet").write_bytes(b"PAR1 this is no table PAR1")
    with refuses("parquet_unreadable"):
        Audio.read(f"{tmp_path}/x.parquet::audio::0")
    with refuses("file_not_readable"):
        Audio.read(f"{tmp_path}/none.parquet::audio::0")


def test_ordinary_files_with_the_mark_in_their_names_stay_files(tmp_path):
    odd = tmp_path / "a::b::0"
    odd.write_bytes(encoded(3, "WAV"))
    assert Audio.read(odd).num_samples == 4003
    assert find_locator(str(odd)) is None
    folder = tmp_path / "x::y"
    folder.mkdir()
    file = write(folder / "t.parquet", [encoded(4)], "my::column")
    assert find_locator(f"{file}::my::column::0") == Locator(file, "my::column", 0)
    assert Audio.read(f"{file}::my::column::0").num_samples == 4004
    for path in ("plain.wav", "a::b", f"{file}::my::column::x", f"{file}::my::column::1.", "::0"):
        assert find_locator(path) is None
    with refuses("no_file"):
        Audio.read("a::b")


def test_a_locator_can_be_written_and_read(tmp_path):
    file = write(tmp_path / "t.parquet", [encoded(0)])
    for locator in (Locator(file, "audio", 0), Locator(file, "audio", 12, 3)):
        assert find_locator(str(locator)) == locator
    assert Clip(str(Locator(file, "audio", 0))).read().num_samples == 4000


def test_a_table_that_was_written_anew_is_read_anew(tmp_path):
    file = write(tmp_path / "t.parquet", [encoded(1)])
    assert Audio.read(f"{file}::audio::0").num_samples == 4001
    write(tmp_path / "t.parquet", [encoded(2)])
    os.utime(file, ns=(1, 1))
    assert Audio.read(f"{file}::audio::0").num_samples == 4002


def count_batches(monkeypatch) -> list[int]:
    """Notes the rows of every batch that is decoded. Files count as old at once, so that their parts are kept."""
    monkeypatch.setattr(file_content, "TICK_NS", 0)
    decoded: list[int] = []
    iter_batches = pq.ParquetFile.iter_batches

    def noting(self, *args, **options):
        for batch in iter_batches(self, *args, **options):
            decoded.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", noting)
    return decoded


def test_rows_in_order_decode_each_row_group_once(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "_BATCH_BYTES", 20_000)
    file = write(tmp_path / "t.parquet", [encoded(at) for at in range(60)], group=25)
    decoded = count_batches(monkeypatch)
    for at in range(60):
        assert Audio.read(f"{file}::audio::{at}").num_samples == 4000 + at
    # The first row of each of the three groups is read twice: it tells how large a row is.
    assert sum(decoded) == 60 + 3 and len(decoded) > 6, "every row once, in pieces smaller than a row group"


def test_threads_in_any_order_get_their_own_rows_and_decode_about_once(tmp_path, monkeypatch):
    file = write(tmp_path / "t.parquet", [encoded(at) for at in range(120)], group=30)
    decoded = count_batches(monkeypatch)
    places = list(range(120))
    random.Random(5).shuffle(places)
    barrier = threading.Barrier(8)

    def read(item):
        barrier.wait()
        return [(at, Audio.read(f"{file}::audio::{at}").num_samples) for at in item]

    with ThreadPoolExecutor(8) as pool:
        results = [pair for item in pool.map(read, [places[n::8] for n in range(8)]) for pair in item]
    assert sorted(results) == [(at, 4000 + at) for at in range(120)]
    assert sum(decoded) == 120 + 4  # the first row of each of the four groups tells how large a row is


def test_what_is_preserved_is_bounded_whatever_the_order(tmp_path, monkeypatch):
    size = len(encoded(0))
    retained = table._TableCache(20 * size)
    monkeypatch.setattr(table, "_CACHE", retained)
    monkeypatch.setattr(table, "_BATCH_BYTES", 3 * size)
    file = write(tmp_path / "t.parquet", [encoded(at) for at in range(90)], group=30)
    places = [*range(90), *reversed(range(90)), *random.Random(1).sample(range(90), 60)]
    for at in places:
        assert Audio.read(f"{file}::audio::{at}").num_samples == 4000 + at
        # One batch may go beyond the half that a row group is allowed.
        assert sum(item.nbytes for item in retained._parts.values()) <= 24 * size

"""The identity of custom code: its file and the local modules that it imports."""

from __future__ import annotations

import importlib.util
import pickle
import sys
from dataclasses import replace

import pytest
from refusals import refuses

from codec_bench.config.custom_code import code_hash, find_code
from codec_bench.config.file_content import with_content
from codec_bench.config.registry import Spec, declared_methods, load_attribute, locate_name

FILES = {
    "alone_of_ours.py": "import os\nimport numpy\nfrom codec_bench import Audio\nclass Here: ...\n",
    "helped_of_ours.py": "from aid_of_ours import K\nclass Here:\n    k = K\n",
    "aid_of_ours.py": "import far_of_ours\nK = far_of_ours.K\n",
    "far_of_ours.py": "K = 1\n",
    "late_of_ours.py": "class Here:\n    def run(self):\n        from far_of_ours import K\n        return K\n",
    "pack_of_ours/__init__.py": "from . import settings\n",
    "pack_of_ours/settings.py": "K = 2\n",
    "pack_of_ours/inner/__init__.py": "",
    "pack_of_ours/inner/net.py": "class Net: ...\n",
    "pack_of_ours/codec.py": "from .inner.net import Net\nclass Here:\n    def encode(self): ...\n",
    "pack_of_ours/plain.py": "import pack_of_ours.inner.net as net\nclass Here: ...\n",
    "typed_of_ours.py": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import aid_of_ours\nelse:\n    import far_of_ours\n"
        "class Here: ...\n"
    ),
    "broken_of_ours.py": "import far_of_ours\nclass Here(:\n",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of custom code, from which the test runs."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if "of_ours" in name:
            del sys.modules[name]


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("alone_of_ours.py:Here", {"alone_of_ours.py"}),
        ("helped_of_ours.py:Here", {"helped_of_ours.py", "aid_of_ours.py", "far_of_ours.py"}),
        ("helped_of_ours:Here", {"helped_of_ours.py", "aid_of_ours.py", "far_of_ours.py"}),
        ("late_of_ours.py:Here", {"late_of_ours.py", "far_of_ours.py"}),
        ("typed_of_ours.py:Here", {"typed_of_ours.py", "far_of_ours.py"}),
        ("broken_of_ours.py:Here", {"broken_of_ours.py"}),
        (
            "pack_of_ours.codec:Here",
            {"pack_of_ours/codec.py", "pack_of_ours/inner/net.py", "pack_of_ours/inner/__init__.py"},
        ),
        (
            "pack_of_ours.plain:Here",
            {
                "pack_of_ours/plain.py",
                "pack_of_ours/__init__.py",
                "pack_of_ours/settings.py",
                "pack_of_ours/inner/net.py",
                "pack_of_ours/inner/__init__.py",
            },
        ),
    ],
)
@pytest.mark.parametrize("elsewhere", [False, True], ids=["from its folder", "by another path"])
def test_a_change_of_a_local_import_is_a_change_of_the_code(folder, monkeypatch, name, read, elsewhere):
    if elsewhere:
        if not name.partition(":")[0].endswith(".py"):
            monkeypatch.syspath_prepend(folder)
        monkeypatch.chdir("/")
        name = f"{folder}/{name}" if ".py:" in name else name
    first = code_hash(name)
    assert len(first) == 16 and first == code_hash(name)
    moved = set()
    for file in FILES:
        text = (folder / file).read_text()
        (folder / file).write_text(f"{text}# changed\n")
        if code_hash(name) != first:
            moved.add(file)
        (folder / file).write_text(text)
    assert moved == read
    assert not any("of_ours" in module for module in sys.modules), "nothing is imported for a hash"


def test_code_that_is_missing_has_no_hash(folder):
    for name in ("missing_of_ours.py:Here", "missing_of_ours:Here", "pack_of_ours.missing:Here"):
        assert find_code(name) is None and code_hash(name) == ""


def test_the_hash_does_not_depend_on_the_place(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    for name, text in FILES.items():
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / name).write_text(text)
    assert code_hash(f"{other}/helped_of_ours.py:Here") == code_hash("helped_of_ours.py:Here")


def test_a_file_imports_modules_next_to_it(folder, monkeypatch):
    monkeypatch.chdir("/")
    path = list(sys.path)
    assert load_attribute(f"{folder}/helped_of_ours.py:Here").k == 1
    assert sys.path == path


def test_a_loaded_module_does_not_replace_one_of_the_same_name_next_to_the_file(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    (other / "second_of_ours.py").write_text(FILES["helped_of_ours.py"])
    (other / "aid_of_ours.py").write_text("K = 3\n")
    assert load_attribute("helped_of_ours.py:Here").k == 1
    paths = {"path": other / "second_of_ours.py", "near": other / "aid_of_ours.py", "loaded": folder / "aid_of_ours.py"}
    with refuses("module_taken", name="aid_of_ours", **{key: str(path) for key, path in paths.items()}):
        load_attribute(f"{other}/second_of_ours.py:Here")


def test_methods_of_a_module_are_read_without_importing_it(folder):
    assert declared_methods("pack_of_ours.codec:Here") == {"encode"}
    assert "pack_of_ours" not in sys.modules


def test_weights_of_an_option_count_by_their_content(folder):
    folder.joinpath("weights").mkdir()
    named = {"weights": "./weights", "ckpt_file": "weights/a.bin", "checkpoint": folder / "weights"}
    seen = []
    for content in (b"1", b"2"):
        folder.joinpath("weights/a.bin").write_bytes(content)
        seen.append({name: with_content(name, value) for name, value in named.items()})
    assert all(seen[0][name] != seen[1][name] for name in named)
    # A log may be written by the code, and a checkpoint may have a name.
    others = {"log": "weights/a.bin", "weights": "base", "checkpoint": None, "levels": 4}
    assert [with_content(name, value) for name, value in others.items()] == ["weights/a.bin", "base", "None", "4"]


def test_a_located_name_equals_the_one_as_written_also_in_another_process(tmp_path, monkeypatch):
    for name, resolved in (
        ("./mine.py:Mine", f"{tmp_path}/mine.py:Mine"),
        ("wer[../asr.py:Asr]@none", f"wer[{tmp_path.parent}/asr.py:Asr]@none"),
        ("programs/polqa.yaml", f"{tmp_path}/programs/polqa.yaml"),
        ("/other/mine.py:Mine", "/other/mine.py:Mine"),
    ):
        located = pickle.loads(pickle.dumps(locate_name(name, str(tmp_path))))
        spec = Spec.parse(located)
        assert located == name and hash(located) == hash(name) and spec.text == name
        assert spec == replace(Spec.parse(resolved), text=name)
    for name in ("stoi", "wer[whisper-large-v3]", "package.module:Class", "accuracy[exact]"):
        assert type(locate_name(name, str(tmp_path))) is str
    monkeypatch.chdir(tmp_path)
    assert type(locate_name("./mine.py:Mine", str(tmp_path))) is str


def test_a_module_next_to_the_code_comes_before_an_imported_one_of_its_name(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("import helper\n")
    (tmp_path / "helper.py").write_text("K = 1\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "helper.py").write_text("")
    spec = importlib.util.spec_from_file_location("helper", tmp_path / "other" / "helper.py")
    monkeypatch.setitem(sys.modules, "helper", importlib.util.module_from_spec(spec))
    before = code_hash(f"{tmp_path}/mine.py:Mine")
    (tmp_path / "helper.py").write_text("K = 2\n")
    assert code_hash(f"{tmp_path}/mine.py:Mine") != before

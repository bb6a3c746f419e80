"""NOTICE names every file that follows somebody else's program, with files that there are."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOTICE = (ROOT / "NOTICE").read_text("utf-8")
NAMED = {path.rstrip(".") for path in re.findall(r"(?:codec_bench|kernels|scripts)/[\w/.]+", NOTICE)}


def test_files_that_are_named_exist():
    assert [path for path in sorted(NAMED) if not (ROOT / path).exists()] == []


def test_every_file_that_names_a_reference_is_in_the_notice():
    text = re.compile(r"^\s*(?:.*[.:] )?References?(?: implementations?)?(?::|$)", re.MULTILINE)
    folders = ("networks", "features", "codecs/neural")
    files = [path for folder in folders for path in sorted((ROOT / "codec_bench" / folder).rglob("*.py"))]
    files += sorted((ROOT / "kernels").glob("*/ref.py"))
    following = [path for path in files if text.search(path.read_text("utf-8"))]
    assert len(following) > 15, "the pattern finds the docstrings"
    names = {path: path.relative_to(ROOT).as_posix() for path in following}
    assert [name for path, name in names.items() if not {name, path.parent.relative_to(ROOT).as_posix()} & NAMED] == []


def test_every_network_is_in_the_notice_or_is_this_projects_own():
    actual = {
        "__init__.py",
        "convolutions.py",
        "grouped_convolution.py",
        "batch_shapes.py",
        "half_precision.py",
        "precision.py",
        "ragged.py",
        "recurrent.py",
        "on_device.py",
        "transfer.py",
        "weight_norm.py",
    }
    files = {path.name for path in (ROOT / "codec_bench" / "networks").glob("*.py")} - actual
    missing = {name for name in files if f"codec_bench/networks/{name}" not in NAMED}
    assert missing == set(), "say in NOTICE what it follows, or here that it follows nothing"


def test_every_repository_that_the_package_names_is_in_the_notice():
    texts = [path.read_text("utf-8") for path in (ROOT / "codec_bench").rglob("*.py")]
    repositories = {
        by_name.rstrip(".") for text in texts for by_name in re.findall(r"github\.com/[\w-]+/[\w.-]+", text)
    }
    assert repositories, "the pattern finds them"
    assert {name for name in repositories if name not in NOTICE} == set(), (
        "say in NOTICE what was taken, and the licence"
    )


def test_every_entry_says_its_licence():
    licence = re.compile(
        r"\b(?:MIT|Apache-2\.0|A?L?GPL|BSD|ISC|CC-BY|Creative Commons|no licence is stated|a licence of its own)\b"
    )
    entries = re.split(r"\n\n\n\d\. .*\n\n", NOTICE)[1:]
    headings = [head for item in entries for head in re.findall(r"(?:^\S.*\n)+(?= {4})", item, re.MULTILINE)]
    assert len(headings) > 25
    assert [head for head in headings if not licence.search(head)] == []

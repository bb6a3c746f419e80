"""The page and the tables of a profile: what they say, what they escape, and that they work in a browser."""

from __future__ import annotations

import copy
import io
import json
import re

import numpy as np
import pytest
from page_in_browser import complaints, open_page, resize, texts
from rich.console import Console

from codec_bench.apps.profiling.command import profile_tables
from codec_bench.apps.profiling.page import write_profile_page
from codec_bench.apps.profiling.rows import findings, reasons, sections
from codec_bench.audio.encode import write_flac
from codec_bench.types import Audio

HOSTILE = "</script><img src=x onerror=\"document.title='owned'\">\u202e{{ 7*7 }}"
RATE = 16000


def book(rng, tokens=4000, entries=64):
    counts = np.bincount(np.minimum(entries - 1, rng.geometric(0.08, tokens)), minlength=entries)
    share = counts[counts > 0] / tokens
    bits = float(-(share * np.log2(share)).sum())
    used = int((counts > 0).sum())
    return {
        "tokens": tokens, "used": used, "dead": entries - used, "utilisation": used / entries, "entropy_bits": bits,
        "entropy_bits_corrected": bits, "perplexity": 2**bits, "histogram": counts.tolist(),
    }  # fmt: skip


def entry(value, higher=True, unit=""):
    return {
        "value": value, "ci95": [value * 0.98, value * 1.02], "n": 9, "failed": 0, "missing": {}, "unit": unit,
        "higher_is_better": higher, "protocol": "p",
    }  # fmt: skip


def language(kbps, books):
    orders = [
        {"order": n, "bps": bps, "bits_per_token": bps and bps / (50 * books), "reason": None if bps
            else "the data cannot carry it"}
        for n, bps in ((1, 800.0 * kbps), (2, 700.0 * kbps), (3, None), (4, None))
    ]  # fmt: skip
    streams = [{"zipf": [0.5 + n / 50 for n in range(books)], "heaps": [0.1] * books}]
    return {
        "state": "ok",
        "nominal_bps": 1000.0 * kbps,
        "tokens_per_s": 50.0 * books,
        "orders": orders,
        "streams": streams,
    }


def transformer(kbps):
    return {
        "state": "ok", "bps": 600.0 * kbps, "bits_per_token": 3.6, "uniform_bps": 1000.0 * kbps, "bits_per_phone": None,
        "bits_per_character": 42.5,
    }  # fmt: skip


def probes(share):
    read = {
        name: {"accuracy": share, "ci95": [share - 0.1, share + 0.04], "note": None} for name in ("linear", "hidden")
    }
    requests = {
        "state": "ok",
        "items": 40,
        "classes": 4,
        "folds": 4,
        "units": 4,
        "chance": 0.25,
        "codes": read,
        "mel": read,
    }
    unasked = {"state": "not applicable", "reason": "no clip has both an alignment and a speaker"}
    return {
        "state": "ok",
        "clips": 40,
        "tasks": {"speaker": requests, "emotion": unasked, "phone": unasked, "pitch": requests},
    }


def codec(rng, kbps, stoi, books=18):
    per_book = [book(rng) for _ in range(books)]
    memory = {"resident_bytes": 2**29, "resident_since_start": False}
    threads = {"cores": 2, "torch": 1}
    role = {"macs_per_s": 1.5e9, "by_operator": {}, "parameters": 7_000_000, "not_counted": {"elu": 5e6}}
    stream = {
        "name": "codes", "codebooks": books, "cardinality": 64, "frame_rate_hz": 50.0, "frames": 4000,
        "tokens": 4000 * books,
        "nominal_bps": 1000 * kbps, "entropy_coded_bps": 800 * kbps, "joint_bps": None, "joint_reason": "too few",
        "joint_coverage": 0.4,
        "utilisation": 0.5, "perplexity": 20.0, "dead": 30, "entries": 64 * books, "per_codebook": per_book,
    }  # fmt: skip
    changes = [
        {
            "change": name, "noise_db": noise_db, "reason": None, "agreement": [0.5] * books, "latent_snr_db": None,
            "wave_snr_db": wave_snr_db, "quality": {"stoi": {"value": 0.6, "n": 2, "reason": None}},
        }
        for name, noise_db, wave_snr_db in (("6 dB louder", None, 12.0), ("with noise at 20 dB", 20.0, None),
            ("with noise at 0 dB", 0.0, None))
    ]  # fmt: skip
    return {
        "info": {
            "state": "ok", "name": "x", "sample_rates_hz": [RATE], "channels": [1], "causal": True,
            "code_licence": "MIT",
            "weights_licence": None, "weights": None, "paper": "",
        },
        "load": {"state": "ok", "load_s": 1.25, "memory": memory},
        "contract": {"state": "ok", "items": 2},
        "speed": {
            "state": "ok", "real_time_factor": 0.125, "encode_real_time_factor": 0.05, "decode_real_time_factor": 0.075,
            "memory": memory, "threads": threads, "device": "cpu",
        },
        "batched": {"state": "ok", "audio_hours_per_hour": 24.5, "memory": memory, "threads": threads},
        "rate": {
            "state": "ok", "no_bits": None, "latents": None, "declared_bps": 1000 * kbps, "nominal_bps": 1000 * kbps,
            "measured_bps": 1010 * kbps, "seconds": 30.0,
            "frame_rate_hz": 50.0, "tokens": 4000 * books, "tokens_per_s": 50.0 * books, "tokens_per_item": 0,
            "bits_per_token": 6.0, "streams": [stream],
            "entropy_coded_bps": 800 * kbps, "entropy_coded_reason": None, "joint_bps": None,
            "joint_reason": "too few frames",
            "packets": None,
        },
        "complexity": {"state": "ok", "parameters": 14_000_000, "buffers": 0, "encoder": role, "decoder": role},
        "latency": {
            "state": "ok", "algorithmic_samples": 320, "algorithmic_ms": 20.0, "lookahead_samples": 319,
            "lookahead_ms": 19.9, "beyond_frame_samples": 0, "whole_signal": False, "signal_s": 3.0,
        },
        "streaming": {"state": "not applicable", "reason": "it has no streaming way of coding"},
        "stability": {
            "state": "ok", "tokens_reason": None, "changes": changes,
            "metrics": {"stoi": {"unit": "", "higher_is_better": True, "protocol": "p"}},
            "unchanged": {"stoi": {"value": 0.8, "n": 2, "reason": None}},
            "reencoding": [{"round": n, "with_first": [0.9 / n] * books, "with_previous": [0.9] * books,
                "latent_snr_db": None} for n in (1, 2)],
        },
        "loss": lossy(stoi),
        "codebooks_kept": {
            "state": "ok", "clips": 2, "codebooks": 4,
            "metrics": {"stoi": {"unit": "", "higher_is_better": True, "protocol": "p"}},
            "points": [{"codebooks": k, "bps": 100.0 * k,
                "quality": {"stoi": {"value": 0.2 * k, "n": 2, "reason": None}}} for k in (1, 2, 4)],
        },
        "latent_bits": {"state": "not applicable",
            "reason": "what it sends is discrete already: it has no latents to round"},
        "speaker_swap": {
            "state": "ok", "pairs": 4, "speakers_known": True, "metric": "sim",
            "to_voice": {"value": 0.7, "n": 4, "reason": None},
            "to_content": {"value": 0.2, "n": 4, "reason": None}, "kept": {"value": 0.8, "n": 4, "reason": None},
            "apart": {"value": None, "n": 0, "reason": "no weights"},
        },
        "speed_on_cpu": {"state": "not applicable", "reason": "all else was measured on the CPU too"},
        "bit_errors": {
            "state": "ok", "trials": 8, "refused": 0.125, "disturbed_ms": 95.0, "longest_ms": 245.0,
            "wave_snr_db": 20.6, "distance_db": -30.0,
        },
        "language": language(kbps, books), "transformer": transformer(kbps), "probes": probes(stoi),
        "findings": {"state": "ok", "findings": [{"check": "clipping", "state": "ok", "found": "none", "value": 0.0}]},
        "quality": {
            "state": "ok", "reason": None, "run": "quality",
            "metrics": {"bitrate": entry(1010.0 * kbps, False, "bps"), "stoi": entry(stoi),
                "mel_distance": entry(1 - stoi, False)},
        },
        "players": {}, "faults": [],
    }  # fmt: skip


def lossy(stoi):
    def quality(value):
        return {"stoi": {"value": value, "n": 2, "reason": None}}

    return {
        "state": "ok", "clips": 2, "frames": 200, "frame_ms": 20.0, "repair": "repeat",
        "repairs": {"own": "it has no concealment of its own", "repeat": None, "silence": None},
        "metrics": {"stoi": {"unit": "", "higher_is_better": True, "protocol": "p"}}, "undisturbed": quality(stoi),
        "points": [
            {"channel": channel, "rate": rate, "lost": 9,
                "quality": {"repeat": quality(stoi - rate), "silence": quality(stoi - 2 * rate)}}
            for channel, rate in (("random", 0.01), ("random", 0.1), ("bursts", 0.1))
        ],
        "recovery": {
            "reason": None, "repair": "repeat", "trials": 4, "median_ms": 12.0, "longest_ms": 40.0, "unrecovered": 1,
            "distance_db": -30.0,
        },
    }  # fmt: skip


def curve(metric, codecs, higher):
    return {
        "unit": "", "higher_is_better": higher, "protocol": "p",
        "families": {
            "new": [
                {"codec": n, "bitrate_bps": c["quality"]["metrics"]["bitrate"]["value"], "n": 9, "ci95": None,
                    "value": c["quality"]["metrics"][metric]["value"]}
                for n, c in codecs.items()
            ]
        },
    }  # fmt: skip


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    """A profile of four points of one codec, and of one that broke, as `profile.json` holds it; with kept audio."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("profile")
    codecs = {f"new@{k}": codec(rng, k, s) for k, s in ((2, 0.7), (4, 0.8), (8, 0.9), (16, 0.95))}
    broken = {
        name: {"state": "not measured", "reason": HOSTILE} for name in
        ("info", "load", "speed", "batched", "rate", "complexity", "latency", "streaming", "stability", "loss",
            "bit_errors", "codebooks_kept", "latent_bits", "speaker_swap", "speed_on_cpu", "language", "transformer",
            "probes", "quality")
    }  # fmt: skip
    broken["findings"] = {
        "state": "failed", "reason": HOSTILE,
        "findings": [{"check": "length", "state": "failed", "found": HOSTILE, "value": None}],
    }  # fmt: skip
    broken.update(contract={"state": "failed", "reason": HOSTILE}, players={}, faults=[f"contract: {HOSTILE}"])
    tone = np.sin(np.arange(2 * RATE) / 10).astype(np.float32) / 3
    write_flac(folder / "reference.flac", Audio(tone, RATE))
    for number, result in enumerate(codecs.values()):
        write_flac(folder / f"{number}.flac", Audio(tone * (0.5 + number / 10), RATE))
        result["players"] = {"clip one": f"{number}.flac"}
    curves = {"stoi": curve("stoi", codecs, True), "mel_distance": curve("mel_distance", codecs, False)}
    codecs["broken"] = broken
    return folder, {
        "schema": 1, "started": "2026-01-01T10:00:00+00:00", "finished": "2026-01-01T10:05:00+00:00",
        "data": {"name": HOSTILE, "samples": 10, "usable": 9, "fingerprint": "f"},
        "how": {"device": "cpu", "limit": None, "seed": 0, "metrics": ["stoi"], "settings": {"clip_s": 10.0}},
        "machine": {"cpu": "A processor", "cores": 2, "gpu": "none"}, "versions": {"python": "3.11", "torch": "2.11.0"},
        "codecs": codecs, "labels": {**{n: n for n in codecs}, "broken": HOSTILE},
        "families": {"new": list(codecs)[:4], "broken": ["broken"]},
        "players": [{"id": "clip one", "audio": "reference.flac"}], "curves": curves, "anchor": "new",
        "bd_rate": {"stoi": {"broken": {"value": None, "reason": "the test curve has 0 points"},
            "other": {"value": -0.25, "reason": None}}},
    }  # fmt: skip


@pytest.fixture(scope="module")
def page(facts):
    folder, profile = facts
    write_profile_page(profile, folder / "profile page #1.html", references={"clip one": folder / "reference.flac"})
    return folder / "profile page #1.html"


def test_rows_are_numbers_or_dashes_with_reasons(facts):
    _, profile = facts
    built = sections(profile)
    rows = {row.label: row for section in built for row in section.rows}
    assert [c.text for c in rows["nominal bitrate"].cells] == ["2.00", "4.00", "8.00", "16.0", "–"]
    assert rows["parameters"].cells[0].text == "14" and rows["real-time factor"].cells[0].text == "0.125"
    assert rows["re-encoded 2×"].cells[0].text == "45.0 (45–45)"
    assert (
        rows["stoi with 10 % lost at random"].cells[0].text == "0.6 / 0.5"
        and rows["stoi without loss"].cells[0].text == "0.7"
    )
    assert rows["time to recover"].cells[0].text == "12 (≥ 40)" and rows["time to recover"].cells[0].flag
    assert rows["stoi by codebooks"].cells[0].text == "1: 0.2, 2: 0.4, 4: 0.8"
    assert rows["to the giver of the global part"].cells[0].text == "0.7" and "real-time factor on the CPU" not in rows
    assert rows["refused bit errors"].cells[0].text == "1 of 8"
    for section in built:
        for row in (*section.rows, *section.without):
            assert all(cell.reason for cell in row.cells if cell.text == "–"), row.label
    assert rows["entropy rate, order 2"].cells[0].text == "1.556" and rows["bits per character"].cells[0].text == "42.5"
    assert (
        rows["of equally likely codes"].cells[0].text == "60.0"
        and rows["rate by the transformer"].cells[1].text == "2.4"
    )
    assert rows["Zipf exponent"].cells[0].text == "0.67 (0.50–0.84)" and "entropy rate, order 3" not in rows
    assert rows["speaker, linear"].cells[0].text == "70.0 (60–74); log-mel 70.0; chance 25.0"
    assert "streaming step" not in rows  # no codec has one
    assert any(
        who == "new@2, new@4, new@8, new@16" and why.endswith("no streaming way of coding")
        for who, _, why in reasons(built, list(profile["codecs"]))
    )
    ((name, finding),) = findings(profile)
    assert finding["state"] == "failed" and "\u202e" not in name


@pytest.mark.parametrize("width", [80, 200])
def test_the_terminal_says_everything_at_any_width(facts, width):
    _, profile = facts
    stream = io.StringIO()
    Console(file=stream, width=width, highlight=False).print(profile_tables(profile, width=width))
    text = stream.getvalue()
    for words in (
        "entropy-coded bitrate",
        "12.8",
        "BD-rate",
        "−25.0 %",
        "checks: look at these",
        "(suspect)",
        "mel_distance",
    ):
        assert words in text
    assert "\u202e" not in text and max(map(len, text.splitlines())) <= width


def test_the_terminal_says_what_an_asterisk_means(facts):
    _, profile = facts
    marked = copy.deepcopy(profile)
    name = next(n for n, codec in marked["codecs"].items() if "metrics" in codec["quality"])
    marked["codecs"][name]["quality"]["metrics"]["stoi"]["note"] = "few"
    marked["codecs"][name]["quality"]["metrics"]["stoi"].pop("note_code", None)
    stream = io.StringIO()
    Console(file=stream, width=200).print(profile_tables(marked, width=200))
    assert "* (stoi of" in stream.getvalue() and ": few" in stream.getvalue()


def test_the_page_is_whole_and_escapes(page):
    text = page.read_text("utf-8")
    assert "<img src=x" not in text and "49" not in re.findall(r"owned'.{0,40}", text)[0]
    assert text.count('<script type="text/plain"') == 5
    assert not re.search(r"(src|href)=\"https?:", text)
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])
    assert [c["name"] for c in data["columns"]] == ["bitrate", "stoi", "mel_distance"]
    assert data["summary"][4] == [None, None, None] and data["systems"][3]["family"] == 0
    assert len(data["codebooks"]) == 4 and len(data["codebooks"][0]["books"]) == 18
    for bars in data["codebooks"][0]["books"]:
        assert len(bars) == 64 and sum(bars) == pytest.approx(64, rel=1e-3) and bars == sorted(bars, reverse=True)


def test_sound_that_does_not_fit_is_omitted(facts, tmp_path):
    folder, profile = facts
    write_profile_page(profile, folder / "small.html", references={}, audio_mb=0.001)
    assert 'id="clip-0"' not in (folder / "small.html").read_text("utf-8")


def test_a_profile_without_curves_or_codebooks_has_a_page(facts, tmp_path):
    _, profile = facts
    bare = copy.deepcopy(profile)
    bare["codecs"] = {"broken": bare["codecs"]["broken"]}
    bare.update(curves={}, bd_rate={}, anchor=None, families={"broken": ["broken"]}, players=[])
    write_profile_page(bare, tmp_path / "bare.html")
    text = (tmp_path / "bare.html").read_text("utf-8")
    assert (
        'id="plots"' not in text
        and 'id="language"' not in text
        and 'id="probes"' not in text
        and 'id="codebooks"' not in text
        and 'id="numbers"' in text
    )


@pytest.fixture
def opened(browser, page):
    from selenium.webdriver.support.ui import WebDriverWait

    for log in ("browser", "performance"):
        browser.get_log(log)
    browser.get(page.as_uri())
    wait = WebDriverWait(browser, 120)
    wait.until(lambda b: b.execute_script("return document.documentElement.dataset.ready"))
    yield browser, wait
    assert [e["message"] for e in browser.get_log("browser")] == []
    assert browser.title.startswith("Profile of new")


def test_it_draws_curves_and_codebooks_and_loads_nothing(opened):
    browser, _ = opened
    count = lambda selector: len(browser.find_elements("css selector", selector))  # noqa: E731
    assert count("#plot-large .point") == 4 and count("#plot-choice button") == 2
    browser.execute_script("document.querySelectorAll('#plot-choice button')[1].click()")
    assert "mel_distance" in browser.find_element("css selector", "#plot-caption").text
    # A line for each of four codecs with and without a repair, of three points each.
    assert count("[data-figure='0'] .join") == 8 and count("[data-figure='0'] .point") == 24
    assert count("#probes-plot .point") == 2 * (4 + 2)  # two questions; four codecs, log-mel and chance
    assert count("#language-plot .point") == 4 * 4 and count("#language-plot .join") == 4
    assert (
        count("[data-figure='1'] .join") == count("[data-figure='2'] .join") == 4
    )  # equal codes and quality under noise
    assert count("[data-figure='3'] .join") == 4  # by the number of codebooks
    assert count("[data-books='0'] svg") == 16 and count("[data-more='0'] svg") == 2
    requested = [
        json.loads(e["message"])["message"]["params"]["request"]["url"] for e in browser.get_log("performance")
        if '"Network.requestWillBeSent"' in e["message"]
    ]  # fmt: skip
    assert [u for u in requested if not u.startswith(("file:", "data:", "chrome"))] == []
    wide = browser.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0


@pytest.mark.parametrize(("width", "height"), [(1400, 900), (390, 844)])
def test_the_table_of_numbers_is_as_tall_as_its_rows(browser, page, width, height):
    open_page(browser, page)
    resize(browser, width, height)
    heights = browser.execute_script(
        """const table = document.querySelector("#numbers-table"), scroll = table.closest(".scroll");
        return [scroll.clientHeight, scroll.scrollHeight, table.offsetHeight]"""
    )
    assert heights[0] == heights[1] == heights[2] > height
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_dash_explains_itself(opened):
    browser, wait = opened
    cell = browser.find_element("css selector", "#numbers-table td.why")
    browser.execute_script("arguments[0].focus({focusVisible: true})", cell)
    wait.until(lambda b: not b.execute_script("return document.getElementById('tip').hidden"))
    assert cell.get_attribute("data-why")[:8] in browser.find_element("css selector", "#tip").text


def test_players_keep_their_place_between_codecs(opened):
    browser, wait = opened
    click = lambda s: browser.execute_script("document.querySelector(arguments[0]).click()", s)  # noqa: E731
    click("[data-clip='0'] .play")
    wait.until(lambda b: b.execute_script("return document.querySelector('[data-clip]').dataset.ready"))
    wait.until(lambda b: float(b.find_element("css selector", "[data-clip='0'] input").get_attribute("value")) > 0.1)
    before = float(browser.find_element("css selector", "[data-clip='0'] input").get_attribute("value"))
    click("[data-clip='0'] [data-track='2']")
    pressed = browser.find_element("css selector", "[data-clip='0'] [aria-pressed='true']")
    assert pressed.text == "new@8"
    assert float(browser.find_element("css selector", "[data-clip='0'] input").get_attribute("value")) >= before
    click("[data-clip='0'] .play")
    assert browser.find_element("css selector", "[data-clip='0'] .play").text == "Play"


def test_checks_that_inform_are_shown_and_the_others_folded(browser, facts, tmp_path):
    """Four codecs that declare nothing: what could not be checked is neither counted nor in the way."""
    _, profile = facts
    profile = copy.deepcopy(profile)
    quiet = "the level of the estimates is -9.5 dB from that of their references (median)"
    for name in list(profile["codecs"])[:4]:
        profile["codecs"][name]["findings"]["findings"] = [
            {"check": "clipping", "state": "ok", "found": "none", "value": 0.0},
            {"check": "level", "state": "suspect", "found": quiet, "value": -9.5},
            {"check": "bitrate label", "state": "not applicable", "found": f"{name} declares no bitrate",
                "value": None},
            {"check": "causal label", "state": "not applicable", "found": "it does not declare whether it is causal",
                "value": None},
        ]  # fmt: skip
    write_profile_page(profile, tmp_path / "page.html")
    page = open_page(browser, tmp_path / "page.html")
    cells = "return [...document.querySelectorAll(arguments[0])].map((r) => [...r.cells].map((c) => c.textContent))"
    hostile = HOSTILE.replace("\u202e", "�")
    assert page.execute_script(cells, "#check-table tbody tr") == [
        ["failed", "length", HOSTILE, hostile],
        ["suspect", "level", quiet, "new@2, new@4, new@8, new@16"],
    ]
    heads = texts(page, "#numbers thead th")[1:]
    assert [text.endswith(" (suspect)") for text in heads] == [True] * 5 + [False] * (len(heads) - 5)
    assert texts(page, '.facts a[href="#checks"]') == ["5 to look at"] and "of 9" in texts(page, ".facts")[0]
    assert texts(page, "#in-order summary") == ["4 checks found nothing suspect"]
    assert len(page.execute_script(cells, "#without-check tbody tr")) == 5
    assert page.execute_script("return document.querySelectorAll('#checks details[open]').length") == 0
    assert complaints(page) == []


def test_names_that_form_no_curve_are_reported_on_the_page_and_in_the_terminal(facts, tmp_path):
    folder, profile = facts
    labels = {name: name.replace("@", "") for name in profile["labels"]}
    profile = {**profile, "labels": labels}
    write_profile_page(profile, tmp_path / "page.html", references={"clip one": folder / "reference.flac"})
    text = "new2, new4, new8, new16 are on no common curve: if they are operating points of one codec, name them new@2"
    assert text in (tmp_path / "page.html").read_text()
    console = Console(width=400, file=io.StringIO())
    console.print(profile_tables(profile, width=400))
    assert text in console.file.getvalue()


def test_operators_that_are_not_named_are_counted():
    from codec_bench.apps.profiling.page import _not_counted

    def profile(operators):
        role = {"not_counted": {f"op{k}": 1e6 * (k + 1) for k in range(operators)}}
        return {"codecs": {"x": {"complexity": {"state": "ok", "encoder": role, "decoder": {"not_counted": {}}}}}}

    ((_, eight),) = _not_counted(profile(8), ["x"])
    assert eight.endswith(", op0 (1 M/s)") and "more" not in eight
    ((_, eleven),) = _not_counted(profile(11), ["x"])
    assert eleven.startswith("op10 (11 M/s), ") and eleven.endswith("op3 (4 M/s) and 3 more")

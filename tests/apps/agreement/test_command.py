"""`codec-bench agreement` as a person uses it: what it prints, what it writes, and what it says of a file edited by
hand.
"""

from __future__ import annotations

import json

import pytest
from judged_runs import judged_run


@pytest.fixture
def run(tmp_path):
    verdicts = {"strict": [n % 5 for n in range(40)], "mild": [min(5, n % 5 + (n % 7 == 0)) for n in range(40)]}
    return judged_run(tmp_path / "run", "mine", verdicts, subset=lambda n: "odd" if n % 2 else "even")


def test_judges_are_compared(command, run, tmp_path):
    code, out, err = command("agreement", run, "--judges", "mild,strict")
    assert code == 0 and err == ""
    for text in (
        "Spearman",
        "kappa (quadratic)",
        "rows: mild; columns: strict",
        "odd",
        "the items on which they differ most",
    ):
        assert text in out
    assert out.splitlines()[-1] == str(run / "agreement.html") and (run / "agreement.html").stat().st_size > 10_000
    code, out, _ = command("agreement", run, "--json", "--out", tmp_path / "other.html")
    document = json.loads(out)
    assert [(p["reference"], p["rater"], p["n"]) for p in document["pairs"]] == [("strict", "mild", 40)]
    assert (
        document["pairs"][0]["exact"]["value"] == pytest.approx(34 / 40)
        and document["pairs"][0]["spearman"]["ci95"] is not None
    )
    assert (tmp_path / "other.html").is_file()


def test_a_file_edited_by_hand_is_used_as_far_as_it_can_be(command, run, tmp_path):
    rows = [f"q{n},ann,{n % 5}" for n in range(40)] + ["q1,bob,1", "q1,bob,3", "q2,bob,99", "nobody,bob,1", "q3,bob,"]
    (tmp_path / "human.csv").write_text("\n".join(["id,rater,score", *rows, ""]))
    code, out, err = command("agreement", run, "--with", "human.csv")
    assert code == 0 and "5 ratings of the file were not used" in err
    for text in (
        "rated twice, differently",
        "out of range",
        "unknown id",
        "empty cell",
        "line 44: 99 is not from 0 to 5",
    ):
        assert text in out, text
    page = (run / "agreement.html").read_text()
    assert "rated twice, differently" in page and "line 44: 99 is not from 0 to 5" in page


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["nowhere"], "is not a run folder and holds none"),
        (["run", "--with", "no.csv"], "'no.csv' cannot be read"),
        (
            ["run", "--with", "useless.csv"],
            "none of the ratings in 'useless.csv' can be used: 1 unknown id (such as line 2: x)",
        ),
        (["run", "--scale", "good"], "--scale got 'good'"),
        (["run", "--judges", "strct"], "did you mean strict?"),
        (["run", "--kind", "stars"], "no kind of rating called 'stars'"),
        (["run", "--out", "nowhere/page.html"], "'nowhere/page.html' cannot be written"),
    ],
)
def test_what_is_typed_wrong_is_one_sentence(command, run, tmp_path, typed, message):
    (tmp_path / "useless.csv").write_text("id,rater,score\nx,ann,1\n")
    code, out, err = command("agreement", *typed)
    assert (code, out) == (2, "") and message in err and "Traceback" not in err

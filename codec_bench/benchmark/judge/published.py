"""Published readers of judges' replies, with their quirks: named numbers.

UltraEval-Audio: github.com/OpenBMB/UltraEval-Audio 9b69da6 `audio_evals/evaluator`; AudioBench:
github.com/AudioLLMs/AudioBench e991641 `src/dataset_src/eval_methods`; AIR-Bench: github.com/OFA-Sys/AIR-Bench
9832476 `cal_score.py`; EmergentTTS-Eval: github.com/boson-ai/EmergentTTS-Eval-public 5764ace `inference.py`; MMAR:
github.com/ddlBoJack/MMAR 3bce090 `code/evaluation_rubrics.py`; MMAU-Pro: github.com/sonalkum/MMAUPro 960e93a
`evaluate_mmau_pro_comprehensive.py`; VocalBench: github.com/SJTU-OmniAgent/VocalBench 5e9cce0 `utils/qwenmax_eval.py`.
A reader raises an exception where the published program does; `read_official` turns it into a reason.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from codec_bench.messages.errors import MissingExtra

CONSISTENT = "一致性"
"""The key in the replies of InstructTTSEval's judge; it means consistency."""

COMBINED = "official/audiobench/ifeval-combined"
"""This reader also needs to know whether the answer follows its rule, by `FOLLOWS_RULE`."""

FOLLOWS_RULE = "ifeval[official/audiobench]"
"""The metric of answers that follow their rule."""

MMAR_RUBRICS = "official/mmar/rubrics"
"""This reader also needs the criteria of the question, in its field `criteria`."""

SEVERAL_REPLIES = (
    "official/ultraeval-audio/voicebench-open",
    "official/ultraeval-audio/voicebench-yes-no",
    MMAR_RUBRICS,
)
"""These readers read all replies to one question together: three for VoiceBench, five for MMAR."""

EMERGENT_TTS = "official/emergent-tts-eval"
"""This reader compares two recordings. It needs the package json-repair, as the program does."""

PAIRS = ("official/air-bench/chat", "official/ultraeval-audio/air-bench-geval", EMERGENT_TTS)
"""These readers read two numbers: the first and the second answer's."""

_EMERGENT_TTS = ("reasoning_system_1", "reasoning_system_2", "system_comparison", "score_1", "score_2", "winner")
_MMAU_PRO = ("CORRECTNESS", "RELEVANCE", "COMPLETENESS", "CLARITY")
_OBJECT = re.compile(r"\{[^{}]*\}")


def air_bench_geval(reply: str) -> dict[str, float]:
    """The first two space-separated parts of the reply, as Python's floats."""
    pieces = reply.split(" ")
    return {"ref_score": float(pieces[0]), "pred_score": float(pieces[1])}


def air_bench_chat(reply: str) -> dict[str, float] | None:
    """Read two whole numbers up to 10 with one space between them; None for others."""
    pieces = reply.strip().replace("\n", "").split(" ")
    if len(pieces) != 2:
        return None
    try:
        first, second = map(int, pieces)
    except ValueError:
        return None
    return None if max(first, second) > 10 else {"first": first, "second": second}


def alpaca_rank(reply: str) -> dict[str, float]:
    """1 if the first entry of the reply's Python literal is `model_1`, else 0."""
    text = reply.strip()
    if text.startswith("```"):
        text = text[9 if text.startswith("```python") else 3 : -3].strip()
    value = ast.literal_eval(text)
    if isinstance(value, dict):
        value = next(iter(value.values()))
    return {"acc": int(value[0]["model"] == "model_1")}


def chatbot_eval(reply: str) -> dict[str, float]:
    """Read the first whole number in double square brackets; TypeError without one."""
    match = re.search(r"\[\[(\d+)\]\]", reply)
    if match is None:
        raise TypeError("there is no number in double square brackets")  # the source raises this type too
    return {"geval": int(match[1])}


def instruct_tts(reply: str) -> dict[str, float] | None:
    """1 if the JSON value of `CONSISTENT` is true, else 0; None if null or unreadable."""
    for text in _candidates(reply):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if not isinstance(value, dict) or CONSISTENT not in value or value[CONSISTENT] is None:
            return None
        return {"gemini_score": int(value[CONSISTENT] is True)}
    return None


def asks_again(reply: str) -> bool:
    """Whether InstructTTSEval's program repeats its request after this reply.

    Not if the key `CONSISTENT` has the value null: that is a reply without a verdict.
    """
    for text in _candidates(reply):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        return not isinstance(value, dict) or CONSISTENT not in value
    return True


def voicebench_open(replies: list[str]) -> dict[str, float]:
    """The mean of replies that are one bare number each; `[[3]]` is none."""
    return {"gpt_score": sum(float(reply) for reply in replies) / len(replies)}


def voicebench_yes_no(replies: list[str]) -> dict[str, float] | None:
    """1 if the most frequent reply, in lower case, is `yes`, else 0; None for a tie."""
    ranked = Counter(reply.lower() for reply in replies).most_common(2)
    if len(ranked) > 1 and ranked[0][1] == ranked[1][1]:
        return None  # the published program picks one at random
    return {"gpt_score": int(ranked[0][0] == "yes")}


def last_piece(reply: str | None) -> dict[str, float]:
    """AudioBench's rating: the reply's last word as a float; 0 if unreadable."""
    try:
        return {"score": float((reply or "").split()[-1]), "success": 1}
    except (IndexError, ValueError):
        return {"score": 0.0, "success": 0}


def ifeval_combined(reply: str, followed: bool | None) -> dict[str, float]:
    """1 if the reply's first line ends in `: 1` and the answer keeps its rule, else 0.

    Args:
        followed: whether it does; None raises TypeError.

    Returns:
        `success`, and its parts `correctness` and `instruction_following`.
    """
    if followed is None:
        raise TypeError("it is not known whether the rule is followed")
    try:
        correctness = int(reply.strip().split("\n")[0].split(":")[-1].strip())
    except ValueError:
        return {"success": 0, "correctness": 0, "instruction_following": 0}
    success = int(correctness == 1 and followed)
    return {"success": success, "correctness": correctness, "instruction_following": int(followed)}


def vocalbench_score(reply: str) -> dict[str, float]:
    """The first number from 0 to 5 alone in square brackets; 1 if there is none."""
    match = re.search(r"\[([0-5])\]", reply)
    return {"score": int(match[1]) if match is not None else 1}


def vocalbench_following(reply: str) -> dict[str, float]:
    """1 for `[Yes]` without `[No]`, 0 for the opposite, otherwise -1."""
    yes, no = "[Yes]" in reply, "[No]" in reply
    return {"score": -1 if yes == no else int(yes)}


def mmar_rubrics(replies: list[str], criteria: list[dict[str, Any]]) -> dict[str, float]:
    """The mean rating without least and greatest; a rating is a share of the points.

    Each reply must be a list of points, one for each criterion and among its choices; otherwise it is an error.
    """
    ranked = sorted(_share_of_points(reply, criteria) for reply in replies)
    middle = ranked[1:-1] if len(ranked) >= 3 else ranked
    return {"score": sum(middle) / len(middle)}


def _share_of_points(reply: str, criteria: list[dict[str, Any]]) -> float:
    """Parse a reply's points per criterion; return their share of the maximum."""
    match = re.search(r"\[\s*\{.*\}\s*\]", reply, re.DOTALL)
    shares = json.loads(match[0] if match is not None else reply)
    if not isinstance(shares, list) or len(shares) != len(criteria):
        raise ValueError(f"expected a list of {len(criteria)}")
    points = most = 0.0
    for one, criterion in zip(shares, criteria):
        if "name" not in one or "score" not in one or one["score"] not in criterion["choices"]:
            raise ValueError("a criterion without one of its points")
        if not isinstance(one["score"], (int, float)):
            raise ValueError("points that are no number")
        points, most = points + one["score"], most + max(criterion["choices"])
    return points / most if most else 0.0


def mmau_pro_open(reply: str) -> dict[str, float]:
    """The number after `OVERALL:`; if it is missing or 3, the mean of the four marks.

    A missing mark is 3.
    """
    match = re.search(r"OVERALL:\s*(\d+(?:\.\d+)?)", reply, re.IGNORECASE)
    overall = float(match[1]) if match is not None else 3.0
    if overall != 3.0:
        return {"score": overall}
    marks = [re.search(rf"{name}:\s*(\d+)", reply, re.IGNORECASE) for name in _MMAU_PRO]
    return {"score": sum(float(mark[1]) if mark is not None else 3.0 for mark in marks) / len(marks)}


def emergent_tts(reply: str) -> dict[str, float]:
    """Read which recording won: `first` and `second` are 1, 0, or 0.5 for a tie.

    Raises:
        AssertionError: a field is missing, or `winner` is not 0, 1 or 2.
        MissingExtra: json-repair is not installed.
    """
    try:
        import json_repair
    except ImportError:
        raise MissingExtra("emergent_tts_reader", "json-repair", "api") from None
    marks: Any = json_repair.loads(reply)
    absent = [name for name in _EMERGENT_TTS if name not in marks]
    if absent or marks["winner"] not in (0, 1, 2):
        raise AssertionError(f"no {absent[0]}" if absent else "another winner")  # the source raises this type too
    first = {0: 0.5, 1: 1.0, 2: 0.0}[int(marks["winner"])]
    return {"first": first, "second": 1 - first}


def _candidates(reply: str) -> list[str]:
    """The parts of a reply that may be InstructTTSEval's JSON object, best first."""
    fence_start = reply.find("```json")
    fence_end = reply.find("```", fence_start + 7) if fence_start >= 0 else -1
    fenced = [reply[fence_start + 7 : fence_end].strip()] if fence_end >= 0 else []
    flat = (text for text in _OBJECT.findall(reply) if f'"{CONSISTENT}"' in text)
    return [*fenced, *flat, reply.strip()]


READERS: Mapping[str, Callable[..., Any]] = {
    "official/air-bench/chat": air_bench_chat,
    COMBINED: ifeval_combined,
    "official/audiobench/judge-0-5": last_piece,
    "official/audiobench/judge-binary": last_piece,
    EMERGENT_TTS: emergent_tts,
    MMAR_RUBRICS: mmar_rubrics,
    "official/mmau-pro/open": mmau_pro_open,
    "official/ultraeval-audio/air-bench-geval": air_bench_geval,
    "official/ultraeval-audio/alpaca-rank": alpaca_rank,
    "official/ultraeval-audio/chatbot-eval": chatbot_eval,
    "official/ultraeval-audio/instruct-tts": instruct_tts,
    "official/ultraeval-audio/voicebench-open": voicebench_open,
    "official/ultraeval-audio/voicebench-yes-no": voicebench_yes_no,
    "official/vocalbench/following": vocalbench_following,
    "official/vocalbench/score": vocalbench_score,
}
"""Every published reader by name."""

MOST_REQUESTS = 5
"""The most requests of InstructTTSEval's program for one question."""

ASKS_AGAIN: Mapping[str, Callable[[str], bool]] = {"official/ultraeval-audio/instruct-tts": asks_again}
"""By reader: whether its program repeats a request after a reply, at most `MOST_REQUESTS` times in all."""

"""Sessions whose values are known: a script, a plan of the server, and what every measure must then be.

The truth follows from the plan by arithmetic. The server hears a frame when it is whole, so what it does `x` after
hearing something that lies at `t` in the user's track happens between `t + x` and `t + x + FRAME_S`. An interruption
begins with a frame, so it arrives exactly one frame later.
"""

from __future__ import annotations

import random

from codec_bench.apps.conversation.script import NO_ANSWER

from .server import FRAME_S, PACKET_S, Plan

TAIL_S = 0.2  # of silence behind each sound


def jitter(plan, name):
    """The delay of the first packet of the first answer."""
    return random.Random(f"{plan.seed} {name}").uniform(0, plan.jitter_s)


def session(number, seed=0):
    """(conversation, plan, {measure: expected values in their order})."""
    random_of = random.Random(f"{seed} {number}")
    make = FORMS[number % len(FORMS)]
    name = f"{make.__name__}-{number}"
    conversation, plan, expected = make(random_of, name)
    return {"id": name, **conversation}, plan, expected


def turn(sound, at_s=0.5):
    return {"say": f"{sound}.wav", "at_s": at_s}


def answered(latency_s):
    return {
        "turn_taken": [1],
        "too_early": [0],
        "response_latency_s": [latency_s],
        "sent_latency_s": [latency_s - TAIL_S],
        "floor_transfer_s": [latency_s],
    }


def plain(draw, name):
    plan = Plan(
        answer_after_s=draw.uniform(0.3, 1.5), jitter_s=draw.choice([0.0, 0.08]), seed=draw.randrange(99), speed=5.0
    )
    latency_s = plan.answer_after_s + jitter(plan, name)
    return {"turns": [turn("short", draw.uniform(0.2, 1.0))]}, plan, {
        **answered(latency_s),
        "overlap": [0.0],
        "backchannels_per_min": [0.0],
        "stalls": [0],
        "stall_s": [0.0],
    }  # fmt: skip


def silent(draw, name):
    plan = Plan(answer_after_s=None)
    return {"turns": [turn("short")]}, plan, {
        "turn_taken": [0], "too_early": [0], "response_latency_s": [None], "floor_transfer_s": [None], "overlap": [0.0],
    }  # fmt: skip


def early(draw, name):
    """It speaks while the user still speaks, and on after the user's end."""
    at_s = draw.uniform(0.3, 1.6)
    plan = Plan(answer_after_s=None, barges_at_s=at_s, answer_s=2.5, yields_after_s=None)
    both_s = 2.0 - at_s - FRAME_S / 2
    return {"turns": [turn("long")]}, plan, {
        "turn_taken": [1], "too_early": [1], "response_latency_s": [None], "floor_transfer_s": [at_s - 2.0],
        "overlap": [both_s / (2.0 + 2.5 - both_s)],
    }  # fmt: skip


def interrupted(draw, name):
    """It stops some time after it hears the interruption, and answers it."""
    stops_s, after_s, moment_s = draw.uniform(0.1, 0.7), draw.uniform(0.4, 1.2), draw.uniform(0.4, 1.0)
    plan = Plan(answer_after_s=after_s, yields_after_s=stops_s, answer_s=4.0)
    latency_s = [after_s, after_s]
    cut = {"kind": "interruption", "say": "short.wav", "into_answer_s": moment_s}
    return {"turns": [turn("short"), cut]}, plan, {
        "turn_taken": [1, 1], "too_early": [0, 0], "response_latency_s": latency_s, "yielded": [1],
        "yield_latency_s": [stops_s + FRAME_S],
        "overlap": [(stops_s + FRAME_S / 2) / (0.8 + 0.8 + moment_s + 4.0)],
    }  # fmt: skip


def stubborn(draw, name):
    """It goes on talking when it is interrupted."""
    plan = Plan(answer_after_s=draw.uniform(0.3, 1.0), yields_after_s=None, answer_s=6.0)
    cut = {"kind": "interruption", "say": "short.wav", "into_answer_s": draw.uniform(0.5, 1.5)}
    return {"turns": [turn("short"), cut]}, plan, {
        "yielded": [0], "yield_latency_s": [None], "turn_taken": [1, 0], "overlap": [0.8 / (0.8 + 6.0)],
    }  # fmt: skip


def listening(draw, name):
    """It goes on through a short backchannel or a cough, or stops for it."""
    stops = draw.random() < 0.5
    plan = Plan(answer_s=4.0, deaf_s=0.0 if stops else 0.5, yields_after_s=0.1)
    sign = {"kind": draw.choice(NO_ANSWER), "say": "hm.wav", "into_answer_s": draw.uniform(0.5, 1.5)}
    return {"turns": [turn("short"), sign]}, plan, {"kept_talking": [0 if stops else 1], "turn_taken": [1]}


def pausing(draw, name):
    """Whether it takes a pause for the end depends on how long it waits."""
    pause_s, after_s = draw.choice([(0.5, 0.9), (1.2, 0.4), (0.6, 0.4), (1.4, 0.7)])
    plan = Plan(answer_after_s=after_s, answer_s=2.0, yields_after_s=0.1)
    false = after_s < pause_s + TAIL_S
    text = ["short.wav", {"pause_s": pause_s}, "hm.wav"]
    return {"turns": [{"say": text, "at_s": 0.5}]}, plan, {
        "false_turn": [int(false)], "turn_taken": [1], "too_early": [0], "response_latency_s": [after_s],
    }  # fmt: skip


def nodding(draw, name):
    """It says a short sound while the user speaks, and answers at the end."""
    plan = Plan(answer_after_s=draw.uniform(0.3, 1.0), backchannel_at_s=draw.uniform(0.3, 1.4))
    return {"turns": [turn("long")]}, plan, {
        **answered(plan.answer_after_s), "backchannels_per_min": [60 / 2.0], "overlap": [0.3 / (2.0 + 2.0)],
    }  # fmt: skip


def stalling(draw, name):
    """Its sound runs out, after as much of a lead as its speed gives it."""
    speed, number, stall_s = draw.choice([1.0, 2.0]), draw.randrange(3, 8), draw.uniform(0.5, 1.0)
    plan = Plan(speed=speed, stall=(number, stall_s), answer_s=2.0)
    lead_s = number * PACKET_S * (1 - 1 / speed)
    took_s = (2.0 - PACKET_S) / speed + stall_s
    return {"turns": [turn("short")]}, plan, {
        "stalls": [1], "stall_s": [stall_s - lead_s], "real_time_factor": [took_s / (2.0 - PACKET_S)],
        "turn_taken": [1],
    }  # fmt: skip


def quick(draw, name):
    speed = draw.uniform(1.5, 8.0)
    return {"turns": [turn("short")]}, Plan(speed=speed), {"real_time_factor": [1 / speed], "stalls": [0]}


def quiet(draw, name):
    return {"silence_s": draw.uniform(1.0, 3.0)}, Plan(), {"silence_kept": [1]}


FORMS = (plain, silent, early, interrupted, stubborn, listening, pausing, nodding, stalling, quick, quiet)

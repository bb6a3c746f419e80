"""Codecs: what they are called, how one is built, and one adapter a file."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from codec_bench.codecs.base import Codec, CodecInfo
from codec_bench.errors import UnknownName, UserError
from codec_bench.registry import Registry, Spec, call_with_known, is_own_code, load_attribute

# The adapters that configs/codec/*.yaml refer to; the names a person types are declared there.
TABLE = {
    "aac": "codec_bench.codecs.aac:Aac",
    "amr-nb": "codec_bench.codecs.amr_nb:AmrNb",
    "aptx": "codec_bench.codecs.aptx:Aptx",
    "bicodec": "codec_bench.codecs.bicodec:BiCodec",
    "bigcodec": "codec_bench.codecs.bigcodec:BigCodec",
    "chattts-dvae": "codec_bench.codecs.chattts_dvae:ChatTtsDvae",
    "dac": "codec_bench.codecs.dac:Dac",
    "encodec": "codec_bench.codecs.encodec:Encodec",
    "funcodec": "codec_bench.codecs.funcodec:FunCodec",
    "g711": "codec_bench.codecs.g711:G711",
    "g722": "codec_bench.codecs.g722:G722",
    "g723-1": "codec_bench.codecs.g723_1:G7231",
    "g726": "codec_bench.codecs.g726:G726",
    "mimi": "codec_bench.codecs.mimi:Mimi",
    "mp3": "codec_bench.codecs.mp3:Mp3",
    "msbc": "codec_bench.codecs.sbc:Msbc",
    "opus": "codec_bench.codecs.opus:Opus",
    "sbc": "codec_bench.codecs.sbc:Sbc",
    "snac": "codec_bench.codecs.snac:Snac",
    "speechtokenizer": "codec_bench.codecs.speechtokenizer:SpeechTokenizer",
    "wavtokenizer": "codec_bench.codecs.wavtokenizer:WavTokenizer",
    "xcodec": "codec_bench.codecs.xcodec:Xcodec",
    "xcodec2": "codec_bench.codecs.xcodec2:Xcodec2",
}
# Names that other packages add, and own code. The adapters above are not names by themselves.
REGISTRY = Registry("codec", "CODECS", {})
_COMMAND_FILE = re.compile(r"^(?P<path>.+\.ya?ml)(@(?P<kbps>[^@]+))?$")


@dataclass(frozen=True, slots=True)
class CodecRow:
    """One line of `codec-bench list codecs`.

    Args:
        info: the declared facts, or None for another package's codec, which is not imported for a list.
        summary: what it is, or where another package's codec comes from.
        points: the bitrates in kbps that its family takes after an `@`.
        weights_here: whether its weights are on this machine; None where it has none or that is not known.
    """

    name: str
    info: CodecInfo | None
    summary: str
    points: str = ""
    weights_here: bool | None = None


def load_codec(name: str, *, device: str = "cpu", weights: str | None = None, **options: Any) -> Codec:
    """Builds a codec from its name.

    Args:
        name: a variant (`opus-12k`), a family and its bitrate in kbps (`opus@12`, `encodec-24khz@6`), a name that another
            package adds, own code (`./my_codec.py:MyCodec`, `package.module:Class`), or a file that names the programs to
            run (`./evs.yaml`, `./evs.yaml@13.2`).
        device: where networks run, `cpu` or `cuda:N`.
        weights: a folder or hub id in place of the codec's own weights.
        options: further arguments of the codec's class.

    Raises:
        UnknownName: no such name; the message suggests the nearest.
        UserError: no such operating point, an option that the codec does not take, or own code that is not a codec.
        WeightsError: its weights are not on this machine, or do not fit.
    """
    given = {"device": device, "weights": weights, **options}
    if is_command_file(name):
        return _load_command(name, given)
    entry = None if is_own_code(name) else _find(name)
    if entry is None:
        return _load_other(name, given)
    adapter = load_attribute(TABLE[entry.family.adapter])
    codec = call_with_known(adapter, {**entry.options, **given})
    licence = entry.family.licence
    codec.info = replace(
        codec.info,
        name=entry.name,
        code_licence=licence.code,
        weights_licence=licence.weights if weights is None else None,  # somebody else's weights are somebody else's
        paper=entry.family.paper,
    )
    return codec


def list_codecs() -> list[CodecRow]:
    """Every codec that can be named without further arguments, without loading any: first ours, then other packages'."""
    from codec_bench.codecs import catalogue

    rows = []
    for name in catalogue.names():
        entry = _find(name)
        family, adapter = entry.family, load_attribute(TABLE[entry.family.adapter])
        info = replace(
            adapter.describe(**entry.options),
            name=name,
            code_licence=family.licence.code,
            weights_licence=family.licence.weights,
            paper=family.paper,
        )
        find_weights = getattr(adapter, "find_weights", None)
        here = None if find_weights is None else find_weights(**entry.options) is not None
        rows.append(CodecRow(name, info, family.summary, family.points_text(), here))
    return rows + [CodecRow(name, None, path) for name, path in sorted(REGISTRY.table().items())]


def codec_names() -> list[str]:
    """Every name of `list_codecs`."""
    from codec_bench.codecs import catalogue

    return catalogue.names() + REGISTRY.names()


def has_codec(name: str) -> bool:
    """Whether a name is a codec's: a declared variant or family (with whatever point), or another package's."""
    from codec_bench.codecs import catalogue

    if is_command_file(name):
        return True
    base = Spec.parse(name).name
    return base in codec_names() or base in catalogue.families()


def is_command_file(name: str) -> bool:
    """Whether a name is that of a YAML file of one's own that names programs, with or without a bitrate after an `@`."""
    return _COMMAND_FILE.match(name.strip()) is not None


def _load_command(name: str, given: dict[str, Any]) -> Codec:
    from codec_bench.codecs.command import Command

    match = _COMMAND_FILE.match(name.strip())
    if match["kbps"] is not None:
        given = {**given, "bitrate_bps": _bps(name, match["kbps"])}
    return call_with_known(Command, {**given, "path": match["path"]})


def _bps(name: str, kbps: str) -> int:
    try:
        return round(float(kbps) * 1000)
    except (ValueError, OverflowError):
        raise UserError(f"'{name}': the point '{kbps}' is not a bitrate in kbps") from None


def _find(name: str) -> Any:
    from codec_bench.codecs import catalogue

    return catalogue.find(name)


def _load_other(name: str, given: dict[str, Any]) -> Codec:
    from codec_bench.codecs import catalogue

    spec = Spec.parse(name)
    if not is_own_code(name):
        if spec.name not in REGISTRY.table():
            raise UnknownName("codec", name, [*codec_names(), *catalogue.families()])
        if spec.argument is not None:
            raise UserError(f"'{name}': a codec takes no [{spec.argument}]", hint="expected NAME or NAME@KBPS")
        if spec.point is not None:
            given = {**given, "bitrate_bps": _bps(name, spec.point)}
    return _checked(call_with_known(REGISTRY.resolve(spec.name), given), name)


def _checked(codec: Any, name: str) -> Codec:
    """Refuses what lacks a part of a codec, and says which."""
    for attribute in ("encode", "decode"):
        if not callable(getattr(codec, attribute, None)):
            raise UserError(f"the codec '{name}' has no method '{attribute}'", hint=_CONTRACT)
    if not isinstance(getattr(codec, "info", None), CodecInfo):
        got = type(codec.info).__name__ if hasattr(codec, "info") else "nothing"
        raise UserError(f"the codec '{name}' has {got} as its 'info'; expected a codec_bench.CodecInfo", hint=_CONTRACT)
    info = codec.info
    for attribute in ("sample_rates_hz", "channels"):
        values = getattr(info, attribute)
        if not isinstance(values, tuple) or not values or not all(isinstance(v, int) and v > 0 for v in values):
            raise UserError(
                f"the codec '{name}' declares info.{attribute}={values!r}; expected a tuple such as (16000,)"
            )
    return codec


_CONTRACT = "a codec has info (a CodecInfo), encode(batch) -> list[Codes] and decode(codes) -> list[Audio]"

__all__ = [
    "REGISTRY",
    "TABLE",
    "Codec",
    "CodecInfo",
    "CodecRow",
    "codec_names",
    "has_codec",
    "is_command_file",
    "list_codecs",
    "load_codec",
]

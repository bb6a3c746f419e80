"""Codecs: their names, and how a codec is built from its name.

Which file to open
    `base.py`       the interface of a codec; `adapt.py` converts any audio for any codec.
    `catalogue.py`  names, points and licences of `configs/codec/*.yaml`; `TABLE` here has the classes.
    `collection.py`  codecs of packages with their own interface; `configs/collection/*.yaml` has their facts.
    `isolated.py`   those in a worker process, because their packages clash with this project's.
    `embedded_speech.py`  the clips on which codecs are measured first.
    `quantised.py`  a continuous codec whose latents are rounded to codes.
    `command.py`    a codec made of two programs, and `command_file.py` the file that names them.
    `classical/`, `neural/`  the codecs; `checks/` finds faulty ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import Any

from codec_bench.codecs.base import Codec, CodecInfo, PublishedWeights
from codec_bench.config.custom_code import is_custom_code
from codec_bench.config.registry import Registry, Spec, call_with_known, load_attribute
from codec_bench.machine.process_state import build_preserving_torch
from codec_bench.messages.errors import UnknownName, UserError
from codec_bench.types import not_discrete

# The adapters that configs/codec/*.yaml refer to. The names that a person types are declared in those files.
TABLE = {
    "aac": "codec_bench.codecs.classical.aac:Aac",
    "ac3": "codec_bench.codecs.classical.ac3:Ac3",
    "adpcm": "codec_bench.codecs.classical.adpcm:Adpcm",
    "amr-nb": "codec_bench.codecs.classical.amr_nb:AmrNb",
    "amr-wb": "codec_bench.codecs.classical.amr_wb:AmrWb",
    "aptx": "codec_bench.codecs.classical.aptx:Aptx",
    "audiocodecs": "codec_bench.codecs.collection:AudioCodecs",
    "bicodec": "codec_bench.codecs.neural.bicodec:BiCodec",
    "bigcodec": "codec_bench.codecs.neural.bigcodec:BigCodec",
    "chattts-dvae": "codec_bench.codecs.neural.chattts_dvae:ChatTtsDvae",
    "dac": "codec_bench.codecs.neural.dac:Dac",
    "encodec": "codec_bench.codecs.neural.encodec:Encodec",
    "funcodec": "codec_bench.codecs.neural.funcodec:FunCodec",
    "g711": "codec_bench.codecs.classical.g711:G711",
    "g722": "codec_bench.codecs.classical.g722:G722",
    "g723-1": "codec_bench.codecs.classical.g723_1:G7231",
    "g726": "codec_bench.codecs.classical.g726:G726",
    "higgs-audio-v2": "codec_bench.codecs.neural.higgs_audio_v2:HiggsAudioV2",
    "isolated": "codec_bench.codecs.isolated:IsolatedCodec",
    "lc3": "codec_bench.codecs.classical.lc3:Lc3",
    "mimi": "codec_bench.codecs.neural.mimi:Mimi",
    "mp2": "codec_bench.codecs.classical.mp2:Mp2",
    "mp3": "codec_bench.codecs.classical.mp3:Mp3",
    "msbc": "codec_bench.codecs.classical.sbc:Msbc",
    "nellymoser": "codec_bench.codecs.classical.nellymoser:Nellymoser",
    "opus": "codec_bench.codecs.classical.opus:Opus",
    "pocket-tts": "codec_bench.codecs.neural.pocket_tts:PocketTtsCodec",
    "ra-144": "codec_bench.codecs.classical.ra_144:Ra144",
    "sbc": "codec_bench.codecs.classical.sbc:Sbc",
    "snac": "codec_bench.codecs.neural.snac:Snac",
    "soundcodec": "codec_bench.codecs.collection:SoundCodec",
    "speechtokenizer": "codec_bench.codecs.neural.speechtokenizer:SpeechTokenizer",
    "vibevoice": "codec_bench.codecs.neural.vibevoice:VibeVoiceCodec",
    "vorbis": "codec_bench.codecs.classical.vorbis:Vorbis",
    "wavtokenizer": "codec_bench.codecs.neural.wavtokenizer:WavTokenizer",
    "xcodec": "codec_bench.codecs.neural.xcodec:Xcodec",
    "xcodec2": "codec_bench.codecs.neural.xcodec2:Xcodec2",
}
# Names that other packages add, and a user's own code. The adapters above cannot be named directly.
REGISTRY = Registry("codec", "CODECS", {})
_COMMAND_FILE = re.compile(r"^(?P<path>.+\.ya?ml)(@(?P<kbps>[^@]+))?$")
_DYNAMIC_NAMES = (
    r"import \*|sys\.modules|\b(?:globals|locals|vars|setattr|exec|eval|__dict__|__getattr__)\b"
    r"|(?<!\.)\b__name__\b(?! ==)"
)
"""Ways to create names that do not appear in a file's text."""


@dataclass(frozen=True, slots=True)
class CodecRow:
    """One line of `codec-bench list codecs`.

    Args:
        info: the declared facts; None for another package's codec, because listing does not import it.
        summary: one line of description; for another package's codec, its import path.
        points: the bitrates in kbps that may follow the family's name after an `@`.
        kind: what the encoder returns: `packets`, `codes` or `latents`; "" if unknown.
        source: the library or package that encodes and decodes.
        family: the codec's name without its operating point.
        weights_here: whether its weights are on this machine; None if it has none or this is unknown.
        published: revision and size of its published weights; None if it has none or this is unknown.
    """

    name: str
    info: CodecInfo | None
    summary: str
    points: str = ""
    weights_here: bool | None = None
    kind: str = ""
    source: str = ""
    family: str = ""
    published: PublishedWeights | None = None


def load_codec(name: str, *, device: str = "cpu", weights: str | None = None, **options: Any) -> Codec:
    """Build a codec from its name.

    Args:
        name: a variant (`opus-12k`), a family and its bitrate in kbps (`opus@12`, `encodec-24khz@6`), a name that
            another package adds, custom code (`./my_codec.py:MyCodec`, `package.module:Class`), or a file that names
            programs (`./evs.yaml`, `./evs.yaml@13.2`).
        device: where networks run, `cpu` or `cuda:N`.
        weights: a folder or hub id in place of the codec's weights.
        options: further arguments of the codec's class; for a continuous codec also `latent_bits`, which rounds each
            dimension of its latents to codes of so many bits (`codec_bench.codecs.quantised`).

    Raises:
        UnknownName: there is no codec of this name; the message suggests the nearest name.
        UserError: the codec has no such operating point, does not take an option, or the custom code is not a codec.
        WeightsError: the codec's weights are not on this machine, or do not fit.

    Examples:
        >>> import numpy as np
        >>> from codec_bench import Audio, load_codec
        >>> codec = load_codec("g711-ulaw")
        >>> sound = Audio(0.5 * np.sin(2 * np.pi * 440 * np.arange(8000) / 8000), 8000)
        >>> codes = codec.encode([sound])
        >>> (decoded,) = codec.decode(codes)
        >>> codes[0].bits, decoded.samples.shape, round(float(np.abs(decoded.samples - sound.samples).max()), 4)
        (64000.0, (1, 8000), 0.0116)
    """
    if not isinstance(name, str):
        raise UserError("codec_name_type", type=type(name).__name__)
    chosen, bits = _without_bits({"device": device, "weights": weights, **options})
    if is_command_file(name):
        return _rounded(_load_command(name, chosen), bits)
    entry = None if is_custom_code(name) else _find(name)
    if entry is None:
        return _rounded(_load_other(name, chosen), bits)
    adapter = load_attribute(TABLE[entry.family.adapter])
    held, own_bits = _without_bits(entry.options)
    codec = _rounded(call_with_known(adapter, {**held, **chosen}), own_bits if bits is None else bits)
    licence = entry.family.licence
    codec.info = replace(
        codec.info,
        name=entry.name,
        code_licence=licence.code,
        weights_licence=licence.weights if weights is None else None,  # the licence of other weights is unknown
        paper=entry.family.paper,
    )
    return codec


def build_codec(target: Any, name: str, *, device: str = "cpu", **options: Any) -> Codec:
    """Build a codec from an object, or from a class and its options.

    Args:
        target: the codec object or class.
        name: the codec's name in error messages.
        device: passed to a class, as for `load_codec`.
        options: further arguments of a class, and `latent_bits`, as for `load_codec`.

    Raises:
        UserError: `target` is not a codec, or the class does not take an option.
    """
    chosen, bits = _without_bits({"device": device, **options})
    if isinstance(target, type):
        target = build_preserving_torch(lambda: call_with_known(target, chosen))
    return _rounded(_checked(target, name), bits)


def list_codecs() -> list[CodecRow]:
    """List every codec that a name alone selects, built-in ones first. Loads nothing."""
    from codec_bench.codecs import catalogue

    rows = [_row(name, _find(name)) for name in [*catalogue.names(), *_collected()]]
    return rows + [CodecRow(name, None, path) for name, path in sorted(REGISTRY.table().items())]


def describe_codec(name: str) -> CodecRow:
    """Return the facts of one codec without loading its weights.

    Custom code, command files and codecs of other packages have to be loaded for it.

    Args:
        name: as for `load_codec`.

    Raises:
        UnknownName, UserError: as for `load_codec`.
    """
    entry = None if is_custom_code(name) or is_command_file(name) else _find(name)
    return CodecRow(name, load_codec(name).info, "") if entry is None else _row(name, entry)


def _row(name: str, entry: Any) -> CodecRow:
    """Build the row of a catalogue entry: declared facts, licences and weights."""
    from codec_bench.codecs.quantised import quantised_info

    family, adapter = entry.family, load_attribute(TABLE[entry.family.adapter])
    options, bits = _without_bits(entry.options)
    described = adapter.describe(**options)
    location = adapter.find_weights(**options) if hasattr(adapter, "find_weights") else None
    licences = {"code_licence": family.licence.code, "weights_licence": family.licence.weights}
    described = described if bits is None else quantised_info(described, bits)
    info = replace(described, name=name, **licences, weights=location, paper=family.paper)
    kind = "latents" if info.latents else "codes" if adapter.where == "device" else "packets"
    here, published = (location is not None, adapter.published(**options)) if kind != "packets" else (None, None)
    facts = family.summary, family.points_text(), here, kind, family.source, entry.family_name, published
    return CodecRow(name, info, *facts)


def codec_names() -> list[str]:
    """Return the names of `list_codecs` without those of collections."""
    from codec_bench.codecs import catalogue

    return catalogue.names() + REGISTRY.names()


def has_codec(name: str) -> bool:
    """Whether the name before an `@` is that of a codec or command file.

    The bitrate after the `@` is not checked.
    """
    from codec_bench.codecs import catalogue

    if is_command_file(name):
        return True
    base = Spec.parse(name).name
    return base in codec_names() or base in catalogue.families() or base in _collected()


def require_codec(name: str | None, requested: str | None = None) -> None:
    """Check that a codec and its operating point exist, without loading anything.

    Args:
        name: as for `load_codec`; None if the request has no codec name.
        requested: the name to show in the error message, if it differs from `name`.

    Raises:
        UserError: there is no such codec, operating point or file.
    """
    from codec_bench.codecs import catalogue

    if name is not None and is_custom_code(name):
        head, _, attribute = name.rpartition(":")
        path = Path(head).expanduser()
        if path.suffix == ".py" and not path.is_file():
            raise UserError("no_file", path=path)
        named = rf"\b{re.escape(attribute)}\b|{_DYNAMIC_NAMES}"
        if path.suffix == ".py" and not re.search(named, text := path.read_text("utf-8", "replace")):
            classes = ", ".join(re.findall(r"^class (\w+)", text, re.MULTILINE))
            raise UserError("file_without_name", path=path, name=attribute, hint=f"it has {classes or 'no class'}")
        return
    if name is None or not has_codec(name):
        raise UnknownName("codec", requested or str(name), [*codec_names(), *catalogue.families(), *_collected()])
    if Spec.parse(name).name not in codec_names() or Spec.parse(name).point is not None:
        _find(name)


def require_weights(name: str, *, weights: str | None = None, **options: Any) -> None:
    """Check a codec's options and that its weights are present, without loading.

    Custom code and codecs of other packages pass, since nothing is known of them.

    Args:
        name: of a codec that exists.
        weights: a folder or hub id in place of the codec's weights.
        options: further arguments of the codec's class.

    Raises:
        WeightsError: the weights are not on this machine.
        UserError: the codec does not take an option.
    """
    entry = None if is_custom_code(name) or is_command_file(name) else _find(name)
    if entry is None:
        return
    adapter = load_attribute(TABLE[entry.family.adapter])
    held, _ = _without_bits(entry.options)
    options, _ = _without_bits(options)
    takes = signature(adapter).parameters
    for option in ("weights", *options) if weights is not None else options:
        if option not in takes and not any(one.kind is one.VAR_KEYWORD for one in takes.values()):
            raise UserError("codec_option", codec=name, option=option, hint=f"it takes {', '.join(takes)}")
    if hasattr(adapter, "require_weights"):
        adapter.require_weights(weights, **{**held, **options})


def runs_on_device(name: str) -> bool:
    """Whether a codec may run on a GPU, judged by its name without loading it.

    Returns:
        False for programs and codecs that run on the CPU only; True for other codecs and for custom code.
    """
    if is_command_file(name):
        return False
    entry = None if is_custom_code(name) else _find(name)
    return entry is None or load_attribute(TABLE[entry.family.adapter]).where == "device"


def code_of_codec(name: str | None) -> str:
    """Return the hash of the code of a custom codec or of another package's; else empty."""
    return "" if name is None or is_command_file(name) else REGISTRY.code_hash(Spec.parse(name).name)


def is_foreign_codec(name: str | None) -> bool:
    """Whether a codec is custom code or another package's; False without a name."""
    if name is None or is_command_file(name):
        return False
    return REGISTRY.is_foreign(Spec.parse(name).name)


def is_command_file(name: str) -> bool:
    """Whether a name is a YAML file of encoder and decoder, perhaps with `@KBPS`."""
    return _COMMAND_FILE.match(name.strip()) is not None


def _collected() -> dict[str, Any]:
    from codec_bench.codecs.collection import entries

    return entries()


def _without_bits(options: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    """Split the options of a codec's class and the requested bits of each latent."""
    remaining = dict(options)
    return remaining, remaining.pop("latent_bits", None)


def _rounded(codec: Any, bits: Any) -> Codec:
    from codec_bench.codecs.quantised import Quantised

    return codec if bits is None else Quantised(codec, bits)


def _load_command(name: str, chosen: dict[str, Any]) -> Codec:
    """Build the codec of a command file `PATH[@KBPS]`.

    `KBPS` is passed as `bitrate_bps`, next to the `chosen` options.
    """
    from codec_bench.codecs.command import CommandCodec

    match = _COMMAND_FILE.match(name.strip())
    assert match is not None, "only names of command files come here"
    if match["kbps"] is not None:
        chosen = {**chosen, "bitrate_bps": _bps(name, match["kbps"])}
    return call_with_known(CommandCodec, {**chosen, "path": match["path"]})


def _bps(name: str, kbps: str) -> int:
    try:
        return round(float(kbps) * 1000)
    except (ValueError, OverflowError):
        raise UserError("point_not_a_bitrate", name=name, point=kbps) from None


def _find(name: str) -> Any:
    """Return the entry of a codec's name in the catalogue or a collection, or None.

    Raises:
        UserError: the name has a bitrate that the codec does not have, for example because it is continuous.
    """
    from codec_bench.codecs import catalogue

    if name in _collected():
        return _collected()[name]
    spec = Spec.parse(name)
    entry = catalogue.find(spec.name) if spec.point is not None and spec.name in catalogue.names() else None
    if entry is not None:
        info = load_attribute(TABLE[entry.family.adapter]).describe(**_without_bits(entry.options)[0])
        if info.latents is not None:
            raise UserError(
                "latents_without_point",
                codec=spec.name,
                point=spec.point,
                cause=not_discrete(info.latents, info.frame_rate_hz),
                hint=f"write {spec.name}",
            )
    return catalogue.find(name)


def _load_other(name: str, chosen: dict[str, Any]) -> Codec:
    """Build a codec from custom code, or from another package's registered name.

    A bitrate in the name is passed as `bitrate_bps`, next to the `chosen` options.
    """
    from codec_bench.codecs import catalogue

    spec = Spec.parse(name)
    if not is_custom_code(name):
        if spec.name not in REGISTRY.table():
            raise UnknownName("codec", name, [*codec_names(), *catalogue.families()])
        if spec.argument is not None:
            raise UserError("codec_argument", name=name, argument=spec.argument, hint="expected NAME or NAME@KBPS")
        if spec.point is not None:
            chosen = {**chosen, "bitrate_bps": _bps(name, spec.point)}
    return _checked(build_preserving_torch(lambda: call_with_known(REGISTRY.resolve(spec.name), chosen)), name)


def _checked(codec: Any, name: str) -> Codec:
    """Return the codec; UserError if it lacks a method or valid facts (`info`)."""
    for attribute in ("encode", "decode"):
        if not callable(getattr(codec, attribute, None)):
            raise UserError("codec_method", codec=name, method=attribute, hint=_CONTRACT)
    if not isinstance(getattr(codec, "info", None), CodecInfo):
        got = type(codec.info).__name__ if hasattr(codec, "info") else "nothing"
        raise UserError("codec_info", codec=name, type=got, hint=_CONTRACT)
    info = codec.info
    for attribute in ("sample_rates_hz", "channels"):
        values = getattr(info, attribute)
        if not isinstance(values, tuple) or not values or not all(isinstance(v, int) and v > 0 for v in values):
            raise UserError("codec_info_values", codec=name, field=attribute, values=values)
    if info.latents is not None and not (isinstance(info.latents, int) and info.latents > 0 and info.frame_rate_hz):
        raise UserError("codec_latents", codec=name, latents=info.latents, frame_rate_hz=info.frame_rate_hz)
    if info.latents is not None and info.nominal_bitrate_bps is not None:
        reason = not_discrete(info.latents, info.frame_rate_hz or 0)
        raise UserError("codec_declares_bitrate", codec=name, cause=reason)
    return codec


_CONTRACT = (
    "a codec has info (a CodecInfo), encode(batch) -> list[Codes] and decode(codes) -> list[Audio]; "
    "a continuous one has Latents"
)

__all__ = [
    "REGISTRY",
    "TABLE",
    "Codec",
    "CodecInfo",
    "CodecRow",
    "build_codec",
    "code_of_codec",
    "codec_names",
    "describe_codec",
    "has_codec",
    "is_command_file",
    "is_foreign_codec",
    "list_codecs",
    "load_codec",
    "require_codec",
    "require_weights",
    "runs_on_device",
]

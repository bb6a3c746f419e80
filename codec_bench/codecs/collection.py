"""Codecs of packages with their own interface: `PACKAGE/NAME`.

`configs/collection/*.yaml` holds how a package is installed and each codec's facts from the package's own source, with
`NOASSERTION` for unstated licences. Items are coded one by one, since these packages pad batches without masks, and
extended with silence to 0.1 s, since some networks need as many samples as their filters. Outputs are fitted in length.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict

from codec_bench.audio.resample import fit_length
from codec_bench.codecs.base import Codec, CodecInfo, PublishedWeights, check_input
from codec_bench.codecs.catalogue import CodecEntry, CodecFamily, Licence
from codec_bench.config import config_names, read_config
from codec_bench.messages.errors import UserError, WeightsError
from codec_bench.types import Audio, Codes, CodeStream

_SHORTEST_S = 0.1
SIDE_INFO = "side"
"""The key in `Codes.side` of a worker's numbers next to its codes."""


class CollectionMember(BaseModel):
    """One codec of a collection.

    Args:
        held_as: the class of `audiocodecs`, or the module of `SoundCodec.codec`.
        arguments: of the class, or of the worker's `load`.
        further: codebooks and entries of a second stream of codes at the same frame rate.
        weights: the licence of the weights.
        family: the codec without its operating point.
        revision: the commit that the package loads; None if the package states none.
        size: bytes of all files of the weights; None if the package states none.
        global_side: whether the worker's `side` holds for the whole item, such as its voice.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    held_as: str = ""
    arguments: dict[str, Any] = {}
    rate_hz: int
    frame_rate_hz: float
    codebooks: int
    cardinality: int
    further: tuple[int, int] | None = None
    weights: str
    paper: str
    family: str
    revision: str | None = None
    size: int | None = None
    global_side: bool = False

    def streams(self) -> tuple[tuple[int, int], ...]:
        """Return the number of codebooks and entries of each stream."""
        first = (self.codebooks, self.cardinality)
        return (first,) if self.further is None else (first, self.further)


class Collection(BaseModel):
    """A file of `configs/collection`: package, installation, licence and codecs.

    Args:
        env: the environment of `configs/env` in which its codecs run; None runs them in this process.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: int
    package: str
    install: str
    env: str | None = None
    licence: str
    codecs: dict[str, CollectionMember]


@cache
def entries() -> dict[str, CodecEntry]:
    """Return the codecs of all collections (packages with many codecs), by name."""
    by_name = {}
    for name in config_names("collection"):
        held = read_config("collection", name, Collection)
        for codec, member in held.codecs.items():
            summary = f"{codec} through {held.package} ({held.install})"
            licence = Licence(code=held.licence, weights=member.weights)
            adapter = "isolated" if held.env else name
            facts: dict[str, Any] = {
                "summary": summary,
                "source": held.package,
                "licence": licence,
                "paper": member.paper,
            }
            family = CodecFamily(version=1, adapter=adapter, **facts)
            options = {"codec": codec} | ({"collection": name} if held.env else {})
            by_name[f"{name}/{codec}"] = CodecEntry(f"{name}/{codec}", family, options, member.family)
    return by_name


class CollectionCodec(Codec):
    """A codec of a collection.

    Args:
        codec: its name in the collection. device: `cpu` or `cuda:N`.

    Raises:
        UserError: the collection has no such codec. WeightsError: its package is not installed.
    """

    collection: ClassVar[str]

    def __init__(self, codec: str, device: str = "cpu") -> None:
        self.info = self.describe(codec)
        self.require_weights(None, codec)
        self._facts, self._device = self._member(codec), device
        self._model = self._built()

    @classmethod
    def _held(cls, collection: str | None = None) -> Collection:
        return read_config("collection", collection or cls.collection, Collection)

    @classmethod
    def _member(cls, codec: str, collection: str | None = None) -> CollectionMember:
        """Return a codec's facts, or raise a UserError that lists the collection's codecs.

        Args:
            collection: the collection's name; None for the class's own.
        """
        members = cls._held(collection).codecs
        if codec not in members:
            name = collection or cls.collection
            raise UserError("collection_codec", collection=name, codec=codec, hint=f"it has {', '.join(members)}")
        return members[codec]

    @classmethod
    def describe(cls, codec: str, collection: str | None = None) -> CodecInfo:
        """Return the codec's `CodecInfo`, without importing its package."""
        facts = cls._member(codec, collection)
        bits = sum(count * math.log2(entries) for count, entries in facts.streams())
        tokens = sum(count for count, _ in facts.streams())
        return CodecInfo(
            f"{collection or cls.collection}/{codec}", (facts.rate_hz,), frame_rate_hz=facts.frame_rate_hz,
            nominal_bitrate_bps=bits * facts.frame_rate_hz, tokens_per_s=tokens * facts.frame_rate_hz,
            global_side=(SIDE_INFO,) if facts.global_side else (),
        )  # fmt: skip

    @classmethod
    def find_weights(cls, codec: str, collection: str | None = None) -> str | None:
        """Return the installed package, which loads the weights; None if it is missing."""
        package = cls._held().package
        return package if find_spec(package) else None

    @classmethod
    def published(cls, codec: str, collection: str | None = None) -> PublishedWeights:
        """Return the revision and size of the weights that the package's source states."""
        facts = cls._member(codec, collection)
        return PublishedWeights(facts.revision, facts.size)

    @classmethod
    def require_weights(cls, weights: str | None, codec: str, collection: str | None = None) -> None:
        """Raise WeightsError if the package is not installed."""
        if cls.find_weights(codec) is None:
            held = cls._held()
            raise WeightsError(
                "package_not_installed",
                feature="codec",
                name=f"{cls.collection}/{codec}",
                package=held.package,
                hint=held.install,
            )

    def _built(self) -> Any:
        raise NotImplementedError

    def _codes(self, audio: Audio) -> tuple[np.ndarray, Mapping[str, Any]]:
        """Encode an item to codes `(codebooks, frames)` and further inputs of the decoder."""
        raise NotImplementedError

    def _wave(self, values: np.ndarray, side_info: Mapping[str, Any]) -> np.ndarray:
        """Decode codes to samples."""
        raise NotImplementedError

    def encode(self, batch: Sequence[Audio]) -> list[Codes]:
        """Encode each item to codes, and to side information if the package sends more."""
        codes = []
        for audio in batch:
            check_input(audio, self.info)
            shortest = round(_SHORTEST_S * audio.sample_rate_hz)
            padded = fit_length(audio.samples, max(audio.num_samples, shortest))
            values, side_info = self._codes(Audio(padded, audio.sample_rate_hz))
            facts = self._facts.cardinality, self._facts.frame_rate_hz
            stream = CodeStream(np.ascontiguousarray(values, np.int64), *facts)
            codes.append(Codes((stream,), audio.num_samples, audio.sample_rate_hz, side=side_info))
        return codes

    def decode(self, codes: Sequence[Codes]) -> list[Audio]:
        """Decode each item."""
        outputs = []
        for item in codes:
            wave = np.asarray(self._wave(np.asarray(item.streams[0].values), item.side), np.float32)
            outputs.append(Audio(fit_length(wave.reshape(1, -1), item.num_samples), item.sample_rate_hz))
        return outputs


class AudioCodecs(CollectionCodec):
    """A codec of `audiocodecs`, by its `sig_to_toks` and `toks_to_sig`."""

    collection = "audiocodecs"

    def _built(self) -> Any:
        facts = self._facts
        codec = getattr(import_module("audiocodecs"), facts.held_as)(facts.rate_hz, **facts.arguments)
        return codec.requires_grad_(False).eval().to(self._device)

    def _codes(self, audio: Audio) -> tuple[np.ndarray, Mapping[str, Any]]:
        import torch

        with torch.inference_mode():
            tokens = self._model.sig_to_toks(torch.from_numpy(audio.samples).to(self._device))
        return tokens[0].T.cpu().numpy(), {}

    def _wave(self, values: np.ndarray, side_info: Mapping[str, Any]) -> np.ndarray:
        import torch

        with torch.inference_mode():
            wave = self._model.toks_to_sig(torch.from_numpy(values.T.copy())[None].to(self._device))
        return wave.float().cpu().numpy()


class SoundCodec(CollectionCodec):
    """A codec of Codec-SUPERB's `SoundCodec`, by its `extract_unit` and `decode_unit`.

    What the package passes between the two is rebuilt from the codes where it is the codes, in any order of axes; the
    rest is sent as side information. It should follow from the codes, which the package does not state: the check of
    side information names codecs that send more, and profiles drop no frames of codecs whose output ignores their
    codes.
    """

    collection = "soundcodec"

    def _built(self) -> Any:
        return import_module("SoundCodec.codec").load_codec(self._facts.held_as)

    def _codes(self, audio: Audio) -> tuple[np.ndarray, Mapping[str, Any]]:
        """Encode one item to codes `(codebooks, frames)` and side information.

        Inputs of the package's decoder that repeat the codes are omitted from the side information.
        """
        row = {"audio": {"array": audio.samples[0], "sampling_rate": audio.sample_rate_hz}}
        units = self._model.extract_unit(row)
        stuff = units.stuff_for_synth
        values = np.atleast_2d(_to_array(units.unit).squeeze()).reshape(self._facts.codebooks, -1)
        side_info: dict[str, Any] = {"kind": type(stuff).__name__}
        for n, item in enumerate(stuff if isinstance(stuff, list | tuple) else [stuff]):
            held = np.asarray(_to_array(item))
            order = _order(held, values)
            side_info |= {f"{n}": held} if order is None else {f"{n}": np.array(held.shape), f"{n} is": order}
        return values, side_info

    def _wave(self, values: np.ndarray, side_info: Mapping[str, Any]) -> np.ndarray:
        """Rebuild the decoder's inputs from codes and side information, and decode."""
        import torch

        orders = {_CODES: values, _TURNED: values.T}
        held = []
        for n in range(sum(name.isdecimal() for name in side_info)):
            order, item = side_info.get(f"{n} is"), side_info[f"{n}"]
            held.append(item if order is None else orders[order].reshape(tuple(item)))
        parts = [torch.as_tensor(np.ascontiguousarray(item)).to(self._model.device) for item in held]
        kinds = {"tuple": tuple, "list": list}
        return _to_array(self._model.decode_unit(kinds.get(side_info["kind"], lambda held: held[0])(parts)))


_CODES, _TURNED = "codes", "codes, frames first"


def _order(held: np.ndarray, values: np.ndarray) -> str | None:
    """Name the order of an array's axes if it repeats the codes; None if it does not.

    Args:
        held: an input of the package's decoder.
        values: the codes `(codebooks, frames)`.
    """
    if held.ndim < 2 or held.size != values.size or not np.issubdtype(held.dtype, np.integer):
        return None
    for order, codes in ((_CODES, values), (_TURNED, values.T)):
        shapes = [[n for n in array.shape if n > 1] for array in (held, codes)]
        if shapes[0] == shapes[1] and np.array_equal(held.ravel(), codes.ravel()):
            return order
    return None


def _to_array(value: Any) -> Any:
    return value.detach().cpu().numpy() if hasattr(value, "detach") else np.asarray(value)

"""Forged model files: a base with one or two things altered, and a checksum that is right."""

from __future__ import annotations

__all__ = ["Forgery", "forge", "written"]

import json
import zlib
from typing import NamedTuple

import numpy as np

from benchmarks.experiments.fuzz.array_forging import forge_arrays
from benchmarks.experiments.fuzz.bases import Content, base
from benchmarks.experiments.fuzz.header_forging import forge_header
from dicoflex import model_file

TWICE = 0.4
ARRAYS = 0.5
RESIZED = 0.1
REPEATED = 0.02


class Forgery(NamedTuple):
    """The bytes of a file, and what was altered in it, in words."""

    data: bytes
    altered: tuple[str, ...]


def forge(name: str, number: int) -> Forgery:
    """The forgery of this number of a base; the same every time."""
    rng = np.random.default_rng([zlib.crc32(name.encode()), number])
    content, altered = base(name), []
    for _ in range(2 if rng.random() < TWICE else 1):
        content, what = _altered(content, rng)
        altered.append(what)
    repeated = str(rng.choice(list(content[0]))) if content[0] and rng.random() < REPEATED else None
    if repeated is not None:
        altered.append(f"{repeated}: said twice")
    return Forgery(written(content, repeated=repeated), tuple(altered))


def _altered(content: Content, rng: np.random.Generator) -> tuple[Content, str]:
    header, arrays = content
    way = rng.random()
    if way < RESIZED and arrays:
        return _resized(content, rng)
    if way < RESIZED + ARRAYS and arrays:
        arrays, what = forge_arrays(arrays, rng)
    else:
        header, what = forge_header(header, rng)
    return (header, arrays), what


def _resized(content: Content, rng: np.random.Generator) -> tuple[Content, str]:
    """All that has one length gets another, in arrays and settings alike: what is compared with each other agrees."""
    header, arrays = content
    lengths = sorted({length for array in arrays.values() for length in array.shape})
    old = int(rng.choice(lengths)) if lengths else 1
    new = int(rng.choice([1, max(0, old - 1), old + 1, 2 * old, 0]))
    config = header.get("generator_config")
    if isinstance(config, dict):
        agreed = {k: new if type(v) is int and v == old else v for k, v in config.items()}
        header = header | {"generator_config": agreed}
    shapes = {k: tuple(new if length == old else length for length in a.shape) for k, a in arrays.items()}
    resized = {k: np.resize(a, shapes[k]) if a.size else np.zeros(shapes[k], a.dtype) for k, a in arrays.items()}
    return (header, resized), f"all lengths of {old}: {new}"


def written(content: Content, *, repeated: str | None = None) -> bytes:
    """A model file's bytes with the right checksum, whatever the content; `model_file.write` would refuse some.

    repeated: an entry of the header that is to be there twice.
    """
    from safetensors.numpy import save

    header, arrays = content
    added = {"format": model_file.FORMAT, "format_version": model_file.VERSION}
    text = json.dumps({**added, "fingerprint": model_file.fingerprint(header, arrays), **header})
    if repeated is not None:
        text = f"{text[:-1]}, {json.dumps(repeated)}: 0}}"
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    return bytes(save(contiguous, metadata={model_file.FORMAT: text}))

"""The layout of a safetensors file, read with suspicion: everything is checked before room is made for anything.

A file is eight bytes that say how long its header is, the header as JSON, and the arrays end to end. The header has an
entry per array, with its dtype, shape and place, and one for text. Sizes are taken from the file itself and compared.
"""

from __future__ import annotations

__all__ = ["LARGEST", "LONGEST_HEADER", "Layout", "check_sizes", "read_arrays", "read_layout"]

from io import BufferedIOBase
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dicoflex.runtime import strict_json

LONGEST_HEADER = 2**20
LARGEST = 2**30
MOST_DIMENSIONS = 4
METADATA = "__metadata__"
DTYPES = {
    "BOOL": np.dtype("?"), "U8": np.dtype("u1"), "I8": np.dtype("i1"), "U16": np.dtype("<u2"), "I16": np.dtype("<i2"),
    "U32": np.dtype("<u4"), "I32": np.dtype("<i4"), "U64": np.dtype("<u8"), "I64": np.dtype("<i8"),
    "F32": np.dtype("<f4"), "F64": np.dtype("<f8"),
}  # fmt: skip


class Place(NamedTuple):
    """Where an array stands among the arrays of a file, and what it is."""

    begin: int
    end: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


class Layout(NamedTuple):
    """A file's texts by name, and the places of its arrays, which begin at byte `start`."""

    texts: dict[str, str]
    places: dict[str, Place]
    start: int


def read_layout(file: BufferedIOBase, size: int) -> Layout:
    """The layout of a file of `size` bytes; a `ValueError` where it is none, or does not add up."""
    length = int.from_bytes(file.read(8), "little")
    if not 0 < length <= min(size - 8, LONGEST_HEADER):
        raise ValueError(f"a header takes up to {LONGEST_HEADER:,} bytes, this would be {length:,}")
    header = strict_json.loads(file.read(length))
    if not isinstance(header, dict):
        raise ValueError("the header is no JSON object")
    texts = header.pop(METADATA, {})
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise ValueError("the header's texts are no texts")
    return Layout(texts, {name: _place(name, entry) for name, entry in header.items()}, 8 + length)


def _place(name: str, entry: Any) -> Place:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"the entry of array {name!r} is none")
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not _are_sizes(shape) or len(shape) > MOST_DIMENSIONS or not _are_sizes(offsets) or len(offsets) != 2:
        raise ValueError(f"the sizes of array {name!r} are none")
    if not isinstance(entry["dtype"], str) or entry["dtype"] not in DTYPES:
        raise ValueError(f"array {name!r} has an unknown dtype")
    dtype, (begin, end) = DTYPES[entry["dtype"]], offsets
    if end - begin != prod(shape) * dtype.itemsize:
        raise ValueError(f"array {name!r} has another shape than room")
    return Place(begin, end, dtype, tuple(shape))


def _are_sizes(numbers: Any) -> bool:
    return isinstance(numbers, list) and all(type(n) is int and 0 <= n <= LARGEST for n in numbers)


def check_sizes(layout: Layout, size: int) -> None:
    """Refuse arrays that overlap, leave holes, or take more or less room than a file of `size` bytes has."""
    reached = 0
    for place in sorted(layout.places.values(), key=lambda place: (place.begin, place.end)):
        if place.begin != reached:
            raise ValueError("its arrays overlap or leave holes")
        reached = place.end
    if layout.start + reached != size:
        raise ValueError(f"its arrays take {reached:,} bytes, and it has {size - layout.start:,} for them")


def read_arrays(file: BufferedIOBase, layout: Layout) -> dict[str, NDArray[Any]]:
    """The arrays of a file whose sizes were checked, each in memory of its own."""
    arrays = {}
    for name, place in layout.places.items():
        array = np.empty(place.shape, dtype=place.dtype)
        file.seek(layout.start + place.begin)
        if file.readinto(array.reshape(-1).view(np.uint8).data) != array.nbytes:
            raise ValueError("it ends too early")
        if array.dtype == np.bool_ and (array.view(np.uint8) > 1).any():
            raise ValueError(f"array {name!r} holds more than true and false")
        arrays[name] = array
    return arrays

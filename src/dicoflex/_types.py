"""Names of array types that annotations all over the package share."""

from __future__ import annotations

__all__ = ["Arrays", "Bools", "Floats", "Ints", "Json"]

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Arrays = dict[str, NDArray[Any]]
"""Arrays by name, as a model file has them."""
Json = dict[str, Any]
"""An object of JSON."""

"""JSON documents of the command line as data of Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool))


def as_data(value: Any) -> Any:
    """The same with lists of numbers as arrays, and NaN for a measure that there is none of (null, or
    {"undefined": why})."""
    if value is None or (isinstance(value, dict) and value.keys() == {"undefined"}):
        return math.nan
    if isinstance(value, dict):
        return {name: as_data(one) for name, one in value.items()}
    if not isinstance(value, list):
        return value
    found = [as_data(one) for one in value]
    if found and all(_is_number(one) for one in found):
        return np.array(found)
    if found and all(isinstance(one, np.ndarray) and one.shape == found[0].shape for one in found):
        return np.array(found)
    return found


def as_row(data: dict[str, Any]) -> dict[str, Any]:
    """A line of a table: {"peaks": {"next": 1}} becomes {"peaks_next": 1}."""
    row: dict[str, Any] = {}
    for name, value in data.items():
        if isinstance(value, dict):
            row |= {f"{name}_{inner}": one for inner, one in as_row(value).items()}
        else:
            row[name] = value
    return row

"""JSON that every reader takes: Python alone writes, and reads, NaN and infinity as if they were numbers."""

import json
import math
from typing import Any


def strict_json(value: object) -> str:
    """Return a line of JSON; null stands for what JSON has no number for, NaN and infinity."""
    return json.dumps(_with_null(value), ensure_ascii=False, allow_nan=False)


def _with_null(value: Any) -> Any:  # noqa: ANN401 (whatever JSON holds)
    if isinstance(value, dict):
        return {key: _with_null(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_with_null(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

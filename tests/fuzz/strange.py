"""Strange values and mutations that the fuzzers share, and how many examples a test tries."""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st


def examples(count: int) -> settings:
    """Return settings of a test that tries ``count`` inputs, always the same ones; of the long profile, 100 as many."""
    factor = settings.default.max_examples / 100
    return settings(max_examples=max(1, int(count * factor)), derandomize=factor == 1)


NUMBERS: tuple[Any, ...] = (
    0,
    1,
    -1,
    2,
    3.5,
    10**12,
    -(10**12),
    2**31,
    2**63,
    10**400,
    1e308,
    float("nan"),
    float("inf"),
)
TEXTS = (
    "",
    "x",
    "../../x",
    "/etc/passwd",
    "a\0b",
    "\x1b[31m",
    "\ud800",
    "é" * 300,
    "nan",
    "1e9",
    "-1",
    "\n",
    "__import__('os')",
)
STRANGE: tuple[Any, ...] = (
    None,
    True,
    False,
    *NUMBERS,
    *TEXTS,
    [],
    {},
    [[]],
    [None],
    {"": None},
    [[1, 1]] * 3,
    [["a", {}]],
)

strange_values = st.sampled_from(STRANGE) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401
    """Yield where all values of a JSON document stand, the whole first."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from paths_of(inner, (*path, key))


def changed(document: Any, path: tuple[Any, ...], change: Callable[[Any], Any]) -> Any:  # noqa: ANN401
    """Return a copy of a document with one value changed."""
    if not path:
        return change(document)
    copy = deepcopy(document)
    holder = copy
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = change(holder[path[-1]])
    return copy


@st.composite
def strange_documents(draw: st.DrawFn, document: Any) -> str:  # noqa: ANN401
    """Draw JSON text of a document in which one or two values are strange ones, or a key is missing."""
    paths = sorted(paths_of(document), key=str)
    for _ in range(draw(st.integers(1, 2))):
        path = draw(st.sampled_from(paths))
        try:
            if path and draw(st.integers(0, 4)) == 0:
                document = changed(document, path[:-1], lambda holder, key=path[-1]: _without(holder, key))
            else:
                strange = draw(strange_values)
                document = changed(document, path, lambda _, value=strange: value)
        except (KeyError, IndexError, TypeError):  # the first change took the place of the second away
            continue
    return json.dumps(document)


def _without(holder: Any, key: Any) -> Any:  # noqa: ANN401
    if isinstance(holder, dict):
        return {name: value for name, value in holder.items() if name != key}
    return [value for number, value in enumerate(holder) if number != key]


@st.composite
def mutated(draw: st.DrawFn, sound: bytes, *, places: int = 4) -> bytes:
    """Draw bytes that differ from sound ones in a few places, or end early, or hold a stretch twice."""
    data = bytearray(sound)
    for _ in range(draw(st.integers(1, places))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        kind = draw(st.sampled_from(("byte", "byte", "cut", "insert", "twice", "number")))
        if kind == "byte" and data:
            data[at] = draw(st.integers(0, 255))
        elif kind == "cut":
            del data[at : at + draw(st.integers(1, 64))]
        elif kind == "insert":
            data[at:at] = draw(st.binary(max_size=8))
        elif kind == "twice":
            data[at:at] = data[at : at + draw(st.integers(1, 64))]
        else:
            data[at : at + 8] = draw(st.integers(0, 2**64 - 1)).to_bytes(8, "little")
    return bytes(data)

"""A JSON object a line to sentences: ``{"text": "..."}`` or ``{"tokens": ["...", ...]}``, and whatever else it says.

``text`` is one sentence and is tokenized; offsets count in that string. ``tokens`` are taken as they are: a token may
be empty or hold spaces. Where an object has both, the tokens are taken and the text is passed on. An empty line is a
sentence of no tokens.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NoReturn

from elmo_cli.errors import DataError, Place
from elmo_cli.text.sentence import Position, RawJson, Sentence
from elmo_cli.text.sources import Line
from elmo_cli.text.tokenizer import Tokenizer

_NAMES: Final = ((str, "a string"), (bool, "true or false"), (int, "a number"), (list, "a list"), (dict, "an object"))
_WHITE: Final = re.compile(r"[ \t\r]*")  # what may stand around a value in one line
_FORM: Final = 'write one object a line, such as {"text": "The kids play."} or {"tokens": ["The", "kids", "play", "."]}'


def json_sentences(lines: Sequence[Line], tokenizer: Tokenizer) -> Iterator[Sentence]:
    """Yield a sentence for each line.

    Raises:
        DataError: a line is not such an object.
    """
    for line in lines:
        if _WHITE.fullmatch(line.text):
            yield Sentence([], line.place, places=[])
            continue
        members = _members(line)
        number = line.place.line or 1
        if "tokens" in members:
            tokens = _tokens(members.pop("tokens"), line.place)
            places: list[Position] = [(number, None, None)] * len(tokens)
            yield Sentence(tokens, line.place, places=places, fields=_fields(members, line.text))
        elif "text" in members:
            text = members.pop("text")
            if not isinstance(text, str):
                raise DataError(f'"text" is {_name(text)}, not a string', where=line.place, fix=_FORM)
            [spans] = tokenizer.spans([text])
            tokens = [text[start:end] for start, end in spans]
            fields = _fields(members, line.text)
            yield Sentence(tokens, line.place, text, spans, ((0, number, 0),), fields=fields)
        else:
            keys = ", ".join(map(json.dumps, members)) or "none"
            raise DataError(
                f'the object has neither "text" nor "tokens" (its keys: {keys})', where=line.place, fix=_FORM
            )


def _members(line: Line) -> dict[str, Any]:
    """Return the members of the object that a line is; its numbers are all 0, as only their kind is looked at."""
    try:
        value = _DECODER.decode(line.text)
    except RecursionError as error:
        raise DataError("the JSON is nested too deeply", where=line.place, fix="flatten it") from error
    except json.JSONDecodeError as error:
        message = f"is not JSON: {error.msg[:1].lower()}{error.msg[1:]} at character {error.pos + 1}"
        raise DataError(message, where=line.place, fix=f"{_FORM}; jq -c . makes one line of each object") from error
    except ValueError as error:
        raise DataError(f"is not JSON: {error}", where=line.place, fix="write null, or leave the key out") from error
    if not isinstance(value, dict):
        fix = "make one line of each object: jq -c '.[]'" if isinstance(value, list) else _FORM
        raise DataError(f"is {_name(value)}, not an object", where=line.place, fix=fix)
    if isinstance(value, _Repeated):
        message = f"the key {json.dumps(value.key)} stands twice in an object"
        raise DataError(message, where=line.place, fix="leave one of them out")
    return value


class _Repeated(dict[str, Any]):
    """An object in which a key stands twice; one further in is passed on as it is written, so nothing is lost there."""

    key: str = ""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    repeated = _Repeated(members)
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            repeated.key = key
            break
        seen.add(key)
    return repeated


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")


def _zero(_: str) -> int:
    """Stand for any number: Python would round some, and refuse to read those of more than 4,300 digits."""
    return 0


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_refuse, parse_int=_zero, parse_float=_zero
)


def _tokens(value: object, place: Place) -> list[str]:
    if not isinstance(value, list):
        raise DataError(f'"tokens" is {_name(value)}, not a list of strings', where=place, fix=_FORM)
    for number, token in enumerate(value, start=1):
        if not isinstance(token, str):
            raise DataError(f'"tokens" holds {_name(token)} at place {number}', where=place, fix=_FORM)
    return value


def _fields(members: dict[str, Any], text: str) -> dict[str, Any]:
    """Return what is passed on: strings, and everything else as its own JSON."""
    if not all(isinstance(value, str) for value in members.values()):
        raw = dict(raw_members(text))
        return {key: value if isinstance(value, str) else raw[key] for key, value in members.items()}
    return members


def raw_members(text: str) -> Iterator[tuple[str, RawJson]]:
    """Yield the members of an object, each with its own JSON; ``text`` is known to be a sound object."""
    at = _skip_white(text, _skip_white(text, 0) + 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        start = _skip_white(text, _skip_white(text, at) + 1)
        _, at = _DECODER.raw_decode(text, start)
        yield key, RawJson(text[start:at])
        at = _skip_white(text, at)
        if text[at] == ",":
            at = _skip_white(text, at + 1)


def _skip_white(text: str, at: int) -> int:
    white = _WHITE.match(text, at)
    return white.end() if white else at


def _name(value: object) -> str:
    return next((name for kind, name in _NAMES if isinstance(value, kind)), "null")

"""Which JSON is admitted: one object, UTF-8, finite numbers, bounded in size, depth and integers."""

import json
import math
from typing import Any, NoReturn

from autotest_env.errors import InvalidRequestError, RequestTooLargeError

MAX_BYTES = 1 << 20
MAX_DEPTH = 64
MAX_INTEGER = 2**63 - 1

_INTEGER_DIGITS = 20
_TOO_DEEP = f"JSON may be nested {MAX_DEPTH} levels deep"
_INTEGERS = f"integers must lie between -{MAX_INTEGER} and {MAX_INTEGER}"
_FINITE = "numbers must be finite"


def check_size(size: int) -> None:
    """Raise RequestTooLargeError for more bytes than a request may have."""
    if size > MAX_BYTES:
        raise RequestTooLargeError(f"a request may have {MAX_BYTES} bytes; this one has more")


def parse_object(text: str | bytes) -> dict[str, Any]:
    """Parse a JSON object within the bounds. Raises InvalidRequestError."""
    check_size(len(text))
    value = _parse(_decoded(text))
    if not isinstance(value, dict):
        raise InvalidRequestError("the request must be a JSON object, such as {}")
    _check_inside(value)
    return value


def _decoded(text: str | bytes) -> str:
    if isinstance(text, str):
        check_size(len(text.encode("utf-8", "surrogatepass")))
        return text
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidRequestError("the request is not UTF-8") from None


def _parse(text: str) -> object:
    try:
        return json.loads(text, parse_int=_integer, parse_constant=_constant)
    except RecursionError:
        raise InvalidRequestError(_TOO_DEEP) from None
    except json.JSONDecodeError as error:
        raise InvalidRequestError(
            f"the request is not valid JSON (line {error.lineno}, column {error.colno})"
        ) from None


def _integer(digits: str) -> int:
    if len(digits) > _INTEGER_DIGITS or not -MAX_INTEGER <= int(digits) <= MAX_INTEGER:
        raise InvalidRequestError(_INTEGERS)
    return int(digits)


def _constant(_name: str) -> NoReturn:
    raise InvalidRequestError(_FINITE)


def _check_inside(value: object) -> None:
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        below: list[object] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item.keys())
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
            else:
                _check_scalar(item)
        if not below:
            return
        level = below
    if any(isinstance(item, dict | list) for item in level):
        raise InvalidRequestError(_TOO_DEEP)
    for item in level:
        _check_scalar(item)


def _check_scalar(item: object) -> None:
    if isinstance(item, float) and not math.isfinite(item):
        raise InvalidRequestError(_FINITE)
    if isinstance(item, str) and not item.isascii():
        try:
            item.encode("utf-8")
        except UnicodeEncodeError:
            raise InvalidRequestError("text holds half of a surrogate pair, which is no character") from None

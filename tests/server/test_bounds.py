import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotest_env.errors import InvalidRequestError, RequestTooLargeError
from autotest_env.server.bounds import MAX_BYTES, MAX_DEPTH, MAX_INTEGER, parse_object


def nested(depth):
    return '{"a":' + "[" * (depth - 1) + "]" * (depth - 1) + "}"


@pytest.mark.parametrize(
    "text", ["{}", '{"a": [1, -2.5e3, null, true, "é 漢 😀"]}', b'{"a": "\xc3\xa9"}', nested(MAX_DEPTH)]
)
def test_an_object_within_the_bounds_is_admitted(text):
    assert parse_object(text) == json.loads(text)


@pytest.mark.parametrize("text", ["[1]", '"hi"', "1", "null", "true", "", "{", "{'a': 1}", '{"a": 1} x', "\ufeff{}"])
def test_anything_but_one_json_object_is_refused(text):
    with pytest.raises(InvalidRequestError):
        parse_object(text)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_numbers_must_be_finite(number):
    with pytest.raises(InvalidRequestError, match="finite"):
        parse_object(f'{{"a": [{number}]}}')


@pytest.mark.parametrize("number", [MAX_INTEGER + 1, -MAX_INTEGER - 1, "9" * 5000, "-" + "9" * 19, "9" * 25])
def test_integers_are_bounded(number):
    with pytest.raises(InvalidRequestError, match="integers"):
        parse_object(f'{{"a": {number}}}')


@pytest.mark.parametrize("number", [MAX_INTEGER, -MAX_INTEGER])
def test_the_largest_integers_are_admitted(number):
    assert parse_object(f'{{"a": {number}}}') == {"a": number}


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 900, 100_000])
def test_depth_is_bounded(depth):
    with pytest.raises(InvalidRequestError, match="deep"):
        parse_object(nested(depth))


@pytest.mark.parametrize("text", [r'{"a": "\ud800"}', r'{"\udfff": 1}', r'{"a": ["x\ud83d"]}'])
def test_half_a_surrogate_pair_is_refused(text):
    with pytest.raises(InvalidRequestError, match="surrogate"):
        parse_object(text)


def test_a_whole_surrogate_pair_is_a_character():
    assert parse_object(r'{"a": "\ud83d\ude00"}') == {"a": "😀"}


def test_bytes_must_be_utf_8():
    with pytest.raises(InvalidRequestError, match="UTF-8"):
        parse_object(b'{"a": "\xff"}')


@pytest.mark.parametrize("filler", ["x", "漢"])
def test_size_is_counted_in_bytes(filler):
    fits = filler * ((MAX_BYTES - 8) // len(filler.encode()))
    assert parse_object(f'{{"a":"{fits}"}}')
    with pytest.raises(RequestTooLargeError, match=str(MAX_BYTES)):
        parse_object(f'{{"a":"{fits + filler * 8}"}}')


@pytest.mark.parametrize("text", ['{"marker-7f3": ', '["marker-7f3"]', '{"a": marker-7f3}'])
def test_a_refusal_never_repeats_what_it_refuses(text):
    with pytest.raises(InvalidRequestError) as caught:
        parse_object(text)
    assert "marker" not in str(caught.value)


FUZZ = settings(database=None, deadline=None, max_examples=100)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-MAX_INTEGER, MAX_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
INSIDE = st.recursive(SCALARS, lambda below: st.lists(below) | st.dictionaries(st.text(), below), max_leaves=20)


@FUZZ
@given(st.dictionaries(st.text(), INSIDE))
def test_whatever_json_can_say_within_the_bounds_arrives_unchanged(data):
    assert parse_object(json.dumps(data)) == data
    assert parse_object(json.dumps(data, ensure_ascii=False).encode()) == data


@FUZZ
@given(st.binary() | st.text(st.sampled_from('{}[]":,0123456789eE+-.\\u dDnN')))
def test_whatever_else_is_sent_is_refused_and_nothing_worse(raw):
    with suppress(InvalidRequestError):
        assert isinstance(parse_object(raw), dict)

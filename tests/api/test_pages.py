import base64
import json

import pytest

from cliffwatch.base.errors import Code, Problem
from cliffwatch.http.paging import decode_page, encode_page, page_of

SORT, KEY = "runs:created_at,id:descending", (float, str)


def token_of(body: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(body).encode()).decode().rstrip("=")


def test_a_token_brings_back_the_place_that_it_was_made_for() -> None:
    assert decode_page(encode_page(SORT, (1.5, "run-7")), SORT, KEY) == [1.5, "run-7"]
    assert decode_page(None, SORT, KEY) is None


@pytest.mark.parametrize(
    "token",
    [
        "",
        "!",
        "é",
        "====",
        encode_page(SORT, (1.5, "run-7"))[:-3],
        encode_page("tokens:created_at,id", (1.5, "run-7")),
        encode_page(SORT, (1.5,)),
        encode_page(SORT, ("run-7", 1.5)),
        encode_page(SORT, (True, "run-7")),
        encode_page(SORT, (1.5, "run\0seven")),
        token_of({"v": 2, "sort": SORT, "after": [1.5, "run-7"]}),
        token_of({"v": 1, "sort": SORT, "after": {"0": 1.5}}),
        token_of({"v": 1, "sort": SORT, "after": [float("nan"), "run-7"]}),
        token_of({"v": 1, "sort": SORT, "after": [1e300, "run-7"]}),
        token_of({"v": 1, "sort": SORT}),
        token_of([1, 2, 3]),
        token_of(7),
    ],
)
def test_a_token_of_anything_else_is_refused(token: str) -> None:
    with pytest.raises(Problem) as caught:
        decode_page(token, SORT, KEY)
    assert caught.value.code is Code.PAGE_TOKEN_INVALID
    assert caught.value.faults[0].field == "page"


def test_the_row_too_many_says_that_there_is_more() -> None:
    full = page_of(["a", "b", "c"], 2, "letters", lambda row: [row], str.upper)
    assert full.items == ["A", "B"]
    assert decode_page(full.next_page, "letters", (str,)) == ["b"]
    assert page_of(["a", "b"], 2, "letters", lambda row: [row], str.upper).next_page is None
    assert page_of([], 2, "letters", lambda row: [row], str.upper).next_page is None

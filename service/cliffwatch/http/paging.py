"""Page tokens: opaque to clients, `base64url({"v":1,"sort":…,"after":[…]})` to the service.

A token names the sort order that it was made for, so that it is not accepted for another list.
"""

import base64
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Query
from pydantic import BaseModel

from cliffwatch.base.errors import Code, FieldFault, Problem

Item = TypeVar("Item")
Row = TypeVar("Row")
_VERSION = 1
_INTEGER_LIMIT = 2**31
LIST_LIMIT = 500
#: Size after which a page of large items ends, because the whole page is held in memory.
PAGE_BYTES = 4 * 1024**2

Limit = Annotated[int, Query(ge=1, le=LIST_LIMIT, description="items on a page")]
PageToken = Annotated[str | None, Query(max_length=1000, description="`next_page` of the page before")]


class Page(BaseModel, Generic[Item]):
    """A page of a list. `next_page` is the token of the next one; null when this is the last."""

    items: list[Item]
    next_page: str | None


def encode_page(sort: str, after: Sequence[Any]) -> str:
    text = json.dumps({"v": _VERSION, "sort": sort, "after": list(after)}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_page(token: str | None, sort: str, types: Sequence[type]) -> list[Any] | None:
    """Sort key after which the page begins; None for the first page. Raises Problem(page_token_invalid)."""
    if token is None:
        return None
    try:
        padded = token + "=" * (-len(token) % 4)
        body = json.loads(base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True))
        after = body["after"]
        valid = (
            body["v"] == _VERSION
            and body["sort"] == sort
            and len(after) == len(types)
            and all(_is_key(value, kind) for value, kind in zip(after, types, strict=True))
        )
    except (ValueError, KeyError, TypeError):
        valid = False
    if not valid:
        fault = FieldFault("page", "pass `next_page` of the page before, unchanged and to the same list")
        raise Problem(Code.PAGE_TOKEN_INVALID, "the page token is not of this list", [fault])
    return list(after)


def page_of(
    rows: Sequence[Row], limit: int, sort: str, key: Callable[[Row], Sequence[Any]], show: Callable[[Row], Item]
) -> Page[Item]:
    """A page from up to `limit` + 1 rows: the last, extra row only shows that there is a next page."""
    return Page(items=[show(row) for row in rows[:limit]], next_page=next_token(rows, limit, sort, key))


def page_within(
    rows: Iterable[Row],
    limit: int,
    sort: str,
    key: Callable[[Row], Sequence[Any]],
    show: Callable[[Row], Item],
    size_bytes: Callable[[Row, Item], int],
) -> Page[Item]:
    """A page of rows that are read one by one: up to `limit` of them, or fewer once their size reaches `PAGE_BYTES`."""
    items: list[Item] = []
    left_bytes, last = PAGE_BYTES, None
    for row in rows:
        if last is not None and (len(items) == limit or left_bytes <= 0):
            return Page(items=items, next_page=encode_page(sort, key(last)))
        items.append(show(row))
        left_bytes -= size_bytes(row, items[-1])
        last = row
    return Page(items=items, next_page=None)


def next_token(rows: Sequence[Row], limit: int, sort: str, key: Callable[[Row], Sequence[Any]]) -> str | None:
    """Token of the next page, which begins after the first `limit` of the rows; None if there are no more rows."""
    return encode_page(sort, key(rows[limit - 1])) if len(rows) > limit else None


def _is_key(value: Any, kind: type) -> bool:
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e12
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _INTEGER_LIMIT
    return isinstance(value, str) and value.isprintable()

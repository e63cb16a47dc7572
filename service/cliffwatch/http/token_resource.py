"""Request of a new API token, as the API and the pages take it."""

from typing import Annotated, Literal

from pydantic import Field

from cliffwatch.model.document import Strict

ScopeLabel = Literal["read", "operate", "admin"]


class TokenRequest(Strict):
    """A new token: its name (its user or purpose) and its scope."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._@-]{0,62}$")]
    scope: ScopeLabel

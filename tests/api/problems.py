"""What every answer that reports a problem has."""

from typing import Any

import httpx

from cliffwatch.base.errors import KINDS, Code
from cliffwatch.http.problems import MEDIA_TYPE


def check(response: httpx.Response, code: Code, operation: dict[str, Any] | None = None) -> dict[str, Any]:
    """The body, once it is sure that it is the problem."""
    kind = KINDS[code]
    assert response.status_code == kind.status, response.text
    assert response.headers["content-type"] == MEDIA_TYPE
    body: dict[str, Any] = response.json()
    assert set(body) == {"type", "title", "status", "detail", "instance", "code", "errors"}
    assert (body["code"], body["title"], body["status"]) == (code.value, kind.title, kind.status)
    assert body["type"] == f"urn:cliffwatch:problem:{code.value}"
    assert body["instance"] == response.request.url.path
    assert body["detail"]
    assert all(set(fault) == {"field", "message"} for fault in body["errors"])
    assert "Traceback" not in response.text
    if operation is not None:
        declared = operation["responses"][str(kind.status)]
        assert declared["content"][MEDIA_TYPE]["schema"]["$ref"].endswith("/ProblemBody")
        assert f"`{code.value}`" in declared["description"]
    return body

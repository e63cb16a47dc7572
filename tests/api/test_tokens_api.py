import httpx
from tests.api.harness import Api


def allowed(api: Api, token: str, method: str, path: str) -> bool:
    response = api.client.request(method, f"/api/v1{path}", headers={"Authorization": f"Bearer {token}"}, json={})
    return response.status_code not in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}


def test_a_new_token_does_what_its_scope_says_until_it_is_revoked(api: Api) -> None:
    made = api.call("POST", "/tokens", {"name": "ci", "scope": "operate"})
    assert made.status_code == 201
    token = made.json()
    assert token["token"].startswith(f"cw_{token['id']}_")
    assert allowed(api, token["token"], "GET", "/runs")
    assert allowed(api, token["token"], "POST", "/runs")
    assert not allowed(api, token["token"], "POST", "/tokens")
    assert api.call("DELETE", f"/tokens/{token['id']}").status_code == 204
    assert not allowed(api, token["token"], "GET", "/runs")
    assert api.call("DELETE", f"/tokens/{token['id']}").status_code == 404


def test_a_secret_is_shown_once(api: Api) -> None:
    secret = api.call("POST", "/tokens", {"name": "ci", "scope": "read"}).json()["token"].split("_", 2)[2]
    listed = api.call("GET", "/tokens")
    assert secret not in listed.text
    assert {"id", "name", "scope", "created_at", "revoked_at"} == set(listed.json()["items"][0])


def test_the_last_admin_token_stays(api: Api) -> None:
    admin = next(item for item in api.call("GET", "/tokens").json()["items"] if item["scope"] == "admin")
    refused = api.call("DELETE", f"/tokens/{admin['id']}")
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")


def test_tokens_are_listed_page_by_page(api: Api) -> None:
    first = api.call("GET", "/tokens?limit=2").json()
    second = api.call("GET", "/tokens", params={"limit": 2, "page": first["next_page"]}).json()
    assert len(first["items"]) == 2
    assert len(second["items"]) == 1
    assert second["next_page"] is None


def test_a_wrong_request_for_a_token_is_refused(api: Api) -> None:
    for body in ({"name": "ci"}, {"name": "", "scope": "read"}, {"name": "a\nb", "scope": "read"}):
        assert api.call("POST", "/tokens", body).json()["code"] == "bad_request"
    assert api.call("POST", "/tokens", {"name": "x", "scope": "root"}).json()["errors"][0]["field"] == "scope"

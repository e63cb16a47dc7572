"""What pages say to an address that is wrong, and what they offer to whom, without a browser."""

import pytest
from tests.api.harness import Api


def page(api: Api, path: str, scope: str) -> tuple[int, str]:
    answer = api.client.get(path, headers={"Cookie": f"cliffwatch_token={api.tokens[scope]}"})
    return answer.status_code, answer.text


def test_a_wrong_address_is_refused_in_the_words_of_the_api(api: Api) -> None:
    status, text = page(api, "/runs?verdict=odd", "read")
    answer = api.get("/runs", params={"verdict": "odd"})
    assert status == answer.status_code
    fault = answer.json()["errors"][0]
    assert fault["field"] == "verdict"
    assert fault["message"].partition(";")[0].replace("'", "&#39;").replace('"', "&#34;") in text


@pytest.mark.parametrize(("scope", "is_offered"), [("read", False), ("operate", True)])
def test_only_who_may_start_runs_is_offered_to(api: Api, scope: str, is_offered: bool) -> None:
    for path in ("/runs", "/schedules", "/drives"):
        status, text = page(api, path, scope)
        assert (status, 'href="/start"' in text) == (200, is_offered), path

"""Links that log a browser in once."""

from cliffwatch.app.login_links import LINKS_LIMIT, VALID_SECONDS, LoginLinks
from cliffwatch.base.clock import VirtualClock


def test_a_link_is_of_its_token_and_works_once() -> None:
    links = LoginLinks(VirtualClock(5.0))
    one, other = links.make("cw_one"), links.make("cw_other")
    assert len({one, other}) == 2
    assert "cw_" not in one
    assert (links.take(other), links.take(one)) == ("cw_other", "cw_one")
    assert (links.take(one), links.take("unknown"), links.take("")) == (None, None, None)


def test_a_link_works_for_ten_minutes() -> None:
    clock = VirtualClock(5.0)
    links = LoginLinks(clock)
    for seconds, token in ((VALID_SECONDS, "cw_one"), (VALID_SECONDS + 1, None)):
        code = links.make("cw_one")
        clock.sleep(seconds)
        assert links.take(code) == token


def test_the_oldest_of_many_links_of_one_token_goes_first() -> None:
    links = LoginLinks(VirtualClock(5.0))
    other = links.make("cw_other")
    codes = [links.make("cw_one") for _ in range(LINKS_LIMIT + 1)]
    assert [links.take(code) for code in codes] == [None, *["cw_one"] * LINKS_LIMIT]
    assert links.take(other) == "cw_other"

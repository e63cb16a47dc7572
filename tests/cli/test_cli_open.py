"""`cliffwatch open`: a link to the pages that logs in."""

import re

import httpx
from tests.cli.machine import Machine


def test_open_prints_a_link_that_logs_in_once(idle: Machine) -> None:
    refused = idle.run("open")
    assert (refused.returncode, "`cliffwatch up` makes it" in refused.stderr) == (2, True)
    said = idle.run("up").stderr
    path = idle.workload("shown", load="time: virtual")
    idle.run("run", "start", path, "--target", "synthetic:one", "--id", "shown", "--wait")
    (first,) = re.findall(r"pages: +(http\S+)", said)
    of_run, as_json = idle.run("open", "last").stdout.strip(), idle.data("open")["url"]
    with httpx.Client() as browser:
        for link, page in ((first, "/runs"), (of_run, "/runs/shown"), (as_json, "/runs")):
            answer = browser.get(link)
            assert (answer.status_code, answer.headers["location"]) == (303, page)
            assert browser.get(link).status_code == 401
    assert idle.run("open", "none-such").returncode == 2

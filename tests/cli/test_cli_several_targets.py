"""`cliffwatch run start` with several targets, from the flags to the report and the pages."""

import httpx
from tests.cli.machine import Machine

BOTH = ("--target", "synthetic:one", "--target", "other=synthetic:two")


def test_a_run_on_two_targets_from_the_flags_to_its_report(idle: Machine) -> None:
    assert idle.run("up").returncode == 0
    path = idle.workload("both", soak="1h", load="time: virtual, cliff_after: 30m")
    planned = idle.run("run", "start", path, *BOTH, "--dry-run")
    assert planned.returncode == 0, planned.stderr
    lines = [line.split() for line in planned.stdout.splitlines()]
    assert [line[1:] for line in lines if line[0] == "part"] == [["one:", "synthetic:one"], ["other:", "synthetic:two"]]
    done = idle.run("run", "start", path, *BOTH, "--id", "both", "--wait")
    assert done.returncode == 1, done.stderr
    shown = idle.run("run", "show", "both").stdout
    assert "synthetic:one + synthetic:two" in shown
    assert "synthetic:one + synthetic:two" in idle.run("run", "list").stdout
    report = idle.data("run", "report", "both")
    assert {"publish", "one/publish", "other/publish"} <= set(report["latency"])
    assert {part["name"] for part in report["parts"]} == {"one", "other"}
    assert report["reproduction"]["command"].endswith("--target synthetic:one --target synthetic:two")
    # Analysed from the journal alone it is the same.
    assert idle.run("analyze", str(idle.state / "runs" / "both")).stdout.startswith("verdict: degraded")
    token = (idle.state / "token").read_text().strip()
    with httpx.Client(base_url=f"http://127.0.0.1:{idle.port}", trust_env=False) as client:
        metrics = client.get("/metrics", headers={"Authorization": f"Bearer {token}"}).text
    assert 'target="synthetic:one + synthetic:two"' in metrics


def test_a_confirmation_that_belongs_to_no_device_is_refused(idle: Machine) -> None:
    path = idle.workload("both")
    for confirm in (("--confirm", "x"), ("--confirm", "x", "--confirm", "y")):
        refused = idle.run("run", "start", path, *BOTH, *confirm)
        assert refused.returncode == 2
        assert "--confirm" in refused.stderr

"""The index is made again from the journals, by the command on this machine."""

from tests.cli.machine import Machine


def test_the_index_is_made_again_from_the_journals(idle: Machine) -> None:
    idle.run("up")
    idle.run("run", "start", idle.workload("indexed"), "--target", "synthetic:indexed", "--id", "indexed", "--wait")
    before = idle.data("run", "list")
    idle.run("down")
    for path in idle.state.glob("cliffwatch.sqlite3*"):
        path.unlink()
    done = idle.run("index", "rebuild")
    assert (done.returncode, "1 runs from the journals" in done.stderr) == (0, True)
    idle.run("up")
    assert idle.data("run", "list") == before


def test_index_rebuild_reports_indexed_and_refused_runs_as_json(idle: Machine) -> None:
    idle.run("up")
    idle.run("run", "start", idle.workload("indexed"), "--target", "synthetic:indexed", "--id", "indexed", "--wait")
    idle.run("down")
    (idle.state / "runs" / "broken").mkdir()
    (idle.state / "runs" / "broken" / "order.json").write_text("{")
    report = idle.data("index", "rebuild")
    assert (report["indexed"], report["refused"], list(report["faults"])) == (1, ["broken"], ["broken"])

"""The wheel does its work where nothing of it was built: on a bare Debian, by the lines that docs/install.md gives."""

import json

import pytest
from testkit.debian import Debian
from tests.install.installed import installed, lines_of

pytestmark = [
    pytest.mark.alone(why="a drill measures time"),
    pytest.mark.timeout(1200),
]


@pytest.fixture(scope="module", params=["bookworm", "trixie"])
def machine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Debian:
    return installed(request.param, tmp_path_factory.mktemp(request.param))


@pytest.mark.real(why="a drill is four minutes of load")
def test_its_drill_passes_without_a_compiler(machine: Debian) -> None:
    tools = machine.run("type -p gcc cargo go node npm || true")
    assert tools.stdout == "", "it was to be bare"
    done = machine.run("\n".join(["cd /srv", *lines_of("A wheel")[3:]]), alone=True)
    assert done.returncode == 0, done.stdout
    assert "CliffwatchLatencyCliff" in done.stdout


#: Fails at the first line that does not hold.
UNDER_SYSTEMD = r"""
trap '(( $? == 0 )) || journalctl --no-pager --lines=80 --unit=cliffwatch' EXIT
PATH=/opt/cliffwatch/bin:$PATH
export CLIFFWATCH_STATE_DIRECTORY=/var/lib/cliffwatch
kept=/var/lib/cliffwatch/runs/kept
mkdir /srv/target
cat > /srv/soak.yaml <<'END'
version: 1
name: soak
engine: fio
window: 1s
phases: {soak: 45s}
load:
  job: |
    [log]
    ioengine=psync
    direct=1
    rw=write
    bs=16k
    size=4m
    rate_iops=20
END
worker() { python3 -c 'import json, sys; print(json.load(sys.stdin)["worker"]["pid"])' < "$kept/worker.json"; }
ready() { for _ in {1..100}; do if cliffwatch status >/dev/null 2>&1; then return; fi; sleep 0.2; done; return 1; }
main() { systemctl show --property=MainPID --value cliffwatch; }
before_it_starts() { [[ $(cliffwatch --output json run show kept | grep '"state"') != *running* ]]; }

INSTALL
ready
cliffwatch run start /srv/soak.yaml --target directory:/srv/target --id kept
while before_it_starts; do sleep 0.5; done
first=$(worker)
grep -q cliffwatch.slice/cliffwatch-run-kept /proc/$first/cgroup

killed=$(main)
kill -9 "$killed"
sleep 3
ready
[[ $(main) != "$killed" && $(worker) == "$first" ]]
systemctl restart cliffwatch
ready
[[ $(worker) == "$first" ]]
systemctl stop cliffwatch
! pgrep -x prometheus
[[ -d /proc/$first ]]
systemctl start cliffwatch
pgrep -x prometheus
# Invalid, since its target is on no drive here; that it went on is what its events say.
cliffwatch run watch kept || [[ $? == 1 ]]
cp "$kept/events.jsonl" /srv/
systemctl stop cliffwatch

useradd --system watcher
rm -rf /var/lib/cliffwatch/*
cliffwatch install-units --user watcher
systemctl daemon-reload
systemctl start cliffwatch
[[ $(stat --format %U /proc/$(main)) == watcher ]]
echo over
"""


@pytest.mark.real(why="a run has to go on while its service is killed, restarted and stopped")
def test_a_run_goes_on_under_systemd_while_its_service_is_killed_restarted_and_stopped(machine: Debian) -> None:
    extra = machine.run("apt-get -qq install --yes --no-install-recommends systemd systemd-sysv dbus procps")
    assert extra.returncode == 0, extra.stdout
    done = machine.boot(UNDER_SYSTEMD.replace("INSTALL", "\n".join(lines_of("With systemd"))))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "over"), done.stdout[-4000:]
    events = [json.loads(line) for line in machine.upper.joinpath("srv/events.jsonl").read_text().splitlines()]
    states = [event["name"] for event in events if event["type"] == "state"]
    assert states == ["queued", "starting", "running", "reporting", "finished"]
    assert [event for event in events if event["type"] == "gap"] == []

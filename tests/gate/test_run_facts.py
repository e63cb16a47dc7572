"""The facts of a run: complete, in a stable order, JSON, and fit to be shown to others."""

import json
import os
from pathlib import Path

from testkit.loops import MIB, LoopDrive
from tests.machine.trees import Tree, empty_tree, mount_id_of, nvme, write

from cliffwatch.base.version import VERSION
from cliffwatch.engines.contract import EngineFacts
from cliffwatch.gate import examine
from cliffwatch.model.target import DirectoryTarget, SyntheticTarget
from cliffwatch.part.facts import collect_facts, memory_bytes

KEYS = [
    "version",
    "kernel",
    "architecture",
    "distribution",
    "clock_source",
    "processor",
    "memory_bytes",
    "dirty_pages",
    "cgroup",
    "target",
    "file_system",
    "device",
    "drives",
    "engine",
    "versions",
    "warnings",
]


def with_machine(tree: Tree) -> Tree:
    """What the facts read of the machine itself."""
    write(tree.proc / "meminfo", "MemTotal:       16384 kB\nMemFree:        1 kB")
    write(tree.proc / "cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 7543")
    write(tree.proc / "cgroups", "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t3\t1\t1\nmemory\t0\t1\t1")
    write(tree.proc / "sys" / "vm" / "dirty_ratio", "20")
    return tree


def test_facts_of_a_directory_on_this_machine(volume: Path) -> None:
    engine = EngineFacts({"fio": "fio-3.33"}, {"io": "threads"}, ("a pool of threads writes",))
    facts = collect_facts(examine(DirectoryTarget(path=str(volume)), "r1"), engine)
    assert list(facts) == KEYS
    assert json.loads(json.dumps(facts)) == facts
    assert facts["kernel"] == os.uname().release
    assert facts["memory_bytes"] == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert facts["dirty_pages"]["dirty_ratio"] == int(Path("/proc/sys/vm/dirty_ratio").read_text())
    assert facts["file_system"]["type"] == "ext4"
    assert facts["file_system"]["mount_point"] == str(volume)
    assert [drive["size_bytes"] for drive in facts["drives"]] == [64 * MIB]
    assert facts["drives"] == [facts["device"]]
    assert facts["versions"]["cliffwatch"] == VERSION
    assert facts["versions"]["fio"] == "fio-3.33"
    assert facts["engine"] == {"io": "threads"}
    assert any("loop device" in warning for warning in facts["warnings"])
    assert "a pool of threads writes" in facts["warnings"]


def test_facts_of_a_device(drive: LoopDrive) -> None:
    facts = collect_facts(examine(drive.target(), "r1"), EngineFacts())
    assert list(facts) == KEYS
    assert json.loads(json.dumps(facts)) == facts
    assert facts["file_system"] is None
    assert facts["device"]["backing_file"] == str(drive.file)
    assert facts["target"]["path"] == str(drive.node)


def test_facts_of_no_drive_at_all() -> None:
    facts = collect_facts(examine(SyntheticTarget(name="demo"), "r1"), EngineFacts())
    assert list(facts) == KEYS
    assert (facts["file_system"], facts["device"], facts["drives"]) == (None, None, [])
    assert facts["target"] == {"kind": "synthetic", "key": "synthetic:demo", "path": None}


def test_an_array_is_described_with_its_members_and_a_warning_when_they_differ(tmp_path: Path) -> None:
    tree = with_machine(empty_tree(tmp_path))
    array = tree.disk("md0", "9:0", 2 * MIB, attributes={"md/level": "raid0", "md/chunk_size": "524288"})
    tree.stack(array, [nvme(tree, 0, "S0"), nvme(tree, 1, "S1", firmware="OLDER")])
    tree.mount(mount_id_of(tmp_path), "9:0", "/data", "xfs", "/dev/md0")
    examination = examine(DirectoryTarget(path=str(tmp_path)), "r1", sys=tree.sys, proc=tree.proc)
    facts = collect_facts(examination, EngineFacts(), sys=tree.sys, proc=tree.proc)
    assert (facts["device"]["raid_level"], facts["device"]["chunk_bytes"]) == ("raid0", 524_288)
    assert [member["firmware"] for member in facts["device"]["members"]] == ["GDC5602Q", "OLDER"]
    assert [drive["serial"] for drive in facts["drives"]] == ["S0", "S1"]
    assert facts["warnings"] == ["the drives differ in firmware: nvme0n1 GDC5602Q, nvme1n1 OLDER"]
    assert facts["processor"]["model"] == "AMD EPYC 7543"
    assert facts["cgroup"] == {"version_2": None, "version_1": ["cpu"]}
    assert facts["dirty_pages"]["dirty_bytes"] is None
    assert memory_bytes(tree.proc) == 16 * MIB


def test_facts_name_no_server(tmp_path: Path) -> None:
    tree = with_machine(empty_tree(tmp_path))
    options = "rw,hard,addr=10.0.0.1,username=operator"
    tree.mount(mount_id_of(tmp_path), "0:50", "/data", "cifs", "//files.internal/export", options)
    examination = examine(DirectoryTarget(path=str(tmp_path)), "r1", sys=tree.sys, proc=tree.proc)
    facts = collect_facts(examination, EngineFacts(), sys=tree.sys, proc=tree.proc)
    assert facts["file_system"]["type"] == "cifs"
    assert facts["file_system"]["mount_options"] == ["rw", "noatime", "hard"]
    assert not [word for word in ("files.internal", "10.0.0.1", "operator") if word in json.dumps(facts)]

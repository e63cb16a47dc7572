"""Reading signatures: an answer that cannot be had or understood is never taken for an empty device."""

import shutil
from pathlib import Path

import pytest
from testkit.loops import LoopDrive, command

from cliffwatch.machine.signatures import Signature, SignaturesUnreadable, read_signatures


def program(directory: Path, name: str, script: str) -> None:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A search path with a blkid that finds nothing, and no wipefs yet."""
    directory = tmp_path / "bin"
    directory.mkdir()
    program(directory, "blkid", "exit 2")
    return directory


def test_a_clean_device_has_none(drive: LoopDrive) -> None:
    assert read_signatures(drive.node) == ()


def test_each_kind_is_reported_once(drive: LoopDrive) -> None:
    command("sfdisk", "--quiet", "--no-reread", "--no-tell-kernel", drive.node, text="label: gpt\nsize=8MiB\n")
    # A GPT stands at both ends of the device.
    assert read_signatures(drive.node) == (Signature("gpt", "partition-table"), Signature("PMBR", "partition-table"))


def test_a_signature_found_only_by_blkid_counts(drive: LoopDrive, programs: Path) -> None:
    program(programs, "wipefs", "echo '{\"signatures\": []}'")
    program(programs, "blkid", "echo TYPE=novelfs; echo USAGE=filesystem")
    assert read_signatures(drive.node, str(programs)) == (Signature("novelfs", "filesystem"),)


@pytest.mark.parametrize("missing", ["wipefs", "blkid"])
def test_a_missing_program_is_named(drive: LoopDrive, programs: Path, missing: str) -> None:
    for name in {"wipefs", "blkid"} - {missing}:
        original = shutil.which(name)
        assert original is not None
        (programs / name).unlink(missing_ok=True)
        (programs / name).symlink_to(original)
    (programs / missing).unlink(missing_ok=True)
    with pytest.raises(SignaturesUnreadable, match=f"{missing} is not installed"):
        read_signatures(drive.node, str(programs))


@pytest.mark.parametrize("printed", ["nonsense", "[]", '{"rows": []}', '{"signatures": [{}]}'])
def test_an_answer_in_another_form_is_no_answer(drive: LoopDrive, programs: Path, printed: str) -> None:
    program(programs, "wipefs", f"echo '{printed}'")
    with pytest.raises(SignaturesUnreadable, match="cannot be understood"):
        read_signatures(drive.node, str(programs))


def test_an_ambivalent_probe_is_no_answer(drive: LoopDrive, programs: Path) -> None:
    program(programs, "wipefs", "echo '{\"signatures\": []}'")
    program(programs, "blkid", "echo 'ambivalent result' >&2; exit 8")
    with pytest.raises(SignaturesUnreadable, match="status 8: ambivalent result"):
        read_signatures(drive.node, str(programs))


def test_a_device_that_is_not_there_is_no_empty_device() -> None:
    with pytest.raises(SignaturesUnreadable, match="wipefs ended with status"):
        read_signatures(Path("/dev/no-such-device"))

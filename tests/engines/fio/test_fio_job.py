"""What a fio job may say: refusals by name, aliases, tricks; and that fio knows every option that passes."""

import subprocess
from pathlib import Path

import pytest

from cliffwatch.engines.fio.job import Section, parse_job
from cliffwatch.engines.fio.jobfile import format_job_file
from cliffwatch.engines.fio.options import ALIASES, ALLOWED, REFUSED
from cliffwatch.engines.fio.run import runtime_environment

GOOD = "[w]\nrw=write\nsize=64m\ndirect=1\n"

#: A value of each option that passes.
EXAMPLES = {
    "rw": "randrw",
    "ioengine": "libaio",
    "direct": "1",
    "sync": "dsync",
    "fsync": "8",
    "fdatasync": "1",
    "end_fsync": "1",
    "fsync_on_close": "1",
    "overwrite": "1",
    "fallocate": "keep",
    "invalidate": "0",
    "fadvise_hint": "random",
    "bs": "4k,16k",
    "bsrange": "1k-16k,4k-64k",
    "bssplit": "4k/60:64k/40",
    "ba": "4k",
    "size": "1g",
    "nrfiles": "4",
    "file_service_type": "roundrobin",
    "openfiles": "2",
    "numjobs": "3",
    "iodepth": "16",
    "iodepth_low": "4",
    "iodepth_batch": "4",
    "iodepth_batch_complete_min": "1",
    "iodepth_batch_complete_max": "8",
    "startdelay": "90s",
    "rate": "1m,2m",
    "rate_iops": "100,200",
    "rate_process": "poisson",
    "thinktime": "10ms",
    "thinktime_spin": "5ms",
    "thinktime_blocks": "8",
    "rwmixread": "30",
    "rwmixwrite": "100",
    "percentage_random": "50",
    "random_distribution": "zipf:1.2",
    "random_generator": "tausworthe64",
    "randrepeat": "1",
    "randseed": "7",
    "norandommap": "0",
    "refill_buffers": "0",
    "scramble_buffers": "1",
    "zero_buffers": "1",
    "buffer_compress_percentage": "50",
    "buffer_compress_chunk": "4k",
    "dedupe_percentage": "20",
}

DANGEROUS = [
    "exec_prerun=touch /tmp/owned",
    "exec_postrun=touch /tmp/owned",
    "filename=/etc/passwd",
    "directory=/etc",
    "opendir=/etc",
    "filename_format=../../$jobname",
    "unique_filename=0",
    "lockfile=exclusive",
    "offset=1g",
    "offset_increment=1g",
    "runtime=1",
    "timeout=1",
    "time_based",
    "ramp_time=10",
    "loops=9",
    "number_ios=3",
    "io_size=1g",
    "thread=0",
    "group_reporting",
    "new_group",
    "stonewall",
    "wait_for=w",
    "lat_percentiles=0",
    "clat_percentiles=1",
    "disable_lat=1",
    "gtod_reduce=1",
    "unified_rw_reporting=1",
    "per_job_logs=0",
    "write_bw_log=write.results",
    "write_lat_log=/etc/log",
    "write_iops_log=log",
    "write_hist_log=log",
    "log_avg_msec=10",
    "write_iolog=trace",
    "read_iolog=trace",
    "replay_redirect=/dev/sda",
    "replay_no_stall=1",
    "merge_blktrace_file=trace",
    "verify=crc32c",
    "verify_state_load=1",
    "do_verify=1",
    "experimental_verify=1",
    "ioscheduler=none",
    "cpus_allowed=0",
    "cpumask=1",
    "cpus_allowed_policy=split",
    "numa_cpu_nodes=0",
    "cgroup=soak",
    "cgroup_weight=100",
    "uid=0",
    "gid=0",
    "nice=-20",
    "prio=0",
    "prioclass=1",
    "lockmem=1g",
    "mem=mmap:/etc/passwd",
    "iomem=mmaphuge:/etc/passwd",
    "buffer_pattern='/etc/shadow'",
    "profile=tiobench",
    "file_append=1",
    "fill_device=1",
    "fill_fs=1",
    "allow_mounted_write=1",
    "continue_on_error=all",
    "unlink=1",
    "create_only=1",
    "trim_percentage=10",
    "zonemode=zbd",
    "steadystate=iops:1%",
    "ss=iops:1%",
    "server=1",
    "client=elsewhere",
    "nosuchoption=1",
]


@pytest.mark.parametrize("line", DANGEROUS)
@pytest.mark.parametrize("section", ["global", "w"])
def test_an_option_off_the_list_is_refused_by_section_and_name(line: str, section: str) -> None:
    name = line.partition("=")[0]
    text = f"[global]\n{line if section == 'global' else ''}\n{GOOD}{line if section == 'w' else ''}\n"
    with pytest.raises(ValueError, match=rf"^\[{section}\] {name}: \S+ \S+"):
        parse_job(text)


def test_every_refusal_says_why_in_particular() -> None:
    assert not REFUSED.keys() & (ALLOWED.keys() | ALIASES.keys())
    for line in DANGEROUS[:-1]:
        with pytest.raises(ValueError) as refusal:  # noqa: PT011 (the message is what is looked at)
            parse_job(GOOD + line)
        assert "not an option that Cliffwatch allows" not in str(refusal.value), line


@pytest.mark.parametrize(
    "line",
    [
        "ioengine=external:/tmp/evil.so",
        "ioengine=exec",
        "ioengine=net",
        "ioengine=cpuio",
        "rw=trim",
        "rw=randtrim",
        "rw=trimwrite",
        "rw=write:8",
        "bs=${HOME}",
        "bs=$pagesize",
        "bs=`id`",
        "bs=(4*1024)",
        "bs=4KiB",
        "bs=",
        "bs",
        "numjobs=0",
        "numjobs=2000",
        "iodepth=999999",
        "nrfiles=0",
        "randseed=-1",
        "fsync=1\x0bexec_prerun=id",
        "fsync=1\x85exec_prerun=id",
        "fsync=１",
    ],
)
def test_a_value_that_is_not_of_its_kind_is_refused(line: str) -> None:
    with pytest.raises(
        ValueError, match=r"is not allowed; write|must be more than 0|clones|of memory|only printable ASCII"
    ):
        parse_job(f"{GOOD}\n".replace("rw=write\n", "" if line.startswith("rw=") else "rw=write\n") + line)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("include /etc/fio.job\n" + GOOD, "line 1: include: another file's options are not seen here"),
        (GOOD + "include other.fio\n", "include: another file's options are not seen here"),
        (GOOD + GOOD, r"two sections \[w\]"),
        ("rw=write\n" + GOOD, "before the first section"),
        ("[../../etc/passwd]\nrw=write\n", "is not a section"),
        ("[a/b]\nrw=write\n", "is not a section"),
        ("[w\nrw=write\n", "is not a section"),
        ("[w] rw=write\n", "is not a section"),
        ("[$jobname]\nrw=write\n", "is not a section"),
        (GOOD + "size=1g\n", "size: given twice"),
        ("", "no section"),
        ("[global]\nrw=write\n", "no section"),
        ("[w]\nsize=1m\ndirect=1\n", r"\[w\] rw: missing"),
        (GOOD + "bs=2300\n", r"\[w\] bs: direct I/O is of whole sectors, and 2300 is no multiple of 512"),
        (GOOD + "bssplit=4k/50:1000/50\n", "and 1000 is no multiple of 512"),
        ("\ufeff\ufeff" + GOOD, "only printable ASCII"),
        ("[w]\nrw=write\ndirect=1\n", r"\[w\] size: missing"),
        ("[w]\nrw=write\nsize=1m\n", r"\[w\] direct: missing"),
        ("[w]\nrw=write\nsize=0\ndirect=1\n", "size: must be more than 0"),
        ("[w]\nrw=write\nsize=50%\ndirect=1\n", "size: '50%' is not allowed"),
        ("[w]\nrw=write\nsize=4k\nbs=1m\ndirect=1\n", "size: smaller than one block"),
        (GOOD + "bs=4k\nbsrange=1k-2k\n", "give one of them"),
        (GOOD.replace("size=64m", "size=8g") + "bs=1g\niodepth=2\n", "of memory"),
        (GOOD + "RW=read\n", r"\[w\] RW: not an option"),
        (GOOD + "blocksiz=4k\n", r"\[w\] blocksiz: not an option"),
        (";" + "x" * 70_000 + "\n" + GOOD, "longer than"),
    ],
)
def test_a_trick_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_job(text)


def test_all_faults_are_reported_at_once() -> None:
    with pytest.raises(ValueError, match=r"exec_prerun.*; .*verify.*; .*\[r\] filename"):
        parse_job(GOOD + "exec_prerun=id\nverify=md5\n[r]\nfilename=/x\n")


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_an_alias_is_the_option_itself(alias: str, name: str) -> None:
    base = "[w]\nsize=64m\ndirect=1\n" + ("" if name == "rw" else "rw=write\n")
    (section,) = parse_job(f"{base}{alias}={EXAMPLES[name]}\n")
    assert section.options[name] == EXAMPLES[name]
    assert alias not in section.options
    with pytest.raises(ValueError, match=f"{alias}: given twice"):
        parse_job(f"{base}{name}={EXAMPLES[name]}\n{alias}={EXAMPLES[name]}\n")


def test_the_sections_have_the_options_of_global_under_their_own() -> None:
    text = "# a comment\n[global]\ndirect=1\r\nbs = 4k\nsize=1g\n\n[a]\nrw=write\n; another\n[b]\nrw=read\nbs=8k\n"
    text += "end_fsync\n"
    assert parse_job(text) == (
        Section("a", {"direct": "1", "bs": "4k", "size": "1g", "rw": "write"}),
        Section("b", {"direct": "1", "bs": "8k", "size": "1g", "rw": "read", "end_fsync": "1"}),
    )


def test_a_line_ends_at_a_comment_and_a_byte_order_mark_is_no_part_of_it() -> None:
    text = "\ufeff[w] ; the log\nrw=write # in order\nsize=64m;exec_prerun=id\ndirect=1\t#\n"
    assert parse_job(text) == (Section("w", {"rw": "write", "size": "64m", "direct": "1"}),)


def test_a_later_global_adds_to_the_sections_below_it() -> None:
    text = "[global]\nrw=write\nsize=1g\ndirect=1\n[a]\n[global]\nsize=2g\nbs=8k\n[b]\nbs=16k\n"
    assert parse_job(text) == (
        Section("a", {"rw": "write", "size": "1g", "direct": "1"}),
        Section("b", {"rw": "write", "size": "2g", "direct": "1", "bs": "16k"}),
    )


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("io_submit_mode=offload", "engines storage and kafka keep a schedule"),
        ("latency_target=2ms", "say a limit such as 'p99 of write"),
        ("latency_percentile=99", "`search` of the engine kafka"),
        ("max_latency=1s", "say a limit such as 'p999 <= 1s'"),
        ("serialize_overlap=1", "wait for one another in fio"),
        ("nowait=1", "no latency of theirs is counted"),
        ("cmdprio_percentage=10", "make a workload of each"),
        ("rate_min=1m", "say a limit such as 'throughput"),
    ],
)
def test_an_option_that_people_use_is_refused_with_what_to_take_instead(option: str, words: str) -> None:
    with pytest.raises(ValueError, match=f"{option.partition('=')[0]}: .*{words}"):
        parse_job(f"{GOOD}{option}\n")


def test_the_bound_of_what_is_written_is_the_smaller_of_the_rates() -> None:
    (section,) = parse_job(GOOD + "numjobs=2\nbssplit=4k/50:64k/50\nrate_iops=10,20\nrate=1m\n")
    assert section.written_bytes_per_second() == 2 * 1024**2
    (section,) = parse_job(GOOD + "numjobs=2\nbssplit=4k/50:64k/50\nrate_iops=10,8\nrate=1m\n")
    assert section.written_bytes_per_second() == 2 * 8 * 65536
    (section,) = parse_job(GOOD)
    assert section.written_bytes_per_second() is None


def test_a_delay_belongs_to_a_section() -> None:
    with pytest.raises(ValueError, match=r"\[global\] startdelay"):
        parse_job(f"[global]\nstartdelay=9s\n{GOOD}")
    (section,) = parse_job(f"{GOOD}startdelay=2m\n")
    assert section.delay_seconds == 120


def test_the_examples_are_of_every_option() -> None:
    assert EXAMPLES.keys() == ALLOWED.keys()


@pytest.mark.parametrize("name", sorted(ALLOWED))
def test_fio_knows_every_option_that_passes_and_no_alias_of_it_is_missed(name: str, tmp_path: Path) -> None:
    base = {"rw": "write", "size": "64m", "direct": "0"}
    base.pop(name, None)
    text = "[w]\n" + "".join(f"{key}={value}\n" for key, value in (base | {name: EXAMPLES[name]}).items())
    job = tmp_path / "job.fio"
    job.write_text(format_job_file(parse_job(text), None))
    environment = {"PATH": "/usr/bin:/bin"} | runtime_environment(1000, delays=[90])
    parsed = subprocess.run(
        ["fio", "--parse-only", str(job)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert parsed.returncode == 0, parsed.stderr
    assert "Bad option" not in parsed.stdout + parsed.stderr
    described = subprocess.run(["fio", f"--cmdhelp={name}"], capture_output=True, text=True, check=True).stdout
    aliases = [line.split(":")[1].strip() for line in described.splitlines() if line.strip().startswith("alias:")]
    assert [ALIASES.get(alias) for alias in aliases] == [name] * len(aliases)


def test_the_operator_s_page_lists_what_passes() -> None:
    page = (Path(__file__).parents[3] / "docs/engines/fio.md").read_text()
    listed = [line for line in page.splitlines() if line.startswith("| `")]
    for name, option in ALLOWED.items():
        assert f"| `{name}` | {option.meaning} |" in listed

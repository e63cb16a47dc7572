"""Workload and driver files of the benchmark and its forks, taken over; nothing passed over in silence."""

import os
from pathlib import Path

import pytest
import yaml
from tests.cli.command_tree import cliffwatch
from tests.labs.omb.field_report import DRIVER, FIELD_REPORT

from cliffwatch.base.errors import Problem
from cliffwatch.engines.registry import load_of
from cliffwatch.labs.omb.files import properties_of
from cliffwatch.labs.omb.importer import Imported, import_files
from cliffwatch.model.workload import format_workload, parse_workload


def imported(tmp_path: Path, workload: str, driver: str = DRIVER) -> Imported:
    (tmp_path / "workload.yaml").write_text(workload)
    (tmp_path / "driver.yaml").write_text(driver)
    return import_files(tmp_path / "workload.yaml", tmp_path / "driver.yaml")


def test_the_field_reports_files_come_over_without_a_warning(tmp_path: Path) -> None:
    found = imported(tmp_path, FIELD_REPORT)
    assert found.warnings == ()
    assert found.workload.phases.warm_up == 3600
    assert found.workload.phases.soak == 24 * 3600
    assert str(found.target) == "broker:10.0.0.1:9092,10.0.0.2:9092"
    load = found.workload.load
    assert load["topics"] == {
        "count": 1,
        "partitions": 288,
        "replication_factor": 3,
        "settings": {"min.insync.replicas": "2", "flush.messages": "1"},
    }
    assert load["producer"]["producers"] == 4
    assert load["producer"]["rate"] == 1_024_000
    assert load["producer"]["record_size"] == "1024B"
    assert load["producer"]["random_ratio"] == 0.5
    assert (load["producer"]["acks"], load["producer"]["linger"], load["producer"]["batch_size"]) == (
        "all",
        "1ms",
        "131072B",
    )
    assert load["consumer"] == {"consumers": 4, "from": "earliest", "partition_max": "131072B"}
    again = parse_workload(format_workload(found.workload))
    assert again == found.workload
    load_of(again)


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ({"producerRate": 0, "warmupProducerRate": 1000}, "warmupProducerRate"),
        ({"warmupDurationMinutes": 0, "warmupProducerRate": 1000}, "warmupProducerRate"),
        ({"useRandomizedPayloads": False, "randomBytesRatio": 0.5}, "randomBytesRatio"),
        ({"subscriptionsPerTopic": 0, "consumerBacklogSizeGB": 5}, "consumerBacklogSizeGB"),
    ],
    ids=str,
)
def test_a_key_without_effect_is_named(tmp_path: Path, changed: dict[str, object], key: str) -> None:
    found = imported(tmp_path, yaml.safe_dump(yaml.safe_load(FIELD_REPORT) | changed))
    assert [remark for remark in (*found.warnings, *found.notes) if remark.startswith(f"{key}: ")]


@pytest.mark.parametrize(
    ("extra", "minutes"),
    [("", 1), ("sampleRateMillis: 5000", 30), ("warmupProducerRate: 1000", 30), ("warmupDurationMinutes: 7", 7)],
)
def test_the_dialect_decides_how_long_an_unsaid_warm_up_is(tmp_path: Path, extra: str, minutes: int) -> None:
    text = FIELD_REPORT.replace("warmupDurationMinutes: 60\n", "") + extra + "\n"
    found = imported(tmp_path, text)
    assert found.workload.phases.warm_up == minutes * 60
    assert any("warmupDurationMinutes" in note for note in found.notes) == ("warmupDurationMinutes" not in extra)


def test_every_key_that_changes_what_is_measured_and_is_not_honoured_is_warned_of(tmp_path: Path) -> None:
    text = (
        FIELD_REPORT
        + "subscriptionsPerTopic: 2\nbacklogProducerRate: 5\nmesageSize: 4\nkeyDistributor: KEY_ROUND_ROBBIN\n"
    )
    driver = DRIVER.replace("linger.ms=1", "linger.ms=1\n  interceptor.classes=a.B")
    words = "\n".join(imported(tmp_path, text, driver).warnings)
    for key in (
        "subscriptionsPerTopic",
        "backlogProducerRate",
        "mesageSize",
        "KEY_ROUND_ROBBIN",
        "interceptor.classes",
    ):
        assert key in words


def test_backlogs_steps_keys_sizes_and_searches_come_over(tmp_path: Path) -> None:
    backlog = imported(tmp_path, FIELD_REPORT.replace("GB: 0", "GB: 2"))
    assert backlog.workload.load["consumer"]["pauses"] == [{"after": "60m", "backlog": f"{2 * 1024**3}B"}]
    steps = imported(tmp_path, FIELD_REPORT + "warmupProducerRate: 1000\nkeyDistributor: RANDOM_NANO\n")
    assert steps.workload.load["producer"]["rate"] == 1000
    assert steps.workload.load["producer"]["steps"] == [{"after": "60m", "rate": 1_024_000}]
    assert steps.workload.load["producer"]["key"] == {"distribution": "random", "count": 10_000}
    sizes = imported(tmp_path, FIELD_REPORT + "messageSizeDistribution: {0-256: 3, 1024-2048: 1}\n")
    assert sizes.workload.load["producer"]["record_sizes"] == [
        {"size": "128B", "weight": 3.0},
        {"size": "1536B", "weight": 1.0},
    ]
    search = imported(tmp_path, FIELD_REPORT.replace("producerRate: 1024000", "producerRate: 0"))
    assert search.workload.load["search"]["first_rate"] == 10_000
    assert "rate" not in search.workload.load["producer"]


def test_existing_topics_are_named_and_nothing_is_made(tmp_path: Path) -> None:
    found = imported(tmp_path, FIELD_REPORT + "existingTopicList: [orders, payments]\n")
    assert found.workload.load["topics"] == {"existing": ["orders", "payments"]}


def test_a_payload_file_is_measured(tmp_path: Path) -> None:
    (tmp_path / "payload.data").write_bytes(b"a" * 1024)
    text = FIELD_REPORT.replace("useRandomizedPayloads: true", "payloadFile: payload.data")
    found = imported(tmp_path, text)
    assert found.workload.load["producer"]["random_ratio"] < 0.05
    (tmp_path / "payload.data").unlink()
    assert any("payloadFile" in warning for warning in imported(tmp_path, text).warnings)
    os.mkfifo(tmp_path / "payload.data")
    assert any(
        "records are random instead, which do not compress" in warning for warning in imported(tmp_path, text).warnings
    )


def test_no_secret_comes_over(tmp_path: Path) -> None:
    driver = DRIVER.replace(
        "commonConfig: |",
        "commonConfig: |\n  security.protocol=SASL_SSL\n  sasl.mechanism=SCRAM-SHA-256\n  sasl.jaas.config=org.apache."
        'kafka.common.security.scram.ScramLoginModule required username="soak" password="hunter2";',
    )
    found = imported(tmp_path, FIELD_REPORT, driver)
    assert found.workload.load["security"]["sasl"]["username"] == "soak"
    assert "hunter2" not in format_workload(found.workload) + "".join(found.warnings + found.notes)
    assert any("password" in note for note in found.notes)


@pytest.mark.parametrize(
    ("workload", "driver", "field"),
    [
        ("partitionsPerTopic: many", DRIVER, "workload.partitionsPerTopic"),
        (FIELD_REPORT, DRIVER.replace("bootstrap.servers=", "bootstrap="), "driver.commonConfig"),
        (FIELD_REPORT, DRIVER.replace("KafkaBenchmarkDriver", "PulsarBenchmarkDriver"), "driver.driverClass"),
        (FIELD_REPORT, DRIVER.replace("linger.ms=1", "linger.ms=soon"), "driver.producerConfig.linger.ms"),
        ("- a list", DRIVER, "workload"),
    ],
)
def test_an_omb_setting_that_is_not_importable_is_named(tmp_path: Path, workload: str, driver: str, field: str) -> None:
    with pytest.raises(Problem) as refused:
        imported(tmp_path, workload, driver)
    assert [fault.field for fault in refused.value.faults] == [field]


def test_properties_are_read_as_java_reads_them() -> None:
    text = "# no\n! no\na=1\nb : 2\nc 3\n  d=x\\\n   y\ne=\\u0041\\t\nf\\:g=h=i\nempty\n"
    assert properties_of(text) == {
        "a": "1",
        "b": "2",
        "c": "3",
        "d": "xy",
        "e": "A\t",
        "f:g": "h=i",
        "empty": "",
    }


SASL = "\n  security.protocol=SASL_SSL\n  sasl.mechanism={mechanism}\n  sasl.jaas.config=a.LoginModule required {jaas};"


def with_common(lines: str) -> str:
    return DRIVER.replace("commonConfig: |", f"commonConfig: |{lines}")


@pytest.mark.parametrize("jaas", ['username="soak" password="x"', "password='x' username='soak'", "username = soak"])
def test_a_user_comes_over_whatever_its_quotes(tmp_path: Path, jaas: str) -> None:
    driver = with_common(SASL.format(mechanism="SCRAM-SHA-256", jaas=jaas))
    security = imported(tmp_path, FIELD_REPORT, driver).workload.load["security"]
    assert security["sasl"]["username"] == "soak"
    assert security["tls"] == {"ca_file": "/etc/ssl/certs/ca-certificates.crt"}


@pytest.mark.parametrize(
    ("mechanism", "jaas", "field"),
    [
        ("AWS_MSK_IAM", "", "sasl.mechanism: AWS_MSK_IAM is not supported"),
        ("OAUTHBEARER", "", "sasl.mechanism: OAUTHBEARER is not supported"),
        ("PLAIN", "password='x'", "sasl.jaas.config: it has no username"),
    ],
)
def test_a_user_that_cannot_be_taken_over_is_refused(tmp_path: Path, mechanism: str, jaas: str, field: str) -> None:
    with pytest.raises(Problem, match=field):
        imported(tmp_path, FIELD_REPORT, with_common(SASL.format(mechanism=mechanism, jaas=jaas)))


@pytest.mark.parametrize(("kind", "differs"), [("PEM", False), ("JKS", True)])
def test_stores_in_pem_are_used_and_others_have_their_consequence(tmp_path: Path, kind: str, differs: bool) -> None:
    lines = "\n  security.protocol=SSL" + "".join(
        f"\n  ssl.{store}.type={kind}\n  ssl.{store}.location=/etc/omb/{store}" for store in ("truststore", "keystore")
    )
    found = imported(tmp_path, FIELD_REPORT, with_common(lines))
    own = {"certificate_file": "/etc/omb/keystore", "key_file": "/etc/omb/keystore"}
    system = {"ca_file": "/etc/ssl/certs/ca-certificates.crt", "certificate_file": None, "key_file": None}
    tls = load_of(found.workload).security.tls
    assert tls is not None
    expected = system if differs else {"ca_file": "/etc/omb/truststore"} | own
    assert {name: getattr(tls, name) for name in expected} == expected
    assert [warning.partition(":")[0] for warning in found.warnings] == (
        ["commonConfig.ssl.truststore.location", "commonConfig.ssl.keystore.location"] if differs else []
    )


@pytest.mark.parametrize(
    ("extra", "field"),
    [
        (
            "producerRateList: [[4, 0, 10240], [9, 0, 204800]]",
            "workload.producerRateList: the benchmark's rate follows",
        ),
        ("partitionsPerTopicList: [[300, 1]]", "workload.partitionsPerTopicList"),
        ("producersPerTopic: 0", "workload.producersPerTopic: 0: nothing would be written"),
        ("messageSize: [100, 10000]", "workload.messageSize: a list: this is a template"),
    ],
)
def test_an_omb_workload_that_would_be_another_load_is_refused(tmp_path: Path, extra: str, field: str) -> None:
    with pytest.raises(Problem, match=field):
        imported(tmp_path, f"{FIELD_REPORT}\n{extra}\n")


def test_idempotence_and_many_requests_in_flight_do_not_go_together(tmp_path: Path) -> None:
    lines = "producerConfig: |\n  enable.idempotence=true\n  max.in.flight.requests.per.connection=10"
    found = imported(tmp_path, FIELD_REPORT, DRIVER.replace("producerConfig: |", lines))
    assert found.workload.load["producer"]["max_in_flight"] == 5
    assert any("10 become 5" in warning for warning in found.warnings)
    load_of(found.workload)


def test_a_payload_file_is_found_where_the_benchmark_is_started(tmp_path: Path) -> None:
    (tmp_path / "workloads").mkdir()
    (tmp_path / "payload").mkdir()
    (tmp_path / "payload" / "p.data").write_bytes(b"a" * 1024)
    text = FIELD_REPORT.replace("useRandomizedPayloads: true", "payloadFile: payload/p.data")
    found = imported(tmp_path / "workloads", text)
    assert found.workload.load["producer"]["random_ratio"] < 0.05
    assert found.warnings == ()


def test_differences_are_listed_and_nothing_is_written_until_they_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "workload.yaml").write_text(FIELD_REPORT + "\ntimeSlicing: true\n")
    (tmp_path / "driver.yaml").write_text(DRIVER)
    written = tmp_path / "mine.yaml"
    command = [
        "omb",
        "import",
        *(str(tmp_path / name) for name in ("workload.yaml", "driver.yaml")),
        "--to",
        str(written),
    ]
    refused = cliffwatch(*command)
    assert refused.returncode == 1
    assert "difference: timeSlicing: it is not known here what this does" in refused.stderr
    assert not written.exists()
    assert cliffwatch(*command, "--accept-differences").returncode == 0
    assert parse_workload(written.read_text()).engine == "kafka"

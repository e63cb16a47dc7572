"""Real Kafka brokers on loopback: one node or several, started, killed, restarted and stopped by pid.

Each node is broker and controller at once (KRaft). Everything of a cluster is below one directory, which the caller
removes. The jars come from `setup/broker`.
"""

import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from testkit.checkout import ROOT, STATE
from testkit.network_namespace import OtherHost
from testkit.ports import free_ports
from testkit.waiting import wait_until

HOST = "127.0.0.1"
CLUSTER_ID = "Y2xpZmZ3YXRjaHRlc3Rz0Q"
READY = "Kafka Server started"
STOP_PATIENCE_SECONDS = 10.0


@cache
def libraries() -> Path:
    """The directory of the broker's jars, fetched when they are not there yet."""
    subprocess.run([str(ROOT / "setup" / "broker")], check=True, env=os.environ | {"STATE": str(STATE)})
    found = STATE / "kafka" / "libs"
    assert found.is_dir(), "the broker needs Java 17 and Maven: apt-get install openjdk-17-jre-headless maven"
    return found


def java(*arguments: str, heap: str = "512m") -> list[str]:
    """The command that runs a class of the broker's jars."""
    return ["java", f"-Xms{heap}", f"-Xmx{heap}", "-cp", f"{libraries()}/*", *arguments]


def tool(*arguments: str, heap: str = "256m") -> list[str]:
    """Like `java`, for a short-lived class: without the optimising compiler, useless for code that runs once."""
    return java("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *arguments, heap=heap)


@dataclass(slots=True)
class Node:
    """One broker: its id, its port for clients on `host`, and its process while it runs, which `prefix` begins."""

    node_id: int
    port: int
    directory: Path
    heap: str
    host: str = HOST
    prefix: tuple[str, ...] = ()
    process: "subprocess.Popen[bytes] | None" = None
    starts: int = 0

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def log(self) -> Path:
        """Log file of the node's latest start."""
        return self.directory / f"server-{self.starts}.log"

    def start(self) -> None:
        """Start the broker; `wait_ready` waits until it serves."""
        assert self.process is None or self.process.poll() is not None, "the node runs already"
        self.starts += 1
        arguments = ["-Dlog4j2.configurationFile=" + str(self.directory / "log4j2.properties"), "kafka.Kafka"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*self.prefix, *java(*arguments, str(self.directory / "server.properties"), heap=self.heap)],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_ready(self) -> None:
        """Wait until the broker has logged that it started."""
        assert self.process is not None
        process = self.process

        def is_ready() -> bool:
            assert process.poll() is None, self.log.read_text(errors="replace")[-4000:]
            return READY in self.log.read_text(errors="replace")

        wait_until(is_ready, f"the broker of {self.log}")

    def kill(self) -> None:
        """Kill the broker with SIGKILL. What it wrote stays in the page cache, unlike in a power cut."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        """Freeze the broker with SIGSTOP: connections stay open and nothing is answered."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume a frozen broker with SIGCONT."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Send SIGTERM, and SIGKILL when that takes too long: the last of several controllers waits for a quorum."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        try:
            self.process.wait(STOP_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()


@dataclass(slots=True)
class Cluster:
    """The brokers of one cluster; everything of theirs is below `directory`."""

    directory: Path
    nodes: list[Node] = field(default_factory=list)

    @property
    def bootstrap(self) -> str:
        return ",".join(node.address for node in self.nodes)

    def run(self, class_name: str, *arguments: str) -> str:
        """Run one of Kafka's own command-line classes; returns what it printed."""
        done = subprocess.run(tool(class_name, *arguments), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def end_offsets(self, topic: str) -> dict[int, int]:
        """The end offset of each partition of `topic`, by the broker's own tool."""
        arguments = ("--bootstrap-server", self.bootstrap, "--topic", topic)
        printed = self.run("org.apache.kafka.tools.GetOffsetShell", *arguments)
        rows = re.findall(rf"^{re.escape(topic)}:(\d+):(\d+)$", printed, re.MULTILINE)
        return {int(partition): int(offset) for partition, offset in rows}

    def topics(self) -> set[str]:
        """The names of all topics but the broker's own."""
        printed = self.run("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", self.bootstrap, "--list")
        return {line for line in printed.splitlines() if line and not line.startswith("__")}

    def create_topic(self, topic: str, partitions: int, **settings: str) -> None:
        """Make a topic with as many replicas as there are nodes."""
        options = [
            part for name, value in settings.items() for part in ("--config", f"{name.replace('_', '.')}={value}")
        ]
        self.run(
            "org.apache.kafka.tools.TopicCommand",
            *("--bootstrap-server", self.bootstrap, "--create", "--topic", topic),
            *("--partitions", str(partitions), "--replication-factor", str(len(self.nodes)), *options),
        )

    def delete_records(self, topic: str, partitions: int) -> None:
        """Delete all records: the log of each partition then begins at its present end, as after retention."""
        every = [{"topic": topic, "partition": partition, "offset": -1} for partition in range(partitions)]
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"version": 1, "partitions": every}, file)
            file.flush()
            arguments = ("--bootstrap-server", self.bootstrap, "--offset-json-file", file.name)
            self.run("org.apache.kafka.tools.DeleteRecordsCommand", *arguments)

    def delete_topic(self, topic: str) -> None:
        arguments = ("--bootstrap-server", self.bootstrap, "--delete", "--topic", topic)
        self.run("org.apache.kafka.tools.TopicCommand", *arguments)

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()


def start_cluster(
    directory: Path,
    nodes: int = 1,
    heap: str = "512m",
    settings: dict[str, str] | None = None,
    scram: Sequence[str] = (),
    other: OtherHost | None = None,
) -> Cluster:
    """Format and start `nodes` brokers below `directory`, and wait until all serve.

    `settings` override the usual server.properties; `{port}` in a value is the node's port for clients. `scram` are
    `--add-scram` arguments of the storage tool. With `other`, they run on that host.
    """
    host, prefix = (HOST, ()) if other is None else (other.address, other.prefix)
    ports = free_ports(2 * nodes)
    voters = ",".join(f"{number + 1}@{host}:{ports[nodes + number]}" for number in range(nodes))
    cluster = Cluster(directory)
    try:
        for number in range(nodes):
            home = directory / f"node-{number + 1}"
            home.mkdir(parents=True)
            node = Node(number + 1, ports[number], home, heap, host, prefix)
            usual = _properties(node, ports[nodes + number], voters, nodes)
            lines = {name: value.format(port=node.port) for name, value in (usual | (settings or {})).items()}
            (home / "server.properties").write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
            (home / "log4j2.properties").write_text(LOGGING)
            _format(node, scram)
            cluster.nodes.append(node)
        for node in cluster.nodes:
            node.start()
        for node in cluster.nodes:
            node.wait_ready()
    except BaseException:
        cluster.stop()
        raise
    return cluster


LOGGING = """rootLogger.level=INFO
rootLogger.appenderRefs=stdout
rootLogger.appenderRef.stdout.ref=stdout
appenders=stdout
appender.stdout.type=Console
appender.stdout.name=stdout
appender.stdout.layout.type=PatternLayout
appender.stdout.layout.pattern=[%d] %p %m (%c)%n
"""


def _properties(node: Node, controller_port: int, voters: str, nodes: int) -> dict[str, str]:
    replicas, in_sync = str(nodes), str(max(1, nodes - 1))
    return {
        "process.roles": "broker,controller",
        "node.id": str(node.node_id),
        "controller.quorum.voters": voters,
        "listeners": f"PLAINTEXT://{node.host}:{node.port},CONTROLLER://{node.host}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{node.address}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": str(node.directory / "data"),
        "auto.create.topics.enable": "false",
        "default.replication.factor": replicas,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": replicas,
        "offsets.topic.num.partitions": "3",
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": in_sync,
        "group.initial.rebalance.delay.ms": "0",
        # Deleted topics give their space back soon.
        "log.segment.delete.delay.ms": "1000",
        "file.delete.delay.ms": "1000",
    }


def _format(node: Node, scram: Sequence[str]) -> None:
    options = [part for one in scram for part in ("--add-scram", one)]
    command = tool(
        "kafka.tools.StorageTool",
        "format",
        *("--cluster-id", CLUSTER_ID, "-c", str(node.directory / "server.properties")),
        *options,
        heap="128m",
    )
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

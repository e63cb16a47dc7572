"""The engine that runs `cliffwatch-load kafka` on the brokers of its target."""

import json
import os
import signal
import tempfile
from dataclasses import replace
from pathlib import Path

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.programs import LOAD, find_program, require_program, version_of
from cliffwatch.engines.contract import EngineContext, EngineFacts, JsonLines, Launch, Probe, Translator
from cliffwatch.engines.kafka.load import KafkaLoad, configuration, files_needed
from cliffwatch.engines.kafka.probe import ask_brokers
from cliffwatch.engines.secrets import misplaced_secret
from cliffwatch.model.plan import LoadPlan

CONFIGURATION_FILE = "kafka.json"


class KafkaEngine:
    """Engine that writes the document of `cliffwatch-load kafka` and starts it; it prints the contract's lines."""

    name = "kafka"
    load_model = KafkaLoad
    target_kinds = frozenset({"broker"})
    latencies = ("publish", "publish_service", "end_to_end")
    stop_signal = signal.SIGTERM
    reads_history = False

    def is_virtual(self, load: KafkaLoad) -> bool:
        return False

    def plan(self, load: KafkaLoad, context: EngineContext) -> LoadPlan:
        seconds = context.stop - context.start
        return LoadPlan(
            writes=(),
            command=(LOAD, "kafka", "--config", str(context.scratch / CONFIGURATION_FILE)),
            direct=True,
            written_bytes=_written_bytes(load, seconds),
            notes=_notes(load, context),
        )

    def probe(self, load: KafkaLoad, context: EngineContext) -> Probe:
        with tempfile.TemporaryDirectory(prefix="cliffwatch-probe-") as scratch:
            return ask_brokers(self._command(load, replace(context, scratch=Path(scratch))))

    def prepare(self, load: KafkaLoad, context: EngineContext) -> Launch:
        """Process that makes the topics: that takes longer than an engine has between its start and first window."""
        return Launch([*self._command(load, context), "--prepare"])

    def launch(self, load: KafkaLoad, context: EngineContext) -> Launch:
        return Launch(self._command(load, context))

    def _command(self, load: KafkaLoad, context: EngineContext) -> list[str]:
        """Write the document, and return the command that reads it.

        Raises Problem: component_missing without the load generator, bad_request for a file that cannot be read.
        """
        sasl = load.security.sasl
        field = "load.security.sasl.password_file"
        misplaced = [] if sasl is None else misplaced_secret(field, sasl.password_file, context.state_directory)
        faults = misplaced or [
            FieldFault("load.security", f"{path} cannot be read on this machine; put it there or correct its path")
            for path in files_needed(load)
            if not os.access(path, os.R_OK)
        ]
        if faults:
            raise Problem(Code.BAD_REQUEST, "the connections' files cannot be read", faults)
        document = configuration(
            load,
            context.run_id,
            context.bootstrap_servers,
            context.window_seconds,
            context.start,
            context.stop,
            None if context.is_first else context.begun,
        )
        path = context.scratch / CONFIGURATION_FILE
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        return [str(require_program(LOAD, context.state_directory)), "kafka", "--config", str(path)]

    def translator(self, load: KafkaLoad, context: EngineContext) -> Translator:
        return JsonLines()

    def clear(self, load: KafkaLoad, context: EngineContext) -> None:
        return None

    def facts(self, load: KafkaLoad, context: EngineContext) -> EngineFacts:
        program = find_program(LOAD, context.state_directory)
        try:
            return EngineFacts() if program is None else EngineFacts({LOAD: version_of(program)})
        except Problem:
            return EngineFacts()  # As without a program: starting the load reports it.


def _written_bytes(load: KafkaLoad, seconds: float) -> int | None:
    """Bytes that the producers send to the brokers, before replication; None without a rate."""
    producer = load.producer
    if producer is None:
        return 0
    if producer.rate is None or load.search is not None:
        return None
    sizes = [(size.size, size.weight) for size in producer.record_sizes] or [(producer.record_size or 1024, 1.0)]
    mean = sum(size * weight for size, weight in sizes) / sum(weight for _, weight in sizes)
    records, rate, since = 0.0, producer.rate, 0.0
    for step in producer.steps:
        until = min(step.after, seconds)
        records += rate * max(0.0, until - since)
        rate, since = step.rate, until
    return round((records + rate * max(0.0, seconds - since)) * mean)


def _notes(load: KafkaLoad, context: EngineContext) -> tuple[str, ...]:
    notes = [f"brokers: {', '.join(context.bootstrap_servers)}"]
    if load.topics.existing:
        notes.append(f"writes to topics that exist already and stay: {', '.join(load.topics.existing)}")
    elif not load.topics.delete_at_end:
        notes.append("the topics that it creates are kept when it ends")
    if load.producer is None:
        notes.append("only reads: what it does not find produced by this program is counted as corrupt")
    return tuple(notes)

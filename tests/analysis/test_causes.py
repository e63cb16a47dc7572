"""From measures to a cause: each cause made on paper is named, and garbage collection never for another."""

from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cliffwatch.analysis.causes import CAUSES, Cause, Change, Measures, NearbyEvent, diagnose, explain
from cliffwatch.analysis.layers import Layer, LayerTimes

MIB = 2.0**20

#: A fio run on a drive that is watched in every respect, and nothing happens: before and after are the same.
HEALTHY = Measures(
    operations_per_second=Change(800.0, 795.0),
    engine_written_bytes_per_second=Change(50 * MIB, 49.7 * MIB),
    service_latency_seconds=Change(0.0011, 0.0011),
    schedule_debt_seconds=Change(0.0, 0.001),
    engine_cpu_throttled_ratio=Change(0.0, 0.0),
    cpu_steal_ratio=Change(0.001, 0.002),
    dirty_bytes=Change(4 * MIB, 4 * MIB),
    writeback_bytes=Change(0.0, 0.0),
    dirty_limit_bytes=800 * MIB,
    device_write_latency_seconds=Change(0.0009, 0.00091),
    device_operations_per_second=Change(830.0, 825.0),
    device_written_bytes_per_second=Change(51 * MIB, 50.7 * MIB),
    device_read_bytes_per_second=Change(0.0, 0.0),
    other_bytes_per_second=Change(1 * MIB, 1 * MIB),
    other_operations_per_second=Change(0.0, 2.0),
    queue_depth=Change(0.8, 0.8),
    write_amplification=Change(1.02, 1.03),
    free_blocks_ratio=Change(0.5, 0.45),
    temperature_celsius=Change(44.0, 45.0),
    deletions_per_second=Change(0.0, 0.0),
    stored_growth_bytes_per_second=Change(50 * MIB, 49 * MIB),
)
SLOW_DRIVE = replace(
    HEALTHY,
    operations_per_second=Change(800.0, 210.0),
    engine_written_bytes_per_second=Change(50 * MIB, 13 * MIB),
    service_latency_seconds=Change(0.0011, 0.0042),
    device_write_latency_seconds=Change(0.0009, 0.004),
    device_written_bytes_per_second=Change(51 * MIB, 13.5 * MIB),
    stored_growth_bytes_per_second=Change(50 * MIB, 13 * MIB),
    queue_depth=Change(0.8, 1.0),
)
#: The client waits longer, and the drive has nothing to do with it.
SLOW_CLIENT = replace(
    HEALTHY,
    operations_per_second=Change(800.0, 240.0),
    service_latency_seconds=Change(0.0011, 0.050),
    engine_written_bytes_per_second=Change(50 * MIB, 15 * MIB),
    device_written_bytes_per_second=Change(51 * MIB, 15.3 * MIB),
    stored_growth_bytes_per_second=Change(50 * MIB, 15 * MIB),
)
MADE: dict[Cause, Measures] = {
    Cause.GARBAGE_COLLECTION: replace(
        SLOW_DRIVE, write_amplification=Change(1.02, 3.4), free_blocks_ratio=Change(0.12, 0.02), device_lead_seconds=4.0
    ),
    Cause.RETENTION: replace(
        SLOW_CLIENT,
        operations_per_second=Change(800.0, 780.0),
        device_write_latency_seconds=Change(0.0009, 0.0012),
        deletions_per_second=Change(0.0, 0.4),
        discarded_bytes_per_second=Change(0.0, 50 * MIB),
        stored_growth_bytes_per_second=Change(50 * MIB, 0.2 * MIB),
    ),
    Cause.PAGE_CACHE: replace(
        SLOW_CLIENT,
        engine_written_bytes_per_second=Change(900 * MIB, 52 * MIB),
        device_written_bytes_per_second=Change(51 * MIB, 52 * MIB),
        dirty_bytes=Change(300 * MIB, 795 * MIB),
        writeback_bytes=Change(2 * MIB, 40 * MIB),
        stored_growth_bytes_per_second=Change(0.0, 0.0),
    ),
    Cause.CLIENT: replace(SLOW_CLIENT, engine_cpu_throttled_ratio=Change(0.0, 0.85)),
    Cause.BROKER: replace(SLOW_CLIENT, nearby_events=(NearbyEvent("leader_changed", -3.0),)),
    Cause.CHECKPOINT: replace(
        SLOW_DRIVE,
        operations_per_second=Change(800.0, 800.0),
        engine_written_bytes_per_second=Change(),
        other_bytes_per_second=Change(),
        other_operations_per_second=Change(),
        device_written_bytes_per_second=Change(20 * MIB, 45 * MIB),
        checkpoint_ratio=Change(0.05, 0.95),
    ),
    Cause.NETWORK: replace(SLOW_CLIENT, round_trip_seconds=Change(0.0002, 0.049)),
    Cause.VOLUME_LIMIT: replace(
        SLOW_DRIVE,
        write_amplification=Change(),
        free_blocks_ratio=Change(),
        temperature_celsius=Change(),
        limit_exceeded_ratio=Change(0.0, 0.83),
        exceeded_limit="the volume's limit of IOPS",
    ),
    Cause.THERMAL: replace(SLOW_DRIVE, temperature_celsius=Change(61.0, 83.0)),
    Cause.CPU_STEAL: replace(SLOW_CLIENT, cpu_steal_ratio=Change(0.001, 0.4)),
    Cause.NEIGHBOUR: replace(
        SLOW_DRIVE,
        device_read_bytes_per_second=Change(0.0, 120 * MIB),
        other_bytes_per_second=Change(1 * MIB, 121 * MIB),
        queue_depth=Change(0.8, 34.0),
    ),
    Cause.HEAVIER_LOAD: replace(
        SLOW_DRIVE,
        operations_per_second=Change(800.0, 2400.0),
        engine_written_bytes_per_second=Change(50 * MIB, 150 * MIB),
        device_written_bytes_per_second=Change(51 * MIB, 151 * MIB),
    ),
}


def test_every_cause_of_the_table_is_made() -> None:
    assert {row.cause for row in CAUSES} == set(MADE) == set(Cause) - {Cause.UNKNOWN}


def test_every_measure_is_weighed_by_a_cause() -> None:
    weighed: set[str] = set()

    class Noting(Measures):
        def __getattribute__(self, name: str) -> object:
            weighed.add(name)
            return object.__getattribute__(self, name)

    for made in MADE.values():
        noting = Noting(**{each.name: getattr(made, each.name) for each in fields(Measures)})
        for row in CAUSES:
            list(row.weigh(noting))
    assert {each.name for each in fields(Measures)} - weighed == set()


@pytest.mark.parametrize("made", MADE)
def test_each_cause_is_diagnosed_with_numeric_evidence(made: Cause) -> None:
    found = diagnose(MADE[made])
    assert found.first.cause is made
    assert found.first.confidence >= 0.5
    assert any(character.isdigit() for character in " ".join(found.first.evidence_for))
    assert "To test for" in found.distinguish_by
    assert found.runner_up is None or found.runner_up.confidence < found.first.confidence


@pytest.mark.parametrize("made", sorted(set(MADE) - {Cause.GARBAGE_COLLECTION}))
def test_garbage_collection_as_runner_up_has_evidence_against_it(made: Cause) -> None:
    found = diagnose(MADE[made])
    if found.runner_up is not None:
        assert found.runner_up.cause is not Cause.GARBAGE_COLLECTION or found.runner_up.evidence_against


def test_nothing_measured_and_nothing_changed_are_both_unknown() -> None:
    for measures in (Measures(), HEALTHY):
        found = diagnose(measures)
        assert found.first.cause is Cause.UNKNOWN
        assert found.first.confidence == 0.0
    assert "the drive's NAND bytes and free blocks" in diagnose(Measures()).distinguish_by


def test_a_slow_drive_that_reports_nothing_of_itself_is_not_said_to_collect_garbage() -> None:
    """Most drives in clouds expose neither write amplification nor temperature: it is suspected, never named."""
    blind = replace(SLOW_DRIVE, write_amplification=Change(), free_blocks_ratio=Change(), temperature_celsius=Change())
    found = diagnose(blind)
    assert found.first.cause is Cause.UNKNOWN
    assert found.runner_up is not None
    assert found.runner_up.cause is Cause.GARBAGE_COLLECTION
    assert found.runner_up.confidence < 0.5
    assert "Not measured here: the drive's NAND bytes and free blocks" in found.distinguish_by


def test_a_volume_within_its_limits_and_one_that_was_over_them_before_are_no_cause() -> None:
    over = MADE[Cause.VOLUME_LIMIT]
    for exceeded in (Change(0.0, 0.002), Change(0.8, 0.83), Change(0.0, 0.05)):
        found = diagnose(replace(over, limit_exceeded_ratio=exceeded))
        assert found.first.cause is Cause.UNKNOWN
    assert "Not measured here" in diagnose(replace(over, limit_exceeded_ratio=Change())).distinguish_by


def test_a_volume_over_its_limit_speaks_against_garbage_collection() -> None:
    collecting = MADE[Cause.GARBAGE_COLLECTION]
    over = replace(collecting, limit_exceeded_ratio=Change(0.0, 0.9), exceeded_limit="the volume's limit of IOPS")
    (row,) = [row for row in CAUSES if row.cause is Cause.GARBAGE_COLLECTION]
    sentence = "The volume was asked for more than the volume's limit of IOPS allows."
    assert sentence in [each.sentence for each in row.weigh(over) if each.weight < 0]
    assert sentence not in [each.sentence for each in row.weigh(collecting)]


def test_a_measure_with_the_same_text_before_and_after_is_stated_once() -> None:
    (row,) = [row for row in CAUSES if row.cause is Cause.GARBAGE_COLLECTION]
    steady = replace(SLOW_CLIENT, device_write_latency_seconds=Change(0.0009, 0.00090001))
    said = [each.sentence for each in row.weigh(steady)]
    assert "The write latency at the block layer (queue and device) did not rise: 900 µs before and after." in said


def test_a_neighbour_whose_writes_make_the_drive_collect_garbage_comes_first() -> None:
    both = replace(
        MADE[Cause.NEIGHBOUR],
        write_amplification=Change(1.02, 2.0),
        device_written_bytes_per_second=Change(51 * MIB, 133 * MIB),
    )
    assert diagnose(both).first.cause is Cause.NEIGHBOUR


def test_garbage_collection_that_begins_during_a_checkpoint_comes_first() -> None:
    both = replace(MADE[Cause.GARBAGE_COLLECTION], checkpoint_ratio=Change(0.0, 1.0))
    assert diagnose(both).first.cause is Cause.GARBAGE_COLLECTION
    runner_up = diagnose(both).runner_up
    assert runner_up is not None
    assert runner_up.cause is Cause.CHECKPOINT
    assert "Write amplification rose, which a checkpoint does not cause." in runner_up.evidence_against


def test_checkpoints_that_were_written_as_much_before_are_no_cause() -> None:
    steady = replace(MADE[Cause.CHECKPOINT], checkpoint_ratio=Change(0.85, 0.9))
    assert diagnose(steady).first.cause is Cause.UNKNOWN


def test_a_broker_that_lost_its_leaders_is_seen_without_being_reported() -> None:
    lost = replace(SLOW_CLIENT, leader_changes_per_second=Change(0.0, 1.2), disconnects_per_second=Change(0.0, 0.4))
    assert diagnose(lost).first.cause is Cause.BROKER


def test_a_machine_without_processor_time_is_distinguished_from_its_drive() -> None:
    starved = replace(SLOW_CLIENT, cpu_busy_ratio=Change(0.3, 1.0), cpu_pressure_ratio=Change(0.05, 0.9))
    assert diagnose(starved).first.cause is Cause.CLIENT
    collecting = replace(
        MADE[Cause.GARBAGE_COLLECTION], cpu_busy_ratio=Change(0.3, 1.0), cpu_pressure_ratio=Change(0.05, 0.9)
    )
    assert diagnose(collecting).first.cause is Cause.GARBAGE_COLLECTION


def test_a_late_engine_whose_requests_are_as_fast_as_before_is_the_cause_itself() -> None:
    late = replace(HEALTHY, schedule_debt_seconds=Change(0.001, 0.9))
    found = diagnose(late)
    assert found.first.cause is Cause.CLIENT


CHANGES = st.builds(Change, *[st.none() | st.floats(0, 1e12)] * 2)
QUANTITIES = [
    each.name
    for each in fields(Measures)
    if each.name not in ("dirty_limit_bytes", "device_lead_seconds", "nearby_events", "exceeded_limit")
]


@settings(max_examples=400, deadline=None)
@given(
    changes=st.fixed_dictionaries(dict.fromkeys(QUANTITIES, CHANGES)),
    limit=st.none() | st.floats(0, 1e12),
    lead=st.none() | st.floats(-1e4, 1e4),
)
def test_garbage_collection_is_never_named_without_the_drive_s_own_word(
    changes: dict[str, Change], limit: float | None, lead: float | None
) -> None:
    measures = Measures(**changes, dirty_limit_bytes=limit, device_lead_seconds=lead)  # type: ignore[arg-type]
    found = diagnose(measures)
    recorded = measures.write_amplification.rose(1.2, 0.15) or measures.free_blocks_ratio.fell(0.75, by=0.005)
    assert recorded or found.first.cause is not Cause.GARBAGE_COLLECTION
    assert 0.0 <= found.first.confidence <= 1.0


#: Which layers a cause can slow down first, said once more than in the table: a drive's own causes are in the drive.
OF_THE_DRIVE = {Cause.GARBAGE_COLLECTION, Cause.THERMAL, Cause.NEIGHBOUR}
ABOVE_THE_DRIVE = {Cause.CLIENT, Cause.BROKER, Cause.NETWORK, Cause.CPU_STEAL}
SECONDS = st.none() | st.floats(1e-6, 1e3)
TIMES = st.builds(LayerTimes, SECONDS, SECONDS, SECONDS, SECONDS, st.none() | st.floats(1e-3, 1e3))


@settings(max_examples=600, deadline=None)
@given(
    made=st.sampled_from(sorted(MADE)),
    changes=st.dictionaries(st.sampled_from(QUANTITIES), CHANGES, max_size=6),
    before=TIMES,
    after=TIMES,
)
def test_layer_and_cause_never_contradict_each_other(
    made: Cause, changes: dict[str, Change], before: LayerTimes, after: LayerTimes
) -> None:
    layers, found = explain(replace(MADE[made], **changes), before, after)  # type: ignore[arg-type]
    if found.first.cause in OF_THE_DRIVE:
        assert layers.grew in (None, Layer.DEVICE, Layer.QUEUE)
    if found.first.cause in ABOVE_THE_DRIVE:
        assert layers.grew in (None, Layer.SCHEDULE, Layer.ABOVE_BLOCK_LAYER)


def test_garbage_collection_is_named_with_the_drive_although_most_of_the_time_passes_above_it() -> None:
    """The drive's writes are 175 times slower; what was merged while it waited makes its share of the rise small."""
    measures = replace(MADE[Cause.GARBAGE_COLLECTION], device_write_latency_seconds=Change(0.0001, 0.0175))
    before, after = LayerTimes(0.006, 0.005, None, 0.0001, 0.5), LayerTimes(0.7, 0.6, None, 0.0175, 0.05)
    layers, found = explain(measures, before, after)
    assert (layers.grew, found.first.cause) == (Layer.DEVICE, Cause.GARBAGE_COLLECTION)


def test_a_drive_that_collects_while_the_rise_is_elsewhere_is_the_runner_up_at_most() -> None:
    before, after = LayerTimes(0.001, 0.001, None, 0.0009, 1.0), LayerTimes(0.4, 0.4, None, 0.0009, 1.0)
    layers, found = explain(MADE[Cause.GARBAGE_COLLECTION], before, after)
    assert layers.grew is Layer.ABOVE_BLOCK_LAYER
    assert found.first.cause is Cause.UNKNOWN
    assert found.runner_up is not None
    assert any("above the block layer" in sentence for sentence in found.runner_up.evidence_against)


def test_database_measures_are_not_listed_as_missing_without_a_database() -> None:
    words = diagnose(Measures()).distinguish_by
    assert "Not measured here: " in words
    assert "; ;" not in words
    assert "checkpoint" not in words

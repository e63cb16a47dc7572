/* The exporter's maps, one for each metric and named like it, and the timer that fills them from the sums. */
#pragma once

#include "sums.h"

#define CLOCK_MONOTONIC 1
#define PUBLISH_EVERY_NS 250000000ull

struct series {
	struct name device;
	__u32 operation;
};

struct histogram_series {
	struct name device;
	__u16 operation;
	__u16 bucket;
};

struct group_series {
	struct name device;
	__u64 operation;
	__u64 group;
};

#define METRIC(name, key_type, entries)                                                                                \
	struct {                                                                                                       \
		__uint(type, BPF_MAP_TYPE_HASH);                                                                       \
		__uint(max_entries, entries);                                                                          \
		__type(key, key_type);                                                                                 \
		__type(value, __u64);                                                                                  \
	} name SEC(".maps")

METRIC(cliffwatch_block_device_latency_seconds, struct histogram_series, DEVICES *OPERATIONS *(TIME_BUCKETS + 1));
METRIC(cliffwatch_block_queue_seconds, struct histogram_series, DEVICES *OPERATIONS *(TIME_BUCKETS + 1));
METRIC(cliffwatch_block_request_size_bytes, struct histogram_series, DEVICES *OPERATIONS *(SIZE_BUCKETS + 1));
METRIC(cliffwatch_block_requests_in_flight, struct series, DEVICES *OPERATIONS);
METRIC(cliffwatch_block_errors_total, struct series, DEVICES *OPERATIONS);
METRIC(cliffwatch_block_missed_completions_total, struct series, DEVICES *OPERATIONS);
METRIC(cliffwatch_block_cgroup_requests_total, struct group_series, GROUPS *OPERATIONS);
METRIC(cliffwatch_block_cgroup_bytes_total, struct group_series, GROUPS *OPERATIONS);

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} cliffwatch_block_untracked_requests_total SEC(".maps");

/* What stands in the exporter's maps. */
struct published {
	struct sums sums;
	__u64 settled; /* the sums were the same twice: nothing was half added when they were read */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, DEVICES *OPERATIONS);
	__type(key, __u32);
	__type(value, struct published);
} published SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, GROUPS);
	__type(key, __u32);
	__type(value, struct group_sums);
} published_groups SEC(".maps");

struct publishing {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct publishing);
} publishing SEC(".maps");

/* Only the timer's callback uses these, and it runs once at a time. */
struct sums total;
struct group_sums group_total;

struct publication {
	__u32 index;
	__u32 changed;
};

static __always_inline void add(__u64 *to, const __u64 *from, __u32 count)
{
	for (__u32 i = 0; i < count; i++)
		to[i] += from[i];
}

static long add_cpu(__u32 cpu, struct publication *publication)
{
	struct sums *here = bpf_map_lookup_percpu_elem(&sums, &publication->index, cpu);

	if (!here)
		return 1;
	add((__u64 *)&total, (__u64 *)here, sizeof(total) / sizeof(__u64));
	return 0;
}

/* The first line of each CPU's sums says whether the rest has to be read. */
static long add_cpu_events(__u32 cpu, struct publication *publication)
{
	struct sums *here = bpf_map_lookup_percpu_elem(&sums, &publication->index, cpu);

	if (!here)
		return 1;
	total.issued += here->issued;
	total.completed += here->completed;
	return 0;
}

static long add_cpu_group(__u32 cpu, struct publication *publication)
{
	struct group_sums *here = bpf_map_lookup_percpu_elem(&group_sums, &publication->index, cpu);

	if (!here)
		return 1;
	add((__u64 *)&group_total, (__u64 *)here, sizeof(group_total) / sizeof(__u64));
	return 0;
}

static __always_inline void publish_histogram(void *metric, const struct series *series, const __u64 *now,
					      const __u64 *before, __u32 lowest, __u32 buckets)
{
	struct histogram_series key = {.device = series->device, .operation = series->operation};

	for (__u32 i = 0; i <= buckets; i++) {
		if (now[i] == before[i])
			continue;
		/* The exporter looks for the sum after the last bucket. */
		key.bucket = lowest + (i ? i - 1 : buckets);
		bpf_map_update_elem(metric, &key, &now[i], BPF_ANY);
	}
}

/* The place of a device is claimed before its name is there. */
static __always_inline bool named(const struct name *name)
{
	return name->text[0];
}

static long publish_operation(__u32 index, struct publication *publication)
{
	__u32 device = (index / OPERATIONS) & (DEVICES - 1);
	struct series series = {.device = names[device], .operation = index % OPERATIONS};
	struct published *before;
	__u64 in_flight;
	bool changed;

	if (!named(&series.device))
		return 0;
	before = bpf_map_lookup_elem(&published, &index);
	if (!before)
		return 1;

	publication->index = index;
	__builtin_memset(&total, 0, sizeof(total));
	bpf_loop(NONE >> 16, add_cpu_events, publication, 0);
	changed = total.issued != before->sums.issued || total.completed != before->sums.completed;
	if (!changed && before->settled)
		return 0;
	if (!total.issued)
		return 0;

	__builtin_memset(&total, 0, sizeof(total));
	bpf_loop(NONE >> 16, add_cpu, publication, 0);
	publish_histogram(&cliffwatch_block_device_latency_seconds, &series, total.latency, before->sums.latency,
			  TIME_LOWEST, TIME_BUCKETS);
	publish_histogram(&cliffwatch_block_queue_seconds, &series, total.queue, before->sums.queue, TIME_LOWEST,
			  TIME_BUCKETS);
	publish_histogram(&cliffwatch_block_request_size_bytes, &series, total.size, before->sums.size, SIZE_LOWEST,
			  SIZE_BUCKETS);
	/* CPUs are read one after the other: a completion may be seen without its issue. */
	in_flight = total.issued > total.completed ? total.issued - total.completed : 0;
	bpf_map_update_elem(&cliffwatch_block_requests_in_flight, &series, &in_flight, BPF_ANY);
	bpf_map_update_elem(&cliffwatch_block_errors_total, &series, &total.errors, BPF_ANY);
	bpf_map_update_elem(&cliffwatch_block_missed_completions_total, &series, &total.missed, BPF_ANY);

	before->sums = total;
	before->settled = !changed;
	publication->changed = 1;
	return 0;
}

static long publish_group(__u32 index, struct publication *publication)
{
	__u64 entry = groups[index & (GROUPS - 1)];
	struct group_series key = {.device = names[entry & (DEVICES - 1)], .group = entry / DEVICES};
	struct group_sums *before;

	if (!entry || !named(&key.device))
		return 0;
	before = bpf_map_lookup_elem(&published_groups, &index);
	if (!before)
		return 1;

	publication->index = index;
	__builtin_memset(&group_total, 0, sizeof(group_total));
	bpf_loop(NONE >> 16, add_cpu_group, publication, 0);
	for (__u32 i = 0; i < OPERATIONS; i++) {
		if (group_total.requests[i] == before->requests[i] && group_total.bytes[i] == before->bytes[i])
			continue;
		key.operation = i;
		bpf_map_update_elem(&cliffwatch_block_cgroup_requests_total, &key, &group_total.requests[i], BPF_ANY);
		bpf_map_update_elem(&cliffwatch_block_cgroup_bytes_total, &key, &group_total.bytes[i], BPF_ANY);
	}
	*before = group_total;
	return 0;
}

/* 1 while the timer is set, so that what is added meanwhile is published without setting it again. */
__u32 armed;

static int publish(void *map, __u32 *key, struct publishing *value)
{
	struct publication publication = {};

	/* Before the sums are read: what is added after they were read sets the timer again. */
	__sync_lock_test_and_set(&armed, 0);
	bpf_loop(DEVICES * OPERATIONS, publish_operation, &publication, 0);
	if (!publication.changed)
		return 0;
	bpf_loop(GROUPS, publish_group, &publication, 0);
	if (__sync_val_compare_and_swap(&armed, 0, 1) == 0)
		bpf_timer_start(&value->timer, PUBLISH_EVERY_NS, 0);
	return 0;
}

static __always_inline void publish_soon(void)
{
	struct publishing *value;
	__u32 zero = 0;

	if (armed || __sync_val_compare_and_swap(&armed, 0, 1))
		return;
	value = bpf_map_lookup_elem(&publishing, &zero);
	if (!value)
		return;
	bpf_timer_init(&value->timer, &publishing, CLOCK_MONOTONIC); /* does nothing from the second time on */
	bpf_timer_set_callback(&value->timer, publish);
	bpf_timer_start(&value->timer, PUBLISH_EVERY_NS, 0);
}

/* The sums that the programs add to, one set per device and operation on each CPU, and where to find them. */
#pragma once

#include "kernel.h"

#define DEVICES 64  /* block devices that are tracked; requests to further ones are counted as untracked */
#define GROUPS 1024 /* pairs of process group and device that are tracked; the I/O of further pairs is attributed to none */
#define PROBES 16   /* places at which a table is searched: when an entry is in none of them, the table is full to it */
#define NONE (~0u)

enum operation { READ, WRITE, FLUSH, DISCARD, OPERATIONS };

/*
 * Histogram buckets are powers of two. Times are in units of 2^-30 s, which is nearly a nanosecond, so that their bounds
 * are powers of two of a second, as they are in the worker's own histograms: from 2^-20 s (954 ns) to 2^7 s.
 */
#define TIME_LOWEST 10
#define TIME_BUCKETS 28
#define SIZE_LOWEST 9 /* 512 bytes to 4 GiB */
#define SIZE_BUCKETS 24

/* In the order in which they are touched, and in each histogram the sum of what was counted before the buckets. */
struct sums {
	__u64 issued;
	__u64 size[1 + SIZE_BUCKETS];
	__u64 completed;
	__u64 errors;
	__u64 missed;
	__u64 latency[1 + TIME_BUCKETS];
	__u64 queue[1 + TIME_BUCKETS];
};

struct group_sums {
	__u64 requests[OPERATIONS];
	__u64 bytes[OPERATIONS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DEVICES * OPERATIONS);
	__type(key, __u32);
	__type(value, struct sums);
} sums SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, GROUPS);
	__type(key, __u32);
	__type(value, struct group_sums);
} group_sums SEC(".maps");

struct name {
	char text[DISK_NAME_LENGTH];
};

/* Device number (never 0), and process group with the place of its device: entries are claimed and never given back. */
__u64 devices[DEVICES];
struct name names[DEVICES];
__u64 groups[GROUPS];

/* Spreads numbers that lie close together; the high bits are the good ones. */
static __always_inline __u32 spread(__u64 value, __u32 bits)
{
	return (value * 0x9E3779B97F4A7C15ull) >> (64 - bits);
}

/* The place of an entry in a table of 2^bits, which it claims when it has none yet; NONE when the table is full. */
static __always_inline __u32 place(__u64 *table, __u32 bits, __u64 entry)
{
	__u32 first = spread(entry, bits);

	for (__u32 probe = 0; probe < PROBES; probe++) {
		__u32 index = (first + probe) & ((1u << bits) - 1);

		if (table[index] == entry)
			return index;
		if (table[index] == 0) {
			__u64 owner = __sync_val_compare_and_swap(&table[index], 0, entry);

			if (owner == 0 || owner == entry)
				return index;
		}
	}
	return NONE;
}

/* Adds to the bucket of the least power of two that is not below the value; the outermost buckets take the rest. */
static __always_inline void count(__u64 *histogram, __u64 value, __u32 lowest, __u32 buckets)
{
	__u64 rest = value ? value - 1 : 0;
	__u32 exponent = 0;

#pragma unroll
	for (__u32 step = 32; step; step >>= 1) {
		if (rest >> step) {
			rest >>= step;
			exponent += step;
		}
	}
	exponent += rest; /* 1 is left, or 0 when there was nothing */
	exponent = exponent < lowest ? 0 : exponent - lowest;
	if (exponent >= buckets)
		exponent = buckets - 1;
	histogram[0] += value;
	histogram[1 + exponent]++;
}

/* Nanoseconds in units of 2^-30 s, exact to four millionths. */
static __always_inline __u64 binary_time(__u64 nanoseconds)
{
	return (nanoseconds * 70369) >> 16;
}

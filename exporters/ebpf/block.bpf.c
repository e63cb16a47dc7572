// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
/*
 * What requests go through in the block layer, by device and operation.
 *
 * Cost is what shapes these programs. They run at each request's issue to the driver and at its completion, and there they
 * only add to per-CPU sums that are reached by index. Hash maps with a key for each bucket, which are what the exporter
 * reads, would double the cost: a timer fills them from the sums, four times a second while there is I/O.
 */
#include "kernel.h"

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "publish.h"
#include "sums.h"

#define DEVICE_BITS 6
#define GROUP_BITS 10
#define REQUEST_BITS 14
#define OPERATION_MASK 0xff

_Static_assert(DEVICES == 1 << DEVICE_BITS && GROUPS == 1 << GROUP_BITS, "tables are masked with their bits");

/* The kernel lets programs that are under the GPL, among other licences, use its timers and its types. */
char LICENSE[] SEC("license") = "GPL";

/* A request that the driver has. */
struct issue {
	__u64 request; /* its address, or 0 */
	__u64 at;
	__u32 index; /* of the sums of its device and operation */
	__u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << REQUEST_BITS);
	__type(key, __u32);
	__type(value, struct issue);
} issues SEC(".maps");

/* Those whose place in `issues` is taken: seldom any, but each one counts. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << REQUEST_BITS);
	__type(key, __u64);
	__type(value, struct issue);
} more_issues SEC(".maps");

__u64 anchor;

/* An address that may be calculated with, which the verifier allows for the difference of two addresses only. */
static __always_inline __u32 place_of(struct request *request)
{
	__u64 address = (__u64)request;
	__u64 base = (__u64)&anchor;

	asm volatile("%0 -= %1" : "+r"(address) : "r"(base));
	return spread(address, REQUEST_BITS);
}

/* Grouped as the kernel's own disk statistics group them. OPERATIONS for what is no I/O on the medium. */
static __always_inline __u32 operation_of(struct request *request)
{
	__u32 operation = request->cmd_flags & OPERATION_MASK;

	if (operation <= REQ_OP_DISCARD)
		return operation;
	if (operation == REQ_OP_WRITE_ZEROES || operation == bpf_core_enum_value(enum req_op, REQ_OP_ZONE_APPEND))
		return WRITE;
	return operation == REQ_OP_SECURE_ERASE ? DISCARD : OPERATIONS;
}

/*
 * The place of the device, or NONE. Its name is kept, because the exporter would look for the device when it is scraped,
 * and a device may be gone by then.
 */
static __always_inline __u32 place_of_device(struct gendisk *disk)
{
	__u64 number = (__u64)(__u32)disk->major << 32 | (__u32)disk->first_minor;
	__u32 device = place(devices, DEVICE_BITS, number);

	if (device < DEVICES && !named(&names[device]))
		bpf_probe_read_kernel_str(names[device].text, DISK_NAME_LENGTH, disk->disk_name);
	return device;
}

/* The control group that the kernel charges the request to, which for a write-back is not the group that writes back. */
static __always_inline __u64 group_of(struct request *request)
{
	struct blkcg_gq *charged;
	struct bio *bio = request->bio;

	if (!bio || !bpf_core_field_exists(bio->bi_blkg))
		return 0;
	charged = bio->bi_blkg;
	return charged ? charged->blkcg->css.cgroup->kn->id : 0;
}

static __always_inline void count_group(struct request *request, __u32 device, __u32 operation, __u32 bytes)
{
	__u64 group = group_of(request);
	struct group_sums *here;
	__u32 index;

	if (!group)
		return;
	index = place(groups, GROUP_BITS, group * DEVICES + device);
	here = bpf_map_lookup_elem(&group_sums, &index);
	if (!here)
		return;
	here->requests[operation & (OPERATIONS - 1)]++;
	here->bytes[operation & (OPERATIONS - 1)] += bytes;
}

static __always_inline void count_untracked(void)
{
	__u32 zero = 0;
	__u64 *value = bpf_map_lookup_elem(&cliffwatch_block_untracked_requests_total, &zero);

	if (value)
		__sync_fetch_and_add(value, 1);
}

/*
 * Remembers one that is remembered already. False if the driver is given the same request again, which is its issue then.
 * Otherwise the request was used anew, and the completion before that was not reported: it is no longer in flight.
 */
static __always_inline bool replace(struct issue *issue, __u64 started, __u64 now, __u32 index)
{
	struct sums *before;
	bool is_new = started > issue->at;

	if (is_new) {
		before = bpf_map_lookup_elem(&sums, &issue->index);
		if (before) {
			before->missed++;
			before->completed++;
		}
		issue->index = index;
	}
	issue->at = now;
	return is_new;
}

/* Whether the request is new to the driver. */
static __always_inline bool remember(struct request *request, __u32 index)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 key = place_of(request);
	struct issue *issue = bpf_map_lookup_elem(&issues, &key);
	struct issue other = {.request = (__u64)request, .at = now, .index = index};
	__u64 owner;

	if (!issue)
		return false;
	if (issue->request == (__u64)request)
		return replace(issue, request->start_time_ns, now, index);
	owner = __sync_val_compare_and_swap(&issue->request, 0, (__u64)request);
	if (owner == 0) {
		issue->at = now;
		issue->index = index;
		return true;
	}
	issue = bpf_map_lookup_elem(&more_issues, &other.request);
	if (issue)
		return replace(issue, request->start_time_ns, now, index);
	return bpf_map_update_elem(&more_issues, &other.request, &other, BPF_NOEXIST) == 0;
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(block_rq_issue, struct request *request)
{
	__u32 operation = operation_of(request);
	struct gendisk *disk = request->q->disk;
	__u32 bytes = request->__data_len;
	struct sums *here;
	__u32 device, index;

	if (operation == OPERATIONS || !disk)
		return 0;
	device = place_of_device(disk);
	if (device >= DEVICES) {
		count_untracked();
		return 0;
	}
	index = device * OPERATIONS + operation;
	here = bpf_map_lookup_elem(&sums, &index);
	if (!here || !remember(request, index))
		return 0;
	here->issued++;
	if (bytes)
		count(here->size, bytes, SIZE_LOWEST, SIZE_BUCKETS);
	count_group(request, device, operation, bytes);
	publish_soon();
	return 0;
}

/* Takes the request out of what is remembered. False for what was issued before the programs were attached, and for the
 * steps of a flush, which complete without having been issued. */
static __always_inline bool forget(struct request *request, struct issue *found)
{
	__u32 key = place_of(request);
	struct issue *issue = bpf_map_lookup_elem(&issues, &key);

	if (!issue)
		return false;
	if (issue->request == (__u64)request) {
		found->at = issue->at;
		found->index = issue->index;
		issue->request = 0;
		return true;
	}
	found->request = (__u64)request;
	issue = bpf_map_lookup_elem(&more_issues, &found->request);
	if (!issue)
		return false;
	found->at = issue->at;
	found->index = issue->index;
	bpf_map_delete_elem(&more_issues, &found->request);
	return true;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(block_rq_complete, struct request *request, __u8 error, unsigned int bytes)
{
	struct issue issue;
	struct sums *here;
	__u64 started;

	if (bytes < request->__data_len) /* the rest of it is still to come */
		return 0;
	if (!forget(request, &issue))
		return 0;
	here = bpf_map_lookup_elem(&sums, &issue.index);
	if (!here)
		return 0;
	count(here->latency, binary_time(bpf_ktime_get_ns() - issue.at), TIME_LOWEST, TIME_BUCKETS);
	started = request->start_time_ns;
	if (started)
		count(here->queue, started < issue.at ? binary_time(issue.at - started) : 0, TIME_LOWEST, TIME_BUCKETS);
	if (error)
		here->errors++;
	here->completed++;
	publish_soon();
	return 0;
}

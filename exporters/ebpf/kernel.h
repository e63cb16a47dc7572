/*
 * The kernel's structures, cut down to the fields that block.bpf.c reads. The loader finds each field in the running
 * kernel's BTF by name, so one object serves every kernel that has them, and it is built without that kernel at hand.
 */
#pragma once

#include <linux/types.h>

#define DISK_NAME_LENGTH 32

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
	__u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

struct blkcg {
	struct cgroup_subsys_state css;
};

struct blkcg_gq {
	struct blkcg *blkcg;
};

struct bio {
	struct blkcg_gq *bi_blkg; /* with CONFIG_BLK_CGROUP */
};

struct gendisk {
	int major;
	int first_minor;
	char disk_name[DISK_NAME_LENGTH];
};

struct request_queue {
	struct gendisk *disk; /* since 5.17; none for a controller's own commands */
};

struct request {
	struct request_queue *q;
	struct bio *bio;
	__u32 cmd_flags;
	unsigned int __data_len; /* bytes not completed yet */
	__u64 start_time_ns;     /* 0 when the queue keeps no statistics */
};

#pragma clang attribute pop

enum req_op {
	REQ_OP_READ = 0,
	REQ_OP_WRITE = 1,
	REQ_OP_FLUSH = 2,
	REQ_OP_DISCARD = 3,
	REQ_OP_SECURE_ERASE = 5,
	REQ_OP_ZONE_APPEND = 7, /* 13 before 6.8: found by name */
	REQ_OP_WRITE_ZEROES = 9,
};

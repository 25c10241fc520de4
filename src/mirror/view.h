/* view.h -- all that the HTTP side may see: an immutable snapshot of the whole process.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The control thread builds one about once a second from what the workers report and publishes it in a cell
 * (loop/cell.h); readers on any thread hold a reference while they look. Everything lies in the snapshot's
 * own arena. Field names are those of /v1/status (docs: design, contracts). Offsets are source offsets unless
 * the name says target.
 */
#ifndef MIRROR_VIEW_H
#define MIRROR_VIEW_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/fault.h"
#include "loop/cell.h"

#define VIEW_NO_ANSWER "NO_ANSWER" /* code of a partition whose leader owes an answer */

struct view_partition {
    struct str topic, target_topic;
    int32_t partition;
    const char *state; /* idle starting copying caught-up retrying halted paused */
    int64_t next_offset;                          /* next to be acknowledged; -1 unknown, like those below */
    int64_t source_start, source_end, target_end;
    int64_t lag_records, lag_bytes, lag_ms;
    uint64_t relayed_batches, decoded_batches, dropped_batches, records, bytes;
    uint64_t coalesced_batches; /* at the source; they left as fewer */
    bool coalescing;
    uint64_t filtered_records; /* left out by a transform, one by one */
    uint64_t retimed_records; /* whose time was replaced: heliostat.timestamp */
    uint64_t skipped_records; /* found in the target already, after a restart */
    int64_t queued_bytes;
    struct fault fault; /* code "" when none */
};

#define VIEW_REFUSED_MAX 100

struct view_refused {
    struct str group;
    struct fault fault;
};

/* The consumer groups of a flow, as of the last round. */
struct view_groups {
    bool followed;   /* else nothing below is known */
    int64_t groups, active, refused_groups; /* active: with members at the target */
    int64_t positions, exact, behind, ranges, unknown; /* how they translate */
    int64_t committed, ahead; /* the target's group stands there; or further on, by others */
    uint64_t checkpoints, commits, rounds; /* written since the start */
    int64_t last_round_ms, last_sync_ms;   /* wall clock; 0 never */
    int64_t round_ms;
    struct fault fault;
    struct view_refused *refused; /* at most VIEW_REFUSED_MAX */
    int32_t refused_n;
};

struct view_flow {
    struct str name; /* "A->B" */
    struct str source, target;
    const char *state; /* waiting standby loading copying refused draining disabled */
    const char *delivery;
    bool enabled;      /* else it only writes heartbeats */
    bool ready;        /* first plan applied and copying, or standing by (or nothing to do) */
    bool standby;      /* another process of the group runs it */
    struct str group, holder; /* null: no membership; the process that runs it, "" unknown */
    int64_t lag_records, lag_bytes;
    uint64_t records, bytes, relayed_batches, decoded_batches, dropped_batches, retries, heartbeats;
    uint64_t coalesced_batches;
    int64_t topics, partitions_n;
    int64_t last_refresh_ms, positions_stored_ms, configs_compared_ms; /* wall clock; 0 never */
    uint64_t configs_altered;
    int64_t configs_differ; /* after the last comparison */
    uint64_t acls_created, acls_deleted;
    int64_t acls_wanted, acls_differ, acls_compared_ms; /* after the last comparison; 0 never */
    struct str acls_none; /* alias of a cluster that keeps no ACLs; null: both do, or it is not known */
    uint64_t offset_syncs;
    struct view_groups groups;
    uint64_t repeated_records, lost_records, foreign_records;
    struct fault fault;
    struct view_partition *partitions;
};

struct view_broker {
    int32_t id, port;
    struct str host;
    const char *state; /* up slow connecting down idle */
    int64_t rtt_us;    /* -1 unknown */
};

struct view_cluster {
    struct str alias, cluster_id;
    struct fault fault;
    struct view_broker *brokers;
    int32_t brokers_n;
};

struct view_fault {
    struct fault fault;
    struct str flow, topic; /* null when it is not about one */
    int32_t partition;      /* -1 likewise */
};

/* Records that are gone, or (repeat) that were written once more. */
struct view_loss {
    struct str flow, topic, cause;
    int32_t partition;
    bool repeat;
    int64_t from_offset, to_offset; /* both included */
    int64_t records;                /* that were there; -1 not known */
    int64_t time_ms;
};

struct view {
    struct snapshot snapshot; /* first: what loop/cell.h counts */
    struct arena arena;
    struct str version, commit, instance;
    int64_t start_time_ms, made_ms;
    uint64_t memory_used, memory_peak, memory_max; /* bytes of payload budget */
    int workers;
    struct view_flow *flows;
    int32_t flows_n;
    struct view_cluster *clusters;
    int32_t clusters_n;
    struct view_fault *faults;
    int32_t faults_n;
    struct view_loss *repeats; /* at-least-once delivery */
    int32_t repeats_n;
    struct view_loss *losses;
    int32_t losses_n;
};

/* Every enabled flow is ready, or where none is enabled every flow. Otherwise false; *why (not NULL) gets a JSON-free sentence per flow that is not,
 * in the order of flows; lines separated by '\n'. */
bool view_is_ready(const struct view *v, struct buf *why);

#endif

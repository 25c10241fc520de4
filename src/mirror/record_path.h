/* record_path.h -- rewrites batches that cannot be relayed as they are (rule R2), and makes one of many small ones.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holes left by compaction are closed (dense offset deltas), records before a start offset are trimmed, messages of
 * v0 and v1 become records of v2, LogAppendTime batches keep the time that consumers see as their records' own time;
 * keys, values and order never change, headers and times only where the options say so. Compressed batches are
 * recompressed with their own codec unless another is asked for. One object per worker: it keeps its compression
 * contexts and buffers from batch to batch. One thread.
 */
#ifndef MIRROR_RECORD_PATH_H
#define MIRROR_RECORD_PATH_H

#include "mirror/transforms.h"
#include "wire/batch.h"

/* Most bytes that the records given to one call may have when unpacked. */
#define RECORD_PATH_UNPACKED_MAX (128 * MiB)

struct record_path;

/* A run of records whose source and target offsets differ by a constant. */
struct record_run {
    int64_t source; /* source offset of the first */
    int32_t index;  /* of the first, among the records of the batch made */
    int32_t count;
};

/* A batch that was made; valid during emit. */
struct record_path_batch {
    unsigned char header[BATCH_HEADER_SIZE];
    struct str payload;
    int32_t count;
    int64_t source_first; /* source offset of its first record */
    int64_t
        source_last; /* last source offset that it covers: of its last record, or of the end of the source
                             batch for the last batch made (holes at the tail included) */
    int64_t max_timestamp;
    const struct record_run *runs;
    int32_t runs_n;
};

/* What becomes of record times that the target would refuse; -1 (none) is never touched. */
struct record_times {
    bool on;
    int64_t least, most;              /* outside of these a time is replaced */
    int64_t below, above;             /* by these */
};

struct record_path_options {
    int64_t start;         /* records with smaller source offsets are left out */
    const struct transforms_plan *transforms; /* of what is left: some records left out, headers changed; NULL: none */
    int64_t skip_records;  /* and then that many more (they are in the target already) */
    bool keep_append_time; /* LogAppendTime: every record gets the batch's max timestamp */
    bool recompress;       /* use codec and level below instead of the source's codec and its usual level */
    int codec, level;
    struct record_times times;
    size_t
        size_max; /* split on record borders above this many bytes (whole batch); 0: never. A record
                              that is larger comes alone in a batch that is larger: for the target to refuse */
    struct batch_stamp
        stamp; /* of the first batch made; later ones go on with base_sequence + count (mod 2^31);
                                 base_sequence -1 stays -1 */
    /* What was met of skip_records, once, before anything is emitted; indexes count the skipped. May be NULL. */
    void (*skipped)(void *arg, const struct record_run *runs, int32_t n);
    void (*emit)(void *arg,
                 const struct record_path_batch *made); /* zero or more times, in order */
    void *arg;
};

struct record_path_result {
    int64_t skipped; /* of skip_records, how many were met */
    int64_t trimmed; /* left out because of start */
    int64_t filtered; /* left out by a transform */
    int64_t retimed; /* whose time was replaced */
    int32_t made;    /* batches */
};

struct record_path *record_path_new(void);
void record_path_free(struct record_path **rp);

/* Makes one batch (or several, by size_max) of n >= 1 neighbours, each a whole batch or v0/v1 entry, offsets rising; the
 * codec is that of the first. *out is written on success only. On an error nothing has been emitted. E_INVALID: no
 * whole batch of data (cut, control batches, offsets that do not rise); E_CORRUPT: a bad checksum, which a rewritten
 * batch would hide; E_CODEC, E_MALFORMED: the records cannot be read; E_LIMIT: they unpack to more than
 * RECORD_PATH_UNPACKED_MAX; E_NO_MEMORY: a codec could not set up its state. */
enum err record_path_merge(struct record_path *rp, const struct str *sources, size_t n,
                           const struct record_path_options *o,
                           struct record_path_result *out) WARN_UNUSED;

/* The same for one batch of size bytes at p. */
enum err record_path_run(struct record_path *rp, const char *p, size_t size,
                         const struct record_path_options *o,
                         struct record_path_result *out) WARN_UNUSED;

#endif

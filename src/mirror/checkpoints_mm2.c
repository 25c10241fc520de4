/* checkpoints_mm2.c -- heliostat.offset.translation = mm2: positions as MirrorMaker 2 would translate them.
 * SPDX-License-Identifier: Apache-2.0
 *
 * In each round the topic of offset syncs is read from its start, and of the partitions in which groups stand those
 * syncs are remembered that MirrorMaker 2 would remember (sync_store.c). Thread: control.
 */
#include "mirror/checkpoints_int.h"

#include "base/log.h"
#include "mirror/sync_store.h"

#include <string.h>

struct sync_stored {
    UT_hash_handle hh;
    struct sync_store store;
    size_t key_n;
    char key[];
};

/* The key of an offset sync's record, which is that of its partition. */
static struct sync_stored *get_store(struct checkpoints *c, struct str key, bool make)
{
    struct sync_stored *s;

    HASH_FIND(hh, c->stores, key.p, key.n, s);
    if (s || !make)
        return s;
    s = mem_new(sizeof(*s) + key.n);
    memcpy(s->key, key.p, key.n);
    s->key_n = key.n;
    HASH_ADD(hh, c->stores, key, s->key_n, s);
    return s;
}

static struct sync_stored *store_of(struct checkpoints *c, const struct place *p, bool make)
{
    struct sync_record r = { .topic = p->topic, .partition = p->partition };
    struct sync_stored *s;
    struct buf key, value;

    buf_init(&key, 64 * KiB);
    buf_init(&value, 64);
    formats_encode_sync(&r, &key, &value);
    s = get_store(c, buf_str(&key), make);
    buf_fini(&key);
    buf_fini(&value);
    return s;
}

static void on_record(void *arg, const struct topic_record *r)
{
    struct sync_stored *s = get_store(arg, r->key, false);
    struct sync_record sync;

    if (s && !formats_decode_sync(r->key, r->value, &sync))
        sync_store_put(&s->store, sync.upstream, sync.downstream);
}

void checkpoints_mm2_free(struct checkpoints *c)
{
    struct sync_stored *s, *next;

    HASH_ITER(hh, c->stores, s, next) {
        HASH_DEL(c->stores, s);
        mem_free(s);
    }
}

static void each_place(struct checkpoints *c, void (*visit)(struct checkpoints *c, struct place *p))
{
    struct followed *g, *next;

    HASH_ITER(hh, c->groups, g, next)
        for (size_t i = 0; i < g->places_n; i++)
            visit(c, &g->places[i]);
}

static void want(struct checkpoints *c, struct place *p)
{
    (void)store_of(c, p, true);
}

static void translate(struct checkpoints *c, struct place *p)
{
    int64_t to = sync_store_translate(&store_of(c, p, true)->store, p->upstream);

    if (to >= 0)
        p->to = (struct group_position){ GROUP_EXACT, to, to };
}

static void on_done(void *arg, enum err e, int32_t kerr)
{
    struct checkpoints *c = arg;

    topic_reader_free(&c->reader);
    if (e || kerr)
        log_event(EV_CHECKPOINTS_FAULT, kv_str("flow", c->config->name), kv_c("code", e ? err_name(e) : kerr_name(kerr)),
                  kv_c("text", "the topic of offset syncs cannot be read: nothing is translated"));
    else
        each_place(c, translate);
    checkpoints_mm2_free(c);
    checkpoints_wake(c);
}

void checkpoints_mm2_begin(struct checkpoints *c)
{
    bool at_target = c->config->offset_syncs_location == FLOW_SYNCS_AT_TARGET;
    struct topic_reader_ops ops = { .on_record = on_record, .on_done = on_done, .arg = c };

    each_place(c, want);
    c->reader = topic_reader_start(at_target ? c->target : c->source, c->syncs_topic, &ops);
}

/* show.c -- an answer as text that is equal for equal behaviour.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

#include "wire/codec_row.h"
#include "wire/kerr.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Fields that may differ: they are not shown. */
static const char *const hidden[] = {
    "throttle_time_ms", "error_message", "batch_index_error_message", "host", "port", "rack", "cluster_id",
    "node_endpoints", "current_leader", "coordinator_epoch", "topic_authorized_operations",
    "cluster_authorized_operations", "documentation", "synonyms", "config_type",
    "finalized_features_epoch", "supported_features", "finalized_features", "zk_migration_ready",
};

/* Fields whose values get a name by the order in which they appear. */
static const struct {
    const char *field, *kind;
} named[] = {
    { "producer_id", "p" }, { "topic_id", "topic-id" }, { "member_id", "m" }, { "leader", "m" }, { "session_id", "s" },
    { "leader_epoch", "e" }, { "epoch", "e" }, { "committed_leader_epoch", "e" },
};

static bool is_hidden(const struct message *m, const struct field *f)
{
    if (strcmp(f->name, "configs") == 0 && strstr(m->name, "create_topics"))
        return true; /* all that a release has */
    for (size_t i = 0; i < COUNT(hidden); i++)
        if (strcmp(f->name, hidden[i]) == 0)
            return true;
    return false;
}

static const char *kind_of(const struct field *f)
{
    for (size_t i = 0; i < COUNT(named); i++)
        if (strcmp(f->name, named[i].field) == 0)
            return named[i].kind;
    return NULL;
}

void show_time(struct script *s, int64_t ms, struct buf *out)
{
    if (ms == -1)
        buf_put_str(out, STR("-1"));
    else if (script_has_time(s, ms))
        buf_fmt(out, "T%+" PRId64, ms - peers_zero_ms());
    else
        buf_put_str(out, STR("time"));
}

static struct str plain(const struct field *f, int type, const void *p, struct arena *a)
{
    struct str text, *s;
    char digits[2 * sizeof(struct uuid) + 1];

    (void)f;
    switch (type) {
    case W_BOOL:
        return *(const bool *)p ? STR("true") : STR("false");
    case W_I8:
        return arena_fmt(a, "%d", *(const int8_t *)p);
    case W_I16:
        return arena_fmt(a, "%d", *(const int16_t *)p);
    case W_I32:
        return arena_fmt(a, "%" PRId32, *(const int32_t *)p);
    case W_I64:
        return arena_fmt(a, "%" PRId64, *(const int64_t *)p);
    case W_STRING:
    case W_BYTES:
        s = (struct str *)(uintptr_t)p;
        return s->p ? *s : STR("null");
    case W_UUID:
        for (size_t i = 0; i < sizeof(struct uuid); i++) {
            digits[2 * i] = "0123456789abcdef"[((const struct uuid *)p)->b[i] >> 4];
            digits[2 * i + 1] = "0123456789abcdef"[((const struct uuid *)p)->b[i] & 15];
        }
        text = arena_str(a, str_of(digits, 2 * sizeof(struct uuid)));
        return text;
    default:
        return STR("?");
    }
}

/* None of it stands for "none". */
static bool is_none(struct str value)
{
    for (size_t i = 0; i < value.n; i++)
        if (value.p[i] != '0')
            return str_eq(value, STR("-1"));
    return value.n != 1; /* the epoch 0 is one */
}

static void show_value(struct script *s, const struct field *f, int type, int version, const void *p, struct buf *out);

static void show_plain(struct script *s, const struct field *f, int type, const void *p, struct buf *out)
{
    struct str value = plain(f, type, p, &s->arena);
    const char *kind = kind_of(f);
    struct str var = type == W_STRING ? script_var_of(s, value) : STR_NULL;

    if (strstr(f->name, "error_code") && type == W_I16)
        buf_put_str(out, str_c(kerr_name(*(const int16_t *)p)));
    else if (strstr(f->name, "timestamp") || strcmp(f->name, "log_append_time_ms") == 0)
        show_time(s, *(const int64_t *)p, out);
    else if (kind && !is_none(value))
        buf_put_str(out, script_label(s, kind, value));
    else if (var.p)
        buf_fmt(out, "$%.*s", STR_ARG(var));
    else
        buf_put_str(out, value);
}

static int by_text(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* Elements in the order of their texts: brokers answer in any. */
static void show_array(struct script *s, const struct field *f, int version, const struct array *a, struct buf *out)
{
    size_t width = row_width(f->of_type, f->of);
    struct str *texts = arena_array(&s->arena, (size_t)MAX(a->n, 1), sizeof(*texts));

    if (a->n < 0) {
        buf_put_str(out, STR("null"));
        return;
    }
    for (int32_t i = 0; i < a->n; i++) {
        struct buf one;

        buf_init(&one, 4 * MiB);
        show_value(s, f, f->of_type, version, (const char *)a->at + (size_t)i * width, &one);
        texts[i] = arena_str(&s->arena, buf_str(&one));
        buf_fini(&one);
    }
    qsort(texts, (size_t)a->n, sizeof(*texts), by_text);
    buf_put_char(out, '[');
    for (int32_t i = 0; i < a->n; i++)
        buf_fmt(out, "%s%.*s", i ? " " : "", STR_ARG(texts[i]));
    buf_put_char(out, ']');
}

static void show_value(struct script *s, const struct field *f, int type, int version, const void *p, struct buf *out)
{
    const struct records *r = p;

    if (type == W_ARRAY) {
        show_array(s, f, version, p, out);
    } else if (type == W_STRUCT) {
        const void *inner = row_is_pointer(f) ? *(const void *const *)p : p;

        if (inner)
            show_message(s, f->of, version, inner, out);
        else
            buf_put_str(out, STR("null"));
    } else if (type == W_RECORDS) {
        records_show(s, r->body, out);
    } else {
        show_plain(s, f, type, p, out);
    }
}

/* A tagged field that is as if it were not there. */
static bool is_absent(const struct field *f, int version, const struct message *m, const void *msg)
{
    if (f->tag < 0)
        return false;
    if (f->type == W_STRUCT && !row_is_pointer(f))
        return codec_equal(f->of, version, row_at_const(f, msg), f->of->initial);
    (void)m;
    return f->type == W_ARRAY && ((const struct array *)row_at_const(f, msg))->n <= 0;
}

void show_message(struct script *s, const struct message *m, int version, const void *msg, struct buf *out)
{
    bool first = true;

    buf_put_char(out, '{');
    for (const struct field *f = m->fields; f->type; f++) {
        if (!row_exists(f, version) || is_hidden(m, f) || is_absent(f, version, m, msg))
            continue;
        buf_fmt(out, "%s%s=", first ? "" : " ", f->name);
        show_value(s, f, f->type, version, row_at_const(f, msg), out);
        first = false;
    }
    buf_put_char(out, '}');
}

/* --- one value --- */

struct search {
    int version, left;
    struct str field, found;
    struct arena *arena;
};

static void search_in(struct search *q, const struct message *m, const void *msg)
{
    for (const struct field *f = m->fields; f->type && !q->found.p; f++) {
        const void *p = row_at_const(f, msg);
        const struct array *a = p;

        if (!row_exists(f, q->version))
            continue;
        if (f->type == W_STRUCT) {
            p = row_is_pointer(f) ? *(const void *const *)p : p;
            if (p)
                search_in(q, f->of, p);
        } else if (f->type == W_ARRAY && f->of_type == W_STRUCT) {
            for (int32_t i = 0; i < a->n && !q->found.p; i++)
                search_in(q, f->of, (const char *)a->at + (size_t)i * f->of->size);
        } else if (f->type != W_ARRAY && f->type != W_RECORDS && str_eq(q->field, str_c(f->name)) && q->left-- == 1) {
            q->found = plain(f, f->type, p, q->arena);
        }
    }
}

struct str show_find(const struct message *m, int version, const void *msg, struct str field, int n, struct arena *a)
{
    struct search q = { .version = version, .left = n, .field = field, .arena = a };

    search_in(&q, m, msg);
    return q.found;
}

/* log.h -- one line per event: time, level, dotted event name, key=value pairs.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Events are rows of base/event.def; nothing else can be logged. Rendering is text or JSON, on
 * one file descriptor, one write per line. Identical events (same name and same first two pairs,
 * which say who) are limited to LOG_BURST a minute; the next line that passes carries `suppressed`,
 * the count of what was left out. Any thread.
 * Secrets: values never come from options marked secret; the caller's duty.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/err.h"
#include "base/str.h"

#define LOG_BURST           10
#define LOG_BURST_WINDOW_MS 60000
#define LOG_LINE_MAX        8192 /* bytes; what does not fit is cut at a value's end, with "..." */
#define LOG_VALUE_MAX       1024 /* bytes of one value */

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_format { LOG_TEXT, LOG_JSON };

enum event {
#define EVENT(id, name, level, fields, means, advice) EV_##id,
#include "base/event.def"
#undef EVENT
    EV_COUNT
};

struct kv {
    const char *key;
    enum { KV_STR, KV_INT, KV_BOOL } type;
    struct str s;
    int64_t i;
};

static inline struct kv kv_str(const char *key, struct str s)
{
    return (struct kv){ .key = key, .type = KV_STR, .s = s };
}
static inline struct kv kv_c(const char *key, const char *s)
{
    return kv_str(key, str_c(s));
}
static inline struct kv kv_int(const char *key, int64_t i)
{
    return (struct kv){ .key = key, .type = KV_INT, .i = i };
}
static inline struct kv kv_bool(const char *key, bool b)
{
    return (struct kv){ .key = key, .type = KV_BOOL, .i = b };
}
static inline struct kv kv_err(const char *key, enum err e)
{
    return kv_c(key, err_name(e));
}

/* log_event(EV_RELAY_FENCED, kv_str("flow", name), kv_int("partition", 3)); */
#define log_event(ev, ...)                                                                         \
    log_write((ev), (const struct kv[]){ __VA_ARGS__ },                                            \
              sizeof((const struct kv[]){ __VA_ARGS__ }) / sizeof(struct kv))

void log_write(enum event ev, const struct kv *kvs, size_t count);

/* Set once, before threads start. wall_ms gives the wall clock in ms since 1970 (the daemon
 * passes the loop's; the simulator its own). write may be NULL: standard error. */
void log_setup(enum log_format format, enum log_level least, int64_t (*wall_ms)(void),
               void (*write)(const char *line, size_t n));

/* Reports what was left out in windows that are over, or in all of them when `all`. The daemon calls it
 * about once a minute, and with `all` at its end. */
void log_tick(bool all);

const char *event_name(enum event ev);
enum log_level event_level(enum event ev);

#endif

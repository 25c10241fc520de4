/* log.c -- renders events as text or JSON and leaves out what repeats too often.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A line is built in a buffer on the caller's stack and leaves in one write, so lines of several
 * threads never mix. Only the table of the rate limit is shared; a spinning flag guards it for the
 * length of a table look-up. Places of the table are found by hash among LOG_PROBES neighbours; the
 * one that was quiet longest makes room.
 */
#include "base/log.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOG_SLOTS   1024
#define LOG_PROBES  8
#define LOG_WHO_MAX 80
#define LOG_RESERVE 160 /* kept free for closing a line and its count */

static const struct {
    const char *name;
    enum log_level level;
} events[] = {
#define EVENT(id, name, level, fields, means, advice) [EV_##id] = { name, LOG_##level },
#include "base/event.def"
#undef EVENT
};

static const char *const level_names[] = { "DEBUG", "INFO", "WARN", "ERROR" };

static struct {
    enum log_format format;
    enum log_level least;
    int64_t (*wall_ms)(void);
    void (*write)(const char *line, size_t n);
} setup = { .least = LOG_INFO };

struct slot {
    uint64_t hash; /* 0: free */
    int64_t since_ms;
    uint32_t passed;
    uint64_t suppressed;
    enum event ev;
    char who[LOG_WHO_MAX];
};

static struct slot slots[LOG_SLOTS];
static atomic_flag slots_lock = ATOMIC_FLAG_INIT;

struct line {
    char p[LOG_LINE_MAX];
    size_t n;
    enum log_format format;
};

const char *event_name(enum event ev)
{
    return events[ev].name;
}

enum log_level event_level(enum event ev)
{
    return events[ev].level;
}

void log_setup(enum log_format format, enum log_level least, int64_t (*wall_ms)(void),
               void (*write)(const char *line, size_t n))
{
    setup.format = format;
    setup.least = least;
    setup.wall_ms = wall_ms;
    setup.write = write;
    memset(slots, 0, sizeof(slots));
}

static int64_t now_ms(void)
{
    return setup.wall_ms ? setup.wall_ms() : 0;
}

static void put(struct line *l, const char *p, size_t n)
{
    n = MIN(n, sizeof(l->p) - l->n);
    memcpy(l->p + l->n, p, n);
    l->n += n;
}

static void put_c(struct line *l, const char *s)
{
    put(l, s, strlen(s));
}

static void put_int(struct line *l, int64_t i)
{
    char digits[24];

    snprintf(digits, sizeof(digits), "%lld", (long long)i);
    put_c(l, digits);
}

/* Days since 1970 to a date of the Gregorian calendar, in eras of 400 years that begin in March. */
static void put_time(struct line *l, int64_t ms)
{
    int64_t day_ms = 86400000;
    int64_t days = ms / day_ms - (ms % day_ms < 0);
    int64_t in_day = ms - days * day_ms;
    int64_t z = days + 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t doe = z - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    int64_t day = doy - (153 * mp + 2) / 5 + 1;
    int64_t month = mp < 10 ? mp + 3 : mp - 9;
    int64_t year = yoe + era * 400 + (month <= 2);
    char text[80];

    snprintf(text, sizeof(text), "%04lld-%02lld-%02lldT%02lld:%02lld:%02lld.%03lldZ",
             (long long)year, (long long)month, (long long)day, (long long)(in_day / 3600000),
             (long long)(in_day / 60000 % 60), (long long)(in_day / 1000 % 60),
             (long long)(in_day % 1000));
    put_c(l, text);
}

/* Length of the UTF-8 character at p, 0 when the bytes are none. */
static size_t utf8_len(const unsigned char *p, size_t n)
{
    size_t len = p[0] < 0x80   ? 1
                 : p[0] < 0xc2 ? 0
                 : p[0] < 0xe0 ? 2
                 : p[0] < 0xf0 ? 3
                 : p[0] < 0xf5 ? 4
                               : 0;

    if (len == 0 || len > n)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return len;
}

/* What stands in quotes is the same in both formats: JSON's escapes, bytes that are no UTF-8 replaced. */
static void put_quoted(struct line *l, struct str s)
{
    const unsigned char *p = (const unsigned char *)s.p;
    size_t n = MIN(s.n, LOG_VALUE_MAX);
    size_t i = 0;

    put_c(l, "\"");
    while (i < n && l->n + LOG_RESERVE < sizeof(l->p)) {
        size_t len = utf8_len(p + i, s.n - i);
        char hex[8];

        if (len == 0) {
            put_c(l, "\xef\xbf\xbd");
        } else if (p[i] == '"' || p[i] == '\\') {
            put_c(l, "\\");
            put(l, s.p + i, 1);
        } else if (p[i] == '\n') {
            put_c(l, "\\n");
        } else if (p[i] < 0x20 || p[i] == 0x7f) {
            snprintf(hex, sizeof(hex), "\\u%04x", p[i]);
            put_c(l, hex);
        } else {
            put(l, s.p + i, len);
        }
        i += len ? len : 1;
    }
    put_c(l, i < s.n ? "...\"" : "\"");
}

static bool plain(struct str s)
{
    if (s.n == 0 || s.n > LOG_VALUE_MAX)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (c <= ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '=')
            return false;
    }
    return true;
}

static void put_value(struct line *l, const struct kv *kv)
{
    bool json = l->format == LOG_JSON;

    switch (kv->type) {
    case KV_INT:
        put_int(l, kv->i);
        break;
    case KV_BOOL:
        put_c(l, kv->i ? "true" : "false");
        break;
    case KV_STR:
        if (str_is_null(kv->s))
            put_c(l, json ? "null" : "-");
        else if (!json && plain(kv->s) && !str_eq(kv->s, STR("-")))
            put(l, kv->s.p, kv->s.n);
        else
            put_quoted(l, kv->s);
        break;
    }
}

static void put_kv(struct line *l, const struct kv *kv)
{
    put_c(l, l->format == LOG_JSON ? ",\"" : " ");
    put_c(l, kv->key);
    put_c(l, l->format == LOG_JSON ? "\":" : "=");
    put_value(l, kv);
}

/* The same while there is room left to end the line. */
static void try_put_kv(struct line *l, const struct kv *kv)
{
    if (l->n + strlen(kv->key) + LOG_RESERVE + 32 < sizeof(l->p))
        put_kv(l, kv);
}

static void line_begin(struct line *l, enum event ev, int64_t ms)
{
    const char *level = level_names[events[ev].level];
    bool json = setup.format == LOG_JSON;

    l->n = 0;
    l->format = setup.format;
    put_c(l, json ? "{\"time\":\"" : "");
    put_time(l, ms);
    put_c(l, json ? "\",\"level\":\"" : " ");
    put_c(l, level);
    put_c(l, json ? "\",\"event\":\"" : strlen(level) < 5 ? "  " : " ");
    put_c(l, events[ev].name);
    put_c(l, json ? "\"" : "");
}

static void line_end(struct line *l)
{
    size_t at = 0;

    put_c(l, l->format == LOG_JSON ? "}\n" : "\n");
    if (setup.write) {
        setup.write(l->p, l->n);
        return;
    }
    while (at < l->n) {
        ssize_t n = write(STDERR_FILENO, l->p + at, l->n - at);

        if (n < 0 && errno != EINTR)
            return; /* there is nobody left to tell */
        at += n > 0 ? (size_t)n : 0;
    }
}

static void lock(void)
{
    while (atomic_flag_test_and_set_explicit(&slots_lock, memory_order_acquire)) {
    }
}

static void unlock(void)
{
    atomic_flag_clear_explicit(&slots_lock, memory_order_release);
}

static uint64_t who_hash(enum event ev, const struct kv *kvs, size_t count)
{
    uint64_t h = (uint64_t)ev + 1;

    for (size_t i = 0; i < MIN(count, 2); i++) {
        uint64_t part = kvs[i].type == KV_STR ? str_hash(kvs[i].s) : (uint64_t)kvs[i].i;

        h = (h ^ part) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return h ? h : 1;
}

static void who_text(char *out, const struct kv *kvs, size_t count)
{
    size_t n = 0;

    out[0] = '\0';
    for (size_t i = 0; i < MIN(count, 2) && n < LOG_WHO_MAX; i++) {
        const struct kv *kv = &kvs[i];
        int w = kv->type == KV_STR
                    ? snprintf(out + n, LOG_WHO_MAX - n, "%s%.*s", i ? " " : "", STR_ARG(kv->s))
                    : snprintf(out + n, LOG_WHO_MAX - n, "%s%lld", i ? " " : "", (long long)kv->i);

        n += w > 0 ? (size_t)w : 0;
    }
}

static void report_suppressed(const struct slot *s, int64_t ms)
{
    struct line l;
    struct kv kvs[] = { kv_c("event", events[s->ev].name), kv_c("who", s->who),
                        kv_int("suppressed", (int64_t)s->suppressed) };

    line_begin(&l, EV_LOG_SUPPRESSED, ms);
    for (size_t i = 0; i < COUNT(kvs); i++)
        put_kv(&l, &kvs[i]);
    line_end(&l);
}

static bool window_over(const struct slot *s, int64_t ms)
{
    return ms < s->since_ms || ms - s->since_ms >= LOG_BURST_WINDOW_MS;
}

/* The place of this hash: its own, else a free one, else the oldest, whose content goes to *old. */
static struct slot *slot_get(uint64_t hash, struct slot *old)
{
    struct slot *best = &slots[hash % LOG_SLOTS];

    for (size_t i = 0; i < LOG_PROBES; i++) {
        struct slot *s = &slots[(hash + i) % LOG_SLOTS];

        if (s->hash == hash || !s->hash) {
            best = s;
            break;
        }
        if (s->since_ms < best->since_ms)
            best = s;
    }
    if (best->hash != hash) {
        *old = *best;
        memset(best, 0, sizeof(*best));
        best->hash = hash;
    }
    return best;
}

/* True: the line may go, and *suppressed were left out before it. */
static bool admit(enum event ev, const struct kv *kvs, size_t count, int64_t ms,
                  uint64_t *suppressed)
{
    struct slot old = { 0 };
    struct slot *s;
    bool pass;

    lock();
    s = slot_get(who_hash(ev, kvs, count), &old);
    if (s->passed == 0 || window_over(s, ms)) {
        *suppressed = s->suppressed;
        s->since_ms = ms;
        s->passed = 0;
        s->suppressed = 0;
        s->ev = ev;
    }
    pass = s->passed < LOG_BURST;
    s->passed += pass;
    if (!pass && s->suppressed++ == 0)
        who_text(s->who, kvs, count);
    unlock();
    if (old.suppressed)
        report_suppressed(&old, ms);
    return pass;
}

void log_write(enum event ev, const struct kv *kvs, size_t count)
{
    uint64_t suppressed = 0;
    struct line l;
    int64_t ms;

    if (events[ev].level < setup.least)
        return;
    ms = now_ms();
    if (!admit(ev, kvs, count, ms, &suppressed))
        return;
    line_begin(&l, ev, ms);
    for (size_t i = 0; i < count; i++)
        try_put_kv(&l, &kvs[i]);
    if (suppressed) {
        struct kv left_out = kv_int("suppressed", (int64_t)suppressed);

        put_kv(&l, &left_out);
    }
    line_end(&l);
}

void log_tick(bool all)
{
    int64_t ms = now_ms();

    for (size_t i = 0; i < LOG_SLOTS; i++) {
        struct slot old = { 0 };

        lock();
        if (slots[i].suppressed && (all || window_over(&slots[i], ms))) {
            old = slots[i];
            slots[i].suppressed = 0;
        }
        unlock();
        if (old.suppressed)
            report_suppressed(&old, ms);
    }
}

/* client_config.c -- the table of client options and the values that need more than a row.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kafka/client_config.h"

static const struct opt_row rows[] = {
#define OPT(where, type, name, key, alias, value, least, most, when, secret, doc)                  \
    OPT_ROW(struct client_config, CLIENT_##where, type, name, key, alias, value, least, most,      \
            when, secret, doc)
#define CHOICE(where, type, name, key, alias, value, choices, when, doc)                           \
    OPT_ROW_CHOICE(struct client_config, CLIENT_##where, type, name, key, alias, value, choices,   \
                   when, doc)
#define NO_EFFECT(where, key, why) OPT_ROW_NO_EFFECT(CLIENT_##where, key, why)
#include "kafka/client.opt"
#undef OPT
#undef CHOICE
#undef NO_EFFECT
};

static const char *where_text(unsigned where)
{
    switch (where) {
    case CLIENT_CONSUMER:
        return "consumer";
    case CLIENT_PRODUCER:
        return "producer";
    case CLIENT_ADMIN:
        return "admin";
    case CLIENT_DATA:
        return "consumer, producer";
    default:
        return "all";
    }
}

const struct opt_table client_opts = {
    .name = "client",
    .title = "Kafka clients: A.consumer.KEY, B.producer.KEY, A.admin.KEY",
    .rows = rows,
    .count = COUNT(rows),
    .where_text = where_text,
};

static bool is_host(struct str s)
{
    if (s.n == 0 || s.n > 255)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (c <= ' ' || c == 0x7f || c == '/' || c == ',' || c == '[' || c == ']' || c == '#')
            return false;
    }
    return true;
}

enum err client_endpoint_parse(struct str text, struct arena *a, struct client_endpoint *out)
{
    int64_t scheme = str_find(text, STR("://"), 0);
    struct str s = scheme >= 0 ? str_part(text, (size_t)scheme + 3, text.n) : text;
    int64_t colon = str_rfind_char(s, ':');
    struct str host;
    int64_t port;

    if (colon < 0 || !str_to_i64(str_part(s, (size_t)colon + 1, s.n), &port) || port < 1 ||
        port > 65535)
        return E_INVALID;
    host = str_part(s, 0, (size_t)colon);
    if (host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']')
        host = str_part(host, 1, host.n - 1);
    if (!is_host(host))
        return E_INVALID;
    *out = (struct client_endpoint){ .host = arena_str(a, host), .port = (uint16_t)port };
    return E_OK;
}

/* One number with its unit letter off the front of an ISO 8601 duration. */
static bool take_part(struct str *s, const char *units, char *unit, int64_t *n)
{
    size_t i = 0;
    const char *u;

    while (i < s->n && (s->p[i] == '-' || s->p[i] == '+' || (s->p[i] >= '0' && s->p[i] <= '9')))
        i++;
    if (i == s->n || !str_to_i64(str_part(*s, 0, i), n))
        return false;
    for (u = units; *u && (s->p[i] & ~0x20) != *u; u++) {
    }
    *unit = *u;
    *s = str_part(*s, i + 1, s->n);
    return *u != '\0';
}

/* PnDTnHnMnS as java.time.Duration reads it, whole seconds. */
static bool duration_ms(struct str s, int64_t *out)
{
    static const char date[] = "D", time[] = "HMS";
    const char *units = date;
    int64_t total = 0;
    bool any = false;

    if (s.n < 2 || (s.p[0] & ~0x20) != 'P')
        return false;
    s = str_part(s, 1, s.n);
    while (s.n) {
        int64_t n, ms;
        char unit;

        if (units == date && (s.p[0] & ~0x20) == 'T') {
            units = time;
            s = str_part(s, 1, s.n);
            any = false; /* a T must be followed by something */
            continue;
        }
        if (!take_part(&s, units, &unit, &n))
            return false;
        ms = unit == 'D' ? 86400000 : unit == 'H' ? 3600000 : unit == 'M' ? 60000 : 1000;
        if (__builtin_mul_overflow(n, ms, &n) || __builtin_add_overflow(total, n, &total))
            return false;
        any = true;
    }
    *out = total;
    return any && total >= 0;
}

enum err client_reset_parse(struct str text, enum client_reset *reset, int64_t *back_ms)
{
    static const struct str names[] = { [CLIENT_RESET_EARLIEST] = STR("earliest"),
                                        [CLIENT_RESET_LATEST] = STR("latest"),
                                        [CLIENT_RESET_NONE] = STR("none") };
    static const struct str by = STR("by_duration:");

    for (size_t i = 0; i < COUNT(names); i++) {
        if (str_eq_nocase(names[i], text)) {
            *reset = (enum client_reset)i;
            *back_ms = 0;
            return E_OK;
        }
    }
    if (text.n <= by.n || !str_eq_nocase(str_part(text, 0, by.n), by) ||
        !duration_ms(str_part(text, by.n, text.n), back_ms))
        return E_INVALID;
    *reset = CLIENT_RESET_BY_DURATION;
    return E_OK;
}

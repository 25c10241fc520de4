/* opt.h -- the engine behind option tables: a row becomes a struct member, a parser and a doc line.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A table is a .opt file whose rows use three macros:
 *
 *   OPT(where, type, name, key, alias, value, least, most, when, secret, doc)
 *   CHOICE(where, type, name, key, alias, value, choices, when, doc)
 *   NO_EFFECT(where, key, why)
 *
 * `where` is a word of the table's own (which client, which prefix). `value` is the default as it
 * would stand in the file. `choices` lists words separated by blanks, in the order of an enum;
 * words joined by '|' mean the same. A key of NO_EFFECT may end in ".*". The struct is made by
 * including the table with OPT and CHOICE defined as OPT_C_##type name; see kafka/client_config.h.
 * Numbers are int64_t but for INT and choices; times are milliseconds whatever the key's unit is.
 * Any thread; nothing here keeps state.
 */
#ifndef BASE_OPT_H
#define BASE_OPT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#define OPT_KEY_MAX  512   /* longest key of a file that is looked at */
#define OPT_LIST_MAX 10000 /* most elements of one list */

struct str_list {
    const struct str *at;
    size_t n;
};

enum opt_type {
    OPT_FLAG,        /* true or false */
    OPT_INT,         /* 32 bits */
    OPT_LONG,        /* 64 bits */
    OPT_SIZE,        /* bytes; KiB, MiB, GiB may follow */
    OPT_DURATION_MS, /* written in milliseconds */
    OPT_INTERVAL_S,  /* a period written in seconds, kept in ms; negative is off and kept as -1 */
    OPT_STRING,      /* trimmed */
    OPT_TEXT,        /* trimmed; may hold blanks, '#' and the like on purpose */
    OPT_RAW,         /* not trimmed */
    OPT_LIST,        /* at commas; elements trimmed; empty and repeated ones dropped */
    OPT_CHOICE,      /* one of a few words */
    OPT_CHOICE_ANY,  /* the same in any case of letters */
    OPT_CLASS,       /* a Java class name that has a native counterpart */
};
#define OPT_C_FLAG        bool
#define OPT_C_INT         int32_t
#define OPT_C_LONG        int64_t
#define OPT_C_SIZE        int64_t
#define OPT_C_DURATION_MS int64_t
#define OPT_C_INTERVAL_S  int64_t
#define OPT_C_STRING      struct str
#define OPT_C_TEXT        struct str
#define OPT_C_RAW         struct str
#define OPT_C_LIST        struct str_list
#define OPT_C_CHOICE      int
#define OPT_C_CHOICE_ANY  int
#define OPT_C_CLASS       int

enum opt_when {
    OPT_HOT,     /* may change while running */
    OPT_RESTART, /* read at start */
    OPT_LATER,   /* read and checked, takes effect with a later release: setting it warns */
};
enum opt_secret { OPT_OPEN, OPT_SECRET };

struct opt_row {
    const char *key;
    const char *alias;   /* an older name of the key, used when the key is absent; or NULL */
    const char *value;   /* the default; NULL: the row has no effect and doc says why */
    const char *choices; /* or NULL */
    const char *doc;
    int64_t least, most;
    size_t at; /* offsetof the member */
    unsigned where;
    enum opt_type type;
    enum opt_when when;
    enum opt_secret secret;
};

#define OPT_ROW(of, where_, type_, name_, key_, alias_, value_, least_, most_, when_, secret_,     \
                doc_)                                                                              \
    { .key = key_,                                                                                 \
      .alias = alias_,                                                                             \
      .value = value_,                                                                             \
      .doc = doc_,                                                                                 \
      .least = least_,                                                                             \
      .most = most_,                                                                               \
      .at = offsetof(of, name_),                                                                   \
      .where = where_,                                                                             \
      .type = OPT_##type_,                                                                         \
      .when = OPT_##when_,                                                                         \
      .secret = OPT_##secret_ },
#define OPT_ROW_CHOICE(of, where_, type_, name_, key_, alias_, value_, choices_, when_, doc_)      \
    { .key = key_,                                                                                 \
      .alias = alias_,                                                                             \
      .value = value_,                                                                             \
      .choices = choices_,                                                                         \
      .doc = doc_,                                                                                 \
      .at = offsetof(of, name_),                                                                   \
      .where = where_,                                                                             \
      .type = OPT_##type_,                                                                         \
      .when = OPT_##when_ },
#define OPT_ROW_NO_EFFECT(where_, key_, why_) { .key = key_, .doc = why_, .where = where_ },

struct opt_table {
    const char *name;  /* "flow" */
    const char *title; /* heading of its page */
    const struct opt_row *rows;
    size_t count;
    const char *(*where_text)(unsigned where); /* in words, for the page; or NULL */
};

/* Parses text into the row's member of `into`. On failure *why (in the arena) says what is wrong
 * and what to do, and `into` is unchanged; on success *why may still hold a warning, else it is
 * the null string. Values of secret rows never stand in *why. Strings and lists are copied into a. */
WARN_UNUSED enum err opt_parse(const struct opt_row *row, struct str text, void *into,
                               struct arena *a, struct str *why);

/* Size in bytes of a member of this type. */
size_t opt_size(enum opt_type type);

/* Sets every honoured member of `into` to its default. */
void opt_defaults(const struct opt_table *t, void *into, struct arena *a);

/* The row of a key, by its name, its alias, or a NO_EFFECT pattern; NULL: none with a bit of where. */
const struct opt_row *opt_find(const struct opt_table *t, struct str key, unsigned where);

/* The member's value as it would stand in a file; secrets as "(secret)". */
void opt_format(const struct opt_row *row, const void *from, struct buf *out);

/* One table as text for --help, or as a Markdown section. */
void opt_help(const struct opt_table *t, struct buf *out);
void opt_page(const struct opt_table *t, struct buf *out);

/* True for keys whose values must not be shown, known or not: password, secret, jaas, token, … */
bool opt_key_is_secret(struct str key);

/* Splits at commas as Kafka's LIST does; empty elements are kept here. An empty text has none. */
struct str_list opt_split(struct str text, struct arena *a);

#endif

/* conform.h -- plays request scripts to a real broker or to a simulated one, and prints the answers so that they compare.
 * SPDX-License-Identifier: Apache-2.0
 *
 * What may differ between two brokers of one kind is left out or gets a name by the order in which it appears: ids,
 * leader epochs, times that nobody has chosen. See README.md of this folder for the language and the list.
 */
#ifndef CONFORM_H
#define CONFORM_H

#include "base/arena.h"
#include "base/buf.h"
#include "wire/api.h"

#define NAMES_MAX 96
#define PEERS_MAX 6
#define LINES_MAX 200

struct peer;

struct name {
    struct str name, value;
};

struct script {
    struct str name, rule;
    struct str file;
    int line;
    struct {
        struct str text;
        int number;
    } lines[LINES_MAX];
    int lines_n, at;
    unsigned levels; /* bits: of which broker releases it speaks */
    struct arena arena; /* of the script: names and values */
    struct name vars[NAMES_MAX];
    int vars_n;
    struct name labels[NAMES_MAX]; /* "producer:77" -> "p1" */
    int labels_n;
    int64_t times[NAMES_MAX]; /* that the script has chosen */
    int times_n;
    struct {
        struct str name;
        struct peer *peer; /* NULL: closed */
        const struct api *api; /* of the answer that is still due; NULL: none */
        int version;
        struct buf frame;
    } peers[PEERS_MAX];
    int peer; /* the one in use */
    struct arena answer_arena;
    const struct api *answer_api;
    int answer_version;
    void *answer; /* the last one; NULL: none */
    struct buf out; /* the transcript */
};

extern int conform_level; /* 0: 2.8, 1: 3.9, 2: 4.4 */
void script_fail(const struct script *s, const char *fmt, ...) PRINTF_LIKE(2, 3) NORETURN;

/* script.c: variables and labels. */
void script_set(struct script *s, struct str name, struct str value);
struct str script_get(const struct script *s, struct str name);
struct str script_label(struct script *s, const char *kind, struct str value);
/* Its name for a value that a variable holds: "$t"; else null. */
struct str script_var_of(const struct script *s, struct str value);
void script_note_time(struct script *s, int64_t ms);
bool script_has_time(const struct script *s, int64_t ms);

/* run.c: until the end (true) or up to the next restart (false). */
bool script_run(struct script *s);
void script_init(struct script *s);

/* value.c: fills a message from "field=value ..." */
struct value_text {
    const char *p, *end;
    struct script *s;
    struct arena *arena;
};
void value_fill(struct script *s, const struct message *m, int version, struct str text, struct arena *a, void *msg);
bool value_word(struct value_text *t, struct str *out);
int64_t value_number(struct script *s, struct str word);
/* records.c: "<id=1 seq=0 n=3>..." */
struct str records_make(struct value_text *t);
void records_show(struct script *s, struct str bytes, struct buf *out);

/* show.c */
void show_message(struct script *s, const struct message *m, int version, const void *msg, struct buf *out);
/* The n-th value of that name in the message, as text; null: none. */
struct str show_find(const struct message *m, int version, const void *msg, struct str field, int n, struct arena *a);
void show_time(struct script *s, int64_t ms, struct buf *out);

/* peer.c */
void peers_real(const char *host, int port);
void peers_simulated(int level);
int64_t peers_zero_ms(void); /* T of the scripts: somewhat ago */
const char *peers_prefix(void);
void peers_rest(int ms);
void peers_restart(void);
struct peer *peer_open(void);
bool peer_send(struct peer *p, struct str frame);
/* The next frame without its size; false: the connection is closed. */
bool peer_receive(struct peer *p, struct buf *out);
void peer_close(struct peer **p);

#endif

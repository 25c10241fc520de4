/* table.h -- text in aligned columns, for people.
 * SPDX-License-Identifier: Apache-2.0
 *
 * One owner, one thread.
 */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include "base/arena.h"
#include "base/buf.h"

#define TABLE_COLUMNS_MAX 16

struct table {
    struct arena arena;
    const char *heads[TABLE_COLUMNS_MAX];
    int columns;
    struct str *cells; /* row by row */
    size_t cells_n, room;
};

/* heads: columns parted by '|'; those that begin with '+' hold numbers and are flush right. The text must stay. */
void table_init(struct table *t, const char *heads);
void table_fini(struct table *t);

/* The next cell, from left to right and then down. Control characters of what is put become '?'. */
void table_put(struct table *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
void table_put_int(struct table *t, int64_t n); /* "-" when negative: not known */

void table_print(const struct table *t, struct buf *out);

#endif

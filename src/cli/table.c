/* table.c -- text in aligned columns, for people.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/table.h"

#include "base/alloc.h"
#include "base/must.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CELL_MAX 1000

void table_init(struct table *t, const char *heads)
{
    struct str rest = str_c(heads), head;

    memset(t, 0, sizeof(*t));
    arena_init(&t->arena, (size_t)GiB);
    while (rest.n && str_next(&rest, '|', &head)) {
        must(t->columns < TABLE_COLUMNS_MAX);
        t->heads[t->columns++] = arena_str(&t->arena, head).p;
    }
}

void table_fini(struct table *t)
{
    arena_fini(&t->arena);
    mem_free(t->cells);
    t->cells = NULL;
}

void table_put(struct table *t, const char *fmt, ...)
{
    char text[CELL_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    if (t->cells_n == t->room) {
        t->room = MAX(t->room * 2, 64);
        t->cells = mem_resize(t->cells, t->room, sizeof(*t->cells));
    }
    t->cells[t->cells_n++] = arena_str(&t->arena, str_c(text));
}

void table_put_int(struct table *t, int64_t n)
{
    if (n < 0)
        table_put(t, "-");
    else
        table_put(t, "%" PRId64, n);
}

static void print_cell(struct buf *out, const struct table *t, int column, struct str text, int width)
{
    bool last = column == t->columns - 1;

    if (t->heads[column][0] == '+')
        buf_fmt(out, "%*.*s", width, STR_ARG(text));
    else if (last)
        buf_put_str(out, text);
    else
        buf_fmt(out, "%-*.*s", width, STR_ARG(text));
    buf_put(out, last ? "\n" : "  ", last ? 1 : 2);
}

void table_print(const struct table *t, struct buf *out)
{
    int width[TABLE_COLUMNS_MAX];

    for (int c = 0; c < t->columns; c++)
        width[c] = (int)strlen(t->heads[c]) - (t->heads[c][0] == '+');
    for (size_t i = 0; i < t->cells_n; i++)
        width[i % (size_t)t->columns] = MAX(width[i % (size_t)t->columns], (int)t->cells[i].n);
    for (int c = 0; c < t->columns; c++)
        print_cell(out, t, c, str_c(t->heads[c] + (t->heads[c][0] == '+')), width[c]);
    for (size_t i = 0; i < t->cells_n; i++)
        print_cell(out, t, (int)(i % (size_t)t->columns), t->cells[i], width[i % (size_t)t->columns]);
}

/* opt_page.c -- writes option tables for people: --help and the pages of docs/generated.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/opt.h"

#include <string.h>

static const char *type_text(enum opt_type type)
{
    static const char *const texts[] = {
        [OPT_FLAG] = "true or false",    [OPT_INT] = "number",
        [OPT_LONG] = "number",           [OPT_SIZE] = "bytes",
        [OPT_DURATION_MS] = "ms",        [OPT_INTERVAL_S] = "seconds, -1: off",
        [OPT_STRING] = "text",           [OPT_TEXT] = "text",
        [OPT_RAW] = "text, not trimmed", [OPT_LIST] = "list",
        [OPT_CHOICE] = "one of",         [OPT_CHOICE_ANY] = "one of (any case)",
        [OPT_CLASS] = "class",
    };

    return texts[type];
}

/* Text of a table's cell: the characters that Markdown would take for its own are guarded. */
static void cell(struct buf *out, const char *text)
{
    for (const char *p = text; *p; p++) {
        if (*p == '|' || *p == '<' || *p == '*' || *p == '_' || *p == '\\')
            buf_put_char(out, '\\');
        buf_put_char(out, *p);
    }
}

static void code(struct buf *out, const char *text)
{
    buf_put_char(out, '`');
    for (const char *p = text; *p; p++) {
        if (*p == '|')
            buf_put_char(out, '\\');
        buf_put_char(out, *p);
    }
    buf_put_char(out, '`');
}

static bool bounded(const struct opt_row *row)
{
    return row->type == OPT_INT || row->type == OPT_LONG || row->type == OPT_SIZE ||
           row->type == OPT_DURATION_MS;
}

static void page_limit(struct buf *out, int64_t limit)
{
    if (limit != INT64_MIN && limit != INT64_MAX && limit != INT32_MAX)
        buf_fmt(out, "%lld", (long long)limit);
}

static void page_values(struct buf *out, const struct opt_row *row)
{
    buf_put_str(out, str_c(type_text(row->type)));
    if (row->choices) {
        buf_put_str(out, STR(": "));
        for (const char *p = row->choices; *p; p++) {
            if (*p == '|')
                buf_put_str(out, STR(" = "));
            else if (*p == ' ')
                buf_put_str(out, STR(", "));
            else
                buf_put_char(out, *p);
        }
    } else if (bounded(row) && (row->least > INT64_MIN || row->most < INT64_MAX)) {
        buf_put_str(out, STR(", "));
        page_limit(out, row->least);
        buf_put_str(out, STR(".."));
        page_limit(out, row->most);
    }
}

static void page_row(struct buf *out, const struct opt_table *t, const struct opt_row *row)
{
    static const char *const when[] = { "while running", "at start", "with a later release" };

    buf_put_str(out, STR("| "));
    code(out, row->key);
    if (row->alias) {
        buf_put_str(out, STR(" (once "));
        code(out, row->alias);
        buf_put_str(out, STR(")"));
    }
    buf_put_str(out, STR(" | "));
    if (t->where_text)
        cell(out, t->where_text(row->where));
    buf_put_str(out, STR(" | "));
    page_values(out, row);
    buf_put_str(out, STR(" | "));
    if (*row->value)
        code(out, row->value);
    buf_fmt(out, " | %s%s | ", when[row->when], row->secret ? ", secret" : "");
    cell(out, row->doc);
    buf_put_str(out, STR(" |\n"));
}

void opt_page(const struct opt_table *t, struct buf *out)
{
    bool idle = false;

    buf_fmt(out,
            "## %s\n\n| key | where | values | default | read | meaning |\n"
            "|---|---|---|---|---|---|\n",
            t->title);
    for (size_t i = 0; i < t->count; i++) {
        if (t->rows[i].value)
            page_row(out, t, &t->rows[i]);
        else
            idle = true;
    }
    if (idle)
        buf_fmt(out,
                "\nAccepted, and named in a warning as without effect:\n\n| key | where | why |\n"
                "|---|---|---|\n");
    for (size_t i = 0; i < t->count; i++) {
        const struct opt_row *row = &t->rows[i];

        if (row->value)
            continue;
        buf_put_str(out, STR("| "));
        code(out, row->key);
        buf_put_str(out, STR(" | "));
        if (t->where_text)
            cell(out, t->where_text(row->where));
        buf_put_str(out, STR(" | "));
        cell(out, row->doc);
        buf_put_str(out, STR(" |\n"));
    }
    buf_put_char(out, '\n');
}

void opt_help(const struct opt_table *t, struct buf *out)
{
    buf_fmt(out, "%s\n", t->title);
    for (size_t i = 0; i < t->count; i++) {
        const struct opt_row *row = &t->rows[i];

        if (row->value)
            buf_fmt(out, "  %s = %s\n      %s\n", row->key, row->value, row->doc);
    }
}

/* fuzz_config.c -- whole configuration files: never a crash, and all texts of it can be written.
 * SPDX-License-Identifier: Apache-2.0
 *
 * No provider can reach this machine: files are named in the text by whoever fuzzes, so texts that
 * declare a file or directory provider are left out.
 */
#include "base/must.h"
#include "daemon/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *no_env(const char *name)
{
    return name[0] == 'X' ? "value" : NULL;
}

static void visit(const struct config_setting *s, void *arg)
{
    size_t *n = arg;

    must(s->key.n > 0);
    must(s->line == 0 || s->origin_key.n > 0);
    *n += 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = str_of((const char *)data, size);
    struct config_args args = { .path = STR("f"), .env = no_env };
    struct config *c;
    struct buf out;
    size_t n = 0;
    enum err e;

    if (size > 64 * KiB || str_find(text, STR("FileConfig"), 0) >= 0 ||
        str_find(text, STR("DirectoryConfig"), 0) >= 0)
        return 0;
    e = config_parse(&args, text, &c);
    must((e != E_OK) == (c->error_count > 0));
    buf_init(&out, 64 * MiB);
    for (size_t i = 0; i < c->problem_count; i++)
        config_problem_format(&c->problems[i], &out);
    config_each_setting(c, visit, &n);
    for (size_t i = 0; i < c->flow_count && !e; i++)
        must(c->flows[i].target.bootstrap_count > 0);
    buf_fini(&out);
    config_free(&c);
    return 0;
}

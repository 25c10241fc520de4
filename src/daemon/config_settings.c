/* config_settings.c -- lists effective settings with where each came from.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "daemon/config.h"

#include "daemon/config_internal.h"

struct lister {
    const struct config *c;
    void (*visit)(const struct config_setting *s, void *arg);
    void *arg;
    struct buf value;
};

static void list_table(struct lister *v, struct str scope, const struct opt_table *t,
                       unsigned where, const void *from, const uint32_t *origins)
{
    for (size_t i = 0; i < t->count; i++) {
        const struct opt_row *row = &t->rows[i];
        struct config_setting s = { .scope = scope, .key = str_c(row->key) };
        bool hidden = false;

        if (!row->value || !(row->where & where))
            continue;
        if (origins[i]) {
            const struct prop *p = &v->c->origins->props.at[origins[i] - 1];

            s.file = p->file;
            s.line = p->line;
            s.origin_key = p->key;
            hidden = v->c->origins->entries[origins[i] - 1].resolved;
        }
        buf_clear(&v->value);
        if (hidden)
            buf_put_str(&v->value, STR("(secret)"));
        else
            opt_format(row, from, &v->value);
        s.value = buf_str(&v->value);
        v->visit(&s, v->arg);
    }
}

static void list_client(struct lister *v, const struct flow_config *f, enum config_role role,
                        const uint32_t *origins)
{
    static const char *const names[] = {
        [ROLE_SOURCE] = "source",
        [ROLE_TARGET] = "target",
        [ROLE_SOURCE_ADMIN] = "source-admin",
        [ROLE_TARGET_ADMIN] = "target-admin",
        [ROLE_TARGET_READER] = "target-reader",
        [ROLE_SYNCS_WRITER] = "syncs-writer",
    };
    struct buf scope;

    buf_init(&scope, 4 * KiB);
    buf_fmt(&scope, "%.*s %s", STR_ARG(f->name), names[role]);
    list_table(v, buf_str(&scope), &client_opts, config_role_kind(role),
               config_role_client_of(f, role), origins);
    buf_fini(&scope);
}

void config_each_setting(const struct config *c,
                         void (*visit)(const struct config_setting *s, void *arg), void *arg)
{
    struct lister v = { .c = c, .visit = visit, .arg = arg };

    buf_init(&v.value, 16 * MiB);
    if (c->origins->process)
        list_table(&v, STR("process"), &config_opts, PROCESS_TOP, &c->process, c->origins->process);
    for (size_t i = 0; i < c->flow_count; i++) {
        const struct config_flow_origins *o = &c->origins->flows[i];

        list_table(&v, c->flows[i].name, &flow_opts, ~0u, &c->flows[i], o->flow);
        for (int role = 0; role < ROLE_COUNT; role++)
            list_client(&v, &c->flows[i], (enum config_role)role, o->client[role]);
    }
    buf_fini(&v.value);
}

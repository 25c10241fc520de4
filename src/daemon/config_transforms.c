/* config_transforms.c -- keys that begin with names which the file itself gives: transforms and predicates of a flow.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "daemon/config_internal.h"
#include "mirror/transforms.h"

/* Whether the flow's list of that name has the alias. */
static bool is_listed(const struct loader *l, struct str dotted, struct str list, struct str alias)
{
    const struct prop *p = config_find(l, dotted, STR(""), list);
    struct str_list all;

    if (!p)
        p = props_find(l->props, list);
    all = p ? opt_split(p->value, l->a) : (struct str_list){ 0 };
    for (size_t i = 0; i < all.n; i++)
        if (str_eq(all.at[i], alias))
            return true;
    return false;
}

bool config_is_transform(const struct loader *l, struct str dotted, struct str rest)
{
    struct str list, alias;

    return str_next(&rest, '.', &list) && (str_eq(list, STR("transforms")) || str_eq(list, STR("predicates"))) &&
           str_next(&rest, '.', &alias) && rest.n > 0 && is_listed(l, dotted, list, alias);
}

void config_collect_transforms(struct loader *l, struct str dotted, struct flow_config *f)
{
    struct str_pair *all;

    if (f->transforms.n == 0)
        return;
    f->transform_settings = all = arena_array(l->a, l->props->n, sizeof(*all));
    for (size_t i = 0; i < l->props->n; i++) {
        const struct prop *p = &l->props->at[i];
        struct str rest = str_part(p->key, dotted.n, p->key.n);

        if (str_starts(p->key, dotted) && (str_starts(rest, STR("transforms.")) || str_starts(rest, STR("predicates."))))
            all[f->transform_settings_n++] = (struct str_pair){ rest, p->value };
    }
}

void config_check_transforms(struct loader *l, const struct flow_config *f, const struct prop *lists[2])
{
    struct transforms_fault fault;
    struct transforms *t = NULL;
    const struct prop *p;

    if (!f->enabled || transforms_new(f, l->a, &t, &fault) == E_OK) {
        transforms_free(&t);
        return;
    }
    p = config_find(l, arena_fmt(l->a, "%.*s.", STR_ARG(f->name)), STR(""), fault.key);
    if (!p)
        p = lists[str_starts(fault.key, STR("predicates.")) && lists[1]];
    if (config_entry_of(l, p)->resolved)
        config_report(l, p, CONFIG_ERROR, "the value makes no chain of transforms that can run here; mend it");
    else
        config_report(l, p, CONFIG_ERROR, "%.*s", STR_ARG(fault.why));
}

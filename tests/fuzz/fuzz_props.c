/* fuzz_props.c -- .properties text: never a crash, keys are found again, lines go up.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/must.h"
#include "base/props.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = str_of((const char *)data, size);
    struct props_fault fault;
    struct props p;
    struct arena a;

    arena_init(&a, 16 * MiB);
    for (int charset = PROPS_LATIN1; charset <= PROPS_UTF8; charset++) {
        enum err e;

        props_init(&p, &a);
        e = props_parse(&p, text, (enum props_charset)charset, STR("f"), &fault);
        must(!e || fault.line > 0);
        for (size_t i = 0; i < p.n; i++) {
            must(props_find(&p, p.at[i].key) == &p.at[i]);
            must(p.at[i].line > p.at[i].before);
            must(p.at[i].value.p[p.at[i].value.n] == '\0');
        }
        arena_reset(&a);
    }
    arena_fini(&a);
    return 0;
}

/* props.h -- reads Java .properties text, exactly as java.util.Properties does, and keeps the lines.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Bytes are ISO-8859-1 (mm2.properties) or UTF-8 (files of config providers); keys and values come out
 * as UTF-8. Of a key given twice the last one wins and remembers the line of the one before. Sizes are
 * bounded, so any bytes may be given. All memory is the arena's. One owner, any thread.
 */
#ifndef BASE_PROPS_H
#define BASE_PROPS_H

#include "base/arena.h"
#include "base/err.h"

#define PROPS_BYTES_MAX (4 * MiB)
#define PROPS_KEYS_MAX  50000

enum props_charset { PROPS_LATIN1, PROPS_UTF8 };

struct prop {
    struct str key, value; /* with a NUL behind each */
    struct str file;       /* as given to props_parse or props_put */
    int line;              /* where the key stands */
    int before;            /* line of the entry that this one replaced, or 0 */
};

struct props {
    struct arena *arena;
    struct prop *at; /* in the order of first appearance */
    size_t n, room;
    uint32_t *index; /* hash table of positions + 1 */
    size_t index_room;
};

struct props_fault {
    int line;
    const char *text;
};

void props_init(struct props *p, struct arena *a);

/* Adds all entries of the text. On failure says where and why; entries before it stay. A UTF-8 byte
 * order mark at the beginning is skipped. */
WARN_UNUSED enum err props_parse(struct props *p, struct str text, enum props_charset charset,
                                 struct str file, struct props_fault *fault);

/* Adds or replaces one entry; the strings are copied but for file. E_LIMIT: too many keys. */
WARN_UNUSED enum err props_put(struct props *p, struct str key, struct str value, struct str file,
                               int line);

/* NULL when there is none. Valid until the next props_parse or props_put. */
struct prop *props_find(const struct props *p, struct str key);

#endif

/* json.h -- writes JSON into a buf, one value after the other.
 * SPDX-License-Identifier: Apache-2.0
 *
 * For answers that are long and made piece by piece; what is read goes through jansson. Commas come by
 * themselves; brackets are the caller's to pair. Bytes that are no UTF-8 become U+FFFD. One owner.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/buf.h"

struct json {
    struct buf *out; /* may be changed between two values */
    bool comma;      /* the next value of this container needs one */
};

static inline struct json json_to(struct buf *out)
{
    return (struct json){ .out = out };
}

void json_open(struct json *j, char bracket); /* '{' or '[' */
void json_close(struct json *j, char bracket);
void json_key(struct json *j, const char *key); /* a plain word of ours */

void json_str(struct json *j, struct str s); /* the null string is null */
void json_int(struct json *j, int64_t i);
void json_uint(struct json *j, uint64_t u);
void json_bool(struct json *j, bool b);
void json_null(struct json *j);
void json_raw(struct json *j, struct str value); /* a value that is JSON already */

/* A member of an object. */
void json_put_str(struct json *j, const char *key, struct str s);
void json_put_c(struct json *j, const char *key, const char *s);
void json_put_int(struct json *j, const char *key, int64_t i);
void json_put_uint(struct json *j, const char *key, uint64_t u);
void json_put_bool(struct json *j, const char *key, bool b);

#endif

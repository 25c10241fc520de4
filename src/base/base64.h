/* base64.h -- bytes as text, with padding (RFC 4648).
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/buf.h"

void base64_put(struct buf *out, struct str bytes);
/* False for what is not base64 as written above; out may then hold a part. */
bool base64_get(struct buf *out, struct str text);

#endif

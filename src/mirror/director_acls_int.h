/* director_acls_int.h -- what the files of the copying of access rules share; nobody else includes it.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MIRROR_DIRECTOR_ACLS_INT_H
#define MIRROR_DIRECTOR_ACLS_INT_H

#include "mirror/director_internal.h"

/* director_acls.c */
struct director *director_acls_owner(struct director_acls *c);
void director_acls_send(struct director_acls *c, bool target, int api, enum route_kind kind,
                        void (*done)(struct call *call));
/* Takes a bad outcome of the call: the round begins again later, or ends; true when there was one. */
bool director_acls_call_failed(struct director_acls *c, bool target, const char *what);
/* The same for an error that one side answers with. */
bool director_acls_is_trouble(struct director_acls *c, bool target, bool creating, int32_t kerr);
void director_acls_end_round(struct director_acls *c);

/* director_acls_change.c */
/* The next request with changes of the plan, or the end of the round. */
void director_acls_change(struct director_acls *c);

#endif

/* claim.h -- a name that one living process of this machine holds (part of THE SEAM: claim.c or tests/sim).
 * SPDX-License-Identifier: Apache-2.0
 *
 * Who holds the claim knows that every process that held it before is dead, so what these left behind is his. Any
 * thread.
 */
#ifndef NET_CLAIM_H
#define NET_CLAIM_H

#include "base/str.h"
#include "loop/loop.h"

#define CLAIM_IDENTITY_MAX 48

struct claim;

/* NULL: a living process holds it (a stopped one lives), or this system cannot tell. It ends with claim_drop or with
 * the process, however that ends. identity: a text that is the same for all that may hold this claim one after the
 * other, and for nobody else in the world. */
struct claim *claim_take(struct loop *l, struct str name, char identity[CLAIM_IDENTITY_MAX]);
/* Clears the pointer; NULL is fine. */
void claim_drop(struct claim **c);

#endif

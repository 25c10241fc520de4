/* claim_sim.c -- claims in the simulated world: all mirrors run on one machine.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "net/claim.h"

#include "base/alloc.h"
#include "loop_sim.h"

#include <inttypes.h>
#include <stdio.h>

#define CLAIMS_MAX 64

struct claim {
    struct loop *loop; /* NULL: free */
    uint64_t name;
};

static struct claim claims[CLAIMS_MAX];

struct claim *claim_take(struct loop *l, struct str name, char identity[CLAIM_IDENTITY_MAX])
{
    uint64_t key = str_hash(name);
    struct claim *c = NULL;

    for (size_t i = 0; i < CLAIMS_MAX; i++) {
        if (claims[i].loop && loop_sim_is_dead(claims[i].loop))
            claims[i].loop = NULL; /* its process was killed */
        if (claims[i].loop && claims[i].name == key)
            return NULL;
        if (!claims[i].loop && !c)
            c = &claims[i];
    }
    if (!c)
        return NULL;
    *c = (struct claim){ .loop = l, .name = key };
    snprintf(identity, CLAIM_IDENTITY_MAX, "heliostat-sim");
    return c;
}

void claim_drop(struct claim **cp)
{
    if (*cp)
        (*cp)->loop = NULL;
    *cp = NULL;
}

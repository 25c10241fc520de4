/* loop_uv.h -- the libuv loop under a struct loop.
 * SPDX-License-Identifier: Apache-2.0
 *
 * For net/sock.c and net/dns.c only, which are replaced together with loop_uv.c in the simulator.
 */
#ifndef LOOP_LOOP_UV_H
#define LOOP_LOOP_UV_H

#include "loop/loop.h"

#include <uv.h>

uv_loop_t *loop_uv(struct loop *l);

#endif

/* kerr.h -- Kafka's error codes with the class that decides what we do.
 * SPDX-License-Identifier: Apache-2.0
 *
 * From kerr.def; codes that mean another thing in one API have a KERR_IN row. No list of codes
 * in logic code: decisions switch on the class. Any thread.
 */
#ifndef WIRE_KERR_H
#define WIRE_KERR_H

#include "base/util.h"

enum kerr_class {
    K_OK,
    K_AGAIN,   /* back off and repeat as it is */
    K_REFRESH, /* our metadata is old: refresh, then repeat */
    K_UNSURE,  /* may have been done: find out or repeat the identical batch */
    K_ORDER,   /* the sequence does not fit: reconcile, never skip */
    K_RANGE,   /* the offset is outside the log: ask for the bounds */
    K_SESSION, /* the fetch session is gone: full request */
    K_REJOIN, /* membership or producer identity has ended: enter anew (JoinGroup, InitProducerId) */
    K_FENCED,  /* another instance has taken over */
    K_DENIED,  /* authorisation: pause, repeat slowly, report */
    K_RECORDS, /* the content is refused: record path or halt */
    K_SIZE,    /* too large for the target */
    K_GONE,    /* unknown topic or id: refresh; if it stays, deleted */
    K_FATAL,
};

enum kerr {
#define KERR(code, name, class, text) KERR_##name = code,
#define KERR_IN(api, name, class)
#define KERR_DO(name, advice)
#include "wire/kerr.def"
#undef KERR
#undef KERR_IN
#undef KERR_DO
};

enum kerr_class kerr_class(int api_key, int code);
/* "NOT_LEADER_OR_FOLLOWER"; "ERROR_<code>" (static buffer per thread) for one we do not know. */
const char *kerr_name(int code);
const char *kerr_text(int code);
/* What a person can do about it, to be put behind a text: "; raise ...", or "". */
const char *kerr_advice(int code);

#endif

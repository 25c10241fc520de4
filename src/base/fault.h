/* fault.h -- what is wrong with an object an operator can see, in words, and since when.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each visible object (connection, flow, relay) has one; it is set where the failure is
 * understood and shown alike in /v1/status, the log and the metrics. Owner's thread.
 */
#ifndef BASE_FAULT_H
#define BASE_FAULT_H

#include "base/str.h"

#define FAULT_TEXT_MAX 400
#define FAULT_CODE_MAX 48

struct json;

struct fault {
    char code[FAULT_CODE_MAX]; /* Kafka's or our own error name; "" when there is no fault */
    char text[FAULT_TEXT_MAX];
    int64_t since_ms; /* wall clock of the first in a row */
    uint64_t count;   /* how often in a row */
};

/* Notes a failure at wall time now_ms; a repeat of the same code keeps since_ms. */
void fault_set(struct fault *f, int64_t now_ms, const char *code, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
void fault_clear(struct fault *f);

/* The members of an object: what it is, how often and since when. */
void fault_put_members(struct json *j, const struct fault *f);
/* The member "fault": an object, or null where there is none; f may be NULL. */
void fault_put(struct json *j, const struct fault *f);

static inline bool fault_is_set(const struct fault *f)
{
    return f->code[0] != '\0';
}

#endif

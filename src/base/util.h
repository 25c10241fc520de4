/* util.h -- the few macros that every file may use.
 * SPDX-License-Identifier: Apache-2.0
 *
 * No macro here returns, jumps or declares (style.md, errors).
 */
#ifndef BASE_UTIL_H
#define BASE_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KiB 1024
#define MiB (1024 * 1024)
#define GiB (1024LL * 1024 * 1024)

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define CLAMP(x, lo, hi) MIN(MAX(x, lo), hi)

/* The object that holds `member` at address p. */
#define container_of(p, type, member) ((type *)(void *)((char *)(p) - offsetof(type, member)))

#define WARN_UNUSED __attribute__((warn_unused_result))
#define NORETURN __attribute__((noreturn))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define FALLTHROUGH __attribute__((fallthrough))

#endif

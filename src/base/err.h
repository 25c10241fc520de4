/* err.h -- our error codes as one enum, from err.def.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Functions that can fail return enum err and nothing else; results go through an
 * out-pointer that is written only on success. 0 is good. Any thread.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/util.h"

enum err {
#define ERR(name, again, text) E_##name,
#include "base/err.def"
#undef ERR
    E_COUNT
};

const char *err_name(enum err e); /* "TIMEOUT" */
const char *err_text(enum err e); /* the sentence for people */
bool err_again(enum err e);       /* may pass by itself */

#endif

/* http_get.h -- asks a running heliostat over HTTP.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CLI_HTTP_GET_H
#define CLI_HTTP_GET_H

#include "base/buf.h"

struct http_answer {
    int status;       /* 0: nobody answered */
    struct buf body;
    char why[300];    /* when nobody answered, or the URL is none */
};

#define HTTP_NOBODY 3 /* exit code of a verb that nobody answers */

/* Blocks, at most some minutes; a name that is not answered within name_limit_s ends the process with one line and
 * HTTP_NOBODY, for such a look-up cannot be taken back. url is http://host:port[/prefix] or host:port; path begins with '/'. False: the URL is none of these. The
 * caller frees answer->body. */
bool http_get(const char *url, const char *path, int name_limit_s, struct http_answer *answer);

#endif

/* version_main.c -- the verb `version`.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/json.h"
#include "daemon/version.h"

#include <stdio.h>
#include <string.h>

static void print(bool json)
{
    struct buf out;
    struct json j = json_to(&out);

    buf_init(&out, 64 * KiB);
    if (json) {
        json_open(&j, '{');
        json_put_c(&j, "version", version_number());
        json_put_c(&j, "commit", version_commit());
        json_key(&j, "libraries");
        json_open(&j, '{');
        version_libraries(&out, true);
        json_close(&j, '}');
        json_close(&j, '}');
        buf_put_char(&out, '\n');
    } else {
        buf_fmt(&out, "heliostat %s (commit %s)\n", version_number(), version_commit());
        version_libraries(&out, false);
    }
    fwrite(out.p, 1, out.n, stdout);
    buf_fini(&out);
}

int version_main(int argc, char **argv)
{
    bool json = false;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            printf("usage: heliostat version [--json]\n\n"
                   "  --json    print one JSON object\n");
            return 0;
        }
        if (strcmp(argv[i], "--json") != 0) {
            fprintf(stderr, "heliostat: version takes --json only, not %s\n", argv[i]);
            return 2;
        }
        json = true;
    }
    print(json);
    return 0;
}

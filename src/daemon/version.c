/* version.c -- version, commit, and the libraries with their run-time versions.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "daemon/version.h"

#include <event2/event.h>
#include <inttypes.h>
#include <jansson.h>
#include <lz4.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <isa-l.h>
#include <stdio.h>
#include <uv.h>
#include <zlib.h>
#include <zstd.h>

#ifndef HELIOSTAT_VERSION
#define HELIOSTAT_VERSION "0.0.0"
#endif
#ifndef HELIOSTAT_COMMIT
#define HELIOSTAT_COMMIT ""
#endif

const char *version_number(void)
{
    return HELIOSTAT_VERSION;
}

const char *version_commit(void)
{
    return HELIOSTAT_COMMIT[0] ? HELIOSTAT_COMMIT : "unknown";
}

static void put(struct buf *out, bool json, bool first, const char *name, const char *version)
{
    if (json)
        buf_fmt(out, "%s\"%s\":\"%s\"", first ? "" : ",", name, version);
    else
        buf_fmt(out, "  %-10s %s\n", name, version);
}

void version_libraries(struct buf *out, bool json)
{
    char pcre[64] = "", isal[32];

    pcre2_config(PCRE2_CONFIG_VERSION, pcre);
    snprintf(isal, sizeof(isal), "%d.%d.%d", ISAL_MAJOR_VERSION, ISAL_MINOR_VERSION,
             ISAL_PATCH_VERSION);
    put(out, json, true, "libuv", uv_version_string());
    put(out, json, false, "libevent", event_get_version());
    put(out, json, false, "jansson", jansson_version_str());
    put(out, json, false, "pcre2", pcre);
    put(out, json, false, "zlib", zlibVersion());
    put(out, json, false, "lz4", LZ4_versionString());
    put(out, json, false, "zstd", ZSTD_versionString());
    put(out, json, false, "isa-l", isal);
}

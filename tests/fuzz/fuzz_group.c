/* fuzz_group.c -- any bytes as what members of a group tell each other; what is read is written and read alike.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kafka/group_format.h"

#include "base/must.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str bytes = str_of((const char *)data, size);
    struct group_metadata m, m_again;
    struct group_assignment a, a_again;
    struct buf out;

    buf_init(&out, 64 * KiB);
    if (!group_parse_metadata(bytes, &m)) {
        group_format_metadata(&out, &m);
        must(group_parse_metadata(buf_str(&out), &m_again) == E_OK);
        must(m.generation == m_again.generation && memcmp(&m.held, &m_again.held, sizeof(m.held)) == 0);
    }
    buf_clear(&out);
    if (size && !group_parse_assignment(bytes, &a)) {
        group_format_assignment(&out, &a);
        must(group_parse_assignment(buf_str(&out), &a_again) == E_OK);
        must(a.members == a_again.members && memcmp(&a.slots, &a_again.slots, sizeof(a.slots)) == 0);
    }
    buf_fini(&out);
    return 0;
}

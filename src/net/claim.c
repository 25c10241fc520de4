/* claim.c -- claims as abstract Unix sockets.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The kernel takes the name back with the last descriptor, so a claim outlives neither kill -9 nor anything else, and
 * leaves no file. Abstract names are per network namespace: boot and namespace together say among whom a name is
 * unique, and make the identity. Containers of one pod share both; two hosts never do, whatever they are called.
 */
#include "net/claim.h"

#include "base/alloc.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct claim {
    int fd;
};

/* Boot and network namespace; false where /proc does not tell. */
static bool read_domain(char *text, size_t room)
{
    char boot[64] = "";
    struct stat ns;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, boot, sizeof(boot) - 1);

    if (fd >= 0)
        close(fd);
    if (n < 36 || stat("/proc/self/ns/net", &ns))
        return false;
    boot[36] = '\0';
    snprintf(text, room, "%s %ju", boot, (uintmax_t)ns.st_ino);
    return true;
}

struct claim *claim_take(struct loop *l, struct str name, char identity[CLAIM_IDENTITY_MAX])
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    char domain[128];
    struct claim *c;
    int n, fd;

    (void)l;
    if (!read_domain(domain, sizeof(domain)))
        return NULL;
    n = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "heliostat/%016" PRIx64, str_hash(name));
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return NULL;
    if (bind(fd, (struct sockaddr *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n))) {
        close(fd);
        return NULL;
    }
    snprintf(identity, CLAIM_IDENTITY_MAX, "heliostat-%016" PRIx64, str_hash(str_c(domain)));
    c = mem_new(sizeof(*c));
    c->fd = fd;
    return c;
}

void claim_drop(struct claim **cp)
{
    if (!*cp)
        return;
    close((*cp)->fd);
    mem_free(*cp);
    *cp = NULL;
}

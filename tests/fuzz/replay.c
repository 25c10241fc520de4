/* replay.c -- runs a fuzz target over the files of its corpus, where libFuzzer is not there.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    long size;

    if (!f) {
        perror(path);
        return 1;
    }
    fseek(f, 0, SEEK_END);
    size = ftell(f);
    rewind(f);
    data = malloc(size > 0 ? (size_t)size : 1);
    if (!data || (size > 0 && fread(data, 1, (size_t)size, f) != (size_t)size)) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(1);
    }
    LLVMFuzzerTestOneInput(data, size > 0 ? (size_t)size : 0);
    free(data);
    fclose(f);
    return 0;
}

int main(int argc, char **argv)
{
    DIR *d = argc > 1 ? opendir(argv[1]) : NULL;
    struct dirent *e;
    int n = 0;

    if (!d) {
        fprintf(stderr, "usage: %s CORPUS-FOLDER\n", argv[0]);
        return 1;
    }
    while ((e = readdir(d))) {
        char path[4096];

        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", argv[1], e->d_name);
        if (replay(path))
            return 1;
        n++;
    }
    closedir(d);
    printf("%d inputs replayed\n", n);
    return n > 0 ? 0 : 1;
}

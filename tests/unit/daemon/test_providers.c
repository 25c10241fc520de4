/* test_providers.c -- placeholders of config providers: what they become, and that it is never shown.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit/daemon/config_case.h"

#define PACKAGE "org.apache.kafka.common.config.provider."
#define DECLARE                                                                                    \
    TWO "config.providers = file, dir, env\n"                                                      \
        "config.providers.file.class = " PACKAGE "FileConfigProvider\n"                            \
        "config.providers.dir.class = " PACKAGE "DirectoryConfigProvider\n"                        \
        "config.providers.env.class = " PACKAGE "EnvVarConfigProvider\n"

static char folder[64];

static void write_file(const char *name, const char *content)
{
    char path[128];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    f = fopen(path, "wb");
    assert_non_null(f);
    fputs(content, f);
    fclose(f);
}

static int make_folder(void **state)
{
    char path[128];

    (void)state;
    snprintf(folder, sizeof(folder),
             "/tmp/heliostat-test-XX"
             "XXXX");
    if (!mkdtemp(folder))
        return -1;
    write_file("secrets.properties",
               "topics = caf\xc3\xa9\nrack = canary rack\nescaped=a\\tb\nempty =\n");
    write_file("topics", "one,two");
    write_file("newline", "x\n");
    write_file("bad.properties", "x = \\u12");
    snprintf(path, sizeof(path), "%s/sub", folder);
    mkdir(path, 0700);
    setenv("HELIOSTAT_TEST_TOPICS", "from-env", 1);
    return 0;
}

static int remove_folder(void **state)
{
    static const char *const names[] = { "secrets.properties", "topics", "newline",
                                         "bad.properties" };
    char path[128];

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    snprintf(path, sizeof(path), "%s/sub", folder);
    rmdir(path);
    return rmdir(folder);
}

/* The text with DIR replaced by the folder. */
static const char *fill_in(const char *text, struct buf *out)
{
    buf_clear(out);
    for (const char *p = text; *p; p++) {
        if (strncmp(p, "DIR", 3) == 0) {
            buf_put_str(out, str_c(folder));
            p += 2;
        } else {
            buf_put_char(out, *p);
        }
    }
    return buf_cstr(out);
}

static struct config *parse(const char *text)
{
    struct buf out;
    struct config *c;

    buf_init(&out, MiB);
    c = case_parse(fill_in(text, &out), NULL);
    buf_fini(&out);
    return c;
}

/* What A->B.topics becomes; the list's elements joined. */
TEST(values)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "topics = ${file:DIR/secrets.properties:topics}", "caf\xc3\xa9" },
        { "topics = a${file:DIR/secrets.properties:topics}b${env:HELIOSTAT_TEST_TOPICS}",
          "acaf\xc3\xa9"
          "bfrom-env" },
        { "topics = ${file:DIR/secrets.properties:none}", "${file:DIR/secrets.properties:none}" },
        { "topics = ${file::topics}", "${file::topics}" },
        { "topics = ${dir:DIR:topics}", "one, two" },
        { "topics = ${dir:DIR:sub}", "${dir:DIR:sub}" },
        { "topics = ${dir:DIR/sub:../topics}", "${dir:DIR/sub:../topics}" },
        { "topics = ${dir:DIR:none}", "${dir:DIR:none}" },
        { "topics = ${env:HELIOSTAT_TEST_TOPICS}", "from-env" },
        { "topics = ${env:HELIOSTAT_TEST_NONE}", "${env:HELIOSTAT_TEST_NONE}" },
        { "topics = ${vault:a:b}", "${vault:a:b}" },
        { "topics = ${x}${env:HELIOSTAT_TEST_TOPICS}", "${x}from-env" },
        { "topics = ${", "${" },
        { "topics = ${a", "${a" },
        { "topics = ${env:HELIOSTAT_TEST_TOPICS", "${env:HELIOSTAT_TEST_TOPICS" },
        { "config.providers.file.param.allowed.paths = DIR\ntopics = "
          "${file:DIR/sub/../secrets.properties:topics}",
          "caf\xc3\xa9" },
        { "config.providers.file.param.allowed.paths = DIR/sub\ntopics = "
          "${file:DIR/sub/../secrets.properties:topics}",
          "${file:DIR/sub/../secrets.properties:topics}" },
        { "config.providers.dir.param.allowed.paths = /usr, DIR/sub\ntopics = ${dir:DIR:topics}",
          "${dir:DIR:topics}" },
        { "config.providers.env.param.allowlist.pattern = HELIOSTAT_.*\ntopics = "
          "${env:HELIOSTAT_TEST_TOPICS}",
          "from-env" },
        { "config.providers.env.param.allowlist.pattern = HELIOSTAT\ntopics = "
          "${env:HELIOSTAT_TEST_TOPICS}",
          "${env:HELIOSTAT_TEST_TOPICS}" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[2000];
        struct config *c;
        struct buf got, want;

        snprintf(text, sizeof(text), DECLARE "%s\n", cases[i].text);
        c = parse(text);
        buf_init(&got, MiB);
        buf_init(&want, MiB);
        for (size_t n = 0; n < c->flows[0].topics.n; n++)
            buf_fmt(&got, "%s%.*s", n ? ", " : "", STR_ARG(c->flows[0].topics.at[n]));
        check_str(buf_str(&got), str_c(fill_in(cases[i].want, &want)), cases[i].text, (int)i);
        buf_fini(&got);
        buf_fini(&want);
        config_free(&c);
    }
}

TEST(problems)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "config.providers = vault\nconfig.providers.vault.class = com.x.Vault",
          "f:9: config.providers.vault.class: the Java class \"com.x.Vault\" cannot run here; "
          "write FileConfigProvider" },
        { "config.providers = other", "config.providers.other.class is missing; write it" },
        { "topics = ${env:p:X}",
          "f:8: topics: a variable of the environment has no path; write ${env:NAME}" },
        { "topics = ${file:/nonexistent/x:k}", "line 0: there is no such file" },
        { "topics = ${file:DIR/bad.properties:x}",
          "bad.properties\" of a config provider, line 1: a \\u must" },
        { "topics = ${vault:a:b}",
          "f:8: topics: warning: the placeholder ${vault:a:b} was not filled in and stays" },
        { "config.providers.file.param.allowed.paths = relative",
          "element 1 is not an absolute path that exists" },
        { "config.providers.env.param.allowlist.pattern = (",
          "f:8: config.providers.env.param.allowlist.pattern: " },
        { "config.providers.dir.param.allowed.paths = DIR/sub\ntopics = ${dir:DIR:topics}",
          "is outside of allowed.paths" },
        /* a value from a provider is no part of any sentence */
        { "replication.factor = ${file:DIR/secrets.properties:rack}",
          "f:8: replication.factor: the value is not a whole number; write a whole number from -1 "
          "to 32767" },
        { "A.bootstrap.servers = ${file:DIR/secrets.properties:rack}",
          "f:8: A.bootstrap.servers: element 1 is not host:port" },
        { "security.protocol = ${file:DIR/secrets.properties:rack}",
          "f:8: security.protocol: the value is not one of" },
    };
    struct buf out;

    buf_init(&out, MiB);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[2000];
        struct config *c;
        const char *got;

        snprintf(text, sizeof(text), DECLARE "%s\nA->B.enabled = true\n", cases[i].text);
        c = parse(text);
        got = case_problems(c, &out);
        if (!strstr(got, cases[i].want)) {
            print_error("case %zu: %s\n  want: %s\n  got: %s\n", i, cases[i].text, cases[i].want,
                        got);
            CHECK(false);
        }
        CHECK(!strstr(got, "canary"));
        config_free(&c);
    }
    buf_fini(&out);
}

TEST(settings_hide_it)
{
    struct config *c =
        parse(DECLARE "A.consumer.client.rack = ${file:DIR/secrets.properties:rack}\n");
    struct case_setting s = case_ask(c, "A->B source", "client.rack");

    CHECK_STR(c->flows[0].source.client_rack, "canary rack");
    CHECK_STR(str_c(s.value), "(secret)");
    CHECK_STR(str_c(s.origin), "A.consumer.client.rack:8");
    config_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = { RUN(values), RUN(problems), RUN(settings_hide_it) };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

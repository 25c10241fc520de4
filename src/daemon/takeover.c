/* takeover.c -- the verb `takeover`: where a mirror that was there before stands, to the record, and the way back.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Exit codes: 0 all is known, and with --apply written; 1 a flow could not be taken over (its mirror is alive), or something
 * could not be told to the record; 2 the file or the command line is wrong; 3 a cluster did not answer in time.
 */
#include "daemon/takeover.h"

#include "base/alloc.h"
#include "base/log.h"
#include "daemon/file_args.h"
#include "daemon/takeover_int.h"
#include "loop/deadline.h"

#include <stdio.h>
#include <string.h>

#define END_LIMIT_S     2
#define LIMIT_DEFAULT_S 300
#define LIMIT_MAX_S     86400

static int64_t no_clock(void)
{
    return 0;
}

static void say_nothing(const char *line, size_t n)
{
    (void)line;
    (void)n;
}

static void help(void)
{
    printf("usage: heliostat takeover FILE [--clusters A,B] [--set key=value]... [--apply [--fence]] [--back] [--json]\n"
           "                          [--from KIND[:GROUP]] [--timeout SECONDS] [--connect-group GROUP]\n"
           "                          [--connect-offsets TOPIC] [--connect-configs TOPIC] [--connector NAME]\n\n"
           "  FILE                     the mm2.properties file of the mirror that is taken over\n"
           "  --clusters A,B           only flows whose target is named\n"
           "  --set key=value          one more line of the file, stronger than the file\n"
           "  --apply                  store the exact positions; without it nothing is changed\n"
           "  --fence                  with --apply: put a mirror that is alive out of its group, and take its\n"
           "                           transactional ids\n"
           "  --back                   tell it for the way back: what MirrorMaker 2 would write again\n"
           "  --from KIND[:GROUP]      mm2 (default); replicator; or mm1:GROUP, ureplicator:GROUP, brooklin:GROUP with the\n"
           "                           consumer group at the source whose offsets are the positions\n"
           "  --connect-group GROUP    the group of the Connect workers, where MirrorMaker 2 runs on a Connect cluster\n"
           "  --connect-offsets TOPIC  its offset.storage.topic\n"
           "  --connect-configs TOPIC  its config.storage.topic (for --fence)\n"
           "  --connector NAME         the connector whose positions count\n"
           "  --timeout SECONDS        give up after this time (300)\n"
           "  --json                   print one JSON object\n");
}

static bool take_from(struct takeover_args *a, char *v)
{
    char *group = strchr(v, ':');

    a->from_name = v;
    if (group)
        *group++ = '\0';
    if (!strcmp(v, "mm2") || !strcmp(v, "replicator")) {
        a->from = v[0] == 'r' ? FROM_REPLICATOR : FROM_MM2;
        return !group;
    }
    a->from = FROM_GROUP;
    a->from_group = str_c(group);
    return (!strcmp(v, "mm1") || !strcmp(v, "ureplicator") || !strcmp(v, "brooklin")) && group && *group;
}

/* The text options, by name. */
static struct str *text_option(struct takeover_args *a, const char *name)
{
    if (!strcmp(name, "--connect-group"))
        return &a->group;
    if (!strcmp(name, "--connect-offsets"))
        return &a->offsets;
    if (!strcmp(name, "--connect-configs"))
        return &a->configs;
    return !strcmp(name, "--connector") ? &a->connector : NULL;
}

static bool *flag_option(struct takeover_args *a, const char *name)
{
    if (!strcmp(name, "--apply"))
        return &a->apply;
    if (!strcmp(name, "--fence"))
        return &a->fence;
    return !strcmp(name, "--back") ? &a->back : NULL;
}

/* What is wrong with the value; NULL: nothing. */
static const char *take_value(struct takeover_args *a, const char *name, char *v)
{
    int64_t seconds;

    if (!*v)
        return "needs a value";
    if (text_option(a, name))
        *text_option(a, name) = str_c(v);
    else if (!strcmp(name, "--from") && !take_from(a, v))
        return "takes mm2, replicator, mm1:GROUP, ureplicator:GROUP or brooklin:GROUP";
    else if (!strcmp(name, "--timeout") && (!str_to_i64(str_c(v), &seconds) || seconds < 1 || seconds > LIMIT_MAX_S))
        return "takes seconds, from 1 to 86400";
    else if (!strcmp(name, "--timeout"))
        a->limit_ms = seconds * 1000;
    return NULL;
}

/* Takes the options that are ours alone out of argv; gives what is left of argc, or 0 after a message. */
static int take_options(int argc, char **argv, struct takeover_args *a)
{
    int left = 1;

    for (int i = 1; i < argc; i++) {
        char *v = strchr(argv[i], '='), *name = argv[i];
        const char *fault;

        if (flag_option(a, name)) {
            *flag_option(a, name) = true;
            continue;
        }
        if (v && name[0] == '-' && strncmp(name, "--set", 5) != 0)
            *v++ = '\0';
        else
            v = NULL;
        if (!text_option(a, name) && strcmp(name, "--from") != 0 && strcmp(name, "--timeout") != 0) {
            if (v)
                v[-1] = '=';
            argv[left++] = name;
            continue;
        }
        if (!v && i + 1 < argc)
            v = argv[++i];
        fault = v ? take_value(a, name, v) : "needs a value";
        if (fault) {
            fprintf(stderr, "heliostat: %s %s\n", name, fault);
            return 0;
        }
    }
    return left;
}

/* What the options say together; NULL: it goes well. */
static const char *judge(const struct takeover_args *a, const struct file_args *args)
{
    if (args->offline)
        return "takeover has nothing to say --offline";
    if (a->fence && !a->apply)
        return "--fence only goes with --apply";
    if (a->back && (a->from != FROM_MM2 || a->fence))
        return "--back is the way back to MirrorMaker 2: it goes without --from and --fence";
    if (a->from == FROM_REPLICATOR && str_is_null(a->offsets))
        return "--from replicator needs --connect-offsets, the topic of offsets of its Connect workers";
    return NULL;
}

static int take_over(const struct config *config, const struct takeover_args *a)
{
    struct takeover t = { .config = config, .args = a };
    struct buf out;

    takeover_run(&t);
    for (size_t i = 0; i < t.flows_n; i++)
        if (fault_is_set(&t.flows[i].fault))
            fprintf(stderr, "heliostat: %.*s: %s: %s\n", STR_ARG(t.flows[i].config->name), t.flows[i].fault.code,
                    t.flows[i].fault.text);
    buf_init(&out, (size_t)GiB);
    if (a->json)
        takeover_put_json(&t, &out);
    else
        takeover_put_text(&t, &out);
    if (out.n)
        fwrite(out.p, 1, out.n, stdout);
    buf_fini(&out);
    fflush(stdout);
    deadline_set(END_LIMIT_S, t.code, NULL);
    takeover_end(&t);
    deadline_clear();
    return t.code;
}

static bool any_enabled(const struct config *c)
{
    for (size_t i = 0; i < c->flow_count; i++)
        if (c->flows[i].enabled)
            return true;
    return false;
}

static int run(const struct file_args *args, const struct takeover_args *a)
{
    const char *fault = judge(a, args);
    struct config *config = NULL;
    int code = 2;

    if (fault) {
        fprintf(stderr, "heliostat: %s\n", fault);
        return code;
    }
    log_setup(LOG_TEXT, LOG_ERROR, no_clock, say_nothing);
    if (config_load(&args->config, &config))
        file_args_print_problems(config);
    else if (!any_enabled(config))
        fprintf(stderr, "heliostat: %.*s: no flow is enabled\n", STR_ARG(config->file));
    else
        code = take_over(config, a);
    config_free(&config);
    return code;
}

int takeover_main(int argc, char **argv)
{
    struct takeover_args a = { .from_name = "mm2", .limit_ms = LIMIT_DEFAULT_S * 1000, .from_group = STR_NULL,
                               .offsets = STR_NULL, .configs = STR_NULL, .connector = STR_NULL, .group = STR_NULL };
    struct file_args args;
    int code;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            help();
            return 0;
        }
    }
    argc = take_options(argc, argv, &a);
    if (argc == 0)
        return 2;
    code = file_args_parse(argc, argv, true, &args);
    a.json = args.json;
    code = code ? code - 1 : run(&args, &a);
    file_args_fini(&args);
    return code;
}

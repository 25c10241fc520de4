/* conform.c -- plays all scripts of some files to one broker and prints what it answered.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   conform --sim 4.4 FILE...               to a simulated broker of that kind
 *   conform HOST:PORT 4.4 FILE...           to a real one; prints RESTART and waits for a line when all want a restart
 *   conform ... --only NAME                 one script
 *
 * All scripts go on until each is at its end or wants a restart, then there is one restart for all.
 */
#include "conform.h"

#include "base/must.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRIPTS_MAX 256
#define MACROS_MAX  64
#define WORDS_MAX   9

static const char *const levels[] = { "2.8", "3.9", "4.4" };
int conform_level;

static struct {
    struct script scripts[SCRIPTS_MAX];
    int scripts_n;
    struct name macros[MACROS_MAX];
    int macros_n;
    struct arena arena;
    const char *only;
} all;

static int level_of(struct str name)
{
    for (int i = 0; i < (int)COUNT(levels); i++)
        if (str_eq(name, str_c(levels[i])))
            return i;
    fprintf(stderr, "conform: no broker is of the kind %.*s\n", STR_ARG(name));
    exit(2);
}

static struct str next_word(struct str *rest)
{
    struct str w = STR("");

    *rest = str_trim(*rest);
    (void)str_next(rest, ' ', &w);
    return w;
}

static struct str macro_find(struct str name)
{
    for (int i = 0; i < all.macros_n; i++)
        if (str_eq(all.macros[i].name, name))
            return all.macros[i].value;
    return STR_NULL;
}

/* $1 to $9 become the words behind the macro's name, $0 all the others. */
static struct str put_words(struct str body, struct str rest)
{
    struct str words[WORDS_MAX], text;
    struct buf out;
    int n = 0, most = 0;

    for (size_t i = 0; i + 1 < body.n; i++)
        if (body.p[i] == '$' && body.p[i + 1] >= '1' && body.p[i + 1] <= '9')
            most = MAX(most, body.p[i + 1] - '0');
    while (n < most && (words[n] = next_word(&rest)).n)
        n++;
    buf_init(&out, 64 * KiB);
    for (size_t i = 0; i < body.n; i++) {
        int k = i + 1 < body.n && body.p[i] == '$' ? body.p[i + 1] - '1' : -2;

        if (k == -1)
            buf_put_str(&out, rest);
        else if (k >= 0 && k < n)
            buf_put_str(&out, words[k]);
        else
            buf_put_char(&out, body.p[i]);
        i += k >= -1 && k < n;
    }
    text = arena_str(&all.arena, buf_str(&out));
    buf_fini(&out);
    return text;
}

/* A macro is the first word (then "ask" is meant), the second, or the third behind "until CODE". */
static struct str expand(struct str line)
{
    struct str rest = line, before = STR("ask");

    for (int i = 0; i < 3; i++) {
        struct str w = next_word(&rest), body = macro_find(w);

        if (body.p)
            return arena_fmt(&all.arena, "%.*s %.*s", STR_ARG(before), STR_ARG(put_words(body, rest)));
        before = str_of(line.p, (size_t)(w.p - line.p) + w.n);
    }
    return line;
}

static void add_line(struct script *s, struct str line, int number)
{
    struct str rest = line, what = next_word(&rest), level;

    must_say(s->lines_n < LINES_MAX, "too many lines");
    if (str_eq(what, STR("only"))) {
        for (s->levels = 0; (level = next_word(&rest)).n;)
            s->levels |= 1u << level_of(level);
        return;
    }
    s->lines[s->lines_n].text = expand(line);
    s->lines[s->lines_n++].number = number;
}

/* script NAME: RULE */
static struct script *add_script(struct str rest, const char *file)
{
    struct script *s = &all.scripts[all.scripts_n++];

    must_say(all.scripts_n < SCRIPTS_MAX, "too many scripts");
    script_init(s);
    (void)str_next(&rest, ':', &s->name);
    s->rule = str_trim(rest);
    s->file = str_c(file);
    s->levels = ~0u;
    return s;
}

static void add_macro(struct str rest)
{
    struct str name = next_word(&rest);

    must_say(all.macros_n < MACROS_MAX, "too many macros");
    all.macros[all.macros_n++] = (struct name){ name, str_trim(rest) };
}

static struct str read_file(const char *path)
{
    FILE *f = fopen(path, "r");
    struct str kept;
    struct buf text;
    char bytes[4096];
    size_t n;

    if (!f) {
        fprintf(stderr, "conform: cannot read %s\n", path);
        exit(2);
    }
    buf_init(&text, 4 * MiB);
    while ((n = fread(bytes, 1, sizeof(bytes), f)) > 0)
        buf_put(&text, bytes, n);
    fclose(f);
    kept = arena_str(&all.arena, buf_str(&text));
    buf_fini(&text);
    return kept;
}

static void load(const char *path)
{
    struct str text = read_file(path), line;
    struct script *s = NULL;
    int number = 0;

    while (str_next(&text, '\n', &line)) {
        struct str rest = str_trim(line), what;

        number++;
        if (!rest.n || rest.p[0] == '#')
            continue;
        line = rest;
        what = next_word(&rest);
        if (str_eq(what, STR("macro")))
            add_macro(rest);
        else if (str_eq(what, STR("script")))
            s = add_script(str_trim(rest), path);
        else if (s)
            add_line(s, line, number);
        else
            must_say(false, "a line before the first script");
    }
}

static bool is_wanted(const struct script *s)
{
    return s->levels & 1u << conform_level && (!all.only || str_eq(s->name, str_c(all.only)));
}

static void play(void)
{
    bool more = true;

    while (more) {
        more = false;
        for (int i = 0; i < all.scripts_n; i++)
            if (is_wanted(&all.scripts[i]) && all.scripts[i].at < all.scripts[i].lines_n)
                more = !script_run(&all.scripts[i]) || more;
        if (more)
            peers_restart();
    }
    for (int i = 0; i < all.scripts_n; i++)
        if (is_wanted(&all.scripts[i]))
            printf("== %.*s: %.*s\n%s\n", STR_ARG(all.scripts[i].name), STR_ARG(all.scripts[i].rule),
                   buf_cstr(&all.scripts[i].out));
}

static void connect_to(struct str address, int level)
{
    struct str host;
    int64_t port = 0;

    conform_level = level;
    if (str_eq(address, STR("--sim"))) {
        peers_simulated(level);
        return;
    }
    if (!str_next(&address, ':', &host) || !str_to_i64(address, &port)) {
        fprintf(stderr, "conform: HOST:PORT is expected\n");
        exit(2);
    }
    peers_real(arena_str(&all.arena, host).p, (int)port);
}

int main(int argc, char **argv)
{
    arena_init(&all.arena, 64 * MiB);
    if (argc < 4) {
        fprintf(stderr, "usage: conform (--sim | HOST:PORT) LEVEL [--only NAME] FILE...\n");
        return 2;
    }
    connect_to(str_c(argv[1]), level_of(str_c(argv[2])));
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            all.only = argv[++i];
        else
            load(argv[i]);
    }
    play();
    return 0;
}

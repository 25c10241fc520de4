/* providers.c -- reads what ${provider:path:key} stands for.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A placeholder is "${" up to the next "}" with a ':' inside: the first one ends the provider's name, a
 * second one the path. The result is not looked at again. Files are kept while loading, so that many
 * keys of one file cost one read.
 */
#include "daemon/providers.h"

#include "base/alloc.h"
#include "daemon/config_internal.h"
#include "mirror/regex.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PROVIDERS_VALUE_MAX (1 * MiB) /* bytes of one file's content, and of a filled-in value */

enum kind { BY_FILE, BY_DIRECTORY, BY_ENV, KIND_COUNT };

static const struct str classes[KIND_COUNT] = {
    [BY_FILE] = STR("org.apache.kafka.common.config.provider.FileConfigProvider"),
    [BY_DIRECTORY] = STR("org.apache.kafka.common.config.provider.DirectoryConfigProvider"),
    [BY_ENV] = STR("org.apache.kafka.common.config.provider.EnvVarConfigProvider"),
};

struct provider {
    struct str name;
    enum kind kind;
    bool limited; /* allowed.paths was given */
    struct str_list allowed;
    struct regex *allowlist; /* of variable names; NULL: all */
};

struct file {
    struct file *next;
    struct str path;
    struct props props;
};

struct session {
    struct loader *l;
    struct provider *providers;
    size_t n;
    struct file *files;
    const struct prop *at; /* the entry being filled in */
};

static struct str param(struct loader *l, struct str name, const char *what, const struct prop **p)
{
    *p = config_find(l, STR("config.providers."), name, str_c(what));
    return *p ? str_trim((*p)->value) : STR_NULL;
}

/* "/a/./b/../c" as "/a/c", by its letters only, as Java's Path.normalize does. */
static struct str normal_path(struct arena *a, struct str path)
{
    struct str rest = path;
    struct str piece;
    char *out = arena_alloc(a, path.n + 2);
    size_t n = 0;

    while (str_next(&rest, '/', &piece)) {
        if (piece.n == 0 || str_eq(piece, STR(".")))
            continue;
        if (str_eq(piece, STR(".."))) {
            while (n > 0 && out[--n] != '/') {
            }
            continue;
        }
        out[n++] = '/';
        memcpy(out + n, piece.p, piece.n);
        n += piece.n;
    }
    return n ? str_of(out, n) : STR("/");
}

static bool is_below(struct str path, struct str base)
{
    return str_eq(base, STR("/")) ||
           (str_starts(path, base) && (path.n == base.n || path.p[base.n] == '/'));
}

static void read_allowed(struct loader *l, struct provider *v)
{
    const struct prop *p;
    struct str text = param(l, v->name, ".param.allowed.paths", &p);
    struct stat st;

    if (!p || text.n == 0)
        return;
    v->limited = true;
    v->allowed = opt_split(text, l->a);
    for (size_t i = 0; i < v->allowed.n; i++) {
        struct str *path = (struct str *)&v->allowed.at[i];

        if (path->n == 0 || path->p[0] != '/' || stat(path->p, &st))
            config_report(l, p, CONFIG_ERROR,
                          "element %zu is not an absolute path that exists; mend it", i + 1);
        *path = normal_path(l->a, *path);
    }
}

static void read_allowlist(struct loader *l, struct provider *v)
{
    const struct prop *p;
    struct str text = param(l, v->name, ".param.allowlist.pattern", &p);
    struct regex_error why;

    if (p && text.n && regex_compile(text, &v->allowlist, &why))
        config_report(l, p, CONFIG_ERROR, "%s", why.text);
}

/* Reads config.providers and what belongs to each. */
static void read_providers(struct session *s)
{
    struct loader *l = s->l;
    const struct prop *p = props_find(l->props, STR("config.providers"));
    struct str_list names = p ? opt_split(p->value, l->a) : (struct str_list){ .n = 0 };

    s->providers = arena_array(l->a, names.n + 1, sizeof(*s->providers));
    for (size_t i = 0; i < names.n; i++) {
        struct provider v = { .name = names.at[i], .kind = KIND_COUNT };
        const struct prop *at;
        struct str class = param(l, v.name, ".class", &at);

        if (v.name.n == 0)
            continue;
        for (int k = 0; k < KIND_COUNT; k++)
            if (at && str_eq(class, classes[k]))
                v.kind = (enum kind)k;
        if (!at)
            config_report(l, p, CONFIG_ERROR, "config.providers.%.*s.class is missing; write it",
                          STR_ARG(v.name));
        else if (v.kind == KIND_COUNT)
            config_report(l, at, CONFIG_ERROR,
                          "the Java class \"%.*s\" cannot run here; write FileConfigProvider, "
                          "DirectoryConfigProvider or EnvVarConfigProvider of "
                          "org.apache.kafka.common.config.provider",
                          STR_ARG(str_part(class, 0, 200)));
        if (v.kind == KIND_COUNT)
            continue;
        if (v.kind == BY_ENV)
            read_allowlist(l, &v);
        else
            read_allowed(l, &v);
        s->providers[s->n++] = v;
    }
}

static bool path_allowed(struct session *s, const struct provider *v, struct str path)
{
    struct str normal = normal_path(s->l->a, path);

    for (size_t i = 0; v->limited && i < v->allowed.n; i++)
        if (path.p[0] == '/' && is_below(normal, v->allowed.at[i]))
            return true;
    if (v->limited)
        config_report(s->l, s->at, CONFIG_WARNING,
                      "the path \"%.*s\" is outside of allowed.paths and was not read",
                      STR_ARG(path));
    return !v->limited;
}

/* A regular file's content; E_NOT_FOUND, E_LIMIT or E_SYSTEM. */
static enum err read_file(struct str path, struct buf *out)
{
    FILE *f;
    struct stat st;
    char chunk[16 * KiB];
    size_t n;
    enum err e;

    if (stat(path.p, &st))
        return errno == ENOENT ? E_NOT_FOUND : E_SYSTEM;
    if (!S_ISREG(st.st_mode))
        return E_NOT_FOUND;
    f = fopen(path.p, "rb");
    if (!f)
        return E_SYSTEM;
    while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
        buf_put(out, chunk, n);
    e = ferror(f) ? E_SYSTEM : out->bad ? E_LIMIT : E_OK;
    fclose(f);
    return e;
}

static struct file *open_file(struct session *s, struct str path)
{
    struct file *f;
    struct buf text;
    struct props_fault fault = { .line = 0, .text = "it cannot be read" };
    enum err e;

    for (f = s->files; f; f = f->next)
        if (str_eq(f->path, path))
            return f;
    f = arena_alloc(s->l->a, sizeof(*f));
    f->path = arena_str(s->l->a, path);
    props_init(&f->props, s->l->a);
    buf_init(&text, PROPS_BYTES_MAX);
    e = read_file(f->path, &text);
    if (!e)
        e = props_parse(&f->props, buf_str(&text), PROPS_UTF8, f->path, &fault);
    buf_fini(&text);
    if (e)
        config_report(s->l, s->at, CONFIG_ERROR,
                      "the file \"%.*s\" of a config provider, line %d: %s; mend it", STR_ARG(path),
                      fault.line, e == E_NOT_FOUND ? "there is no such file" : fault.text);
    f->next = s->files;
    s->files = f;
    return f;
}

static bool from_file(struct session *s, const struct provider *v, struct str path, struct str key,
                      struct buf *out)
{
    const struct prop *p;

    if (path.n == 0 || !path_allowed(s, v, path))
        return false;
    p = props_find(&open_file(s, path)->props, key);
    if (p)
        buf_put_str(out, p->value);
    return p != NULL;
}

static bool from_directory(struct session *s, const struct provider *v, struct str path,
                           struct str key, struct buf *out)
{
    struct buf content;
    bool found = false;
    enum err e;

    if (path.n == 0 || key.n == 0 || str_find(key, STR("/"), 0) >= 0 || !path_allowed(s, v, path))
        return false;
    buf_init(&content, PROVIDERS_VALUE_MAX);
    e = read_file(arena_fmt(s->l->a, "%.*s/%.*s", STR_ARG(path), STR_ARG(key)), &content);
    if (e && e != E_NOT_FOUND) {
        config_report(s->l, s->at, CONFIG_ERROR,
                      "the file \"%.*s/%.*s\" of a config provider: %s; mend it", STR_ARG(path),
                      STR_ARG(key), err_text(e));
    } else if (!e) {
        buf_put_str(out, buf_str(&content));
        found = true;
    }
    buf_fini(&content);
    return found;
}

static bool from_env(struct session *s, const struct provider *v, struct str path, struct str key,
                     struct buf *out)
{
    struct str name = arena_str(s->l->a, key);
    const char *value;

    if (path.n) {
        config_report(s->l, s->at, CONFIG_ERROR,
                      "a variable of the environment has no path; write ${%.*s:NAME}",
                      STR_ARG(v->name));
        return false;
    }
    if (v->allowlist && regex_match_full(v->allowlist, name) != REGEX_YES)
        return false;
    value = s->l->env ? s->l->env(name.p) : getenv(name.p);
    if (value)
        buf_put_str(out, str_c(value));
    return value != NULL;
}

/* What stands between the braces; false: it stays as it is. */
static bool fill(struct session *s, struct str inside, struct buf *out)
{
    struct str rest = inside;
    struct str name, path = STR(""), key;

    (void)str_next(&rest, ':', &name);
    key = rest;
    if (str_find(rest, STR(":"), 0) >= 0) {
        (void)str_next(&rest, ':', &path);
        key = rest;
    }
    path = arena_str(s->l->a, path);
    for (size_t i = 0; i < s->n; i++) {
        const struct provider *v = &s->providers[i];

        if (!str_eq(v->name, name))
            continue;
        if (v->kind == BY_FILE)
            return from_file(s, v, path, key, out);
        if (v->kind == BY_DIRECTORY)
            return from_directory(s, v, path, key, out);
        return from_env(s, v, path, key, out);
    }
    return false;
}

static void fill_value(struct session *s, struct prop *p, struct buf *out)
{
    struct str v = p->value;
    size_t at = 0;
    bool any = false;

    buf_clear(out);
    while (at < v.n) {
        int64_t open = str_find(v, STR("${"), at);
        int64_t close = open < 0 ? -1 : str_find(v, STR("}"), (size_t)open);
        struct str inside;

        if (close < 0)
            break;
        buf_put(out, v.p + at, (size_t)open - at);
        inside = str_part(v, (size_t)open + 2, (size_t)close);
        if (str_find(inside, STR(":"), 0) < 0) { /* another may begin inside */
            buf_put_str(out, STR("${"));
            at = (size_t)open + 2;
            continue;
        }
        if (fill(s, inside, out)) {
            any = true;
        } else {
            config_report(s->l, p, CONFIG_WARNING,
                          "the placeholder ${%.*s} was not filled in and stays as it is",
                          STR_ARG(inside));
            buf_put(out, v.p + open, (size_t)(close + 1 - open));
        }
        at = (size_t)close + 1;
    }
    if (!any)
        return;
    buf_put(out, v.p + at, v.n - at);
    config_entry_of(s->l, p)->resolved = true;
    if (out->bad || memchr(out->p, '\0', out->n))
        config_report(s->l, p, CONFIG_ERROR,
                      "what the config providers gave is too large or is no text; mend it");
    else
        p->value = arena_str(s->l->a, buf_str(out));
}

void providers_apply(struct loader *l)
{
    struct session s = { .l = l };
    struct buf out;

    read_providers(&s);
    buf_init(&out, PROVIDERS_VALUE_MAX);
    for (size_t i = 0; i < l->props->n; i++) {
        struct prop *p = &l->props->at[i];

        s.at = p;
        if (!str_starts(p->key, STR("config.providers")) && str_find(p->value, STR("${"), 0) >= 0)
            fill_value(&s, p, &out);
    }
    buf_fini(&out);
    for (size_t i = 0; i < s.n; i++)
        regex_free(&s.providers[i].allowlist);
}

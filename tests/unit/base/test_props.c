/* test_props.c -- .properties text against what java.util.Properties makes of it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/props.h"

#include "base/alloc.h"
#include "base/buf.h"

#include "unit/test.h"

/* All entries as "key<sep>value@line|". */
static enum err parse(struct str text, enum props_charset charset, struct buf *out,
                      struct props_fault *fault)
{
    struct arena a;
    struct props p;
    enum err e;

    arena_init(&a, 16 * MiB);
    props_init(&p, &a);
    e = props_parse(&p, text, charset, STR("f"), fault);
    buf_clear(out);
    for (size_t i = 0; i < p.n; i++)
        buf_fmt(out, "%.*s<>%.*s@%d|", STR_ARG(p.at[i].key), STR_ARG(p.at[i].value), p.at[i].line);
    arena_fini(&a);
    return e;
}

TEST(entries)
{
    static const struct {
        struct str text;
        const char *want;
    } cases[] = {
        { STR(""), "" },
        { STR("a=b"), "a<>b@1|" },
        { STR("a = b \n"), "a<>b @1|" },
        { STR("a:b\nc d\ne\tf\ng\fh"), "a<>b@1|c<>d@2|e<>f@3|g<>h@4|" },
        { STR("a  =  b=c"), "a<>b=c@1|" },
        { STR("a : = b"), "a<>= b@1|" },
        { STR("a b = c"), "a<>b = c@1|" },
        { STR("  \t\f a=b"), "a<>b@1|" },
        { STR("a"), "a<>@1|" },
        { STR("a="), "a<>@1|" },
        { STR("=b"), "<>b@1|" },
        { STR("# x\n ! y = z\n\n\r\n a=1"), "a<>1@5|" },
        { STR("#c \\\na=b"), "a<>b@2|" },                 /* comments never go on */
        { STR("a=1 # x"), "a<>1 # x@1|" },                /* and never begin in a value */
        { STR("a=1\rb=2\r\nc=3\nd=4"), "a<>1@1|b<>2@2|c<>3@3|d<>4@4|" },
        { STR("a=b\\\n   c\\\r\n\td\ne=f"), "a<>bcd@1|e<>f@4|" },
        { STR("a=b\\\\\nc=d"), "a<>b\\@1|c<>d@2|" },      /* two are one that does not join */
        { STR("a=b\\\\\\\nc=d"), "a<>b\\c=d@1|" },
        { STR("a=b\\\n#c\nd=e"), "a<>b#c@1|d<>e@3|" },    /* a joined line is no comment */
        { STR("a=b\\\n\nd=e"), "a<>b@1|d<>e@3|" },        /* joined with an empty line */
        { STR("a=b\\\n  \n d=e"), "a<>b@1|d<>e@3|" },
        { STR("\\\na=b"), "a<>b@2|" },
        { STR("\\\n#x\na=b"), "a<>b@3|" },
        { STR("a=b\\"), "a<>b@1|" },
        { STR("a\\ b\\=c\\:d = e"), "a b=c:d<>e@1|" },
        { STR("k=\\t|\\n|\\r|\\f|\\q|\\\"|\\\\"), "k<>\t|\n|\r|\f|q|\"|\\@1|" },
        { STR("t=foo\\\\.bar, a\\.b"), "t<>foo\\.bar, a.b@1|" },
        { STR("u=\\u0041\\u00fC\\u20ac"), "u<>A\xc3\xbc\xe2\x82\xac@1|" },
        { STR("u=\\ud83d\\ude00!"), "u<>\xf0\x9f\x98\x80!@1|" },
        { STR("u=\\ud83d\\u0041\\ude00\\ud83dx"), "u<>?A??x@1|" },
        { STR("\\u0061=1"), "a<>1@1|" },
        { STR("a\\\n b=c"), "ab<>c@1|" },
        { STR("a=1\nb=2\na=3"), "a<>3@3|b<>2@2|" },
        { STR("A->B.enabled = true"), "A->B.enabled<>true@1|" },
        { STR("A -> B.enabled = true"), "A<>-> B.enabled = true@1|" },
        { STR("clusters: a, b"), "clusters<>a, b@1|" },
        { STR("a=\xfc"), "a<>\xc3\xbc@1|" },              /* ISO-8859-1 */
        { STR("\xef\xbb\xbf" "a=b"), "a<>b@1|" },         /* a byte order mark */
        { STR("!\n=\n"), "<>@2|" },
    };
    struct props_fault fault;
    struct buf out;

    buf_init(&out, MiB);
    for (size_t i = 0; i < COUNT(cases); i++) {
        CHECK_EQ(parse(cases[i].text, PROPS_LATIN1, &out, &fault), E_OK);
        check_str(buf_str(&out), str_c(cases[i].want), __FILE__, (int)i);
    }
    CHECK_EQ(parse(STR("a=\xc3\xbc"), PROPS_UTF8, &out, &fault), E_OK);
    CHECK_STR(buf_str(&out), "a<>\xc3\xbc@1|");
    buf_fini(&out);
}

TEST(malformed)
{
    static const struct {
        struct str text;
        int line;
    } cases[] = {
        { STR("a=1\nb=\\u12"), 2 }, { STR("a=\\u12g4"), 1 },  { STR("\\u=1"), 1 },
        { STR("a=\\u0000"), 1 },    { STR("a=x\0y"), 1 },     { STR("a=1\\\n2\n\nb=\\u-123"), 4 },
        { STR("a=\\u 123"), 1 },
    };
    struct props_fault fault;
    struct buf out;

    buf_init(&out, MiB);
    for (size_t i = 0; i < COUNT(cases); i++) {
        CHECK_EQ(parse(cases[i].text, PROPS_LATIN1, &out, &fault), E_MALFORMED);
        CHECK_EQ(fault.line, cases[i].line);
    }
    buf_fini(&out);
}

TEST(twice)
{
    struct props_fault fault;
    struct arena a;
    struct props p;
    struct prop *at;

    arena_init(&a, MiB);
    props_init(&p, &a);
    CHECK_EQ(props_parse(&p, STR("a=1\n\nb=2\na=3"), PROPS_LATIN1, STR("f"), &fault), E_OK);
    at = props_find(&p, STR("a"));
    CHECK_STR(at->value, "3");
    CHECK_EQ(at->line, 4);
    CHECK_EQ(at->before, 1);
    /* What comes from elsewhere replaces without being a repetition. */
    CHECK_EQ(props_put(&p, STR("a"), STR("4"), STR("--set"), 1), E_OK);
    at = props_find(&p, STR("a"));
    CHECK_STR(at->value, "4");
    CHECK_STR(at->file, "--set");
    CHECK_EQ(at->before, 0);
    CHECK_EQ(p.n, 2);
    CHECK(!props_find(&p, STR("c")));
    arena_fini(&a);
}

TEST(many)
{
    struct props_fault fault;
    struct arena a;
    struct props p;
    struct buf text;

    buf_init(&text, PROPS_BYTES_MAX + 10);
    for (int i = 0; i <= PROPS_KEYS_MAX; i++)
        buf_fmt(&text, "k%d=%d\n", i, i);
    arena_init(&a, 64 * MiB);
    props_init(&p, &a);
    CHECK_EQ(props_parse(&p, buf_str(&text), PROPS_LATIN1, STR("f"), &fault), E_LIMIT);
    CHECK_EQ(fault.line, PROPS_KEYS_MAX + 1);
    CHECK_EQ(p.n, PROPS_KEYS_MAX);
    CHECK_STR(props_find(&p, STR("k49999"))->value, "49999");
    CHECK_STR(props_find(&p, STR("k0"))->value, "0");
    while (text.n <= PROPS_BYTES_MAX)
        buf_put_char(&text, 'x');
    CHECK_EQ(props_parse(&p, buf_str(&text), PROPS_LATIN1, STR("f"), &fault), E_LIMIT);
    buf_fini(&text);
    arena_fini(&a);
    /* A small arena is a limit, not a crash. */
    arena_init(&a, 4 * KiB);
    props_init(&p, &a);
    buf_init(&text, MiB);
    for (int i = 0; i < 1000; i++)
        buf_fmt(&text, "k%d=%d\n", i, i);
    CHECK_EQ(props_parse(&p, buf_str(&text), PROPS_LATIN1, STR("f"), &fault), E_LIMIT);
    buf_fini(&text);
    arena_fini(&a);
}

TESTS(RUN(entries), RUN(malformed), RUN(twice), RUN(many))

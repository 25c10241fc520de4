/* regex_node.h -- the tree between Java's syntax and PCRE2's, private to the regex_*.c files.
 * SPDX-License-Identifier: Apache-2.0
 *
 * regex_java.c, regex_class.c and regex_prop.c parse into it, regex_behind.c gives look-behinds a length,
 * regex_emit.c writes it out. Flags are resolved while parsing: no node depends on one. All of it lives in
 * the parser's arena, whose maximum is proportional to the pattern.
 */
#ifndef MIRROR_REGEX_NODE_H
#define MIRROR_REGEX_NODE_H

#include "base/arena.h"
#include "base/buf.h"
#include "mirror/regex.h"

#define REGEX_GROUPS_MAX    1000
#define REGEX_DEPTH_MAX     200
#define REGEX_SET_DEPTH_MAX 1000  /* joined classes that need brackets of their own */
#define REGEX_REPEAT_MAX    65535 /* PCRE2's limit */
#define REGEX_BEHIND_MAX    255   /* longest look-behind, in characters */

/* One character out of a set. */
enum set_type { SET_RANGE, SET_BITS, SET_TEXT, SET_NOT, SET_OR, SET_AND };

struct set {
    uint8_t type;   /* enum set_type */
    bool plain;     /* ranges, bits and texts only: one [...] holds it */
    uint16_t depth; /* of what is not plain */
    union {
        struct {
            uint32_t lo, hi; /* RANGE */
        };
        uint64_t bits[4]; /* BITS: characters below 256; shared while a class is being parsed */
        const char *text; /* TEXT: PCRE2's words, fit for inside of [...] */
        struct {
            struct set *a, *b; /* NOT has a only */
        };
    };
};

enum node_type {
    NODE_EMPTY,
    NODE_CHAR,   /* the character c itself */
    NODE_ONE,    /* one character of set */
    NODE_SEQ,    /* kids one after another */
    NODE_ALT,    /* one of kids, in order */
    NODE_GROUP,  /* kids; group > 0: capturing */
    NODE_ATOMIC, /* kids, never entered again */
    NODE_LOOK,   /* kids, looked at only */
    NODE_REPEAT, /* kids, min to max times */
    NODE_REF,    /* what group captured */
    NODE_WHERE,  /* a condition on the place: text */
};

enum repeat_how { REPEAT_GREEDY, REPEAT_LAZY, REPEAT_POSSESSIVE };

/* Packed with unions: a pattern of half a million characters is as many nodes. */
struct node {
    struct node *kids; /* SEQ and ALT: the first of a list; the other types have one */
    struct node *next; /* in the parent's list */
    union {
        struct set *set;  /* ONE */
        const char *text; /* WHERE */
        uint32_t c;       /* CHAR */
        int32_t group;    /* GROUP, REF */
        struct {
            int32_t min, max; /* REPEAT; max < 0: no end */
        };
    };
    uint8_t type;          /* enum node_type */
    uint8_t how;           /* REPEAT: enum repeat_how */
    bool behind, negative; /* LOOK */
    bool nocase;           /* REF */
    bool endless;          /* ATOMIC: Java sees no maximum length */
    bool certain;          /* ALT: Java takes it for deterministic */
};

/* Java's inline flags. */
enum {
    FLAG_UNIX_LINES = 1 << 0,   /* d */
    FLAG_NO_CASE = 1 << 1,      /* i */
    FLAG_COMMENTS = 1 << 2,     /* x */
    FLAG_MULTILINE = 1 << 3,    /* m */
    FLAG_DOTALL = 1 << 4,       /* s */
    FLAG_UNICODE_CASE = 1 << 5, /* u */
    FLAG_UNICODE_CLASS = 1 << 6 /* U */
};

struct group_name {
    struct group_name *next;
    struct str name; /* ASCII */
    int group;
};

struct parser {
    struct arena *a;
    const uint32_t *c;    /* the pattern's characters after \Q...\E was resolved */
    const uint32_t *from; /* where each stood in the pattern, in bytes */
    size_t n, at;
    unsigned flags;
    int depth;
    int groups; /* capturing groups opened so far */
    bool refs;  /* there are back-references, or what groups have matched is wanted */
    bool *repeated; /* by group, when wanted: Java and PCRE2 would keep different matches of it */
    struct group_name *names;
    uint32_t exact_to; /* names with higher characters: unsure */
    bool exact_cr;     /* names with a carriage return: sure */
    const char *exact_why;
    struct regex_error *why;
    bool failed;
};

/* --- cursor: the four ways in which Java moves over a pattern, blanks skipped under (?x) --- */
uint32_t regex_peek(struct parser *p); /* the next that counts */
uint32_t regex_next(struct parser *p); /* moves on, then peeks */
uint32_t regex_read(struct parser *p); /* takes one */
uint32_t regex_skip(struct parser *p); /* takes the one behind the next; blanks count */
static inline uint32_t regex_at(const struct parser *p, size_t i)
{
    return i < p->n ? p->c[i] : 0;
}

/* Notes the first failure and moves to the end, so that every loop comes to rest. */
void regex_fail(struct parser *p, const char *what);
void regex_refuse(struct parser *p, const char *what); /* Java would take it */
/* The translation holds for names whose characters are <= to. */
void regex_only(struct parser *p, uint32_t to, const char *why);

struct node *regex_node(struct parser *p, enum node_type type);
struct node *regex_one(struct parser *p, struct set *set);
struct set *regex_set(struct parser *p, enum set_type type, struct set *a, struct set *b);
struct set *regex_range(struct parser *p, uint32_t lo, uint32_t hi);
struct set *regex_text(struct parser *p, const char *text); /* text is static */

/* Reads a name from c on, with the '>' behind it. */
struct str regex_group_name(struct parser *p, uint32_t c);
int regex_group_open(struct parser *p); /* its number */
void regex_group_call(struct parser *p, struct str name, int group);
int regex_group_find(const struct parser *p, struct str name); /* 0: none */

/* --- regex_java.c --- */
struct node *regex_parse(struct parser *p);

/* --- regex_class.c --- */
/* A set, or one character when set is NULL. */
struct escape {
    struct set *set;
    uint32_t c;
};
/* The set between [ and ]; the cursor is at the [, or at what goes before the first item. Without
 * consume the ] is left for the caller (the right side of &&). */
struct set *regex_class(struct parser *p, bool consume);
/* At the backslash of an escape for characters. in_range: a '-' stands beside it, so \v is one character. */
struct escape regex_escape(struct parser *p, bool in_class, bool in_range);
/* The set that one literal character stands for under the flags; NULL: only itself. */
struct set *regex_literal(struct parser *p, uint32_t c);

/* --- regex_prop.c --- */
/* At the p or P of a property. */
struct set *regex_property(struct parser *p, bool negative);
struct set *regex_shorthand(struct parser *p, uint32_t letter); /* d D h H s S v V w W */

/* --- regex_behind.c --- */
/* Gives every look-behind below n a fixed length per alternative, or fails. */
void regex_settle_behind(struct parser *p, struct node *n);

/* --- regex_emit.c --- */
void regex_emit(const struct parser *p, const struct node *n, struct buf *out);

#endif

/* list.h -- doubly linked list through nodes embedded in their objects.
 * SPDX-License-Identifier: Apache-2.0
 *
 * utlist wants two pointers of the object's own type per list; an object here sits on several
 * lists of mixed owners, so nodes are their own type. A node that is on no list points to itself.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include "base/util.h"

struct list_node {
    struct list_node *next, *prev;
};

/* The head of a list is a node too; an empty list's head points to itself. */
static inline void list_init(struct list_node *n)
{
    n->next = n->prev = n;
}

static inline bool list_is_empty(const struct list_node *head)
{
    return head->next == head;
}

static inline bool list_is_linked(const struct list_node *n)
{
    return n->next != n;
}

static inline void list_insert_before(struct list_node *at, struct list_node *n)
{
    n->prev = at->prev;
    n->next = at;
    at->prev->next = n;
    at->prev = n;
}

static inline void list_add_tail(struct list_node *head, struct list_node *n)
{
    list_insert_before(head, n);
}

static inline void list_add_head(struct list_node *head, struct list_node *n)
{
    list_insert_before(head->next, n);
}

/* Taking off a node that is on no list is harmless. */
static inline void list_remove(struct list_node *n)
{
    n->prev->next = n->next;
    n->next->prev = n->prev;
    list_init(n);
}

/* The first node, or NULL. */
static inline struct list_node *list_first(const struct list_node *head)
{
    return list_is_empty(head) ? NULL : head->next;
}

#define LIST_EACH(it, head) for ((it) = (head)->next; (it) != (head); (it) = (it)->next)
/* `next` keeps the way on, so that `it` may be removed. */
#define LIST_EACH_SAFE(it, after, head)                                                            \
    for ((it) = (head)->next, (after) = (it)->next; (it) != (head);                                \
         (it) = (after), (after) = (it)->next)

#endif

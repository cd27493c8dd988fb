/* SPDX-License-Identifier: MIT */
#pragma once

/* Doubly linked, circular, intrusive list. A `struct list` is both head and node; an element that is on
 * no list points to itself, so unlinking twice is harmless. The comment at the head names what
 * the list holds. */

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next, *prev;
};

#define LIST_INIT(l) ((struct list) {&(l), &(l)})

static inline void list_init(struct list *l) {
    l->next = l->prev = l;
}
static inline bool list_is_empty(const struct list *l) {
    return l->next == l;
}
/* Returns whether a node is on a list. */
static inline bool list_is_linked(const struct list *l) {
    return l->next != l;
}
static inline void list_insert_before(struct list *where, struct list *node) {
    node->prev = where->prev;
    node->next = where;
    where->prev->next = node;
    where->prev = node;
}
static inline void list_append(struct list *head, struct list *node) {
    list_insert_before(head, node);
}
static inline void list_unlink(struct list *node) {
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

#define list_entry(node, type, member) ((type *) (void *) ((char *) (node) - offsetof(type, member)))

/* Evaluates to the first element, or NULL. */
#define list_first(head, type, member) \
    (list_is_empty(head) ? NULL : list_entry((head)->next, type, member))

#define list_foreach(item, head, type, member)                                                \
    for (type *item = list_entry((head)->next, type, member); &item->member != (head);        \
         item = list_entry(item->member.next, type, member))

/* Only the current element may be unlinked or freed inside the loop. */
#define list_foreach_safe(item, head, type, member)                                           \
    for (type *item = list_entry((head)->next, type, member),                                 \
              *item##_next = list_entry(item->member.next, type, member);                     \
         &item->member != (head);                                                             \
         item = item##_next, item##_next = list_entry(item##_next->member.next, type, member))

/* SPDX-License-Identifier: MIT */

/* Events: the events of this host, for clients that read at their own speed. Events wait in a ring
 * (base/journal/event-ring.h), which drops the oldest. So a slow client costs a bounded buffer and delays
 * nobody. */

#include <errno.h>
#include <string.h>

#include "base/journal/event-ring.h"
#include "base/number.h"
#include "base/timer.h"
#include "daemon/api/verbs-internal.h"

/* Bytes that wait for one client before its next events stay in the ring. Well below the size at which
 * control-client.c considers a client slow. */
#define WAITING_MAX ((size_t) 128 << 10)
#define EVENTS_A_TURN 8 /* of one client; then more urgent work is done */
#define PRIORITY (SD_EVENT_PRIORITY_NORMAL + 11) /* after calls of clients */
#define AT_SIZE (EVENT_RING_NAME_SIZE + 24)

struct watcher { /* one call */
    struct place place;
    struct event_reader reader;
    struct event_ring *ring;
    struct control_call *call;
    struct defer work;
    uint64_t next; /* BERTH_SEQ of the next event */
    bool wanted[EVENT_TYPES];
};

static struct list places = {&places, &places};

static struct watcher *watcher_free(struct watcher *w) {
    if (!w)
        return NULL;
    list_unlink(&w->place.link);
    event_ring_leave(w->ring, &w->reader);
    defer_done(&w->work);
    free(w);
    return NULL;
}
DEFINE_CLEANUP(struct watcher, watcher_free)

/* --- replies --- */

static const char *format_at(const struct event_ring *ring, uint64_t seq, char buffer[static AT_SIZE]) {
    (void) snprintf(buffer, AT_SIZE, "%s:%" PRIu64, event_ring_name(ring), seq);
    return buffer;
}

static json_t *json_fields(const char *fields) {
    json_t *object = json_object();
    int k = object ? 0 : -1;

    for (const char *field = fields; k == 0 && field[0]; field += strlen(field) + 1) {
        size_t length = strcspn(field, "=");

        k = json_object_setn_new(object, field, length, json_string(field + length + 1));
    }
    return json_complete(object, k);
}

static void send_event(const struct watcher *w, const struct kept_event *event) {
    char at[AT_SIZE], time[CLOCK_TEXT_SIZE];
    json_t *fields = json_fields(event->fields);

    (void) control_call_notify(w->call,
                               fields ? json_pack("{s:{s:s, s:s, s:s, s:s, s:o}, s:n, s:n}", "event", "at",
                                                  format_at(w->ring, event->seq, at), "time",
                                                  clock_format(event->realtime, time), "event",
                                                  event_name(event->type), "message", event->message,
                                                  "fields", fields, "missed", "at")
                                      : NULL,
                               -1);
}

/* missed: how many events before `next`; -1: unknown. */
static void send_missed(const struct watcher *w, json_int_t missed) {
    char at[AT_SIZE];

    (void) control_call_notify(
        w->call,
        json_pack("{s:n, s:I, s:s}", "event", "missed", missed, "at", format_at(w->ring, w->next - 1, at)),
        -1);
}

/* Handles one event, or all that the ring has dropped. Returns false if the client has all events. */
static bool watcher_step(struct watcher *w) {
    uint64_t first = event_ring_first(w->ring), next = w->next;
    const struct kept_event *event;

    if (next < first) {
        w->next = first;
        send_missed(w, (json_int_t) (first - next));
        return true;
    }
    event = event_ring_get(w->ring, next);
    if (!event)
        return false;
    w->next++;
    if (w->wanted[event->type])
        send_event(w, event);
    return true;
}

/* Pauses if the client is slow or has all events: watcher_on_room() and watcher_on_event() go on. */
static void watcher_on_work(void *userdata) {
    struct watcher *w = userdata;

    for (unsigned i = 0; i < EVENTS_A_TURN; i++)
        if (control_call_count_waiting(w->call) >= WAITING_MAX || !watcher_step(w))
            return;
    defer_set(&w->work);
}

static void watcher_on_room(void *userdata) {
    struct watcher *w = userdata;

    defer_set(&w->work);
}

/* Defers the sending, because whoever logs an event has more urgent work. */
static void watcher_on_event(struct event_reader *reader) {
    defer_set(&list_entry(reader, struct watcher, reader)->work);
}

static void watcher_on_gone(_unused_ struct control_call *call, void *userdata) {
    watcher_free(userdata);
}

/* --- the request --- */

/* Reads "DAEMON:SEQ". Returns whether it has that form. */
static bool parse_at(const char *text, char name[static EVENT_RING_NAME_SIZE], uint64_t *ret_seq) {
    size_t length = EVENT_RING_NAME_SIZE - 1;

    if (strspn(text, "0123456789abcdef") != length || text[length] != ':')
        return false;
    memcpy(name, text, length);
    name[length] = '\0';
    return number_parse(text + length + 1, NUMBER_MAX, ret_seq) == 0;
}

/* Returns 0 or VERBS_ANSWERED. */
static int read_names(struct control_call *call, const json_t *names, bool wanted[static EVENT_TYPES]) {
    json_t *item;
    size_t i;

    for (enum event_type type = 0; type < EVENT_TYPES; type++)
        wanted[type] = !names;
    json_array_foreach (names, i, item) {
        enum event_type type = 0;

        while (type < EVENT_TYPES && strcmp(event_name(type), json_string_value(item)) != 0)
            type++;
        if (type == EVENT_TYPES) {
            (void) verbs_bad_request(call, "there is no event \"%.64s\"; berth-events(7) lists them",
                                     json_string_value(item));
            return VERBS_ANSWERED;
        }
        wanted[type] = true;
    }
    return 0;
}

/* Finds the first event to send, and replies with its place. */
static void watcher_begin(struct watcher *w, const char *name, uint64_t seq) {
    uint64_t last = event_ring_last(w->ring);
    bool is_ours = name && strcmp(name, event_ring_name(w->ring)) == 0 && seq <= last;

    w->next = (is_ours ? seq : last) + 1;
    send_missed(w, name && !is_ours ? -1 : 0);
    defer_set(&w->work);
}

static int watch(struct control_call *call, struct manager *m, const char *name, uint64_t seq,
                 const bool wanted[static EVENT_TYPES]) {
    _cleanup_(watcher_freep) struct watcher *w = calloc(1, sizeof(*w));
    int r;

    if (!w)
        return -ENOMEM;
    list_init(&w->place.link);
    w->call = call;
    w->ring = events_get_ring(manager_events(m));
    w->reader.on_event = watcher_on_event;
    memcpy(w->wanted, wanted, sizeof(w->wanted));
    r = places_take(&places, &w->place, call, "watch");
    if (r != 0)
        return r < 0 ? r : 0;
    r = defer_init(&w->work, manager_event(m), PRIORITY, watcher_on_work, w);
    if (r >= 0)
        r = event_ring_join(w->ring, &w->reader);
    if (r < 0)
        return r;
    control_call_keep(call, watcher_on_gone, w);
    control_call_await_room(call, watcher_on_room);
    watcher_begin(steal_pointer(&w), name, seq);
    return 0;
}

int verbs_events(struct control_call *call, json_t *params, void *userdata) {
    struct manager *m = userdata;
    char name[EVENT_RING_NAME_SIZE];
    const char *since = NULL;
    bool wanted[EVENT_TYPES];
    json_t *names = NULL;
    uint64_t seq = 0;
    const struct param table[] = {{"since", PARAM_STRING, false, &since, 0, 0},
                                  {"events", PARAM_STRINGS, false, &names, 0, 0}};
    int k = params_read(call, params, table, ELEMENTSOF(table));

    if (k != 0)
        return k;
    if (!control_call_wants_more(call))
        return verbs_bad_request(call, "Events has many replies; call it with \"more\"");
    if (since && !parse_at(since, name, &seq))
        return verbs_bad_request(call, "since must be the place of an event, such as 1f2e3d4c:17");
    if (read_names(call, names, wanted) != 0)
        return 0;
    return watch(call, m, since ? name : NULL, seq, wanted);
}

/* SPDX-License-Identifier: MIT */
#include "web/plain-page.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/format.h"

#define CLAIMS_SHOWN 20 /* of one pool */
#define POOLS_SHOWN 500

static void put_text(FILE *f, const char *text) {
    for (; text && *text; text++)
        switch (*text) {
        case '&':
            fputs("&amp;", f);
            break;
        case '<':
            fputs("&lt;", f);
            break;
        case '>':
            fputs("&gt;", f);
            break;
        case '"':
            fputs("&quot;", f);
            break;
        default:
            fputc(*text, f);
        }
}

static void put_cell(FILE *f, const char *text) {
    fputs("<td>", f);
    put_text(f, text);
}

static void put_number(FILE *f, json_int_t number) {
    fprintf(f, "<td>%" JSON_INTEGER_FORMAT, number);
}

static void put_claims(FILE *f, const json_t *pool, const char *key) {
    json_t *claims = json_object_get(pool, key), *claim;
    size_t i;

    json_array_foreach (claims, i, claim) {
        if (i == CLAIMS_SHOWN) {
            fprintf(f, "and %zu more", json_array_size(claims) - i);
            break;
        }
        fputs(i > 0 ? ", " : "", f);
        put_text(f, format_get_text(claim, "host"));
        fputc(':', f);
        put_text(f, format_get_text(claim, "name"));
        fprintf(f, " x%" JSON_INTEGER_FORMAT, format_get_number(claim, "permits"));
    }
}

static void put_pool(FILE *f, const json_t *pool) {
    const json_t *override = json_object_get(pool, "override");

    fputs("<tr><th scope=row>", f);
    put_text(f, format_get_text(pool, "name"));
    put_number(f, format_get_number(pool, "used"));
    put_number(f, format_get_number(pool, "limit"));
    put_number(f, format_get_number(pool, "waiting"));
    put_cell(f,
             json_is_object(override) ? format_get_number(pool, "limit") == 0 ? "paused" : "override" : "");
    if (json_is_true(json_object_get(pool, "limits_differ")))
        fputs(" limits differ", f);
    fputs("<td>", f);
    put_claims(f, pool, "holders");
    fputs("<td>", f);
    put_claims(f, pool, "queue");
}

static void put_pools(FILE *f, const struct board *b) {
    json_t *pool;
    size_t i;

    fputs("<h2>Pools</h2><table><tr><th>pool<th>used<th>limit<th>waiting<th>note<th>holds<th>waits", f);
    json_array_foreach ((json_t *) board_pools(b), i, pool)
        if (i < POOLS_SHOWN)
            put_pool(f, pool);
    fputs("</table>", f);
}

static void put_hosts(FILE *f, const struct board *b) {
    json_t *reply = board_hosts_reply(b), *host;
    size_t i;

    fputs("<h2>Hosts</h2><table><tr><th>host<th>version<th>claims<th>seen<th>note", f);
    json_array_foreach (json_object_get(reply, "hosts"), i, host) {
        json_t *seen = json_object_get(host, "seen_ms");
        char ago[FORMAT_SIZE];

        fputs("<tr><th scope=row>", f);
        put_text(f, format_get_text(host, "host"));
        put_cell(f, format_get_text(host, "version"));
        put_number(f, format_get_number(host, "claims"));
        fputs("<td>", f);
        if (json_is_integer(seen))
            fprintf(f, "%s ago", format_msec(json_integer_value(seen), ago));
        put_cell(f, json_is_true(json_object_get(host, "drained")) ? "drained" : "");
    }
    fputs("</table>", f);
    json_decref(reply);
}

static void put_state(FILE *f, const struct board *b) {
    json_t *gone = board_gone(b), *overview = board_overview(b);
    char ago[FORMAT_SIZE];

    fputs("<p>Host ", f);
    put_text(f, format_get_text(overview, "host"));
    fputs(", namespace ", f);
    put_text(f, format_get_text(overview, "namespace"));
    fputs(". Redis: ", f);
    put_text(f, format_get_text(json_object_get(overview, "redis"), "state"));
    if (board_age(b) != USEC_INFINITY)
        fprintf(f, ". Seen %s ago", format_msec((json_int_t) (board_age(b) / USEC_PER_MSEC), ago));
    fputs(".</p>", f);
    if (gone) {
        fputs("<p><strong>berthd does not answer: ", f);
        put_text(f, format_get_text(gone, "why"));
        fputs("</strong></p>", f);
    }
    json_decref(gone);
    json_decref(overview);
}

char *plain_page_make(const struct board *b, size_t *ret_size) {
    char *text = NULL;
    FILE *f = open_memstream(&text, ret_size);

    if (!f)
        return NULL;
    fputs("<!doctype html><html lang=en><meta charset=utf-8><meta http-equiv=refresh content=10>"
          "<meta name=viewport content='width=device-width'><title>berth</title>"
          "<link rel=stylesheet href=berth.css><body class=plain><main><h1>berth</h1>", f);
    put_state(f, b);
    put_pools(f, b);
    put_hosts(f, b);
    fputs("</main></body></html>\n", f);
    if (fclose(f) == 0)
        return text;
    free(text);
    return NULL;
}

/* SPDX-License-Identifier: MIT */
/* hiredis asks for IPv4 first, and tries the first address only, so it is given one address at a
 * time, as a number. */
#include "redis/hosts.h"
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>

static bool hosts_has(const struct hosts *h, const char *text)
{
    for (unsigned i = 0; i < h->n; i++) {
        if (strcmp(h->at[i], text) == 0) {
            return true;
        }
    }
    return false;
}

static void hosts_add(struct hosts *h, const char *text)
{
    if (h->n < HOSTS_MAX && !hosts_has(h, text)) {
        memcpy(h->at[h->n++], text, strlen(text) + 1);
    }
}

static bool host_text(const struct addrinfo *a, char out[HOSTS_TEXT])
{
    return getnameinfo(a->ai_addr, a->ai_addrlen, out, HOSTS_TEXT, NULL, 0, NI_NUMERICHOST) == 0;
}

/* In the order of the resolver; but the good one comes first, if it still is one of them. */
static void hosts_look_up(struct hosts *h, const char *name, const char **why)
{
    const struct addrinfo wanted = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *all = NULL;
    char text[HOSTS_TEXT];

    h->n = h->next = 0;

    int err = getaddrinfo(name, NULL, &wanted, &all);
    if (err) {
        *why = gai_strerror(err);
        return;
    }

    for (const struct addrinfo *a = all; a; a = a->ai_next) {
        if (host_text(a, text) && strcmp(text, h->good) == 0) {
            hosts_add(h, text);
        }
    }

    for (const struct addrinfo *a = all; a; a = a->ai_next) {
        if (host_text(a, text)) {
            hosts_add(h, text);
        }
    }

    freeaddrinfo(all);
    *why = "the name has no address";
}

const char *hosts_next(struct hosts *h, const char *name, const char **why)
{
    if (!hosts_left(h)) {
        hosts_look_up(h, name, why);
    }
    return hosts_left(h) ? h->at[h->next++] : NULL;
}

void hosts_good(struct hosts *h)
{
    if (h->next > 0) {
        memcpy(h->good, h->at[h->next - 1], HOSTS_TEXT);
    }
}

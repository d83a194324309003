/* SPDX-License-Identifier: MIT */
#include "set_clock.h"
#include "test.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct wall_clock *clock_begin(char path[CLOCK_PATH])
{
    char shim[4096];
    char asan[4096];
    int fd;

    test_dir(path, 48);
    strcat(path, "/clock");
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    cr_assert(fd >= 0 && !ftruncate(fd, sizeof(struct wall_clock)), "%s: %m", path);

    struct wall_clock *c = mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    cr_assert(c != MAP_FAILED);
    close(fd);
    snprintf(shim, sizeof shim, "%s/preload/clock.so", test_build());
    cr_assert(!access(shim, R_OK), "%s: %m", shim);
    snprintf(asan, sizeof asan, "%s:verify_asan_link_order=0",
             getenv("ASAN_OPTIONS") ? getenv("ASAN_OPTIONS") : "");
    /* of a lapse built with it: the shim comes before its runtime */
    setenv("ASAN_OPTIONS", asan, 1);
    setenv("LAPSE_CLOCK", path, 1);
    setenv("LD_PRELOAD", shim, 1);

    return c;
}

void clock_end(struct wall_clock *c, char path[CLOCK_PATH])
{
    munmap(c, sizeof *c);
    *strrchr(path, '/') = '\0';
    test_dir_remove(path);
}

void clock_not_for_others(void)
{
    unsetenv("LAPSE_CLOCK");
    unsetenv("LD_PRELOAD");
}

static int64_t monotonic_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

void clock_slew(struct wall_clock *c, int64_t ppm)
{
    int64_t now = monotonic_us();
    c->step_us = c->step_us + (now - c->since_us) * c->slew_ppm / 1000000; /* where it is by now */
    c->since_us = now;
    c->slew_ppm = ppm;
}

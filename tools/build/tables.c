/* SPDX-License-Identifier: MIT */
/* Prints a table of tools/doc, from the lists that the library itself is made of. */
#include "api/options.h"
#include <inttypes.h>
#include <stdio.h>

static void print_duration(int64_t ms)
{
    static const struct {
        int64_t ms;
        const char *unit;
    } units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};
    size_t i = 0;

    if (ms == 0) {
        printf("0");
        return;
    }
    while (ms % units[i].ms) {
        i++;
    }

    printf("%" PRId64 "%s", ms / units[i].ms, units[i].unit);
}

static void print_bytes(int64_t n)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t i = 0;

    for (; i < 4 && n % 1024 == 0; i++) {
        n /= 1024;
    }
    printf("%" PRId64 " %s", n, units[i]);
}

static void print_limit(const struct option_row *row, int64_t n)
{
    if (row->kind == OPTION_MS) {
        print_duration(n);
    } else if (row->kind == OPTION_BYTES) {
        print_bytes(n);
    } else {
        printf("%" PRId64, n);
    }
}

static void settings(void)
{
    puts("| setting | default | from | to | what it is |\n|---|---|---|---|---|");
    for (const struct option_row *row = option_rows; row < option_rows + option_rows_n; row++) {
        printf("| `%s` | %s | ", row->name, row->def_text);
        if (row->kind == OPTION_MS || row->kind == OPTION_COUNT || row->kind == OPTION_BYTES) {
            print_limit(row, row->min);
            printf(" | ");
            print_limit(row, row->max);
        } else {
            printf("|");
        }
        printf(" | %s |\n", row->text);
    }
}

static void errors(void)
{
    puts("| code | number | was Redis changed? | what it says |\n|---|---|---|---|");
#define LAPSE_X(name, number, did, text) \
    printf("| `LAPSE_%s` | %d | %s | %s |\n", #name, number, #did[0] == 'N' ? "no" : "maybe", text);
    LAPSE_ERRORS(LAPSE_X)
#undef LAPSE_X
}

static void statistics(void)
{
    puts("| statistic | what it counts |\n|---|---|");
#define LAPSE_X(name, text) printf("| `%s` | %s |\n", #name, text);
    LAPSE_STATS(LAPSE_X)
#undef LAPSE_X
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } tables[] = {{"settings", settings}, {"errors", errors}, {"statistics", statistics}};

    for (size_t i = 0; argc == 2 && i < sizeof tables / sizeof *tables; i++) {
        if (strcmp(argv[1], tables[i].name) == 0) {
            tables[i].print();
            return ferror(stdout) ? 1 : 0;
        }
    }

    return 2;
}

/* SPDX-License-Identifier: MIT */
/* Prints a table of tools/doc, or the same list for tools/man/lapse.3, from the lists that the
 * library itself is made of. */
#include "api/options.h"
#include <stdbool.h>
#include <stdio.h>

/* An entry of a list of the manual page; the line below it is its text. */
static void print_entry(const char *macro, const char *prefix, const char *name)
{
    printf(".It %s %s%s\n", macro, prefix, name);
}

static void options(void)
{
    puts("| option | default | from | to | what it is |\n|---|---|---|---|---|");
    for (const struct option_row *row = option_rows; row < option_rows + option_rows_n; row++) {
        printf("| `%s` | %s | %s | %s | %s |\n", row->name, row->def, row->least, row->most,
               row->text);
    }
}

static void options_entries(void)
{
    for (const struct option_row *row = option_rows; row < option_rows + option_rows_n; row++) {
        print_entry("Va", "", row->name);
        puts(row->text);
        if (*row->most) {
            printf("(default %s; %s to %s)\n", row->def, row->least, row->most);
        } else if (*row->def) {
            printf("(default %s)\n", row->def);
        }
    }
}

static bool outcome_unknown(const char *changed)
{
    return strcmp(changed, "MAYBE") == 0;
}

static void errors(void)
{
    puts("| code | number | was Redis changed? | what it says |\n|---|---|---|---|");
#define LAPSE_X(name, number, changed, text)                 \
    printf("| `LAPSE_%s` | %d | %s | %s |\n", #name, number, \
           outcome_unknown(#changed) ? "maybe" : "no", text);
    LAPSE_ERRORS(LAPSE_X)
#undef LAPSE_X
}

static void errors_entries(void)
{
#define LAPSE_X(name, number, changed, text) \
    print_entry("Dv", "LAPSE_", #name);      \
    printf("%s%s\n", text, outcome_unknown(#changed) ? " (outcome unknown)" : "");
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

static void statistics_entries(void)
{
#define LAPSE_X(name, text)       \
    print_entry("Va", "", #name); \
    puts(text);
    LAPSE_STATS(LAPSE_X)
#undef LAPSE_X
}

static void health(void)
{
    puts("| report | what it means |\n|---|---|");
#define LAPSE_X(name, text) printf("| `%s` | %s |\n", #name, text);
    LAPSE_HEALTH(LAPSE_X)
#undef LAPSE_X
}

static void health_entries(void)
{
#define LAPSE_X(name, text)                    \
    print_entry("Dv", "LAPSE_HEALTH_", #name); \
    puts(text);
    LAPSE_HEALTH(LAPSE_X)
#undef LAPSE_X
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*table)(void);
        void (*entries)(void);
    } lists[] = {
        {"options", options, options_entries},
        {"errors", errors, errors_entries},
        {"statistics", statistics, statistics_entries},
        {"health", health, health_entries},
    };
    bool manual = argc == 3 && strcmp(argv[2], "mdoc") == 0;

    if (argc != 2 && !manual) {
        return 2;
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (strcmp(argv[1], lists[i].name) == 0) {
            (manual ? lists[i].entries : lists[i].table)();
            return ferror(stdout) ? 1 : 0;
        }
    }

    return 2;
}

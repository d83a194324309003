/* SPDX-License-Identifier: MIT */
#ifndef REPORT_H
#define REPORT_H
#include "doctor/doctor.h"

struct finding {
    enum verdict verdict;
    const char *check;
    const char *queue; /* NULL: it is not about a queue */
    const char *at;    /* host:port of the server that it is about; NULL: that of the URL */
    const char *fix;   /* a command; NULL: none */
};
/* Prints a line, or a JSON object. */
void report(struct doctor *d, struct finding f, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "0 FAIL, 1 WARN, 11 OK", for people: programs have the verdicts and the exit status. */
void report_summary(const struct doctor *d);
/* Text from outside may be part of a fix, which is to be pasted, only if this is true: it has
 * nothing but letters, digits, . _ - and what also names. */
bool is_shell_safe(const char *text, const char *also);
#endif

/* SPDX-License-Identifier: MIT */
/* What lapse doctor says, as JSON. */
#ifndef FINDINGS_H
#define FINDINGS_H
#include "tool.h"

#define doctor(...) lapse("doctor", "--json", ##__VA_ARGS__)

/* It must say this of the check. verdict and text NULL: must not speak of it. */
void says(struct proc *p, const char *check, const char *verdict, const char *text);
/* The same of the server at this port of 127.0.0.1. */
void says_of(struct proc *p, int port, const char *check, const char *verdict, const char *text);
/* And ends it; status -1: whichever. */
void finds(struct proc *p, int status, const char *check, const char *verdict, const char *text);

/* From now on LAPSE_URL logs in as a user with these rules. */
void as_user(struct server *s, const char *rules);
#endif

/* SPDX-License-Identifier: MIT */
#ifndef MESSAGE_H
#define MESSAGE_H

/* Prints one line, "lapse: ..." to stderr. */
void message_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* From now on a line that stderr does not take at once is dropped; the number of dropped lines is
 * printed later. */
void message_set_nonblocking(void);
/* Tries once more to print what a nonblocking stderr did not take. */
void message_flush(void);
/* For wrong arguments: both print "lapse COMMAND: ..." and return USAGE. The first one goes on with
 * "WHAT 'VALUE': RULE". */
int usage_error(const char *what, const char *value, const char *rule);
int usage_errorf(const char *format, ...) __attribute__((format(printf, 1, 2)));
void usage_set_command(const char *name);

/* text with bytes outside 0x20-0x7e as \xNN, cut at 256; valid until the eighth call after. */
const char *printable(const char *text);
/* The same of an argument that the user typed: *** stands for what may be a password in it. */
const char *printable_argument(const char *word);
/* The same of an argument that was given as a URL. */
const char *printable_url(const char *url);
#endif

/* SPDX-License-Identifier: MIT */
#ifndef TEXT_H
#define TEXT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of the UTF-8 character at s, or 0 if there is none; len is what is left of the text,
 * and not 0. */
size_t text_char(const unsigned char *s, size_t len);
/* The code point of a character of n bytes. */
uint32_t text_code(const unsigned char *s, size_t n);
/* Whether a terminal or an editor would obey it instead of showing it. */
bool text_is_control(uint32_t code);
bool text_is_utf8(const void *bytes, size_t len);

/* Both copy to out, put U+FFFD for bytes that are no character, cut between characters, and append
 * "..." to what they cut. text_escaped() also writes controls as \xNN and \uNNNN. */
const char *text_escaped(char *out, size_t size, const void *bytes, size_t len);
const char *text_repaired(char *out, size_t size, const char *text);
#endif

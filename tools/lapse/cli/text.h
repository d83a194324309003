/* SPDX-License-Identifier: MIT */
#ifndef TEXT_H
#define TEXT_H
#include <stddef.h>
#include <stdint.h>

/* length of the character at s, or 0; len > 0 */
size_t text_char(const unsigned char *s, size_t len);
uint32_t text_code(const unsigned char *s, size_t n); /* of a character of n bytes */
int text_is_obeyed(uint32_t code);                    /* by a terminal or an editor */
int text_is_utf8(const void *bytes, size_t len);
/* Both: bytes that are no character as U+FFFD; cut between characters, with "..." */
/* what is obeyed as \xNN, \uNNNN */
const char *text_shown(char *out, size_t size, const void *bytes, size_t len);
const char *text_mended(char *out, size_t size, const char *text);
#endif

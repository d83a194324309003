/* SPDX-License-Identifier: MIT */
#ifndef HOOK_H
#define HOOK_H
#include <stdbool.h>

/* From now on the object whose file name has this text in it ("": this program) calls fn where it
 * named symbol. false: it does not name it. */
bool hook(const char *object, const char *symbol, void (*fn)(void));
#endif

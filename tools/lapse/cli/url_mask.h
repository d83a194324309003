/* SPDX-License-Identifier: MIT */
#ifndef URL_MASK_H
#define URL_MASK_H
#include "command.h"

struct piece {
    size_t at, len;
};
/* What may be a password in a word that is, or may have been meant as, a URL; len 0: nothing. */
struct piece url_secret(const char *word, bool is_url);
/* Overwrites the passwords in a URL of argv, and those of the environment, so that ps does not show
 * them. */
void url_blot(char *url);
void url_blot_env(void);
/* Makes secret_url and shown_url from all the places that they may come from; 0, or an exit code
 * after it has printed why. */
int url_make(struct globals *g);
void url_wipe(struct globals *g);
#endif

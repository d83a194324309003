/* SPDX-License-Identifier: MIT */
/* In place of libgit2, by which Criterion shows how two texts differ in its newer assertions
 * (criterion/new/); no test here uses those. The true one brings 18 further libraries, and loading
 * them was half of what it costs to start a test. */
#include <stdio.h>
#include <stdlib.h>

int git_libgit2_init(void);
int git_libgit2_shutdown(void);
int git_diff_buffers(void);

int git_libgit2_init(void)
{
    return 1;
}

int git_libgit2_shutdown(void)
{
    return 0;
}

int git_diff_buffers(void)
{
    fputs("the assertions of criterion/new need the true libgit2: see kit/stand_in\n", stderr);
    abort();
}

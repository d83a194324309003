/* SPDX-License-Identifier: MIT */
/* Replays a corpus: the inputs in the folders named, and the start of each, which is no
 * input that anybody thought of. */
#include "fuzz.h"
#include <dirent.h>

__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return 0;
}

static void replay(const char *path)
{
    static uint8_t data[1 << 16];
    FILE *f = fopen(path, "rb");

    MUST(f);

    size_t len = fread(data, 1, sizeof data, f);
    fclose(f);
    for (bool more = true; more; len /= 2) {
        uint8_t *exact = malloc(len + !len);
        MUST(exact);
        memcpy(exact, data, len);
        LLVMFuzzerTestOneInput(exact, len);
        free(exact);
        more = len > 0;
    }
}

int main(int argc, char **argv)
{
    FILE *to = fdopen(2, "w"); /* a target may put stderr elsewhere */

    LLVMFuzzerInitialize(&argc, &argv);

    for (int i = 1; i < argc; i++) {
        unsigned n = 0;
        DIR *dir = opendir(argv[i]);
        MUST(dir);
        for (struct dirent *entry; (entry = readdir(dir));) {
            if (*entry->d_name != '.') {
                char path[4096];
                snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name);
                replay(path);
                n++;
            }
        }
        closedir(dir);
        fprintf(to, "%s: %u inputs\n", argv[i], n);
        MUST(n > 0);
    }

    fclose(to);

    return 0;
}

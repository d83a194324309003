/* SPDX-License-Identifier: MIT */
/* Where an object keeps the address of a function it calls, its relocations say. LD_PRELOAD and
 * --wrap were tried: the one loses to a sanitizer's own functions, the other does not reach into a
 * shared library. */
#include "hook.h"
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct look {
    const char *object, *symbol;
    void (*fn)(void);
    bool found;
};

static void put(void *at, void (*fn)(void))
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    mprotect((void *)((uintptr_t)at & ~(page - 1)), page, PROT_READ | PROT_WRITE);
    memcpy(at, &fn, sizeof fn);
}

static int in_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct look *k = arg;
    const ElfW(Dyn) *dyn = NULL;
    const ElfW(Sym) *symbols = NULL;
    const ElfW(Rela) * table[2] = {NULL, NULL};
    size_t len[2] = {0, 0};
    const char *names = NULL;

    (void)size;
    if (*k->object ? !strstr(info->dlpi_name, k->object) : *info->dlpi_name != '\0') {
        return 0;
    }

    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
            dyn = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        }
    }

    for (; dyn && dyn->d_tag != DT_NULL; dyn++) {
        const void *at = (const void *)dyn->d_un.d_ptr; /* glibc has relocated it */
        switch (dyn->d_tag) {
        case DT_SYMTAB: symbols = at; break;
        case DT_STRTAB: names = at; break;
        case DT_RELA: table[0] = at; break;
        case DT_RELASZ: len[0] = dyn->d_un.d_val / sizeof *table[0]; break;
        case DT_JMPREL: table[1] = at; break;
        case DT_PLTRELSZ: len[1] = dyn->d_un.d_val / sizeof *table[1]; break;
        }
    }

    for (int t = 0; t < 2 && symbols && names; t++) {
        for (size_t i = 0; table[t] && i < len[t]; i++) {
            if (strcmp(names + symbols[ELF64_R_SYM(table[t][i].r_info)].st_name, k->symbol) == 0) {
                put((void *)(info->dlpi_addr + table[t][i].r_offset), k->fn);
                k->found = true;
            }
        }
    }

    return 1;
}

bool hook(const char *object, const char *symbol, void (*fn)(void))
{
    struct look k = {object, symbol, fn, false};
    dl_iterate_phdr(in_object, &k);
    return k.found;
}

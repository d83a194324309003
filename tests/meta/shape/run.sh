#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh: whether tools/lint/shape.sh measures what it says, shown on C whose figures were counted by hand.
set -euo pipefail
cd "$(dirname "$0")/../../.."
shape=$PWD/tools/lint/shape.sh
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0

same() { # WHAT EXPECTED FOUND
    diff -u --label "$1, expected" --label "$1, measured" "$2" "$3" || bad=1
}

repeat() { # N TEXT: the text on N lines
    local i
    for ((i = 0; i < $1; i++)); do echo "$2"; done
}

# A tree: functions of 5, 8, 12 and 24 lines, of which 0, 1, 0 and 4 are blank; of 21, 79, 44 and 130 tokens;
# 40 ends of statements; 61 lines of code, two over 80 columns. Of 1,554 characters 223 are comments,
# licences not counted.
mkdir -p "$dir/tree/below"
cat > "$dir/tree/one.c" <<'EOF'
/* Copyright: the head of a licence */

/* A comment with a ? : b ? c : d; { and "a quote */
#include "two.h"
#define MACRO(a) ((a) ? 1 : (a) ? 2 : 3)

static const struct row rows[] = {
    {"text with ? : ; { // and no comment", 1},
    {"\"", '"'},
};

int first(void) /* 5 lines */
{
    int a, b = 2;
    return a ? b : 0;
}

static void (*second(int a, int b, void (*fn)(int a, int b), int c, int d,
                     int e, int f))(void)
{
    struct row row = {a ? 1 : 2, b ? 3 : 4}, *other;

    call();
    return a ? b : c ? d : e;
}

struct later {
    int a, b;
};
EOF
cat > "$dir/tree/below/two.c" <<'EOF'
#ifdef SOMETHING
static int third(int a)
{
    if (a) {
#else
static int third(int a, int b)
{
    if (a && b) {
#endif
        a = 1;
    }
    return a;
}

#if 0
static int unused(int a)
{
    return a ? 1 : 2;
}
#else
#endif

Test(suite, fourth, .init = set_up)
{
    void (*one)(int), (*two)(int);

    for (int i = 0, n = a ? 1 : 2; i < (b ? n : 3); i++) {
        if (i) {
            while (i) {
                switch (i) {
                case 1: i = ((struct row){1, 2}).a; break;
                default: call(i, "a;b"), call(i, n);
                }
            }
        }
    }

    do {
        i++;
    } while (i < 10);

    /* a comment is no blank line, one

       within it is */
    return;
}
EOF
cat > "$dir/tree/two.h" <<'EOF'
// SPDX-License-Identifier: MIT

/* .............................................................................................. */
int declared(int a, int b, int c, int d, int e, int f, int g, const char *name, const char *value, int last);
int b____________________________________________________________________________;
EOF
touch "$dir/tree/left_out_test.c"
cat > "$dir/expected" <<'EOF'
|                                                    | name         |
| -------------------------------------------------- | ------------ |
| lines of C                                         | 80           |
| functions                                          | 4            |
| function lines: median / p99 / max                 | 10 / 24 / 24 |
| tokens a function: median / p99                    | 62 / 130     |
| functions over 60 lines; nested deeper than 3      | 0; 1         |
| functions of more than 6 parameters; most          | 1; 7         |
| lines of a file: longest; median                   | 46; 29       |
| blank lines per 1,000 lines of functions           | 102          |
| functions of 20+ lines with a paragraph break      | 100 %        |
| statements with two or more ?: per 1,000           | 75           |
| statements with a ?: per 1,000                     | 100          |
| lines of code over 80 columns                      | 3.3 %        |
| lines over 100 columns                             | 1            |
| declarations of several names per 1,000 statements | 75           |
| comment share of characters                        | 14 %         |
| includes up or sideways                            | -            |
EOF
(cd "$dir" && "$shape" 'name=tree,!*_test.c') > "$dir/measured"
same 'figures' "$dir/expected" "$dir/measured"

# A project at every limit: 45 lines, and 60 in one test of 101; 6 parameters, 100 columns, 60 blank lines per 1,000.
within() { # FOLDER
    {
        echo 'static void at_the_limit(int a, int b, int c, int d, int e, int f)'
        echo '{'
        repeat 2 ''
        repeat 40 '    a = b ? c : d;'
        echo '}'
        echo
        echo 'int lapse_call(int a, int b, int c, int d, int e, int f, lapse_cb *fn, void *arg)'
        echo '{'
        repeat 1 ''
        repeat 1 "    a = \"$(repeat 89 x | tr -d '\n')\";"
        echo '}'
    } > "$1/limit.c"
}
mkdir -p "$dir"/project/{src/below,tools,tests,include}
cd "$dir/project"
for folder in src/below tools; do within $folder; done
{
    echo 'Test(suite, one_in_a_hundred)'
    echo '{'
    repeat 57 '    call();'
    echo '}'
    repeat 100 'Test(suite, short) { call(); }'
    echo 'int lapse_sync_call(int a, int b, int c, int d, int e, int f, int timeout_ms, int *out) { call(); }'
} > tests/limit.c
echo 'int lapse_call(void);' > include/lapse.h
"$shape" --check > "$dir/measured" || bad=1
same 'within the limits' /dev/null "$dir/measured"

# The same, and one step over each of them.
{
    echo 'Test(suite, too_long)'
    echo '{'
    repeat 58 '    call();'
    echo '}'
} > tests/long.c
{
    echo 'static void one_too_many(int a, int b, int c, int d, int e, int f, void *arg)'
    echo '{'
    echo '    int i, j;'
    echo '    a = b ? c : d ? e : f;'
    echo "    a = \"$(repeat 90 x | tr -d '\n')\";"
    repeat 15 '    call();'
    echo '}'
} > src/below/over.c
echo "// $(repeat 98 x | tr -d '\n')" > include/lapse.h
cat > "$dir/expected" <<'EOF'
include/lapse.h:1: 101 columns, at most 100: break the line
src: 42.3 blank lines per 1,000 lines of functions, at least 60: put them between declarations, steps and result
src/below/over.c:1: one_too_many has 7 parameters, at most 6: pass a struct
src/below/over.c:1: one_too_many has no blank line in 21 lines
src/below/over.c:3: declares 2 names: give each a line of its own
src/below/over.c:4: 2 conditional operators in a statement, at most 1: use if, or a variable for each
src/below/over.c:5: 101 columns, at most 100: break the line
tests: the 99th percentile of function lines is 60, at most 45: shorten the longest ones
tests/limit.c:1: Test(suite, one_in_a_hundred) has 60 lines: one of the longest in tests
tests/long.c:1: Test(suite, too_long) has 61 lines, at most 60: make a function of one of its steps
tests/long.c:1: Test(suite, too_long) has 61 lines: one of the longest in tests
EOF
! "$shape" --check > "$dir/measured" || bad=1
same 'over the limits' "$dir/expected" "$dir/measured"

# Of src, what the layers check says is counted.
cp "${shape%/*}"/{shape.sh,shape.py,csource.py} "$dir"
printf '#!/bin/sh\nprintf "one\\ntwo\\n"\nexit 1\n' > "$dir/layers.sh"
chmod +x "$dir/layers.sh"
touch src/LAYERS
"$dir/shape.sh" src tools | tail -n 1 | tr -s ' ' > "$dir/measured"
echo '| includes up or sideways | 2 | - |' > "$dir/expected"
same 'layers' "$dir/expected" "$dir/measured"

! "$shape" no/such/folder > "$dir/measured" 2>&1 || bad=1
echo 'shape.sh: no C files: no/such/folder' > "$dir/expected"
same 'nothing to measure' "$dir/expected" "$dir/measured"

exit $bad

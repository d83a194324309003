#!/bin/sh
# SPDX-License-Identifier: MIT
# shape.sh [[NAME=]TREE...]: prints the figures of C trees, a column each; src, tools and tests if none is named.
#     TREE is a folder or patterns with commas between them, "!" before a name that is left out:
#     tools/lint/shape.sh src nng='../nng/src/core,!*_test.c'
# shape.sh --check: says what of this project's own code is over a limit, a line each, and fails if anything is.
set -eu
exec python3 -B "$(dirname "$0")/shape.py" "$@"

#!/bin/sh
# SPDX-License-Identifier: MIT
# table.sh BUILD: the rows that the fault runs left, as Markdown
set -eu
echo '| | fault | goal | reached |'
echo '|---|---|---|---|'
sort -t "$(printf '\t')" -k1.2n "$1/fault.rows" | awk -F '\t' '{ printf "| %s | %s | %s | %s |\n", $1, $2, $3, $4 }'

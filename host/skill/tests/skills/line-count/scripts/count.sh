#!/bin/sh
# Prints the number of lines of each file of a directory, the longest last.
set -eu
find "${1:-.}" -type f -exec wc -l {} + | sort -n

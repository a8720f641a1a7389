#!/bin/sh
# Stands in for ironclaw-host and ironclaw-sandbox: notes its words in `asked`, then does what the
# files beside it say: WORD.out and WORD.err are printed, WORD.sh is run, WORD.exit is the exit code.
here=$(dirname "$0")
echo "$(basename "$0") $*" >>"$here/asked"
if [ -f "$here/$1.out" ]; then cat "$here/$1.out"; fi
if [ -f "$here/$1.err" ]; then cat "$here/$1.err" >&2; fi
if [ -f "$here/$1.sh" ]; then . "$here/$1.sh"; fi
if [ -f "$here/$1.exit" ]; then exit "$(cat "$here/$1.exit")"; fi
exit 0

#!/bin/sh
# A fake ironclaw-host and ironclaw-sandbox. Writes its arguments to `asked`, then uses the files beside it:
# prints WORD.out and WORD.err, runs WORD.sh, and exits with the code in WORD.exit.
here=$(dirname "$0")
echo "$(basename "$0") $*" >>"$here/asked"
if [ -f "$here/$1.out" ]; then cat "$here/$1.out"; fi
if [ -f "$here/$1.err" ]; then cat "$here/$1.err" >&2; fi
if [ -f "$here/$1.sh" ]; then . "$here/$1.sh"; fi
if [ -f "$here/$1.exit" ]; then exit "$(cat "$here/$1.exit")"; fi
exit 0

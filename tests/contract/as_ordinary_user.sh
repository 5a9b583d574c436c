#!/bin/sh
# as_ordinary_user.sh PROGRAM [ARGUMENT...]: runs a copy of PROGRAM under an id that owns nothing, in a world-readable
# folder, so that what root may do is not what makes it work. 77 (skipped) where this user cannot change its id.
set -eu
[ "$(id -u)" -eq 0 ] || { echo "skipped: root, to become another user"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"
cp "$1" "$folder/program"
chmod 755 "$folder/program"
shift
cd "$folder"
setpriv --reuid 1000 --regid 1000 --clear-groups --inh-caps=-all \
  env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$folder" CONTRACT_BACKEND="${CONTRACT_BACKEND:-}" "$folder/program" "$@"

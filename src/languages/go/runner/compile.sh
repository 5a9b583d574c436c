# compile.sh GO FILE BUILD PREPARED [PACKAGES]: makes BUILD/main of the program.
go=$1 file=${2##*/} build=$3 prepared=$4 packages=$5
. "${0%/*}/environment.sh"
export GOENV=off GOPROXY=off GOSUMDB=off TMPDIR="$build" XDG_CONFIG_HOME="$prepared/config"

# Both caches seen as one. New entries stay in the sandbox.
join_caches() {
  export GOCACHE="$build/cache"
  mkdir "$GOCACHE" || exit 1
  for cache in "$prepared/cache" "$packages/cache"; do
    [ -d "$cache" ] && cp -rsf "$cache/." "$GOCACHE"
  done
  rm -f "$GOCACHE/trim.txt"
  date +%s >"$GOCACHE/trim.txt"
}

if [ -n "$packages" ]; then
  join_caches
  export GOMODCACHE="$packages/mod" GOFLAGS=-mod=mod
  cp "$packages/go.mod" "$packages/go.sum" . || exit 1
elif [ -d "$prepared/cache" ]; then
  export GOCACHE="$prepared/cache"
  date +%s >"$build/trim.txt"
else
  export GOCACHE="$build/cache"
fi

# Without debugging information, which nobody could use here, linking takes half the time. Stack traces do not need it.
"$go" build -p 2 -buildmode=exe -buildvcs=false -ldflags='-s -w' -o "$build/main" "$file" 2>"$build/messages"
code=$?
[ -s "$build/messages" ] && cat "$build/messages" >&2
[ $code -eq 0 ] && exit 0

module=$(sed -n 's/.*\(no required module provides\|cannot find module providing\) package \([^ :;]*\).*/\2/p' \
  "$build/messages" | head -n 1)
if [ -n "$module" ]; then
  echo "A program finds only the standard library and the modules named in 'libraries': name the module of $module there." >&2
elif grep -q 'requires exactly one main package' "$build/messages"; then
  echo "$file has to begin with 'package main' to be run." >&2
fi
exit $code

# prepare.sh GO PREPARED: fills a build cache with the standard library. Programs find it read-only.
go=$1 prepared=$2
. "${0%/*}/environment.sh"
export GOCACHE="$prepared/cache" GOENV=off GOPROXY=off XDG_CONFIG_HOME="$prepared/config"

mkdir -p "$GOCACHE" "$prepared/config/go/telemetry" && echo off >"$prepared/config/go/telemetry/mode" || exit 1

# The go command fails where it cannot store the index of a package that has none in the cache; what is not compiled
# there it just compiles for itself. So all indexes must be in, and compiled packages as far as time allows: first those
# of most programs.
"$go" list std >/dev/null && "$go" build -p 4 fmt os bufio sort strings strconv math/rand sync time errors || exit 1
timeout 150 "$go" build -p 4 encoding/json regexp context math/big os/exec text/template crypto/sha256 net/http
timeout 75 "$go" build -p 4 std

# What the C compiler can do is remembered, too.
mkdir /tmp/prepare && cd /tmp/prepare || exit 1
printf 'package main\n\n// int one(void) { return 1; }\nimport "C"\n\nfunc main() { println(C.one()) }\n' >c.go
"$go" build -o c c.go >/dev/null 2>&1

# The go command looks through the whole cache for old entries, unless this file says that it was done today: compile.sh
# writes it for each call.
ln -sf /tmp/.llm-sandbox/build/trim.txt "$GOCACHE/trim.txt"

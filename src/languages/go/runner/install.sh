# install.sh GO PREPARED PACKAGES NAME…: gets modules and compiles their packages. The settings of the user's
# environment and files hold: GOPROXY, GOPRIVATE, GOSUMDB and their like.
go=$1 prepared=$2 packages=$3
shift 3
. "${0%/*}/environment.sh"
export GOMODCACHE="$packages/mod" GOCACHE="$packages/cache" GOFLAGS="$GOFLAGS -mod=mod -modcacherw" GO111MODULE=on

# Go goes through no proxy to a module proxy on the user's own machine, but the sandbox has no other way to it. With a
# dot behind it is an ordinary name for Go.
GOPROXY=$("$go" env GOPROXY | sed 's#http://\(localhost\|127\.[0-9.]*[0-9]\)\([:/,|]\|$\)#http://\1.\2#g')
export GOPROXY

# The standard library, where it is compiled already. Only what is new is kept in the end.
[ -d "$prepared/cache" ] && cp -rs "$prepared/cache" "$packages/cache" && rm -f "$packages/cache/trim.txt"

"$go" mod init sandbox 2>/dev/null && "$go" get "$@" || exit 1

# What any package of the modules needs, so that a program can import each of them later, without a network.
for name; do
  path=${name%%@*}
  "$go" get "$path/...${name#"$path"}" >/dev/null 2>&1
  "$go" list -e -f '{{if and (not .Error) (ne .Name "main")}}{{.ImportPath}}{{end}}' "$path/..." 2>/dev/null
done >importable
"$go" mod download

# Compiling a module that is too large for this is left to the programs.
timeout 120 xargs "$go" build -p 4 <importable >/dev/null 2>&1
find "$packages/cache" -type l -delete

cp go.mod "$packages/go.mod" && touch go.sum && cp go.sum "$packages/go.sum"

# Run once on the host by each `go` that could serve: $1 is its path. Says in one line of JSON what it is.
# A name like ~/go/bin/go1.22 only leads to the real tool, which GOROOT holds.
export GOTOOLCHAIN=local GOFLAGS= GOENV=off
export XDG_CONFIG_HOME=/dev/null  # where it would begin to keep counters
root=$("$1" env GOROOT) || exit 1
version=$("$1" env GOVERSION) || exit 1
case $root in '' | *[\"\\]*) echo "no usable GOROOT: $root" >&2; exit 1 ;; esac
case $version in go[0-9]*) ;; *) echo "not a release: $version" >&2; exit 1 ;; esac
version=${version#go}
printf '{"executable": "%s/bin/go", "version": "%s", "paths": ["%s"], "libraries": [], "virtual": false}\n' \
  "$root" "${version%%[!0-9.]*}" "$root"

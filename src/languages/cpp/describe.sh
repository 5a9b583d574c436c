# Run once on the host by each compiler that could serve: $1 is its path. Says in one line of JSON what it is.
# Its libraries are the Debian packages whose headers any program can include as they are: nothing to link, no option.
export LC_ALL=C
compiler=$(readlink -f "$1") || exit 1
case ${compiler##*/} in
  *ccache* | *distcc* | *icecc*) echo "it only leads to a compiler: ${compiler##*/}" >&2; exit 1 ;;
esac
version=$("$compiler" -dumpfullversion -dumpversion) || exit 1
case $version in *[!0-9.]* | '') echo "no version: $version" >&2; exit 1 ;; esac
[ "$version" = "${version#*.}" ] && version=$version.0

# A clang finds its headers by itself, but needs a C++ library that it can use.
echo '#include <version>' | "$compiler" -std=c++20 -x c++ -fsyntax-only - || exit 1

# As "clang" it would be a compiler of C.
case ${compiler##*/} in *++*) ;; *) compiler=${compiler%/*}/clang++ && [ -x "$compiler" ] || exit 1 ;; esac

root=${compiler%/*/*}
case $compiler$root in *[\"\\]*) echo "no usable path: $compiler" >&2; exit 1 ;; esac
case $root in '' | /usr) paths= ;; *) paths="\"$root\"" ;; esac

# "name version" of packages that hold headers at the compiler's own place, no library and no hint that options are
# needed; not those of the system's own C library.
libraries() {
  installed=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package} ${Version}\n' '*-dev' | awk '$1 == "ii" { print $2, $3 }')
  { echo "$installed"; echo; echo "$installed" | sed 's/ .*//' | xargs dpkg-query -L; } | awk '
    function tell() { if (headers && !other) print names[at]; headers = 0; other = 0 }
    !at { if ($0 == "") at = 1; else names[++count] = $0; next }
    $0 == "" { tell(); at++; next }
    names[at] ~ /^(linux-libc-dev|libc6?-dev) / { other = 1 }
    /^\/usr\/include\/.*[^\/]$/ { headers = 1 }
    /\/lib[^\/]*\.(so|a)$/ { other = 1 }
    /\.pc$/ {
      while ((getline line < $0) > 0) if (line ~ /^Cflags:.*-I.*include(dir)?}?\/[^ ]/) other = 1
      close($0)
    }
    END { tell() }'
}
list= state=
if command -v dpkg-query >/dev/null && command -v awk >/dev/null; then
  list=$(libraries 2>/dev/null | sed 's/.*/"&"/' | tr '\n' ,)
  # What is made from the system's packages is made anew when these change.
  state=$(dpkg-query -W 'lib*' linux-libc-dev 2>/dev/null | md5sum)
fi
printf '{"executable": "%s", "version": "%s", "paths": [%s], "libraries": [%s], "virtual": false, ' \
  "$compiler" "$version" "$paths" "${list%,}"
printf '"files": {"system-packages": "%s"}}\n' "${state%% *}"

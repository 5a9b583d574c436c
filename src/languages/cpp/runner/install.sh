# install.sh APT PACKAGES NAME…: gets Debian packages that this machine has not, unpacks them into PACKAGES/root, and
# writes into PACKAGES/options how programs are compiled and linked with those named, wherever they are. Nothing of a
# package is run.
tool=$1 packages=$2
shift 2
export LC_ALL=C
root="$packages/root" system=/var/lib/dpkg lists=/var/lib/apt/lists
folder=$(pwd)

[ -e "$system/status" ] || { echo "This machine has no Debian packages ($system)." >&2; exit 1; }
mkdir -p lists/partial archives/partial "$root"

apt() {
  "$tool" -q -y -o Dir::State="$folder" -o Dir::State::status="$system/status" -o Dir::State::lists="$lists" \
    -o Dir::Cache="$folder" -o Dir::Log="$folder" -o Debug::NoLocking=1 -o APT::Sandbox::User= \
    -o APT::Install-Recommends=0 ${http_proxy:+-o Acquire::http::Proxy="$http_proxy"} \
    ${https_proxy:+-o Acquire::https::Proxy="$https_proxy"} "$@"
}
update() {
  lists="$folder/lists"
  apt update
}
# Of names that no package has, apt would make patterns.
known() {
  for name; do
    apt-cache -o Dir::State="$folder" -o Dir::State::status="$system/status" -o Dir::State::lists="$lists" \
      -o Dir::Cache="$folder" pkgnames "${name%%=*}" | grep -qxF -e "${name%%=*}" ||
      { echo "E: Unable to locate package ${name%%=*}"; return 1; }
  done
}
# The lists of the machine may be missing, or too old to find anything by.
fetch() {
  { known "$@" && apt install --download-only -- "$@"; } >first 2>&1 && return
  update >update.log 2>&1 || { cat first update.log >&2; return 1; }
  { known "$@" && apt install --download-only -- "$@"; } >&2
}

fetch "$@" || exit 1
for package in archives/*.deb; do
  [ -e "$package" ] || continue
  case ${package##*/} in
    libc6_*) echo "These packages need a newer C library than this machine has: upgrade it first." >&2; exit 1 ;;
  esac
  dpkg-deb -x "$package" "$root" || exit 1
done
rm -rf "$root/usr/share/doc" "$root/usr/share/man"

# Links that lead from / to what is now below the root.
find "$root" -type l -lname '/*' | while read -r link; do
  target=$(readlink "$link")
  [ -e "$root$target" ] && ln -sfn "$root$target" "$link"
done
# Links that lead beside them to what the machine has already: libx.so of libx-dev to the installed libx.so.1.
find "$root" -xtype l -name 'lib*.so*' | while read -r link; do
  own=${link#"$root"}
  target=${own%/*}/$(readlink "$link")
  [ -e "$target" ] && ln -sfn "$target" "$link"
done
find "$root" -type f -name '*.pc' -exec sed -i -e "s#=/usr#=$root/usr#g" -e "s#-\([IL]\)/usr#-\1$root/usr#g" {} +

archive_of() {
  ls "archives/$1"_*.deb 2>/dev/null
}
# The files of a package, where they are now.
files_of() {
  archive=$(archive_of "$1")
  if [ -n "$archive" ]; then
    dpkg-deb --fsys-tarfile "$archive" | tar -t | sed "s#^\.#$root#"
  else
    dpkg-query --admindir="$system" -L "$1"
  fi
}
needs_of() {
  archive=$(archive_of "$1")
  if [ -n "$archive" ]; then
    dpkg-deb -f "$archive" Depends
  else
    dpkg-query --admindir="$system" -W -f '${Depends}\n' "$1"
  fi | tr , '\n' | sed -e 's/|.*//' -e 's/(.*//' -e 's/:.*//' -e 's/ //g' | grep -e '-dev$'
}
# What a program may use of a package: headers, libraries, and files of pkg-config. Many a name stands for another.
usable_of() {
  files_of "$1" | grep -e '/usr/include/.*[^/]$' -e '/lib[^/]*\.so$' -e '/lib[^/]*\.a$' -e '\.pc$' && return
  [ "$2" = 3 ] || for need in $(needs_of "$1"); do usable_of "$need" $(($2 + 1)); done
}
for name; do usable_of "${name%%=*}" 0; done >usable

once() { awk '!seen[$0]++' | tr '\n' ' '; }

shared=$(find "$root" -name '*.so*' ! -type d -printf '%h\n' | sort -u | head -n 64)
below=$(find "$root/usr/lib" "$root/lib" -name 'lib*.a' -printf '%h\n' 2>/dev/null | sort -u | head -n 64)
triplet=$(gcc -print-multiarch 2>/dev/null || dpkg-architecture -q DEB_HOST_MULTIARCH 2>/dev/null || echo "$(uname -m)-linux-gnu")
options_of() {
  command -v pkg-config >/dev/null || return
  sed -n 's#.*/\([^/]*\)\.pc$#\1#p' usable | while read -r module; do
    PKG_CONFIG_PATH="$root/usr/lib/$triplet/pkgconfig:$root/usr/lib/pkgconfig:$root/usr/share/pkgconfig" \
      pkg-config "$1" "$module" 2>/dev/null
  done | tr ' ' '\n' | grep .
}
{
  options_of --cflags | sed 's/^-I/-isystem/' | once
  for include in "$root/usr/include" "$root/usr/include/$triplet"; do
    [ -d "$include" ] && printf '%s ' "-isystem$include"
  done
  echo
  for library in $shared $below; do printf '%s ' "-L$library"; done
  # The older kind of run path holds for the libraries of libraries, too.
  for library in $shared; do printf '%s ' "-Wl,-rpath,$library"; done
  [ -n "$shared" ] && printf '%s ' -Wl,--disable-new-dtags
  # What a library that is not used lacks is no matter.
  printf '%s ' -Wl,--as-needed -Wl,--allow-shlib-undefined
  { options_of --libs; sed -n 's#.*/lib\([^/]*\)\.\(so\|a\)$#-l\1#p' usable; } | once
  echo
} >"$packages/options"

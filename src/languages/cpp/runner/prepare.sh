# prepare.sh COMPILER PREPARED: compiles the headers that programs begin with, and finds the quickest linker that works.
compiler=$1 prepared=$2
. "${0%/*}/options.sh"

mkdir /tmp/prepare && cd /tmp/prepare || exit 1
printf '#include <iostream>\nint main() { std::cout << "works"; }\n' >try.cpp

# A compiler that is not the system's may bring a library that is newer than the system's.
own_library() {
  library=$("$compiler" -print-file-name=libstdc++.so.6)
  library=$(readlink -f "$library") || return
  case $library in
    /usr/lib/* | /lib/* | [!/]*) ;;
    *) echo "-Wl,-rpath,${library%/*}" ;;
  esac
}
library=$(own_library)

works() {
  "$compiler" $options "$@" try.cpp -o try >/dev/null 2>&1 && [ "$(./try)" = works ]
}
for name in gold mold lld; do
  linker="-fuse-ld=$name -fno-use-linker-plugin"
  case ${compiler##*/} in *clang*) linker="-fuse-ld=$name" ;; esac
  works $linker && break
  linker=
done
echo "$linker $library" >"$prepared/linker"

# One that the compiler would not use is not kept: it checks by itself that all is as it was.
compile_set() {
  header="$prepared/$1.h"
  echo "$2" | tr , '\n' | sed 's/.*/#include <&>/' >"$header"
  case ${compiler##*/} in
    *clang*) "$compiler" $options -x c++-header "$header" -o "$header.pch" ;;
    *) "$compiler" $options -x c++-header "$header" -o "$header.gch" ;;
  esac
  begin_with "$1"
  works -Winvalid-pch -Werror $ahead || rm -f "$header" "$header".[gp]ch
}
for set in $sets; do
  compile_set "${set%%=*}" "${set#*=}"
done
exit 0

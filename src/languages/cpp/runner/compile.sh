# compile.sh COMPILER FILE BUILD PREPARED [PACKAGES]: makes BUILD/main of the program.
compiler=$1 file=${2##*/} build=$3 prepared=$4 packages=$5
. "${0%/*}/options.sh"
set -f

# Skips the rest of a comment that began in a line before. Fails if it does not end with its line.
skip_comment() {
  while read -r line; do
    case $line in
      *'*/'*'*/') return 1 ;;
      *'*/') return 0 ;;
      *'*/'*) return 1 ;;
    esac
  done
  return 1
}

# $headers: those that the program includes before it holds anything but comments. What is not plain ends the list.
# One character more is the carriage return of a Windows line.
find_headers() {
  headers=' '
  while read -r line; do
    case $line in
      *\\ | *\\? | *'??/'*) return ;;  # it may go on in the next line
      '' | ? | '//'*) continue ;;
      '/*'*'*/'*) return ;;
      '/*'*) skip_comment && continue || return ;;
      '#include <'*'>'*) header=${line#'#include <'} ;;
      '#include<'*'>'*) header=${line#'#include<'} ;;
      *) return ;;
    esac
    rest=${header#*>} header=${header%%>*}
    case $header in *[!A-Za-z0-9_./+-]*) return ;; esac
    case $rest in '' | ? | '//'* | ' //'* | '  //'*) ;; *) return ;; esac
    headers="$headers$header "
  done
}

# Whether the program includes all of a list.
includes_all() {
  IFS=,
  for header in $1; do
    case $headers in *" $header "*) ;; *) return 1 ;; esac
  done
}

choose_ahead() {
  ahead=
  find_headers <"$file"
  for set in $sets; do
    [ -e "$prepared/${set%%=*}.h" ] || continue
    includes_all "${set#*=}" && begin_with "${set%%=*}"
    IFS=$blanks
    [ -n "$ahead" ] && return
  done
}
blanks=$IFS

choose_ahead
read_linker
includes='' libraries=''
[ -n "$packages" ] && { read -r includes && read -r libraries; } <"$packages/options"

"$compiler" $options $ahead $includes $linker -o "$build/main" "$file" $libraries 2>"$build/messages"
code=$?
[ -s "$build/messages" ] && cat "$build/messages" >&2
[ $code -eq 0 ] && exit 0

if grep -q 'fatal error: .*\(No such file or directory\|file not found\)' "$build/messages"; then
  echo "Headers beyond the standard library come from Debian packages: name them in 'libraries', for example libfmt-dev." >&2
fi
exit $code

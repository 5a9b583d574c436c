# What the program and the headers compiled ahead for it are compiled with. $compiler is given.
#
# g++ -O1 takes no longer than -O0 (there is less to assemble and to link) and its programs run about five times as fast.
# The options behind it keep what a program would do without: reading through a null pointer, dividing by zero and
# freeing twice end it even where the result is not used.
options='-std=c++20 -pthread'
case ${compiler##*/} in
  *clang*) ;;
  *)
    options="$options -pipe -O1 -fnon-call-exceptions -fno-delete-dead-exceptions -fno-allocation-dce"
    options="$options -fmax-errors=20"
    ;;
esac

# Headers that are compiled ahead together, largest set first: those that most programs begin with. A set serves a
# program that includes all of it, so that no program sees a name that it did not ask for. Single C headers and small
# ones gain nothing.
sets='all=bits/stdc++.h
  maps=iostream,vector,algorithm,map pointers=iostream,vector,memory algorithms=iostream,vector,algorithm
  vectors=iostream,vector streams=iostream'

# $ahead: the options that make the compiler begin with the set.
begin_with() {
  case ${compiler##*/} in
    *clang*) ahead="-include-pch $prepared/$1.h.pch" ;;
    *) ahead="-include $prepared/$1.h" ;;
  esac
}

# $linker: the options that choose a quick linker, and the standard library of a compiler that has its own.
read_linker() {
  linker=
  [ -e "$prepared/linker" ] && read -r linker <"$prepared/linker"
}

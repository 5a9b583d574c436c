# Makes what compile.sh starts faster with: prepare.sh BIN RUNNER PREPARED
set -e
bin=$1 runner=$2 prepared=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# Only classes of a jar can be archived. Texts put together inline spare the compiler's JVM method handles.
"$bin/javac" -XDstringConcat=inline -d classes "$runner/CompileProgram.java"
"$bin/jar" --create --file "$prepared/compiler.jar" -C classes .

# Both kinds of archive hold what the compiler needed for this program: the usual parts of the language. The first is
# the faster one, but only Java 25 and later know it; Java 11 and 12 know none, and then the jar alone must do.
cp "$runner/Training.java" Main.java
train() {
  "$bin/java" "$1" -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData -Duser.language=en \
    -cp "$prepared/compiler.jar" CompileProgram Main.java "$work/build" 0 >"$work/said" 2>&1
}
train -XX:AOTCacheOutput="$prepared/compiler.aot" ||
  train -XX:ArchiveClassesAtExit="$prepared/compiler.jsa" ||
  cat "$work/said"

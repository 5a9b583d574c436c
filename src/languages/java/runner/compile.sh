# Compiles the program: compile.sh BIN RUNNER PREPARED FILE BUILD MEMORY [PACKAGES]
# In a shell, so that it does without what could not be prepared.
bin=$1 runner=$2 prepared=$3
shift 3
memory=$3
compiler() {
  exec "$bin/java" -Xlog:disable -Xmx$((memory / 100 * 70 / 1024))k -XX:TieredStopAtLevel=1 -XX:+UseSerialGC \
    -XX:-UsePerfData -XX:ErrorFile=/dev/null -Duser.language=en "$@"
}
if [ -f "$prepared/compiler.aot" ]; then
  compiler -XX:AOTCache="$prepared/compiler.aot" -cp "$prepared/compiler.jar" CompileProgram "$@"
fi
if [ -f "$prepared/compiler.jsa" ]; then
  compiler -XX:SharedArchiveFile="$prepared/compiler.jsa" -cp "$prepared/compiler.jar" CompileProgram "$@"
fi
if [ -f "$prepared/compiler.jar" ]; then
  compiler -cp "$prepared/compiler.jar" CompileProgram "$@"
fi
compiler "$runner/CompileProgram.java" "$@"

# Run once on the host by /bin/sh with a javac (or java) that could serve: says in one line of JSON what its JDK is.
# Asked from the JVM itself, so that shims (jenv, asdf, mise) and links lead to the real place.
candidate=$1
case ${candidate##*/} in
  javac*) said=$("$candidate" -J-XshowSettings:properties -version 2>&1) ;;
  *) said=$("$candidate" -XshowSettings:properties -version 2>&1) ;;
esac || {
  printf '%s\n' "$said" >&2
  exit 1
}

property() {
  printf '%s\n' "$said" | sed -n "s/^ *$1 = //p" | head -n 1
}

as_json() {
  printf '%s' "$1" | sed 's/[\\"]/\\&/g'
}

home=$(property 'java\.home')
version=$(property 'java\.version')
if [ -z "$home" ] || [ -z "$version" ]; then
  echo "it did not say where its JDK is" >&2
  exit 1
fi
if [ ! -x "$home/bin/javac" ] || [ ! -x "$home/bin/java" ]; then
  echo "Java $version in $home has no compiler (it is a JRE; a JDK is needed, with bin/javac)" >&2
  exit 1
fi
printf '{"executable":"%s/bin/javac","version":"%s","paths":["%s"],"libraries":[],"virtual":false}\n' \
  "$(as_json "$home")" "$(as_json "${version%%[-+]*}")" "$(as_json "$home")"

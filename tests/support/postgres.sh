# A private server of Postgres for one test process: in a folder of its own, as an ordinary user, at a socket in that folder and a
# port of the loopback. It ends with whoever holds the other end of the standard input, however that ends.
#
#   sh postgres.sh BINARIES ADDRESS PORT [SETTING=VALUE …]
#
# Prints the folder first. Then each line that is read is done, and `ok` printed: start, kill (SIGKILL), stop, freeze, thaw.
set -eu
binaries=$1 address=$2 port=$3
shift 3
settings=""
for setting in "$@"; do settings="$settings -c $setting"; done
folder=$(mktemp -d "${TMPDIR:-/tmp}/nietz-postgres-XXXXXX")
server=""
end() {
  [ -z "$server" ] || kill -QUIT "$server" 2>/dev/null || true
  wait || true
  # Processes of a server that was killed may write for a moment longer.
  for try in 1 2 3 4 5; do
    rm -rf "$folder" 2>/dev/null && return 0
    sleep 0.2
  done
}
trap end EXIT
trap 'exit 1' HUP INT TERM
"$binaries/initdb" -D "$folder/data" -U nietz -A trust -E UTF8 --locale=C.UTF-8 --no-sync >"$folder/initdb.log" 2>&1 || {
  cat "$folder/initdb.log" >&2
  exit 1
}
# Whoever reaches the address, which is one of the loopback or of a network that the test has made.
echo "host all all samenet trust" >>"$folder/data/pg_hba.conf"
echo "$folder"
start() {
  # Processes of a server that was killed may hold its memory for a moment.
  for try in 1 2 3 4 5 6 7 8 9 10; do
    # shellcheck disable=SC2086
    "$binaries/postgres" -D "$folder/data" -k "$folder" -p "$port" -c "listen_addresses=$address" $settings >>"$folder/log" 2>&1 &
    server=$!
    while kill -0 "$server" 2>/dev/null; do
      "$binaries/pg_isready" -q -h "$folder" -p "$port" -U nietz && return 0
      sleep 0.05
    done
    wait "$server" || true
    sleep 0.2
  done
  tail -5 "$folder/log" >&2
  return 1
}
while read -r word; do
  case "$word" in
  start) start ;;
  kill) kill -KILL "$server" && wait "$server" 2>/dev/null || true ;;
  stop) kill -INT "$server" && wait "$server" || true ;;
  freeze) kill -STOP "$server" ;;
  thaw) kill -CONT "$server" ;;
  esac
  echo ok
done

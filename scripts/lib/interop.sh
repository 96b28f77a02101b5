# The official clients that scripts/interop runs against a server, from tests/interop. Needs
# conformance.sh, whose Node runs the TypeScript client.
# shellcheck shell=bash

interop=$root/tests/interop
interop_tools=$tools/interop
interop_rmcp=$target_dir/debug/mcp-edge-interop-rmcp

# Installs what the TypeScript and the Python client need; does nothing when that is there already.
interop_install() {
  conformance_install
  npm_install "$interop/typescript" "$interop_tools/typescript" 'the TypeScript client'
  interop_install_python
}

interop_install_python() {
  local list=$interop/python/requirements.txt to=$interop_tools/python
  cmp -s "$list" "$to/.installed" && "$to/bin/python" -c '' 2>/dev/null && return
  python3 -c 'import ensurepip' 2>/dev/null || apt_install python3 python3-venv
  say "pip install: the Python client"
  rm -rf "$to"
  python3 -m venv "$to"
  "$to/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$list" >&2 ||
    die "pip install failed in $to"
  cp "$list" "$to/.installed"
}

# rmcp has a lock file of its own and shares the target directory.
interop_build_rmcp() {
  say "cargo build: the rmcp client"
  cargo build --quiet --locked --manifest-path "$interop/rmcp/Cargo.toml" \
    --target-dir "$target_dir"
}

# Runs one client, which limits its own time. usage: interop_client NAME URL
interop_client() {
  case $1 in
    typescript)
      # Node looks for packages beside the program.
      cp "$interop/typescript/client.mjs" "$interop_tools/typescript/" &&
        conformance_node "$interop_tools/typescript/client.mjs" "$2"
      ;;
    python) "$interop_tools/python/bin/python" "$interop/python/client.py" "$2" ;;
    rmcp) "$interop_rmcp" "$2" ;;
  esac
}

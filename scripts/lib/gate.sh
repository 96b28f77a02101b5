# The dependency gate: the core owns no I/O and stays small, so its normal dependencies name no
# runtime and no platform, on the host and on wasm32.
# shellcheck shell=bash

gate_forbidden='^(tokio|hyper|worker|wasm-bindgen|js-sys|lambda_|reqwest|async-std|smol|mio)'
gate_most=25
# serde and what it brings; every server that speaks JSON has these.
gate_serde='^(serde|serde_core|serde_derive|serde_json|itoa|ryu|zmij|memchr|proc-macro2|quote|syn|unicode-ident)$'

# usage: dependency_gate CRATE [CARGO-TREE-OPTION...]
dependency_gate() {
  local crate=$1 label=${3:-host} tree names bad count
  shift
  # Only the first word of a line is a name; a line in brackets is a heading.
  tree=$(cargo tree --locked -p "$crate" -e normal --prefix none "$@")
  names=$(awk 'NF && !/^\[/ { print $1 }' <<<"$tree" | sort -u | grep -vx -- "$crate" || true)
  [ -n "$names" ] || die "cargo tree named no dependency of $crate"

  bad=$(grep -E "$gate_forbidden" <<<"$names" || true)
  names=$(grep -vE "$gate_serde" <<<"$names" || true)
  count=$(wc -l <<<"$names")
  echo "$crate on $label: $count crates beyond serde's own (at most $gate_most):"
  echo "  $(tr '\n' ' ' <<<"$names")"
  # shellcheck disable=SC2086 # one word for each crate
  [ -z "$bad" ] || die "$crate must not depend on:" $bad
  [ "$count" -le "$gate_most" ] || die "$crate has $count dependencies, $((count - gate_most)) too many"
}

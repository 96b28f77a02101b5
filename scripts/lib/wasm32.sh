# Building for wasm32-unknown-unknown: a standard library for that target, from rustup or built
# from Debian's sources, and clang, since ring compiles C.
# shellcheck shell=bash

wasm32="wasm32-unknown-unknown"
wasm32_own=$tools/wasm32 # Debian's rustc with a sysroot of our own

# Makes the target ready; does nothing when it is. MCP_EDGE_WASM32=debian skips rustup's way.
wasm32_install() {
  [ -n "$(wasm32_clang)" ] || apt_install clang
  wasm32_ready && return
  if [ "${MCP_EDGE_WASM32:-}" != debian ] && have rustup; then
    say "rustup target add $wasm32"
    rustup target add "$wasm32" >&2 && wasm32_ready && return
    say "rustup has no $wasm32 for this toolchain: building it from Debian's sources"
  fi
  wasm32_build_std
}

# Tells whether wasm32_cargo can work.
wasm32_ready() {
  [ -n "$(wasm32_clang)" ] && { wasm32_from_rustup || wasm32_own_is_current; }
}

# Runs cargo so that `--target wasm32-unknown-unknown` works. usage: wasm32_cargo CARGO-ARGUMENT...
wasm32_cargo() {
  local path=$PATH
  wasm32_from_rustup || path=$wasm32_own/bin:$PATH
  env PATH="$path" CC_wasm32_unknown_unknown="${CC_wasm32_unknown_unknown:-$(wasm32_clang)}" cargo "$@"
}

wasm32_from_rustup() {
  local libs
  [ "${MCP_EDGE_WASM32:-}" != debian ] || return 1
  libs=$(rustc --print target-libdir --target "$wasm32" 2>/dev/null) || return 1
  compgen -G "$libs/libstd-*.rlib" >/dev/null
}

wasm32_own_is_current() {
  [ -x /usr/bin/rustc ] && [ "$(/usr/bin/rustc -V)" = "$(cat "$wasm32_own/.built-with" 2>/dev/null)" ]
}

# Prints the newest clang on PATH, or nothing. gcc does not know the target.
wasm32_clang() {
  if have clang; then echo clang; else compgen -c clang- | grep -xE 'clang-[0-9]+' | sort -rV | head -n 1; fi
}

# Debian packages a rustc with the sources of its standard library and what that depends on, so std
# can be built with no network. The linker is the lld of the same LLVM.
wasm32_build_std() {
  local vendor=/usr/lib/rustlib/src/rust/library/vendor work host llvm library binary
  if ! [ -d "$vendor" ] || ! [ -x /usr/bin/cargo ]; then
    apt_install rustc-web cargo-web rust-web-src
  fi
  host=$(/usr/bin/rustc -vV | sed -n 's/^host: //p')
  llvm=$(/usr/bin/rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
  have "wasm-ld-$llvm" || apt_install "lld-$llvm"

  say "building std for $wasm32 with $(/usr/bin/rustc -V)"
  work=$(mktemp -d)
  mkdir "$work/src"
  echo '#![no_std]' >"$work/src/lib.rs"
  printf '%s\n' '[package]' 'name = "empty"' 'edition = "2021"' '[workspace]' \
    '[profile.release]' 'panic = "abort"' >"$work/Cargo.toml"
  # Bitcode is embedded so that what is built against this std can use LTO.
  (cd "$work" && env RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Cembed-bitcode=yes \
    CARGO_TARGET_DIR="$work/target" /usr/bin/cargo build --quiet --offline --release \
    --target "$wasm32" -Zbuild-std=std,panic_abort,proc_macro,test \
    --config 'source.crates-io.replace-with = "vendored"' \
    --config "source.vendored.directory = '$vendor'" 2>"$work/log") ||
    { tail -n 40 "$work/log" >&2; die "std for $wasm32 did not build"; }

  rm -rf "$wasm32_own"
  library=$wasm32_own/lib/rustlib
  mkdir -p "$wasm32_own/bin" "$library/$wasm32/lib" "$library/$host/bin"
  cp "$work/target/$wasm32"/release/deps/lib*.rlib "$library/$wasm32/lib/"
  rm "$library/$wasm32"/lib/libempty-*.rlib
  ln -s "/usr/lib/rustlib/$host/lib" "$library/$host/lib"
  ln -s "/usr/lib/llvm-$llvm/bin/lld" "$library/$host/bin/rust-lld"
  ln -s /usr/lib/rustlib/src "$library/src"
  for binary in rustc rustdoc; do
    printf '#!/bin/sh\nexec /usr/bin/%s --sysroot "%s" "$@"\n' "$binary" "$wasm32_own" >"$wasm32_own/bin/$binary"
  done
  printf '#!/bin/sh\nexec /usr/bin/cargo "$@"\n' >"$wasm32_own/bin/cargo"
  chmod +x "$wasm32_own"/bin/*
  /usr/bin/rustc -V >"$wasm32_own/.built-with"
  rm -rf "$work"
}

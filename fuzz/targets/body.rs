//! Any body under the head that a conforming client would send with it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_edge_fuzz::{SERVER, checked, post};

fuzz_target!(|data: &[u8]| {
    checked(&SERVER, post(data.to_vec()));
});

//! Any body under the head that a conforming client would send with it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_edge_fuzz::{Instance, TASKS, post};

fuzz_target!(|data: &[u8]| {
    let instance = Instance::default();
    instance.checked(post(TASKS.named(data)));
    instance.look();
});

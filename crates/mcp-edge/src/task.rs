//! Tasks: calls that outlive their request (TASK area).
//!
//! - [`store`]: what a platform brings along;
//! - [`memory`]: a store for tests and single processes.

pub(crate) mod memory;
pub(crate) mod store;

//! Tasks: calls that outlive their request (TASK area).
//!
//! - [`store`]: what a platform brings along.

pub(crate) mod store;

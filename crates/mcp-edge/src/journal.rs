//! The journal: what a handler's keyed effects and questions returned, so that running the handler
//! again brings it back to where it was.
//!
//! - [`entry`]: what is remembered.
//! - [`engine`]: the rules of replay and suspension, without any future.
//! - [`claim`]: the futures that handlers await, each a thin view on the engine.
//! - [`run`]: polls a handler and finds out how a poll ended.

pub(crate) mod claim;
pub(crate) mod engine;
pub(crate) mod entry;
pub(crate) mod run;

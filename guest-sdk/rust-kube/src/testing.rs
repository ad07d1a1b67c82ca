// SPDX-License-Identifier: Apache-2.0
//! Runs a controller in a plain `cargo test`, on a host and a cluster in memory.
//!
//! ```no_run
//! # async fn main_of_the_module() {}
//! let host = kube::testing::Host::new();
//! host.run(&kube::module(main_of_the_module)); // until no work is left
//! ```
//!
//! See the module of this name in the SDK, the crate `wasmctl`.

pub use wasmctl::testing::{Call, Host, Line, Run, RunResult};
pub use wasmctl::{json, ApiError, Object, ObjectRef};

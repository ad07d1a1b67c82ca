// SPDX-License-Identifier: Apache-2.0
//! The names of kinds. A module cannot query the API server for them: write an
//! [`ApiResource`].
//! [`ApiResource`].

pub use kube_core::discovery::{verbs, ApiCapabilities, ApiResource, Scope};

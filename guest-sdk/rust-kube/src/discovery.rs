//! The names of kinds. A module cannot ask the API server for them: write an
//! [`ApiResource`].

pub use kube_core::discovery::{verbs, ApiCapabilities, ApiResource, Scope};

//! Tests only: the types of k8s-openapi with the SDK. A crate of its own, since k8s-openapi needs a newer Rust.

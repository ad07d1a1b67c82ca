// SPDX-License-Identifier: Apache-2.0
//! Tests of the SDK with the types of k8s-openapi. This is a separate crate because
//! k8s-openapi needs a newer Rust.

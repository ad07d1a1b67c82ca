// SPDX-License-Identifier: Apache-2.0
//! The configmapgenerator module maintains a ConfigMap for each ConfigMapGenerator: the example of
//! kube-rs' Controller, as a module for wasmctl. It does the same as examples/configmapgenerator in
//! Go.

mod reconcile;
mod status;

use wasmctl::{Capability, Manifest, Reconciler, Watch};

/// The definition of this module; the tests use it too.
pub fn reconciler() -> Reconciler {
    let manifest = Manifest {
        name: "configmapgenerator".into(),
        version: "0.1.0".into(),
        for_: Watch::new("examples.wasmctl.dev", "v1", "ConfigMapGenerator"),
        owns: vec![Watch::new("", "v1", "ConfigMap")],
        capabilities: vec![Capability::new("", "configmaps", &["get", "create", "patch"])],
        ..Manifest::default()
    };
    Reconciler::new(manifest, reconcile::reconcile).error_policy(reconcile::error_policy)
}

wasmctl::export!(reconciler);

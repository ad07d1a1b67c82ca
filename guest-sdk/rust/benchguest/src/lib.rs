// SPDX-License-Identifier: Apache-2.0
//! The module for the benchmarks of host/rust_test.go and make bench-peers. It reads one
//! field each of metadata, spec and status of a pod: near the start, after the largest
//! part, and at the end. For a ConfigMap it reads the fields that make bench-peers sets.
//! Then it declares a child if the object has the label `child`, and labels a pod if the
//! name of its node begins with `label-`.

use wasmctl::{json, Action, Capability, Context, Error, Manifest, Object, Patch, PatchParams, Reconciler};

fn reconcile(obj: &Object, ctx: &Context) -> Result<Action, Error> {
    let read = match obj.kind() {
        "ConfigMap" => [obj.name(), obj.label("tier"), obj.str(&["data", "config.yaml"])],
        _ => [obj.name(), obj.str(&["spec", "nodeName"]), obj.str(&["status", "phase"])],
    };
    if read.contains(&"") {
        return Err(Error::msg("a field is missing").permanent());
    }
    if read[1].starts_with("label-") && obj.label("node") != read[1] {
        let patch = Patch::Merge(json!({"metadata": {"labels": {"node": read[1]}}}));
        ctx.client().patch(&obj.to_ref(), &patch, &PatchParams::default())?;
    }
    if obj.label("child").is_empty() {
        return Ok(Action::await_change());
    }
    Ok(Action::apply(&json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": read[0]},
        "data": {"node": read[1], "phase": read[2]},
    })))
}

fn reconciler() -> Reconciler {
    let capabilities = vec![Capability::new("", "pods", &["patch"])];
    Reconciler::new(Manifest { capabilities, ..Manifest::default() }, reconcile)
}

wasmctl::export!(reconciler);

//! What a run costs, for host/rust_test.go and make bench-peers: reads one field each of
//! metadata, spec and status of a pod, near the start, behind the largest part, and at the
//! end, or what a ConfigMap of make bench-peers has. Then it declares a child where the
//! object has the label `child`, and labels a pod whose node's name begins with `label-`.

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

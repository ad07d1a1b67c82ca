//! What a run costs, for host/rust_test.go: reads one field each of metadata, spec and
//! status, near the start, behind the largest part, and at the end; then it declares a
//! child where the object has the label `child`.

use wasmctl::{json, Action, Context, Error, Manifest, Object, Reconciler};

fn reconcile(obj: &Object, _: &Context) -> Result<Action, Error> {
    let read = [obj.name(), obj.str(&["spec", "nodeName"]), obj.str(&["status", "phase"])];
    if read.contains(&"") {
        return Err(Error::msg("a field is missing").permanent());
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
    Reconciler::new(Manifest::default(), reconcile)
}

wasmctl::export!(reconciler);

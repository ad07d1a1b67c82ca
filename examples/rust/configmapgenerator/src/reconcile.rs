use std::time::Duration;

use wasmctl::{Action, ApiError, Builder, Condition, Context, Error, Failure, Object, ObjectRef, PatchParams};

use crate::status::write_status;

/// When an object is looked at again although nothing changed.
const RESYNC: Duration = Duration::from_secs(300);
/// When an object whose run failed is tried again.
const RETRY: Duration = Duration::from_secs(60);

/// Makes the ConfigMap what the generator asks for, and says in the generator's status
/// how that went.
pub fn reconcile(gen: &Object, ctx: &Context) -> Result<Action, Error> {
    if gen.is_deleting() {
        // The garbage collector takes the ConfigMap. Making it again would hold up a
        // foreground deletion for ever.
        return Ok(Action::await_change());
    }
    let (ready, failed) = match ctx.client().apply(&config_map(gen), &PatchParams::default().force()) {
        Ok(_) => (condition("True", "Applied", "the ConfigMap is up to date"), None),
        Err(e) => explain(ctx, gen, e),
    };
    // An error of this write counts even beside a permanent one: that would wait for a
    // change, and the status would never say for which.
    write_status(ctx, gen, ready)?;
    failed.map_or(Ok(Action::requeue(RESYNC)), Err)
}

/// Tries again after a fixed time. A permanent error waits for a change all the same.
pub fn error_policy(_: &Object, _: &Failure, _: &Context) -> Action {
    Action::requeue(RETRY)
}

/// The child of `gen`. The controller reference lets the garbage collector delete it
/// with `gen`, and lets the host reconcile `gen` when it changes.
fn config_map(gen: &Object) -> Builder {
    Builder::object(&config_map_ref(gen))
        .controller(gen)
        .end() // of metadata
        .map("data")
        .set("content", gen.str(&["spec", "content"]))
}

fn config_map_ref(gen: &Object) -> ObjectRef {
    gen.key().to_ref("v1", "ConfigMap")
}

/// Turns a failed apply into a condition and an error. The API server lets an object
/// have one controller, so a ConfigMap that is another one's is refused as invalid and
/// stays as it was: only then is it worth a look.
fn explain(ctx: &Context, gen: &Object, failed: ApiError) -> (Condition, Option<Error>) {
    if !failed.is_invalid() {
        return apply_failed(failed);
    }
    match ctx.client().get(&config_map_ref(gen)).map(|cm| cm.controller()) {
        Err(e) => apply_failed(e),
        Ok(Some(owner)) if owner.uid != gen.uid() => {
            let text = format!("configmap[{}]: is controlled by {} {}", gen.name(), owner.kind, owner.name);
            let error = Error::msg(text.as_str()).permanent().with_reason("NotOwned");
            (condition("False", "NotOwned", &text), Some(error))
        }
        Ok(_) => apply_failed(failed),
    }
}

fn apply_failed(e: ApiError) -> (Condition, Option<Error>) {
    (condition("False", "ApplyFailed", &e.to_string()), Some(e.into()))
}

fn condition(status: &str, reason: &str, message: &str) -> Condition {
    Condition { message: message.into(), ..Condition::new("Ready", status, reason) }
}

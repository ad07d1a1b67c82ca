// SPDX-License-Identifier: Apache-2.0
use std::time::Duration;

use wasmctl::{Action, ApiError, Builder, Condition, Context, Error, Failure, Object, ObjectRef, PatchParams};

use crate::status::write_status;

/// The time after which an object is checked again although nothing has changed.
const RESYNC: Duration = Duration::from_secs(300);
/// The time after which a failed run is retried.
const RETRY: Duration = Duration::from_secs(60);

/// Applies the ConfigMap that the generator requests, and reports the result in the generator's
/// status.
pub fn reconcile(gen: &Object, ctx: &Context) -> Result<Action, Error> {
    if gen.is_deleting() {
        // The garbage collector deletes the ConfigMap. Creating it again would block a foreground
        // deletion forever.
        return Ok(Action::await_change());
    }
    let (ready, failed) = match ctx.client().apply(&config_map(gen), &PatchParams::default().force()) {
        Ok(_) => (condition("True", "Applied", "the ConfigMap is up to date"), None),
        Err(e) => explain(ctx, gen, e),
    };
    match write_status(ctx, gen, ready) {
        Err(e) if e.is_not_found() => return Ok(Action::await_change()), // the generator was deleted meanwhile
        // This error takes precedence over a permanent one, which would wait for a change although
        // the status does not show the reason.
        written => written?,
    }
    failed.map_or(Ok(Action::requeue(RESYNC)), Err)
}

/// Retries after a fixed time. A permanent error still waits for a change.
pub fn error_policy(_: &Object, _: &Failure, _: &Context) -> Action {
    Action::requeue(RETRY)
}

/// Returns the child of `gen`. Because of the controller reference, the garbage collector deletes
/// it with `gen`, and the host reconciles `gen` when it changes.
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

/// Turns a failed apply into a condition and an error. An object can have only one controller, so
/// the API server rejects the apply as invalid if the ConfigMap belongs to another one. Only in
/// that case, reads it.
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

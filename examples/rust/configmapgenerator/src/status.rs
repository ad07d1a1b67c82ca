// SPDX-License-Identifier: Apache-2.0
use wasmctl::{json, ApiError, Condition, Context, Object, PatchParams};

/// Applies the status if it contains something new. A write changes the object, which is then
/// reconciled again: a status that is written in every run would cause an endless loop.
pub fn write_status(ctx: &Context, gen: &Object, ready: Condition) -> Result<(), ApiError> {
    let generation = gen.generation();
    let mut conditions = gen.conditions();
    let changed = conditions.set_with(Condition { observed_generation: generation, ..ready }, || ctx.now());
    if !changed && gen.int(&["status", "observedGeneration"]) == generation {
        return Ok(());
    }
    let status = json!({
        "apiVersion": gen.api_version(),
        "kind": gen.kind(),
        "metadata": {"name": gen.name(), "namespace": gen.namespace()},
        "status": {"observedGeneration": generation, "conditions": conditions},
    });
    ctx.client().apply_status(&status, &PatchParams::default().force()).map(drop)
}

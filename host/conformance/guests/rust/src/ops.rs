// SPDX-License-Identifier: Apache-2.0
use wasmctl::{
    json, ApiError, Builder, Context, DeleteParams, Event, EventObject, EventType, GetParams,
    ListParams, Object, ObjectRef, Patch, PatchOp, PatchParams, Preconditions, Value,
};

/// What a step saw.
pub type Report = Builder;

/// Carries out an operation with exactly the keys of the request, through the function
/// that a reconciler would use for it.
pub fn operate(ctx: &Context, op: &str, req: Value) -> Report {
    let at = object_ref(req);
    match op {
        "api_get" => answer(ctx.client().get_with(
            &at,
            &GetParams {
                subresource: text(req, "subresource"),
                resource_version: text(req, "resourceVersion"),
            },
        )),
        "api_list" => answer(
            ctx.client()
                .list(&at, &list_params(req))
                .map(|l| l.into_object()),
        ),
        "cache_get" => answer(ctx.cache().get(&at)),
        "cache_list" => answer(
            ctx.cache()
                .list(&at, &list_params(req))
                .map(|l| l.into_object()),
        ),
        "api_create" | "api_update" | "api_apply" => answer(write(ctx, op, req)),
        "api_patch" => answer(ctx.client().patch(&at, &patch(req), &params(req))),
        "api_delete" => done(ctx.client().delete(&at, &deletion(req))),
        "event_record" => done(ctx.record_event(&event(req))),
        "config_get" if req.exists(&["key"]) => answer(ctx.config(req.str(&["key"]))),
        "config_get" => answer(ctx.all_config()),
        _ => json!({"lacks": op}),
    }
}

/// What takes a whole object. With a name beside it, the object is the body of a
/// subresource.
fn write(ctx: &Context, op: &str, req: Value) -> Result<Object<'static>, ApiError> {
    let (body, params) = (req.at(&["object"]), params(req));
    if req.exists(&["kind"]) {
        let sub = ctx
            .client()
            .subresource(&object_ref(req), req.str(&["subresource"]));
        return match op {
            "api_create" => sub.create(&body, &params),
            "api_update" => sub.update(&body, &params),
            _ => sub.apply(&body, &params),
        };
    }
    match op {
        "api_create" => ctx.client().create(&body, &params),
        "api_update" => ctx.client().update(&body, &params),
        _ => ctx.client().apply(&body, &params),
    }
}

fn text(v: Value, key: &str) -> String {
    v.str(&[key]).to_owned()
}

pub fn object_ref(v: Value) -> ObjectRef {
    ObjectRef::new(v.str(&["apiVersion"]), v.str(&["kind"]), v.str(&["name"]))
        .within(v.str(&["namespace"]))
}

fn list_params(req: Value) -> ListParams {
    ListParams {
        label_selector: text(req, "labelSelector"),
        field_selector: text(req, "fieldSelector"),
        owner: text(req, "owner"),
        limit: req.int(&["limit"]),
        continue_token: text(req, "continue"),
        resource_version: text(req, "resourceVersion"),
        resource_version_match: text(req, "resourceVersionMatch"),
    }
}

fn params(req: Value) -> PatchParams {
    PatchParams {
        subresource: text(req, "subresource"),
        dry_run: req.bool(&["dryRun"]),
        field_manager: text(req, "fieldManager"),
        field_validation: text(req, "fieldValidation"),
        preconditions: preconditions(req),
        force: req.bool(&["force"]),
    }
}

fn preconditions(req: Value) -> Preconditions {
    let p = req.at(&["preconditions"]);
    Preconditions {
        uid: text(p, "uid"),
        resource_version: text(p, "resourceVersion"),
    }
}

fn deletion(req: Value) -> DeleteParams {
    DeleteParams {
        dry_run: req.bool(&["dryRun"]),
        propagation_policy: text(req, "propagationPolicy"),
        grace_period_seconds: req.at(&["gracePeriodSeconds"]).as_i64(),
        preconditions: preconditions(req),
    }
}

fn patch(req: Value<'_>) -> Patch<Value<'_>> {
    let body = req.at(&["patch"]);
    match req.str(&["patchType"]) {
        "merge" => Patch::Merge(body),
        "strategic" => Patch::Strategic(body),
        _ => Patch::Json(body.elements(&[]).map(patch_op).collect()),
    }
}

fn patch_op(o: Value) -> PatchOp {
    let (path, from, value) = (o.str(&["path"]), o.str(&["from"]), o.at(&["value"]));
    let op = match o.str(&["op"]) {
        "add" => PatchOp::add(path, &value),
        "replace" => PatchOp::replace(path, &value),
        "test" => PatchOp::test(path, &value),
        "move" => Ok(PatchOp::rename(from, path)),
        "copy" => Ok(PatchOp::copy(from, path)),
        _ => Ok(PatchOp::remove(path)),
    };
    op.expect("what was received can be sent")
}

fn event(req: Value) -> Event {
    let object = |key: &str| {
        let v = req.at(&[key]);
        v.exists(&[]).then(|| EventObject {
            object: object_ref(v),
            uid: text(v, "uid"),
        })
    };
    Event {
        type_: match req.str(&["type"]) {
            "Normal" => Some(EventType::Normal),
            "Warning" => Some(EventType::Warning),
            _ => None,
        },
        reason: text(req, "reason"),
        action: text(req, "action"),
        note: text(req, "note"),
        regarding: object("regarding"),
        related: object("related"),
    }
}

/// Reports the answer of an operation.
fn answer<T: serde::Serialize>(result: Result<T, ApiError>) -> Report {
    match result {
        Ok(body) => json!({"status": 0, "body": body}),
        Err(e) => fault(&e),
    }
}

fn done(result: Result<(), ApiError>) -> Report {
    match result {
        Ok(()) => json!({"status": 0}),
        Err(e) => fault(&e),
    }
}

pub fn fault(e: &ApiError) -> Report {
    json!({"status": e.status, "reason": e.reason, "message": e.message, "rule": e.rule.as_deref()})
}

// SPDX-License-Identifier: Apache-2.0
//! A guest of the conformance kit, written with the Rust SDK. It does what the object of
//! a run says, and reports what it saw; ../../README.md is what it has to do.

mod ops;
mod steps;
mod webhooks;

use std::collections::BTreeMap;
use std::time::Duration;

use ops::{operate, Report};
use steps::{request, steps};
use wasmctl::{
    json, Action, Capability, Context, Conversion, Error, Failure, Limits, Manifest, Object,
    ObjectKey, Reconciler, Value, Watch, WatchEvent,
};

const GROUP: &str = "conformance.wasmctl.dev";

fn manifest() -> Manifest {
    let scale = Capability {
        subresources: vec!["scale".into()],
        namespaces: vec!["default".into()],
        names: vec!["web".into()],
        ..Capability::new("apps", "deployments", &["get", "update"])
    };
    let configmaps = Capability {
        fields: vec!["data".into(), "metadata.labels[größe]".into()],
        ..Capability::new(
            "",
            "configmaps",
            &["get", "list", "create", "update", "patch", "delete"],
        )
    };
    let limits = Limits {
        memory: 256 << 20,
        timeout: 30_000,
        host_calls: 1000,
        log_lines: 1_000_000,
        event_rate: 100_000,
        api_rate: 50,
        metric_series: 50,
        ..Limits::default()
    };
    Manifest {
        name: "conformance".into(),
        version: "1.0.0".into(),
        for_: Watch::new(GROUP, "v1", "Case")
            .labels("conformance.wasmctl.dev/run=yes")
            .predicates(&["generation"]),
        owns: vec![Watch::new("", "v1", "ConfigMap").controller_only()],
        watches: vec![
            Watch::new("", "v1", "Secret")
                .mapper(map_event)
                .filter(keep_event),
            Watch::new("apps", "v1", "Deployment")
                .namespaces(&["default", "größe"])
                .map("label:conformance.wasmctl.dev/case")
                .metadata_only()
                .optional(),
        ],
        capabilities: vec![
            configmaps,
            scale,
            Capability::new("events.k8s.io", "events", &["create", "patch"]),
        ],
        webhooks: webhooks::webhooks(),
        conversions: vec![Conversion::new(
            GROUP,
            "Case",
            &["v1", "v2"],
            webhooks::convert,
        )],
        limits,
        finalizer: "conformance.wasmctl.dev/case".into(),
        concurrency: 2,
        config: [("greeting", "hello"), ("größe", "klein")]
            .map(|(k, v)| (k.into(), v.into()))
            .into(),
        requires: vec!["config_get".into()],
        wants: vec!["teleport".into()],
    }
}

fn reconciler() -> Reconciler {
    Reconciler::new(manifest(), |obj: &Object, ctx: &Context| {
        run(obj, ctx, "reconcile")
    })
    .finalize(|obj: &Object, ctx: &Context| run(obj, ctx, "finalize"))
    .error_policy(error_policy)
    .configure(configure)
}

wasmctl::export!(reconciler);

/// `reconcile` and `finalize`: the steps, the report of them as status, and what
/// spec.then asks for.
fn run(obj: &Object, ctx: &Context, entry: &str) -> Result<Action, Error> {
    if !obj.exists(&[]) {
        let steps = [request(ctx, obj, Value::default())];
        return Ok(Action::await_change().status(&json!({"entry": entry, "steps": steps})));
    }
    let report = json!({"entry": entry, "steps": steps(ctx, obj, obj.at(&["spec", "steps"]))});
    let then = obj.at(&["spec", "then"]);
    if then.exists(&["error"]) {
        return Err(failure(then.at(&["error"])).with_status(&report));
    }
    let children = then.elements(&["apply"]);
    let mut action = children.fold(next(then).status(&report), |action, child| {
        action.and_apply(&child)
    });
    if then.bool(&["prune"]) {
        action = action.prune();
    }
    if then.bool(&["force"]) {
        action = action.force();
    }
    Ok(action)
}

/// The action of a spec.then or a spec.policy.
fn next(v: Value) -> Action {
    match v.str(&["action"]) {
        "requeue" => Action::requeue(millis(v)),
        _ => Action::await_change(),
    }
}

fn millis(v: Value) -> Duration {
    Duration::from_millis(v.int(&["after_ms"]) as u64)
}

/// The error that `v` describes.
fn failure(v: Value) -> Error {
    let mut e = Error::msg(v.str(&["message"]));
    e = match v.str(&["class"]) {
        "permanent" => e.permanent(),
        "conflict" => e.conflict(),
        _ => e,
    };
    e.with_reason(v.str(&["reason"])).retry_after(millis(v))
}

fn error_policy(obj: &Object, f: &Failure, ctx: &Context) -> Action {
    tell(
        ctx,
        &json!({
            "entry": "error_policy",
            "id": ctx.id(),
            "key": ctx.key(),
            "attempt": f.attempt,
            "first_failed_ms": f.first_failed.unix_ms(),
            "kind": f.kind.as_str(),
            "class": f.class.as_str(),
            "message": f.message,
            "reason": f.reason,
            "after_ms": f.after.as_millis() as i64,
            "object": obj.exists(&[]),
            "steps": steps(ctx, obj, obj.at(&["spec", "policy", "steps"])),
        }),
    );
    next(obj.at(&["spec", "policy"]))
}

fn map_event(e: &WatchEvent, ctx: &Context) -> Result<Vec<ObjectKey>, Error> {
    let what = e.object().at(&["spec", "map"]);
    tell_event(ctx, "map", e, what);
    if what.exists(&["error"]) {
        return Err(failure(what.at(&["error"])));
    }
    Ok(what
        .elements(&["keys"])
        .map(|k| ObjectKey::new(k.str(&["namespace"]), k.str(&["name"])))
        .collect())
}

fn keep_event(e: &WatchEvent, ctx: &Context) -> bool {
    let what = e.object().at(&["spec", "filter"]);
    tell_event(ctx, "filter", e, what);
    what.bool(&["keep"])
}

fn tell_event(ctx: &Context, entry: &str, e: &WatchEvent, what: Value) {
    tell(
        ctx,
        &json!({
            "entry": entry,
            "type": e.type_.as_str(),
            "watch": {"group": e.group, "version": e.version, "kind": e.kind},
            "key": e.key,
            "old": e.old.exists(&[]),
            "new": e.new.exists(&[]),
            "steps": steps(ctx, e.object(), what.at(&["steps"])),
        }),
    );
}

fn configure(settings: &BTreeMap<String, String>, ctx: &Context) -> Result<(), Error> {
    let setting = |key: &str| settings.get(key).map_or("", String::as_str);
    let mut reports = Vec::new();
    if setting("try") == "yes" {
        let key = Object::new(&json!({"key": "greeting"}))?;
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "a"});
        reports.push(operate(ctx, "config_get", key.value()));
        reports.push(operate(ctx, "api_get", Object::new(&object)?.value()));
    }
    tell(
        ctx,
        &json!({"entry": "configure", "config_gen": ctx.config_generation(), "config": settings, "steps": reports}),
    );
    match setting("refuse") {
        "" => Ok(()),
        text => Err(Error::msg(text)),
    }
}

/// How entries report whose result has no status.
fn tell(ctx: &Context, report: &Report) {
    ctx.log().info("report", &[("report", report)]);
}

// SPDX-License-Identifier: Apache-2.0
//! Webhooks and conversions, on the host in memory.
#![cfg(feature = "testing")]

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wasmctl::testing::{Admitted, Host};
use wasmctl::{
    json, resource, Action, Admission, Cause, Context, Conversion, Denial, Error, Manifest, Object, ObjectMeta,
    ObjectRef, Operation, Reconciler, Verdict, Watch, Webhook, WebhookRule,
};

#[derive(Debug, Deserialize, Serialize)]
struct Web {
    metadata: ObjectMeta,
    spec: WebSpec,
}

#[derive(Debug, Deserialize, Serialize)]
struct WebSpec {
    replicas: Option<i64>,
    containers: Vec<Container>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Container {
    name: String,
    image: Option<String>,
}

resource!(Web, "example.com/v1", "Web");

fn with(webhooks: Vec<Webhook>) -> Reconciler {
    let manifest = Manifest { for_: Watch::of::<Web>(), webhooks, ..Manifest::default() };
    Reconciler::new(manifest, |_: &Object, _: &Context| Ok::<_, Error>(Action::await_change()))
}

fn web(replicas: Option<i64>) -> Object<'static> {
    let obj = json!({
        "apiVersion": "example.com/v1", "kind": "Web",
        "metadata": {"name": "a", "namespace": "default", "labels": {"app": "a"}},
        "spec": {
            "replicas": replicas,
            "paused": true,
            "containers": [{"name": "app", "port": 80}, {"name": "log", "image": "log:1", "port": 81}],
        },
    });
    Object::new(&obj).unwrap()
}

fn none() -> Object<'static> {
    Object::default()
}

fn default_image() -> Webhook {
    Webhook::default_typed(|web: &mut Web, a: &Admission, _: &Context| {
        assert_eq!(a.key.to_string(), "default/a");
        web.spec.replicas.get_or_insert(1);
        for c in &mut web.spec.containers {
            c.image.get_or_insert_with(|| format!("{}:latest", c.name));
        }
        Ok::<_, Error>(Verdict::allow().warn("defaulted").audit("by", "test"))
    })
}

#[test]
fn a_typed_default_keeps_the_fields_that_the_type_lacks() {
    let host = Host::new();
    let r = with(vec![default_image()]);
    let out = host.admit(&r, &none(), &web(None)).unwrap();
    let mut want = web(Some(1));
    let containers =
        json!([{"name": "app", "image": "app:latest", "port": 80}, {"name": "log", "image": "log:1", "port": 81}]);
    want.set(&["spec", "containers"], &containers).unwrap();
    let decode = |o: &Object| o.decode::<BTreeMap<String, serde::de::IgnoredAny>>(&[]).unwrap().len();
    assert_eq!((out.denied, decode(&out.object)), (None, decode(&want)));
    for path in [&["spec", "replicas"][..], &["spec", "paused"], &["metadata", "labels", "app"]] {
        assert_eq!(out.object.at(path), want.at(path), "{path:?}");
    }
    let parts = |o: &Object| {
        let part = |c: wasmctl::Value| (c.str(&["name"]).to_owned(), c.str(&["image"]).to_owned(), c.int(&["port"]));
        o.elements(&["spec", "containers"]).map(part).collect::<Vec<_>>()
    };
    assert_eq!(parts(&out.object), parts(&want));
    assert_eq!((out.warnings, out.audit["by"].as_str()), (vec!["defaulted".to_owned()], "test"));

    let deleted = host.admit(&r, &web(None), &none()).unwrap();
    assert!(!deleted.object.exists(&[]) && deleted.warnings.is_empty(), "a deletion is not selected");
}

#[test]
fn an_object_that_does_not_fit_the_type_is_denied() {
    let host = Host::new();
    let mut odd = web(None);
    odd.set(&["spec", "containers"], &"many").unwrap();
    let validate =
        Webhook::validate_typed(
            |_: &Web, _: Option<&Web>, _: &Admission, _: &Context| Ok::<_, Error>(Verdict::allow()),
        );
    for webhook in [default_image(), validate] {
        let denied = host.admit(&with(vec![webhook]), &none(), &odd).unwrap().denied.unwrap();
        assert_eq!((denied.code, denied.reason.as_str()), (400, "BadRequest"));
        assert!(denied.message.starts_with("Web[default/a]: spec.containers"), "{}", denied.message);
    }
}

#[test]
fn validation_sees_the_request_and_its_user() {
    let rule = WebhookRule::new("example.com", "*", "webs", &["*"]);
    let validate = Webhook::validate_typed(|web: &Web, old: Option<&Web>, a: &Admission, ctx: &Context| {
        assert_eq!((a.target, a.id, ctx.key()), (a.requested, ctx.id(), a.key.clone()));
        assert_eq!((a.target.group, a.target.version, a.target.kind), ("example.com", "v1", "Web"));
        assert_eq!(old.is_some(), a.operation == Operation::Update);
        assert!(ctx.client().get(&ObjectRef::new("v1", "Secret", "a").within("default")).is_err());
        let user = a.user();
        match (&a.operation, user.username.as_str()) {
            (Operation::Delete, "alice") if user.groups == ["devs"] => {
                return Ok(Verdict::deny("alice may not delete"))
            }
            (Operation::Delete, _) => return Ok(Verdict::allow()),
            _ => {}
        }
        let replicas = web.spec.replicas.unwrap_or_default();
        let mut causes = Vec::new();
        if replicas < 0 {
            causes.push(Cause::new("spec.replicas", "must not be negative"));
        }
        if old.map_or(false, |old| old.spec.replicas.unwrap_or_default() > replicas) {
            causes
                .push(Cause { type_: "FieldValueForbidden".into(), ..Cause::new("spec.replicas", "must not shrink") });
        }
        if replicas == 13 {
            return Err(Error::msg("cannot decide"));
        }
        Ok(Verdict::invalid(causes))
    });
    let r = with(vec![validate.path("/check").rule(rule).timeout_seconds(3)]);
    let host = Host::new();
    let admit = |old: &Object, new: &Object| host.admit(&r, old, new);
    assert_eq!(admit(&none(), &web(Some(1))).unwrap().denied, None);
    assert_eq!(admit(&none(), &web(Some(13))).unwrap_err(), "cannot decide");
    let one = admit(&none(), &web(Some(-1))).unwrap().denied.unwrap();
    assert_eq!((one.code, one.message.as_str()), (422, "spec.replicas: must not be negative"));
    let Admitted { denied, object, .. } = admit(&web(Some(1)), &web(Some(-1))).unwrap();
    let two = denied.unwrap();
    assert_eq!(two.message, "[spec.replicas: must not be negative, spec.replicas: must not shrink]");
    assert_eq!((two.causes.len(), two.causes[1].type_.as_str()), (2, "FieldValueForbidden"));
    assert!(!object.exists(&[]), "a denied request has no object");
    assert_eq!(admit(&web(None), &none()).unwrap().denied, None);
    host.set_user("alice", &["devs"]);
    let deleted = admit(&web(None), &none()).unwrap().denied;
    assert_eq!(deleted, Some(Denial { code: 403, message: "alice may not delete".into(), ..Denial::default() }));
}

/// The identity of an object cannot change, and a webhook sees the result of those before.
#[test]
fn webhooks_run_one_after_the_other() {
    let set = |path: &'static str, key: &'static [&'static str], value: &'static str| {
        let webhook = Webhook::default(move |a: &Admission, _: &Context| {
            let mut object = a.object.clone();
            object.set(key, value)?;
            Ok::<_, Error>(Verdict::defaulted(&object))
        });
        webhook.path(path)
    };
    let check = Webhook::validate(|a: &Admission, _: &Context| {
        Ok::<_, Error>(Verdict::deny(format!("{} {}", a.object.name(), a.object.str(&["spec", "by"]))))
    });
    let r = with(vec![check, set("/a", &["metadata", "name"], "b"), set("/b", &["spec", "by"], "c")]);
    let denied = Host::new().admit(&r, &none(), &web(None)).unwrap().denied.unwrap();
    assert_eq!(denied.message, "a c");
}

#[test]
#[should_panic(expected = "is not idempotent")]
fn a_default_that_changes_its_own_result_fails_the_test() {
    let grow = Webhook::default(|a: &Admission, _: &Context| {
        let mut object = a.object.clone();
        object.set(&["spec", "replicas"], &(object.int(&["spec", "replicas"]) + 1))?;
        Ok::<_, Error>(Verdict::defaulted(&object))
    });
    drop(Host::new().admit(&with(vec![grow]), &none(), &web(None)));
}

#[test]
fn the_manifest_has_the_paths_and_rules_of_kubebuilder() {
    let validate = || Webhook::validate(|_: &Admission, _: &Context| Ok::<_, Error>(Verdict::allow()));
    let m =
        Host::manifest(&with(vec![default_image(), validate(), validate().path("/x").match_condition("a", "true")]));
    let webhooks: Vec<_> = m.elements(&["webhooks"]).collect();
    let paths: Vec<_> = webhooks.iter().map(|w| (w.str(&["type"]), w.str(&["path"]))).collect();
    let want =
        [("default", "/mutate-example-com-v1-web"), ("validate", "/validate-example-com-v1-web"), ("validate", "/x")];
    assert_eq!(paths, want);
    let rule = webhooks[0].elements(&["rules"]).next().unwrap();
    assert_eq!(
        (rule.strings(&["apiGroups"]), rule.strings(&["resources"])),
        (vec!["example.com".into()], vec!["webs".into()])
    );
    assert_eq!(rule.strings(&["operations"]), ["CREATE", "UPDATE"]);
    let condition = webhooks[2].elements(&["matchConditions"]).next().unwrap();
    assert_eq!((condition.str(&["name"]), condition.str(&["expression"])), ("a", "true"));
    assert_eq!(m.strings(&["hooks"]), ["validate", "default"]);
}

#[test]
#[should_panic(expected = "needs kind and version in Manifest::for_")]
fn a_webhook_that_selects_nothing_is_refused() {
    let webhook = Webhook::validate(|_: &Admission, _: &Context| Ok::<_, Error>(Verdict::allow()));
    let manifest = Manifest { webhooks: vec![webhook.path("/x")], ..Manifest::default() };
    let r = Reconciler::new(manifest, |_: &Object, _: &Context| Ok::<_, Error>(Action::await_change()));
    drop(Host::new().admit(&r, &none(), &web(None)));
}

#[derive(Serialize)]
struct WebV2 {
    metadata: ObjectMeta,
    size: i64,
}

#[test]
fn objects_are_converted_and_get_their_version() {
    let conversion = Conversion::new("example.com", "Web", &["v1", "v2"], |obj: &Object, to: &str, _: &Context| {
        assert_eq!(to, "example.com/v2");
        match obj.at(&["spec", "replicas"]).as_i64() {
            Some(size) => Ok(WebV2 { metadata: obj.decode(&["metadata"])?, size }),
            None => Err(Error::msg("no replicas")),
        }
    });
    let manifest = Manifest { conversions: vec![conversion], ..Manifest::default() };
    let r = Reconciler::new(manifest, |_: &Object, _: &Context| Ok::<_, Error>(Action::await_change()));
    let host = Host::new();
    let out = host.convert(&r, &web(Some(3)), "example.com/v2").unwrap();
    assert_eq!((out.api_version(), out.kind(), out.name()), ("example.com/v2", "Web", "a"));
    assert_eq!((out.int(&["size"]), out.label("app")), (3, "a"));
    assert_eq!(host.convert(&r, &web(None), "example.com/v1").unwrap().label("app"), "a", "the same version");
    assert_eq!(host.convert(&r, &web(None), "example.com/v2").unwrap_err(), "Web[default/a]: no replicas");
    let other =
        Object::new(&json!({"apiVersion": "example.com/v1", "kind": "Other", "metadata": {"name": "o"}})).unwrap();
    let refused = host.convert(&r, &other, "example.com/v2").unwrap_err();
    assert_eq!(refused, "Other[o]: no conversion to example.com/v2");
    let m = Host::manifest(&r);
    let conversion = m.elements(&["conversions"]).next().unwrap();
    assert_eq!(
        (conversion.str(&["group"]), conversion.strings(&["versions"])),
        ("example.com", vec!["v1".into(), "v2".into()])
    );
    assert_eq!(m.strings(&["hooks"]), ["convert"]);
}

/// More entries than the host accepts must not turn a denial into a fault.
#[test]
fn a_verdict_stays_within_its_bounds() {
    let validate = Webhook::validate(|_: &Admission, _: &Context| {
        let mut verdict = Verdict::invalid((0..1000).map(|i| Cause::new(format!("spec.list[{i}]"), "is invalid")));
        for i in 0..100 {
            verdict = verdict.warn("w").audit(format!("{i:03}"), "v");
        }
        Ok::<_, Error>(verdict)
    });
    let out = Host::new().admit(&with(vec![validate]), &none(), &web(None)).unwrap();
    assert_eq!((out.warnings.len(), out.audit.len(), out.denied.unwrap().causes.len()), (50, 20, 200));
}

#[test]
fn a_run_of_reconcile_denies_only_permanent_errors_of_a_changed_object() {
    let check = Webhook::validate_by_reconcile(|obj: &Object, ctx: &Context| {
        assert!(ctx.dry_run());
        match obj.int(&["spec", "replicas"]) {
            n if n < 0 => Err(Error::msg("spec.replicas: must not be negative").permanent()),
            9 => Err(Error::msg("the node is not ready")),
            _ => Ok(Action::await_change()),
        }
    });
    let r = with(vec![check]);
    let at = |replicas, generation: i64| {
        let mut obj = web(Some(replicas));
        obj.set(&["metadata", "generation"], &generation).unwrap();
        obj
    };
    let denied =
        |old: &Object, new: &Object| Host::new().admit(&r, old, new).unwrap().denied.map(|d| (d.code, d.message));
    let wrong = Some((422, "spec.replicas: must not be negative".to_owned()));
    assert_eq!(denied(&none(), &at(-1, 1)), wrong);
    assert_eq!(denied(&at(1, 1), &at(-1, 2)), wrong);
    assert_eq!(denied(&none(), &at(1, 1)), None);
    assert_eq!(denied(&none(), &at(9, 1)), None, "a retry may succeed");
    assert_eq!(denied(&at(-1, 1), &at(-1, 1)), None, "the update changes only metadata");
    let mut deleting = at(-1, 2);
    deleting.set(&["metadata", "deletionTimestamp"], "2026-01-01T00:00:00Z").unwrap();
    assert_eq!(denied(&at(-1, 1), &deleting), None);
}

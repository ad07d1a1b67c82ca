// SPDX-License-Identifier: Apache-2.0
//! The golden messages of abi/testdata, which hosts and SDKs share.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::guest::{Entry, Guest};
use crate::script::Script;
use crate::wire::{self, Type};
use crate::*;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../abi/testdata").join(name)
}

pub(crate) fn golden(name: &str) -> Vec<u8> {
    let file = path(&format!("{name}.msgpack"));
    fs::read(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

/// The value with the keys of its maps sorted, because messages may differ in their
/// order.
pub(crate) fn sorted(v: Value<'_>) -> String {
    match v.type_of(&[]) {
        Type::Map => {
            let mut list: Vec<_> = v.entries(&[]).map(|(k, v)| format!("{k:?}: {}", sorted(v))).collect();
            list.sort();
            format!("{{{}}}", list.join(", "))
        }
        Type::Array => format!("{:?}", v.elements(&[]).map(sorted).collect::<Vec<_>>()),
        Type::String => format!("{:?}", v.str(&[])),
        Type::Int => v.int(&[]).to_string(),
        Type::Float => format!("{:?}", v.float(&[])),
        other => format!("{other:?} {}", v.bool(&[])),
    }
}

#[track_caller]
pub(crate) fn equal(got: &[u8], name: &str) {
    assert_eq!(wire::check(got), Ok(()), "{name}");
    assert_eq!(sorted(Value::of(got)), sorted(Value::of(&golden(name))), "{name}");
}

pub(crate) fn enter(host: &Script, r: &Reconciler, entry: Entry, message: &str) -> Vec<u8> {
    let mut out = Vec::new();
    Guest::new(host).call(r, entry, &golden(message), &mut out);
    out
}

/// Runs `f` on a golden request. The result must not be an error from elsewhere.
pub(crate) fn run<F>(host: &Script, message: &str, f: F) -> Vec<u8>
where
    F: Fn(&Object<'_>, &Context<'_>) -> Result<Action, Error> + 'static,
{
    enter(host, &Reconciler::new(Manifest::default(), f), Entry::Reconcile, message)
}

#[test]
fn a_full_request_is_read_by_the_context_and_the_object() {
    let out = run(&Script::default(), "request-full", |obj, ctx| {
        assert_eq!((ctx.id(), ctx.controller(), ctx.attempt()), ("8f3a-42", "configmapgenerator", 3));
        assert_eq!(ctx.key(), ObjectKey::new("default", "hello"));
        assert_eq!(ctx.reason().to_string(), "Related configmaps default/hello-content");
        assert!(ctx.stale() && ctx.dry_run() && ctx.host_has("config_get") && !ctx.host_has("cache_get"));
        assert_eq!((ctx.config_generation(), ctx.deadline()), (2, Some(Time::from_unix_ms(1_767_225_600_123))));
        let at = ObjectRef::new("examples.wasmctl.dev/v1", "ConfigMapGenerator", "hello").within("default");
        assert_eq!(obj.to_ref(), at);
        assert_eq!((obj.uid(), obj.generation()), ("5c2f1f3e-8f0c-4b0e-9a43-0f1f6f2d7c11", 3));
        assert_eq!((obj.resource_version(), obj.label("größe"), obj.labels().len()), ("4711", "klein", 2));
        assert_eq!((obj.str(&["spec", "content"]), obj.len(&["spec", "list"])), ("hello, world", 6));
        let list: (i64, i64, i64, f64, bool, Option<bool>) = obj.decode(&["spec", "list"])?;
        assert_eq!(list, (1, -1, 1_099_511_627_776, 1.5, true, None));
        Ok(Action::await_change())
    });
    equal(&out, "result-await");
}

#[test]
fn a_minimal_request_leaves_the_rest_zero() {
    let out = run(&Script::default(), "request-minimal", |obj, ctx| {
        assert!(!obj.exists(&[]));
        assert_eq!(ctx.key(), ObjectKey::new("", "cluster-scoped"));
        assert_eq!((ctx.reason().to_string().as_str(), ctx.deadline()), ("Listed", None));
        assert!(!ctx.dry_run() && !ctx.stale() && !ctx.host_has("api_get"));
        Ok(Action::await_change())
    });
    equal(&out, "result-await");
}

#[test]
fn a_merged_request_has_all_reasons() {
    let out = run(&Script::default(), "request-merged", |_, ctx| {
        let (reasons, dropped) = ctx.reasons();
        let reasons: Vec<_> = reasons.iter().map(ToString::to_string).collect();
        assert_eq!(reasons, ["Resync", "Related deployments.apps default/web", "ConfigChanged"]);
        assert_eq!(dropped, 3);
        Ok(Action::await_change())
    });
    equal(&out, "result-await");
}

fn conflict() -> Error {
    Error::from(ApiError::new(409, "", "x")).with_reason("NotOwned").retry_after(Duration::from_secs(5))
}

#[test]
fn results_are_written() {
    let declared = golden("result-declared");
    let children = |i| Object::new(&Value::of(&declared).elements(&["apply"]).nth(i).unwrap()).unwrap();
    let status = Object::new(&Value::of(&declared).at(&["status"])).unwrap();
    let text = "configmap is not ours";
    let named = || Error::msg(text).conflict().with_reason("NotOwned").retry_after(Duration::from_secs(5));
    assert_eq!((conflict().class(), conflict().reason()), (ErrorClass::Conflict, "NotOwned"));
    let cases: Vec<(&str, Result<Action, Error>)> = vec![
        ("result-await", Ok(Action::await_change())),
        ("result-requeue", Ok(Action::requeue(Duration::from_secs(300)))),
        ("result-error", Err(named())),
        ("result-declared", Ok(Action::apply(&children(0)).and_apply(&children(1)).prune().status(&status))),
        ("result-prune", Ok(Action::await_change().prune())),
        ("result-error-status", Err(named().with_status(&status))),
        ("result-declared-requeue", Ok(Action::requeue(Duration::from_secs(60)).and_apply(&children(0)).force())),
    ];
    for (name, result) in cases {
        let result = RefCell::new(Some(result));
        equal(&run(&Script::default(), "request-minimal", move |_, _| result.borrow_mut().take().unwrap()), name);
    }
}

#[test]
fn failures_are_read_by_the_error_policy() {
    let deadline = Time::from_unix_ms(1_767_225_600_123);
    let error = Failure {
        kind: FailureKind::Error,
        class: ErrorClass::Conflict,
        message: "configmap is not ours".into(),
        reason: "NotOwned".into(),
        after: Duration::from_secs(5),
        attempt: 2,
        first_failed: deadline,
    };
    let trap = Failure {
        kind: FailureKind::Trap,
        class: ErrorClass::Transient,
        message: "unreachable".into(),
        reason: String::new(),
        after: Duration::ZERO,
        attempt: 1,
        first_failed: deadline,
    };
    for (name, want) in [("failure-error", error), ("failure-trap", trap)] {
        let r = Reconciler::new(Manifest::default(), |_: &Object<'_>, _: &Context<'_>| {
            Ok::<_, Error>(Action::await_change())
        })
        .error_policy(move |obj: &Object<'_>, failure: &Failure, ctx: &Context<'_>| {
            assert_eq!(*failure, want);
            assert_eq!((ctx.key().to_string().as_str(), obj.exists(&[])), ("default/hello", name == "failure-error"));
            Action::requeue(Duration::from_secs(300))
        });
        equal(&enter(&Script::default(), &r, Entry::ErrorPolicy, name), "result-requeue");
    }
}

/// Two watches, of a core kind and of a custom kind, with the same mapper and a filter
/// that hides every event.
fn watching<F>(f: F) -> Reconciler
where
    F: Fn(&WatchEvent<'_>) -> Result<Vec<ObjectKey>, Error> + Clone + 'static,
{
    let watch = |group: &str, kind: &str| {
        let f = f.clone();
        Watch::new(group, "v1", kind)
            .mapper(move |e: &WatchEvent<'_>, _: &Context<'_>| f(e))
            .filter(|_: &WatchEvent<'_>, _: &Context<'_>| false)
    };
    let watches = vec![watch("", "ConfigMap"), watch("example.com", "Color")];
    Reconciler::new(Manifest { watches, ..Manifest::default() }, |_: &Object<'_>, _: &Context<'_>| {
        Ok::<_, Error>(Action::await_change())
    })
}

#[test]
fn events_are_read_and_keys_are_written() {
    for (name, type_, group, kind, key) in [
        ("event-listed", WatchEventType::Listed, "", "ConfigMap", "default/hello"),
        ("event-updated", WatchEventType::Updated, "", "ConfigMap", "default/hello"),
        ("event-deleted", WatchEventType::Deleted, "example.com", "Color", "blue"),
    ] {
        let there = golden(name);
        let states = ["old", "new"].map(|state| Value::of(&there).exists(&[state]));
        let r = watching(move |e| {
            assert_eq!((&e.type_, e.group, e.kind, e.key.to_string().as_str()), (&type_, group, kind, key));
            assert_eq!(([e.old.exists(&[]), e.new.exists(&[])], e.object().exists(&[])), (states, true));
            Ok(vec![ObjectKey::new("default", "hello"), ObjectKey::new("", "blue"), ObjectKey::new("x", "")])
        });
        equal(&enter(&Script::default(), &r, Entry::Map, name), "keys-two");
        assert!(!Guest::new(&Script::default()).keep(&r, &golden(name)));
    }
    equal(&enter(&Script::default(), &watching(|_| Ok(Vec::new())), Entry::Map, "event-listed"), "keys-none");
    let r = watching(|_| Err(Error::msg("the cache has no namespace yet").with_reason("NotSynced")));
    equal(&enter(&Script::default(), &r, Entry::Map, "event-listed"), "keys-error");
}

#[test]
fn settings_are_given_to_configure() {
    for (name, generation, want) in
        [("settings-none", 1, vec![]), ("settings-two", 7, vec![("größe", "klein"), ("suffix", "-content")])]
    {
        let r = watching(|_| Ok(Vec::new())).configure(move |settings: &_, ctx: &Context<'_>| {
            let settings: &std::collections::BTreeMap<String, String> = settings;
            let got: Vec<_> = settings.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
            assert_eq!((&got, ctx.config_generation()), (&want, generation));
            Ok::<_, Error>(())
        });
        assert_eq!(enter(&Script::default(), &r, Entry::Configure, name), b"");
    }
}

pub(crate) fn asked(f: impl Fn(&Context<'_>) -> Result<(), Error> + 'static) -> Vec<u8> {
    let host = Script { answer: crate::action::encode(&json!({"kind": "Answer"})).unwrap(), ..Script::default() };
    let out = run(&host, "request-minimal", move |_, ctx| f(ctx).map(|()| Action::await_change()));
    equal(&out, "result-await");
    host.asked.into_inner()
}

#[test]
fn records_are_written() {
    let event = Event {
        type_: Some(EventType::Warning),
        reason: "NotOwned".into(),
        action: "Apply".into(),
        note: "the ConfigMap hello-content belongs to somebody else".into(),
        regarding: Some(EventObject {
            object: ObjectRef::new("v1", "ConfigMap", "hello-content").within("default"),
            uid: "5c2f1f3e-8f0c-4b0e-9a43-0f1f6f2d7c11".into(),
        }),
        related: Some(EventObject { object: ObjectRef::new("example.com/v1", "Color", "blue"), uid: String::new() }),
    };
    equal(&asked(move |ctx| Ok(ctx.record_event(&event)?)), "record-full");
    let event = Event { reason: "Created".into(), ..Event::default() };
    equal(&asked(move |ctx| Ok(ctx.record_event(&event)?)), "record-minimal");
}

#[test]
fn operations_are_written() {
    let map = || ObjectRef::new("v1", "ConfigMap", "hello-content").within("default");
    let all = || ObjectRef::all("v1", "ConfigMap").within("default");
    let params = || ListParams { continue_token: "abc".into(), ..ListParams::default().labels("app=demo").limit(500) };
    let apply = golden("api-apply");
    let object = Object::new(&Value::of(&apply).at(&["object"])).unwrap();
    let delete = DeleteParams {
        propagation_policy: "Foreground".into(),
        grace_period_seconds: Some(0),
        preconditions: Preconditions {
            uid: "5c2f1f3e-8f0c-4b0e-9a43-0f1f6f2d7c11".into(),
            resource_version: "4711".into(),
        },
        ..DeleteParams::default()
    };
    equal(&asked(move |ctx| Ok(ctx.cache().get(&map()).map(drop)?)), "cache-get");
    equal(&asked(move |ctx| Ok(ctx.cache().list(&all(), &params()).map(drop)?)), "cache-list");
    equal(&asked(move |ctx| Ok(ctx.client().get(&map()).map(drop)?)), "api-get");
    equal(&asked(move |ctx| Ok(ctx.client().list(&all(), &params()).map(drop)?)), "api-list");
    let patch = || Patch::<()>::Json(vec![PatchOp::remove("/data/a")]);
    equal(
        &asked(move |ctx| Ok(ctx.client().patch_status(&map(), &patch(), &PatchParams::default()).map(drop)?)),
        "api-patch",
    );
    equal(
        &asked(move |ctx| Ok(ctx.client().apply(&object, &PatchParams::apply("demo").force().dry_run()).map(drop)?)),
        "api-apply",
    );
    equal(&asked(move |ctx| Ok(ctx.client().delete(&map(), &delete)?)), "api-delete");
}

#[test]
fn statuses_become_errors() {
    let call = |status, body: &str| {
        let host = Script { status, answer: golden(body), ..Script::default() };
        let out = run(&host, "request-minimal", |_, ctx| {
            let e = ctx.client().get(&ObjectRef::new("v1", "Secret", "a").within("default")).unwrap_err();
            assert_eq!((e.is_denied(), e.is_unsupported()), (e.status == -2, e.status == -1));
            if let Some(rule) = &e.rule {
                let want =
                    Capability { namespaces: vec!["default".into()], ..Capability::new("", "secrets", &["delete"]) };
                assert_eq!(**rule, want);
            }
            Err(e.into())
        });
        Value::of(&out).str(&["error", "message"]).to_owned()
    };
    let denied = "api_get Secret[default/a]: Denied: the module may not delete secrets in namespace default";
    assert_eq!(call(-2, "status-denied"), denied);
    assert!(call(-1, "status-unsupported").starts_with("api_get Secret[default/a]: Unsupported: "));
}

/// An answer that is longer than the block is read with `take`, without a second call.
#[test]
fn a_long_answer_is_taken() {
    let long = "x".repeat(100_000);
    let host = Script { answer: crate::action::encode(&json!({"data": {"a": &long}})).unwrap(), ..Script::default() };
    let out = run(&host, "request-minimal", move |_, ctx| {
        let obj = ctx.client().get(&ObjectRef::new("v1", "Node", "a"))?;
        assert_eq!(obj.str(&["data", "a"]), long);
        Ok(Action::await_change())
    });
    equal(&out, "result-await");
}

#[test]
fn what_may_not_cross_the_wall_is_refused() {
    let mut n = 0;
    for entry in fs::read_dir(path("")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.starts_with("bad-") && name.ends_with(".msgpack") {
            n += 1;
            let b = fs::read(path(&name)).unwrap();
            let read = wire::check(&b)
                .and_then(|()| Some(()).filter(|_| wire::type_of(&b) == Type::Map).ok_or_else(CodecError::truncated));
            assert!(read.is_err(), "{name}");
        }
    }
    assert!(n >= 10, "{n} messages");
}

#[test]
fn the_manifest_is_written() {
    let strings = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
    let status = Capability {
        subresources: strings(&["status"]),
        ..Capability::new("examples.wasmctl.dev", "configmapgenerators", &["patch"])
    };
    let manifest = Manifest {
        name: "configmapgenerator".into(),
        version: "0.1.0".into(),
        for_: Watch::new("examples.wasmctl.dev", "v1", "ConfigMapGenerator").labels("app=demo"),
        owns: vec![Watch::new("", "v1", "ConfigMap").controller_only()],
        watches: vec![
            Watch::new("", "v1", "Secret").map("annotation:examples.wasmctl.dev/for").metadata_only().optional(),
            Watch::new("", "v1", "Namespace")
                .predicates(&["labels"])
                .mapper(|_: &WatchEvent<'_>, _: &Context<'_>| Ok::<_, Error>(Vec::new())),
        ],
        capabilities: vec![Capability::new("", "configmaps", &["get", "create", "patch"]), status],
        finalizer: "examples.wasmctl.dev/configmapgenerator".into(),
        limits: Limits { memory: 64 << 20, timeout: 10_000, ..Limits::default() },
        concurrency: 8,
        config: [("suffix".to_owned(), "-content".to_owned())].into(),
        requires: strings(&["api_apply"]),
        wants: strings(&["cache_list"]),
        ..Manifest::default()
    };
    let r = Reconciler::new(manifest, |_: &Object<'_>, _: &Context<'_>| Ok::<_, Error>(Action::await_change()))
        .finalize(|_: &Object<'_>, _: &Context<'_>| Ok::<_, Error>(Action::await_change()))
        .error_policy(|_: &Object<'_>, _: &Failure, _: &Context<'_>| Action::await_change());
    assert_eq!(r.problem(), None);
    let mut described = Object::view(&r.describe()).to_owned();
    assert_eq!(described.str(&["sdk"]), concat!("rust/", env!("CARGO_PKG_VERSION")));
    described.set(&["sdk"], "go/0.1.0").unwrap();
    equal(described.raw(), "manifest-full");

    let plain = watching(|_| Ok(Vec::new())).describe();
    assert_eq!(Value::of(&plain).strings(&["hooks"]), ["map", "filter"]);
    let event = Watch::new("", "v1", "Secret").predicates(&["labels", "generation"]);
    let event = event.map("owner").filter(|_: &WatchEvent<'_>, _: &Context<'_>| true);
    let m = Manifest { watches: vec![event], ..Manifest::default() }.describe(&[]);
    let watch = Value::of(&m).elements(&["watches"]).next().unwrap();
    assert_eq!(watch.strings(&["predicates"]), ["all(any(labels, generation), func)"]);
}

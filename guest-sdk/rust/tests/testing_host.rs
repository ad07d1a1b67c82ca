// SPDX-License-Identifier: Apache-2.0
//! Tests that the host of the feature `testing` behaves like wasmctl and an API server.
#![cfg(feature = "testing")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use wasmctl::finalizer::Event as Life;
use wasmctl::testing::Host;
use wasmctl::*;

const GROUP: &str = "example.com";

fn app_ref(name: &str) -> ObjectRef {
    ObjectRef::new("example.com/v1", "App", name).within("default")
}

fn map_ref(name: &str) -> ObjectRef {
    ObjectRef::new("v1", "ConfigMap", name).within("default")
}

fn app(name: &str) -> Builder {
    json!({"apiVersion": "example.com/v1", "kind": "App", "metadata": {"name": name, "namespace": "default"}, "spec": {"text": "a"}})
}

fn manifest() -> Manifest {
    Manifest {
        name: "app".into(),
        for_: Watch::new(GROUP, "v1", "App"),
        owns: vec![Watch::new("", "v1", "ConfigMap")],
        capabilities: vec![Capability::new("", "configmaps", &["*"])],
        ..Manifest::default()
    }
}

fn host_with(name: &str) -> Host {
    let host = Host::new();
    host.add(&app(name));
    host
}

/// Runs a function with a context once; its error fails the test.
fn with_context(host: &Host, f: impl Fn(&Context) -> Result<(), Error> + 'static) {
    if !host.get(&app_ref("a")).exists(&[]) {
        host.add(&app("a"));
    }
    let r = Reconciler::new(manifest(), move |_: &Object, ctx: &Context| f(ctx).map(|()| Action::await_change()));
    let result = host.reconcile(&r, &app_ref("a"));
    assert_eq!(result.failure, None);
}

#[test]
fn a_stale_resource_version_is_a_conflict() {
    let host = Host::new();
    host.add(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "default"}, "data": {"a": "1"}}));
    with_context(&host, |ctx| {
        let old = ctx.client().get(&map_ref("m"))?;
        let mut new = old.to_owned();
        new.set(&["data", "a"], "2")?;
        assert_eq!(ctx.client().update(&new, &PostParams::default())?.str(&["data", "a"]), "2");
        let e = ctx.client().update(&new, &PostParams::default()).unwrap_err();
        assert!(e.is_conflict() && !e.is_already_exists(), "{e}");
        assert_eq!(Error::from(e).class(), ErrorClass::Conflict);
        let held = PatchParams {
            preconditions: Preconditions {
                resource_version: old.resource_version().into(),
                ..Preconditions::default()
            },
            ..PatchParams::default()
        };
        let patch = Patch::Merge(json!({"data": {"a": "3"}}));
        assert!(ctx.client().patch(&map_ref("m"), &patch, &held).unwrap_err().is_conflict());
        assert!(ctx.client().create(&new, &PostParams::default()).unwrap_err().status == 409);
        assert!(ctx.client().get(&map_ref("other")).unwrap_err().is_not_found());
        ctx.client().delete(&map_ref("m"), &DeleteParams::default())?;
        assert!(ctx.client().delete(&map_ref("m"), &DeleteParams::default()).unwrap_err().is_not_found());
        Ok(())
    });
}

#[test]
fn apply_owns_fields_and_merges_into_those_of_others() {
    let host = Host::new();
    let applied = |data: &[(&str, &str)]| {
        let data: BTreeMap<_, _> = data.iter().copied().collect();
        Object::new(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "default"}, "data": data})).unwrap()
    };
    with_context(&host, move |ctx| {
        let ours = PatchParams::default();
        let theirs = PatchParams::apply("them");
        ctx.client().apply(&applied(&[("a", "1"), ("b", "1")]), &ours)?;
        ctx.client().apply(&applied(&[("c", "1")]), &theirs)?;
        let e = ctx.client().apply(&applied(&[("a", "2")]), &theirs).unwrap_err();
        assert!(e.is_conflict() && e.message.contains(".data.a of wasmctl/app"), "{e}");
        // Fields that this manager leaves out are removed; fields of others stay.
        let map = ctx.client().apply(&applied(&[("a", "1")]), &ours)?;
        assert_eq!(map.string_map(&["data"]), BTreeMap::from([("a".into(), "1".into()), ("c".into(), "1".into())]));
        let before = map.resource_version().to_owned();
        assert_eq!(ctx.client().apply(&applied(&[("a", "1")]), &ours)?.resource_version(), before, "nothing changed");
        ctx.client().apply(&applied(&[("a", "2")]), &theirs.clone().force())?;
        assert!(ctx.client().apply(&applied(&[("a", "1")]), &ours).unwrap_err().is_conflict(), "it is theirs now");
        Ok(())
    });
}

#[test]
fn a_declared_result_is_made_true_and_pruned() {
    let names = std::rc::Rc::new(RefCell::new(vec!["one", "two"]));
    let wanted = names.clone();
    let r = Reconciler::new(manifest(), move |obj: &Object, _: &Context| {
        let child = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": obj.str(&["spec", "text"])}});
        let action = Action::await_change().prune().force().status(&json!({"children": wanted.borrow().len()}));
        Ok::<_, Error>(wanted.borrow().iter().fold(action, |action, name| action.and_apply(&child(name))))
    });
    let host = host_with("a");
    host.run(&r);
    let one = host.get(&map_ref("one"));
    assert!(one.is_controlled_by(&host.get(&app_ref("a"))));
    assert_eq!(host.get(&app_ref("a")).int(&["status", "children"]), 2);

    names.borrow_mut().pop();
    host.edit(&app_ref("a"), |obj| obj.set(&["spec", "text"], "b").unwrap());
    host.run(&r);
    let maps: Vec<_> = host
        .list("v1", "ConfigMap")
        .iter()
        .map(|m| (m.name().to_owned(), m.str(&["data", "text"]).to_owned()))
        .collect();
    assert_eq!(maps, [("one".into(), "b".into())]);

    // The garbage collector removes the remaining children with their owner.
    host.delete(&app_ref("a"));
    host.run(&r);
    assert!(host.list("v1", "ConfigMap").is_empty());
}

#[test]
fn a_child_of_another_controller_is_left_alone() {
    let host = host_with("a");
    host.add(&json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "m", "namespace": "default", "ownerReferences": [
            {"apiVersion": "v1", "kind": "Other", "name": "boss", "uid": "1", "controller": true},
        ]},
    }));
    let r = Reconciler::new(manifest(), |_: &Object, _: &Context| {
        Ok::<_, Error>(
            Action::apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}})).force(),
        )
    });
    let failure = host.reconcile(&r, &app_ref("a")).failure.unwrap();
    assert_eq!((failure.class, failure.reason.as_str()), (ErrorClass::Conflict, "ForeignController"));
}

#[test]
fn a_finalizer_holds_the_object_until_its_cleanup_succeeds() {
    let cleanups = std::rc::Rc::new(RefCell::new(0));
    let count = cleanups.clone();
    let r =
        Reconciler::with_finalizer(manifest(), "example.com/cleanup", move |event: Life, _: &Context| match event {
            Life::Apply(_) => Ok::<_, Error>(Action::await_change()),
            Life::Cleanup(_) => {
                *count.borrow_mut() += 1;
                if *count.borrow() < 3 {
                    return Ok(Action::requeue(Duration::from_secs(5)));
                }
                Ok(Action::await_change())
            }
        });
    let host = host_with("a");
    host.run(&r);
    assert_eq!(host.get(&app_ref("a")).finalizers(), ["example.com/cleanup"]);
    host.delete(&app_ref("a"));
    for i in 1..=3 {
        assert!(host.get(&app_ref("a")).is_deleting());
        host.run(&r);
        assert_eq!(*cleanups.borrow(), i);
        host.advance(Duration::from_secs(5));
    }
    assert!(!host.get(&app_ref("a")).exists(&[]));
}

#[test]
fn a_panic_is_a_trap_that_the_error_policy_sees() {
    let r = Reconciler::new(manifest(), |obj: &Object, _: &Context| -> Result<Action, Error> {
        panic!("no luck with {}", obj.name())
    })
    .error_policy(|_: &Object, f: &Failure, _: &Context| Action::requeue(Duration::from_secs(f.attempt.into())));
    let host = host_with("a");
    for attempt in 1..=2u32 {
        let result = host.reconcile(&r, &app_ref("a"));
        let failure = result.failure.unwrap();
        assert_eq!(
            (failure.kind, failure.message.as_str(), failure.attempt),
            (FailureKind::Trap, "no luck with a", attempt)
        );
        assert_eq!(result.action, Action::requeue(Duration::from_secs(attempt.into())));
    }
}

#[test]
fn what_the_manifest_does_not_allow_is_denied() {
    let host = host_with("a");
    let r = Reconciler::new(Manifest { capabilities: Vec::new(), ..manifest() }, |obj: &Object, ctx: &Context| {
        ctx.client().get(&obj.to_ref())?; // its own kind needs no capability
        ctx.client().get(&map_ref("m")).map(|_| Action::await_change()).map_err(Error::from)
    });
    let failure = host.reconcile(&r, &app_ref("a")).failure.unwrap();
    assert_eq!(
        failure.message,
        "api_get ConfigMap[default/m]: Denied: the manifest has no capability to get configmaps"
    );
}

#[test]
fn the_cache_has_what_is_watched_and_mappers_follow_it() {
    let watches = vec![Watch::new("", "v1", "Secret").labels("app").mapper(|e: &WatchEvent, _: &Context| {
        let names = [&e.old, &e.new].map(|o| o.label("app").to_owned());
        Ok::<_, Error>(names.into_iter().map(|n| ObjectKey::new("default", n)).collect())
    })];
    let m = Manifest { watches, capabilities: vec![Capability::new("", "secrets", &["get", "list"])], ..manifest() };
    let r = Reconciler::new(m, |obj: &Object, ctx: &Context| {
        let all = ObjectRef::all("v1", "Secret");
        let mut names = Vec::new();
        for secret in ctx.cache().all(&all, &ListParams::default().labels(&format!("app={}", obj.name())).limit(2)) {
            names.push(secret?.name().to_owned());
        }
        assert_eq!(ctx.cache().get(&map_ref("x")).unwrap_err().status, status::DENIED);
        assert_eq!(
            ctx.cache().list(&ObjectRef::all("v1", "Pod"), &ListParams::default()).unwrap_err().status,
            status::DENIED
        );
        Ok::<_, Error>(Action::await_change().status(&json!({"secrets": names})))
    });
    let host = host_with("a");
    let secret = |name: &str, app: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default", "labels": {"app": app}}});
    host.run(&r);
    for name in ["s1", "s2", "s3"] {
        host.add(&secret(name, "a"));
    }
    host.add(&secret("s4", "b"));
    host.run(&r);
    assert_eq!(host.get(&app_ref("a")).strings(&["status", "secrets"]), ["s1", "s2", "s3"]);
    host.edit(&ObjectRef::new("v1", "Secret", "s2").within("default"), |s| s.remove(&["metadata", "labels", "app"]));
    host.run(&r);
    assert_eq!(host.get(&app_ref("a")).strings(&["status", "secrets"]), ["s1", "s3"]);
}

#[test]
fn events_log_and_settings_reach_the_host() {
    let m = Manifest { config: BTreeMap::from([("color".into(), "blue".into())]), ..manifest() };
    let r = Reconciler::new(m, |_: &Object, ctx: &Context| {
        ctx.event(EventType::Warning, "Painted", &ctx.config("color")?);
        ctx.log().info("painted", &[("color", &ctx.config("color")?), ("msg", &1)]);
        ctx.log().debug("not kept", &[]);
        Ok::<_, Error>(Action::requeue(Duration::from_millis(1)))
    })
    .configure(|settings: &BTreeMap<String, String>, _: &Context| match settings["color"].as_str() {
        "grey" => Err(Error::msg("no grey")),
        _ => Ok(()),
    });
    let host = host_with("a");
    assert_eq!(host.configure(&r, &[("color", "grey")]), Err("no grey".into()));
    assert_eq!(host.configure(&r, &[("color", "green")]), Ok(()));
    host.reconcile(&r, &app_ref("a"));
    let event = &host.events()[0];
    assert_eq!((event.note.as_str(), event.regarding.as_ref().map(|r| &r.object)), ("green", Some(&app_ref("a"))));
    let log = host.log();
    assert_eq!(
        (log.len(), log[0].message.as_str(), log[0].attrs.str(&["color"]), log[0].attrs.int(&["msg_"])),
        (1, "painted", "green", 1)
    );
}

#[derive(Debug, Serialize, Deserialize, PartialEq)]
struct ConfigMap {
    metadata: ObjectMeta,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    data: BTreeMap<String, String>,
}

resource!(ConfigMap, "v1", "ConfigMap");

#[test]
fn a_typed_api_reads_and_writes_structs() {
    with_context(&Host::new(), |ctx| {
        let maps: Api<ConfigMap> = Api::namespaced(ctx.client(), "default");
        assert_eq!(maps.get_opt("m")?, None);
        let mut map = ConfigMap {
            metadata: ObjectMeta {
                name: "m".into(),
                labels: BTreeMap::from([("a".into(), "b".into())]),
                ..ObjectMeta::default()
            },
            data: BTreeMap::new(),
        };
        let made = maps.create(&PostParams::default(), &map)?;
        assert_eq!((made.metadata.namespace.as_str(), made.metadata.generation), ("default", 1));
        assert!(made.metadata.creation_timestamp.is_some() && !made.metadata.uid.is_empty());
        map.data.insert("x".into(), "y".into());
        assert_eq!(maps.replace("m", &PostParams::default(), &map)?.data, map.data);
        let patched =
            maps.patch("m", &PatchParams::default(), &Patch::Merge(json!({"data": {"x": null, "z": "1"}})))?;
        assert_eq!(patched.data, BTreeMap::from([("z".into(), "1".into())]));
        let ours = json!({"data": {"own": "ed"}});
        assert_eq!(maps.patch("m", &PatchParams::apply("me").force(), &Patch::Apply(ours))?.data.len(), 2);
        assert_eq!(maps.list(&ListParams::default().labels("a=b"))?.len(), 1);
        maps.delete("m", &DeleteParams::default())?;
        assert!(maps.get("m").unwrap_err().is_not_found());
        Ok(())
    });
}

#[derive(Debug, Deserialize)]
struct App {
    metadata: ObjectMeta,
    spec: AppSpec,
    #[serde(default)]
    status: Option<Object<'static>>,
}

#[derive(Debug, Deserialize)]
struct AppSpec {
    text: Option<u8>,
}

resource!(App, "example.com/v1", "App");

#[test]
fn a_typed_reconciler_says_which_field_does_not_fit() {
    let m = Manifest { for_: Watch::of::<App>(), ..manifest() };
    let r = Reconciler::typed(m, |app: &App, _: &Context| {
        assert_eq!((app.metadata.name.as_str(), app.spec.text, app.status.is_none()), ("a", Some(7), true));
        Ok::<_, Error>(Action::await_change())
    });
    let host = host_with("a");
    let failure = host.reconcile(&r, &app_ref("a")).failure.unwrap();
    assert_eq!((failure.class, failure.reason.as_str()), (ErrorClass::Permanent, "InvalidObject"));
    assert!(
        failure.message.starts_with("App[default/a]: spec.text: invalid type: string \"a\""),
        "{}",
        failure.message
    );
    host.edit(&app_ref("a"), |obj| obj.set(&["spec", "text"], &7).unwrap());
    assert_eq!(host.reconcile(&r, &app_ref("a")).failure, None);
}

#[test]
#[should_panic(expected = "still not settled after 1000 runs")]
fn a_reconciler_that_never_rests_fails() {
    let r = Reconciler::new(manifest(), |obj: &Object, _: &Context| {
        Ok::<_, Error>(Action::await_change().status(&json!({"n": obj.int(&["status", "n"]) + 1})))
    });
    host_with("a").run(&r);
}

#[test]
fn parts_that_do_not_fit_are_named() {
    let reconcile = |_: &Object, _: &Context| Ok::<_, Error>(Action::await_change());
    let named = |m: Manifest| Reconciler::new(m, reconcile);
    let cases = [
        named(manifest()).finalize(reconcile),
        named(Manifest { finalizer: "example.com/x".into(), ..manifest() }),
        named(Manifest { watches: vec![Watch::new("", "v1", "Secret")], ..manifest() }),
    ];
    for r in cases {
        let refused =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| host_with("a").reconcile(&r, &app_ref("a"))));
        let text = refused.unwrap_err().downcast::<String>().unwrap();
        assert!(text.starts_with("testing: the host would not load this: "), "{text}");
    }
}

#[test]
fn metrics_are_kept_as_prometheus_shows_them() {
    let host = Host::new();
    with_context(&host, |ctx| {
        for value in [1.0, 2.0] {
            ctx.metric(Metric::Counter, "greetings", value)?;
            ctx.metric(Metric::Gauge, "size", value)?;
        }
        for (kind, name, value) in [
            (Metric::Gauge, "", 1.0),
            (Metric::Gauge, "9", 1.0),
            (Metric::Gauge, "größe", 1.0),
            (Metric::Gauge, "a_total", 1.0),
            (Metric::Gauge, "a", f64::NAN),
            (Metric::Counter, "a", -1.0),
        ] {
            assert!(ctx.metric(kind, name, value).is_err(), "{name} {value}");
        }
        Ok(())
    });
    assert_eq!(host.metrics(), BTreeMap::from([("greetings_total".to_owned(), 3.0), ("size".to_owned(), 2.0)]));
}

#[derive(Deserialize)]
struct TypedApp {
    metadata: ObjectMeta,
    spec: TypedSpec,
}

#[derive(Deserialize)]
struct TypedSpec {
    text: String,
}

resource!(TypedApp, "example.com/v1", "App");

#[test]
fn typed_goes_with_finalizer_and_error_policy() {
    let m = Manifest { finalizer: "example.com/cleanup".into(), ..manifest() };
    let r = Reconciler::typed(m, |app: &TypedApp, _| match app.spec.text.as_str() {
        "a" => Ok(Action::await_change().status(&json!({"life": "applied"}))),
        _ => Err(Error::msg("no luck")),
    })
    .finalize_typed(|app: &TypedApp, ctx| {
        ctx.log().info("cleaned up", &[("name", &app.metadata.name)]);
        Ok::<_, Error>(Action::await_change())
    })
    .error_policy_typed(|app: Option<&TypedApp>, _, _| {
        Action::requeue(Duration::from_secs(app.map_or(7, |a| a.spec.text.len() as u64)))
    });
    let host = host_with("a");
    host.reconcile(&r, &app_ref("a"));
    assert_eq!(host.get(&app_ref("a")).str(&["status", "life"]), "applied");
    host.edit(&app_ref("a"), |o| o.set(&["spec", "text"], "bbb").unwrap());
    assert_eq!(host.reconcile(&r, &app_ref("a")).action.requeued(), Some(Duration::from_secs(3)));
    host.edit(&app_ref("a"), |o| o.set(&["spec", "text"], "a").unwrap());
    host.delete(&app_ref("a"));
    host.run(&r);
    assert!(host.log().iter().any(|l| l.message == "cleaned up"), "{:?}", host.log());
}

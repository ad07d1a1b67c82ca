// SPDX-License-Identifier: Apache-2.0
//! The same cases as in examples/configmapgenerator.

use std::time::Duration;

use configmapgenerator::reconciler;
use wasmctl::testing::Host;
use wasmctl::{json, Action, ApiError, Builder, ErrorClass, ObjectRef, Time};

const HOUR: Duration = Duration::from_secs(3600);

fn generator_ref() -> ObjectRef {
    ObjectRef::new("examples.wasmctl.dev/v1", "ConfigMapGenerator", "hello").within("default")
}

fn config_map_ref() -> ObjectRef {
    ObjectRef::new("v1", "ConfigMap", "hello").within("default")
}

fn generator(content: &str) -> Builder {
    Builder::object(&generator_ref()).end().map("spec").set("content", content)
}

fn host_with(content: &str) -> Host {
    let host = Host::new();
    host.add(&generator(content));
    host
}

/// Returns the status and the reason of the Ready condition, and when it changed.
fn ready(host: &Host) -> (String, Option<Time>) {
    let conditions = host.get(&generator_ref()).conditions();
    let c = conditions.get("Ready").expect("there is a Ready condition");
    (format!("{} {}", c.status, c.reason), c.last_transition_time)
}

#[test]
fn makes_the_config_map_and_owns_it() {
    let host = host_with("hello, world");
    let result = host.reconcile(&reconciler(), &generator_ref());

    assert_eq!((&result.failure, &result.action), (&None, &Action::requeue(Duration::from_secs(300))));
    let (cm, gen) = (host.get(&config_map_ref()), host.get(&generator_ref()));
    assert_eq!(cm.str(&["data", "content"]), "hello, world");
    assert_eq!(cm.controller(), Some(gen.controller_ref()));
    assert_eq!(ready(&host).0, "True Applied");
    assert_eq!(gen.int(&["status", "observedGeneration"]), 1);
}

/// A run that writes would change the object, which would be reconciled again, forever.
#[test]
fn a_run_without_a_change_writes_nothing() {
    let host = host_with("a");
    assert_eq!(host.run(&reconciler()).len(), 2, "the first, and the one for its status");
    assert_eq!(host.changes().len(), 2, "the ConfigMap and the status");
    for _ in 0..3 {
        host.advance(HOUR);
        assert_eq!(host.run(&reconciler()).len(), 1);
    }
    assert_eq!(host.changes().len(), 2);
}

#[test]
fn follows_the_spec_and_keeps_the_transition_time() {
    let host = host_with("a");
    host.run(&reconciler());
    let (_, first) = ready(&host);

    host.advance(HOUR);
    host.edit(&generator_ref(), |gen| gen.set(&["spec", "content"], "b").unwrap());
    host.run(&reconciler());
    assert_eq!(host.get(&config_map_ref()).str(&["data", "content"]), "b");
    assert_eq!(host.get(&generator_ref()).int(&["status", "observedGeneration"]), 2);
    assert_eq!(ready(&host).1, first, "it was ready all the time");
}

#[test]
fn repairs_the_config_map() {
    let host = host_with("a");
    host.run(&reconciler());
    host.remove(&config_map_ref());
    host.run(&reconciler());
    assert_eq!(host.get(&config_map_ref()).str(&["data", "content"]), "a");
    host.edit(&config_map_ref(), |cm| cm.set(&["data", "content"], "x").unwrap());
    host.run(&reconciler());
    assert_eq!(host.get(&config_map_ref()).str(&["data", "content"]), "a");
}

#[test]
fn leaves_alone_what_others_control() {
    let host = host_with("ours");
    host.add(&json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "hello", "namespace": "default",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Other", "name": "boss", "uid": "1", "controller": true}],
        },
        "data": {"content": "theirs"},
    }));
    host.reconcile(&reconciler(), &generator_ref());
    let (_, since) = ready(&host);
    host.advance(HOUR);
    let result = host.reconcile(&reconciler(), &generator_ref());

    assert_eq!(host.get(&config_map_ref()).str(&["data", "content"]), "theirs");
    let failure = result.failure.expect("the run failed");
    assert_eq!((failure.class, failure.reason.as_str()), (ErrorClass::Permanent, "NotOwned"));
    assert_eq!(result.action, Action::await_change());
    assert_eq!(ready(&host), ("False NotOwned".into(), since));

    host.remove(&config_map_ref());
    host.advance(HOUR);
    host.reconcile(&reconciler(), &generator_ref());
    let (status, again) = ready(&host);
    assert_eq!(status, "True Applied", "after it was given up");
    assert!(again > since);
}

#[test]
fn a_failed_apply_shows_in_the_status_and_is_retried() {
    let host = host_with("a");
    host.fail_next("api_apply", ApiError::new(403, "Forbidden", "quota"));
    let result = host.reconcile(&reconciler(), &generator_ref());
    assert_eq!(result.failure.map(|f| f.class), Some(ErrorClass::Transient));
    assert_eq!(result.action, Action::requeue(Duration::from_secs(60)));
    assert_eq!(ready(&host).0, "False ApplyFailed");
    host.reconcile(&reconciler(), &generator_ref());
    assert_eq!(ready(&host).0, "True Applied");
}

#[test]
fn a_failed_status_write_fails_the_run() {
    let host = host_with("a");
    host.fail_next("api_apply", ApiError::new(500, "InternalError", ""));
    host.fail_next("api_apply", ApiError::new(500, "InternalError", ""));
    assert!(host.reconcile(&reconciler(), &generator_ref()).failure.is_some());
    assert!(host.reconcile(&reconciler(), &generator_ref()).failure.is_none());
    assert_eq!(host.get(&generator_ref()).int(&["status", "observedGeneration"]), 1);
}

/// Creating the ConfigMap again would block a foreground deletion of its owner.
#[test]
fn does_not_work_against_a_deletion() {
    let host = Host::new();
    host.add(&json!({
        "apiVersion": "examples.wasmctl.dev/v1", "kind": "ConfigMapGenerator",
        "metadata": {
            "name": "hello", "namespace": "default",
            "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["foregroundDeletion"],
        },
    }));
    let result = host.reconcile(&reconciler(), &generator_ref());
    assert_eq!((result.failure, result.action), (None, Action::await_change()));
    assert_eq!(host.calls(), []);
}

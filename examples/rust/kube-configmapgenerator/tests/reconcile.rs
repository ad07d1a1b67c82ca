// SPDX-License-Identifier: Apache-2.0
//! Tests of the module with a host and a cluster in memory.

use std::time::Duration;

use kube::testing::{json, ApiError, Host, ObjectRef};
use kube_configmapgenerator::main;

fn generator() -> ObjectRef {
    ObjectRef::new("examples.wasmctl.dev/v1", "ConfigMapGenerator", "hello").within("default")
}

fn config_map() -> ObjectRef {
    ObjectRef::new("v1", "ConfigMap", "hello").within("default")
}

fn host() -> Host {
    let host = Host::new();
    host.add(&json!({
        "apiVersion": "examples.wasmctl.dev/v1", "kind": "ConfigMapGenerator",
        "metadata": {"name": "hello", "namespace": "default"},
        "spec": {"content": "hello, world"},
    }));
    host
}

#[test]
fn a_generator_has_its_config_map() {
    let (host, module) = (host(), kube::module(main));
    host.run(&module);
    assert_eq!(host.get(&config_map()).str(&["data", "content"]), "hello, world");
    assert!(host.get(&config_map()).is_controlled_by(&host.get(&generator())));
    assert_eq!(host.get(&generator()).int(&["status", "observedGeneration"]), 1);
    host.edit(&generator(), |g| g.set(&["spec", "content"], "bye").unwrap());
    host.run(&module);
    assert_eq!(host.get(&config_map()).str(&["data", "content"]), "bye");
    host.delete(&config_map());
    host.run(&module);
    assert_eq!(host.get(&config_map()).str(&["data", "content"]), "bye");
    host.delete(&generator());
    host.run(&module);
    assert_eq!(host.list("v1", "ConfigMap").len(), 0);
}

#[test]
fn a_run_without_a_change_writes_nothing() {
    let (host, module) = (host(), kube::module(main));
    host.run(&module);
    let changes = host.changes().len();
    host.advance(Duration::from_secs(301));
    assert!(!host.run(&module).is_empty());
    assert_eq!(host.changes().len(), changes);
}

#[test]
fn the_next_run_recovers_from_a_call_that_fails() {
    for op in ["api_apply", "api_patch"] {
        let (host, module) = (host(), kube::module(main));
        host.fail_next(op, ApiError::new(409, "Conflict", "somebody else wrote first"));
        host.run(&module);
        assert!(
            host.log().iter().any(|line| line.message.contains("will try again")),
            "the log of tracing: {:?}",
            host.log()
        );
        host.advance(Duration::from_secs(5)); // the result of the error policy, also for a conflict
        host.run(&module);
        assert_eq!(host.get(&generator()).int(&["status", "observedGeneration"]), 1, "after {op} has failed");
    }
}

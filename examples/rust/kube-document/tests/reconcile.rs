// SPDX-License-Identifier: Apache-2.0
//! Tests of the module with a host and a cluster in memory.

use kube::testing::{json, ApiError, Host, Object, ObjectRef};
use kube_document::{main, FINALIZER};

fn document() -> ObjectRef {
    ObjectRef::new("examples.wasmctl.dev/v1", "Document", "letter").within("team")
}

fn published() -> ObjectRef {
    ObjectRef::new("v1", "ConfigMap", "team.letter").within("public")
}

fn host(finalizers: &[&str]) -> Host {
    let host = Host::new();
    let mut obj = Object::new(&json!({
        "apiVersion": "examples.wasmctl.dev/v1", "kind": "Document",
        "metadata": {"name": "letter", "namespace": "team"},
        "spec": {"text": "dear all", "publishIn": "public"},
    }))
    .unwrap();
    if !finalizers.is_empty() {
        obj.set(&["metadata", "finalizers"], finalizers).unwrap();
    }
    host.add(&obj);
    host
}

fn reasons(host: &Host) -> Vec<String> {
    host.events().into_iter().map(|e| e.reason).collect()
}

#[test]
fn a_document_is_published_and_withdrawn() {
    for others in [&[][..], &["example.com/other"]] {
        let (host, module) = (host(others), kube::module(main));
        host.run(&module);
        assert_eq!(host.get(&published()).str(&["data", "text"]), "dear all");
        let mut finalizers = others.iter().map(|s| s.to_string()).collect::<Vec<_>>();
        finalizers.push(FINALIZER.into());
        assert_eq!(host.get(&document()).finalizers(), finalizers);
        assert_eq!(reasons(&host), ["Published"]);
        let event = host.events().remove(0);
        assert_eq!(event.regarding.map(|r| r.object), Some(document()));

        host.delete(&document());
        host.run(&module);
        assert!(!host.get(&published()).exists(&[]), "the ConfigMap outlives the document");
        assert_eq!(host.get(&document()).finalizers(), others);
        assert_eq!(reasons(&host), ["Published", "Withdrawn"]);
    }
}

#[test]
fn the_finalizer_stays_until_a_cleanup_succeeds() {
    let (host, module) = (host(&[]), kube::module(main));
    host.run(&module);
    host.delete(&document());
    host.fail_next("api_delete", ApiError::new(500, "InternalError", "no"));
    host.run(&module);
    assert!(host.get(&document()).exists(&[]), "the document is gone before its cleanup");
    host.advance(std::time::Duration::from_secs(5));
    host.run(&module);
    assert!(!host.get(&document()).exists(&[]));
    assert!(!host.get(&published()).exists(&[]));
}

#[test]
fn a_finalizer_list_that_somebody_changed_is_left_alone() {
    let (host, module) = (host(&[]), kube::module(main));
    host.run(&module);
    host.delete(&document());
    // The run has read the list, but the patch applies to another one.
    host.fail_next("api_patch", ApiError::new(422, "Invalid", "the test failed"));
    host.reconcile(&module, &document());
    assert_eq!(host.get(&document()).finalizers(), [FINALIZER]);
    host.run(&module);
    assert!(!host.get(&document()).exists(&[]));
}

#[test]
fn a_config_map_that_somebody_removes_comes_back() {
    let (host, module) = (host(&[]), kube::module(main));
    host.run(&module);
    host.delete(&published());
    host.run(&module);
    assert_eq!(host.get(&published()).str(&["data", "text"]), "dear all");
}

#[test]
fn an_error_that_waits_for_a_change_is_not_tried_again() {
    let (host, module) = (host(&[]), kube::module(main));
    host.edit(&document(), |d| d.set(&["spec", "text"], "forbidden words").unwrap());
    host.run(&module);
    host.advance(std::time::Duration::from_secs(3600));
    assert!(host.run(&module).is_empty(), "the run was tried again");
    assert_eq!(reasons(&host), ["Forbidden"]);
    host.edit(&document(), |d| d.set(&["spec", "text"], "fine").unwrap());
    host.run(&module);
    assert_eq!(host.get(&published()).str(&["data", "text"]), "fine");
}

#[test]
fn a_document_is_published_in_its_own_namespace_by_default() {
    let (host, module) = (host(&[]), kube::module(main));
    let mut doc = host.get(&document());
    doc.remove(&["spec", "publishIn"]);
    let admitted = host.admit(&module, &Object::default(), &doc).unwrap();
    assert_eq!((admitted.denied, admitted.object.str(&["spec", "publishIn"])), (None, "team"));
    let same = host.admit(&module, &Object::default(), &host.get(&document())).unwrap();
    assert_eq!((same.denied, same.object.str(&["spec", "publishIn"])), (None, "public"));
}

#[test]
fn a_document_that_cannot_be_published_is_refused() {
    let (host, module) = (host(&[]), kube::module(main));
    let doc = host.get(&document());
    for (path, value, want) in [
        (["spec", "text"], "forbidden words", "spec.text: is forbidden"),
        (["spec", "publishIn"], "elsewhere", "spec.publishIn: cannot change"),
    ] {
        let mut changed = doc.clone();
        changed.set(&path, value).unwrap();
        let denied = host.admit(&module, &doc, &changed).unwrap().denied;
        assert_eq!(denied.map(|d| d.message).as_deref(), Some(want));
    }
}

#[test]
fn the_crd_is_that_of_the_type() {
    use kube::CustomResourceExt;
    let want = serde_json::to_string_pretty(&kube_document::Document::crd()).unwrap() + "\n";
    if std::env::var_os("WASMCTL_UPDATE").is_some() {
        std::fs::write("crd.json", &want).unwrap();
    }
    assert_eq!(std::fs::read_to_string("crd.json").unwrap(), want, "WASMCTL_UPDATE=1 cargo test writes it");
}

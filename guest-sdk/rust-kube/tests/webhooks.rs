// SPDX-License-Identifier: Apache-2.0
//! Functions on the types of kube-rs as webhooks, on a host in memory.

use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use kube::core::admission::{AdmissionRequest, AdmissionResponse, Operation};
use kube::core::conversion::{ConversionRequest, ConversionResponse};
use kube::core::response::{Status, StatusCause, StatusDetails};
use kube::core::DynamicObject;
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube::testing::{json, Host, Object};
use kube::webhook::{self, Conversion, Webhook, WebhookRule};
use kube::{Client, Error, ResourceExt};

/// Makes a module for ConfigMaps with webhooks and a conversion.
fn module(webhooks: Vec<Webhook>, conversions: Vec<Conversion>) -> wasmctl::Reconciler {
    kube::module(|| async {
        let maps = Api::<ConfigMap>::all(Client::try_default().await.unwrap());
        let controller = Controller::new(maps, watcher::Config::default());
        let controller = webhooks.into_iter().fold(controller, Controller::webhook);
        conversions
            .into_iter()
            .fold(controller, Controller::conversion)
            .run(
                |_, _: Arc<()>| async { Ok(Action::await_change()) },
                |_, _: &Error, _| Action::await_change(),
                Arc::new(()),
            )
            .for_each(|_| std::future::ready(()))
            .await;
    })
}

fn map(n: &str) -> Object<'static> {
    let metadata = json!({"name": "a", "namespace": "default"});
    Object::new(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"n": n}, "new": 1}))
        .unwrap()
}

fn none() -> Object<'static> {
    Object::default()
}

/// The patch that the documentation of kube-core shows.
async fn label(request: AdmissionRequest<DynamicObject>) -> AdmissionResponse {
    let response = AdmissionResponse::from(&request);
    let object = request.object.unwrap();
    if object.labels().contains_key("app") {
        return response;
    }
    let ops = serde_json::json!([
        {"op": "add", "path": "/metadata/labels", "value": {}},
        {"op": "add", "path": "/metadata/labels/app", "value": object.name_any()},
    ]);
    let mut response = response.with_patch(serde_json::from_value(ops).unwrap()).unwrap();
    response.warnings = Some(vec!["a label was added".into()]);
    response.audit_annotations.insert("label".into(), "app".into());
    response
}

async fn check(request: AdmissionRequest<ConfigMap>) -> AdmissionResponse {
    let mut response = AdmissionResponse::from(&request);
    assert_eq!((request.resource.resource.as_str(), request.kind.kind.as_str()), ("configmaps", "ConfigMap"));
    assert_eq!((request.name.as_str(), request.namespace.as_deref()), ("a", Some("default")));
    assert_eq!((&request.request_kind, &request.sub_resource), (&Some(request.kind.clone()), &None));
    match (request.operation, request.user_info.username.as_deref()) {
        (Operation::Delete, Some("alice")) => {
            assert!(request.object.is_none() && request.old_object.is_some());
            response.deny("alice may not delete")
        }
        (Operation::Update, _) => {
            let cause = StatusCause {
                reason: "FieldValueForbidden".into(),
                field: "data".into(),
                message: "is immutable".into(),
            };
            let mut details: StatusDetails = serde_json::from_value(serde_json::json!({})).unwrap();
            details.causes.push(cause);
            response.allowed = false;
            response.result = Status { code: 422, details: Some(details), ..Status::failure("no", "Invalid") };
            response
        }
        _ => response,
    }
}

#[test]
fn functions_of_kube_rs_judge_requests() {
    let all = WebhookRule::new("", "v1", "configmaps", &["*"]);
    let r = module(vec![webhook::mutate(label), webhook::validate(check).rule(all)], Vec::new());
    let host = Host::new();
    let out = host.admit(&r, &none(), &map("1")).unwrap();
    assert_eq!((out.denied, out.object.label("app"), out.object.int(&["new"])), (None, "a", 1));
    assert_eq!((out.warnings, out.audit["label"].as_str()), (vec!["a label was added".to_owned()], "app"));

    let denied = host.admit(&r, &map("1"), &map("2")).unwrap().denied.unwrap();
    assert_eq!((denied.code, denied.reason.as_str(), denied.message.as_str()), (422, "Invalid", "no"));
    let cause = &denied.causes[0];
    assert_eq!(
        (cause.type_.as_str(), cause.field.as_str(), cause.message.as_str()),
        ("FieldValueForbidden", "data", "is immutable")
    );

    assert_eq!(host.admit(&r, &map("1"), &none()).unwrap().denied, None);
    host.set_user("alice", &[]);
    let denied = host.admit(&r, &map("1"), &none()).unwrap().denied.unwrap();
    assert_eq!(
        (denied.code, denied.message.as_str()),
        (400, "alice may not delete"),
        "the code of a response without one"
    );

    let mut odd = map("1");
    odd.set(&["data"], &7).unwrap();
    let denied = host.admit(&r, &none(), &odd).unwrap().denied.unwrap();
    assert_eq!((denied.code, denied.reason.as_str()), (400, "InvalidRequest"));
    let paths: Vec<_> = Host::manifest(&r).elements(&["webhooks"]).map(|w| w.str(&["path"]).to_owned()).collect();
    assert_eq!(paths, ["/mutate--v1-configmap", "/validate--v1-configmap"]);
}

#[test]
fn a_patch_that_does_not_apply_leaves_the_decision_to_the_failure_policy() {
    let bad = |request: AdmissionRequest<ConfigMap>| async move {
        let ops = serde_json::json!([{"op": "remove", "path": "/data/missing"}]);
        AdmissionResponse::from(&request).with_patch(serde_json::from_value(ops).unwrap()).unwrap()
    };
    let r = module(vec![webhook::mutate(bad)], Vec::new());
    let failed = Host::new().admit(&r, &none(), &map("1")).unwrap_err();
    assert!(failed.contains("/data/missing"), "{failed}");
}

#[test]
fn a_function_of_kube_rs_converts() {
    let convert = |request: ConversionRequest| async move {
        let mut objects = request.objects.clone();
        let to = request.desired_api_version.clone();
        let response = ConversionResponse::for_request(request);
        if objects[0]["spec"]["bad"] == true {
            return response.failure(Status::failure("cannot convert", "Invalid"));
        }
        objects[0]["apiVersion"] = to.into();
        response.success(objects)
    };
    let r = module(Vec::new(), vec![webhook::convert("example.com", "Web", &["v1", "v2"], convert)]);
    let web = |bad: bool| {
        let obj =
            json!({"apiVersion": "example.com/v1", "kind": "Web", "metadata": {"name": "a"}, "spec": {"bad": bad}});
        Object::new(&obj).unwrap()
    };
    let host = Host::new();
    assert_eq!(host.convert(&r, &web(false), "example.com/v2").unwrap().api_version(), "example.com/v2");
    assert_eq!(host.convert(&r, &web(true), "example.com/v2").unwrap_err(), "Web[a]: cannot convert");
}

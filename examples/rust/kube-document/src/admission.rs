// SPDX-License-Identifier: Apache-2.0
use kube::core::admission::{AdmissionRequest, AdmissionResponse};
use kube::core::DynamicObject;

use crate::Document;

/// Publishes a Document that names no namespace in its own. The object is dynamic, because such a
/// Document does not fit the type yet.
pub async fn default(request: AdmissionRequest<DynamicObject>) -> AdmissionResponse {
    let response = AdmissionResponse::from(&request);
    match (&request.object, &request.namespace) {
        (Some(doc), Some(namespace)) if doc.data["spec"].is_object() && doc.data["spec"]["publishIn"].is_null() => {
            let patch = serde_json::json!([{"op": "add", "path": "/spec/publishIn", "value": namespace}]);
            let patch = serde_json::from_value(patch).expect("it is a JSON patch");
            response.with_patch(patch).unwrap_or_else(AdmissionResponse::invalid)
        }
        _ => response,
    }
}

/// Refuses a text that cannot be published, and a move to another namespace: the ConfigMap in the
/// old one would stay. A Document that is being deleted may always change, so that its finalizer
/// can be removed.
pub async fn validate(request: AdmissionRequest<Document>) -> AdmissionResponse {
    let response = AdmissionResponse::from(&request);
    let Some(doc) = request.object else { return response };
    match request.old_object {
        _ if doc.metadata.deletion_timestamp.is_some() => response,
        Some(old) if old.spec.publish_in != doc.spec.publish_in => response.deny("spec.publishIn: cannot change"),
        _ if doc.spec.is_forbidden() => response.deny("spec.text: is forbidden"),
        _ => response,
    }
}

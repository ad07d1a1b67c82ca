// SPDX-License-Identifier: Apache-2.0
//! Webhooks and conversions from functions on the types of kube-rs. The host receives and
//! answers the AdmissionReview or ConversionReview.
//!
//! ```
//! # #[cfg(feature = "admission")]
//! # mod example {
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::core::admission::{AdmissionRequest, AdmissionResponse};
//! use kube::webhook::{self, Webhook};
//!
//! async fn validate(request: AdmissionRequest<ConfigMap>) -> AdmissionResponse {
//!     let response = AdmissionResponse::from(&request);
//!     match request.object.and_then(|map| map.data) {
//!         Some(_) => response,
//!         None => response.deny("data is required"),
//!     }
//! }
//!
//! /// For `Controller::webhook`.
//! fn webhook() -> Webhook {
//!     webhook::validate(validate)
//! }
//! # }
//! ```

use std::future::Future;

use kube_core::conversion::{ConversionRequest, ConversionResponse};
use kube_core::TypeMeta;
use wasmctl::{Context, Error, Object};
pub use wasmctl::{Conversion, Webhook, WebhookRule};

use crate::executor;

/// Makes a conversion from a function. `versions` are all versions of the kind that it
/// knows, for example `v1` and `v2`. It receives one object in each request.
pub fn convert<F, Fut>(group: &str, kind: &str, versions: &[&str], f: F) -> Conversion
where
    F: Fn(ConversionRequest) -> Fut + 'static,
    Fut: Future<Output = ConversionResponse>,
{
    Conversion::new(group, kind, versions, move |obj: &Object<'_>, to: &str, ctx: &Context<'_>| {
        let request = ConversionRequest {
            types: Some(review("apiextensions.k8s.io/v1", "ConversionReview")),
            uid: ctx.id().to_owned(),
            desired_api_version: to.to_owned(),
            objects: vec![obj.decode(&[])?],
        };
        let mut response = executor::block_on(ctx, f(request))?;
        match response.converted_objects.pop() {
            Some(converted) if response.result.is_success() && response.converted_objects.is_empty() => Ok(converted),
            _ if response.result.is_success() => Err(Error::msg("convert: want one object for one object")),
            _ => Err(Error::msg(response.result.message).with_reason(response.result.reason)),
        }
    })
}

fn review(api_version: &str, kind: &str) -> TypeMeta {
    TypeMeta { api_version: api_version.to_owned(), kind: kind.to_owned() }
}

#[cfg(feature = "admission")]
pub use admission::{mutate, validate};

#[cfg(feature = "admission")]
mod admission {
    use k8s_openapi::api::authentication::v1::UserInfo;
    use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
    use kube_core::admission::{AdmissionRequest, AdmissionResponse, Operation, META_API_VERSION_V1, META_KIND};
    use kube_core::gvk::{GroupVersionKind, GroupVersionResource};
    use kube_core::Resource;
    use serde::de::DeserializeOwned;
    use serde_json::Value;
    use wasmctl::{Admission, AdmissionTarget, Cause, Denial, Verdict};

    use super::*;

    /// Makes a webhook that allows or denies requests from a function. Its path and its
    /// rules are those of kubebuilder for the kind of the controller, unless they are set.
    pub fn validate<K, F, Fut>(f: F) -> Webhook
    where
        K: Resource + DeserializeOwned + 'static,
        F: Fn(AdmissionRequest<K>) -> Fut + 'static,
        Fut: Future<Output = AdmissionResponse>,
    {
        Webhook::validate(move |a: &Admission<'_>, ctx: &Context<'_>| judge(&f, a, ctx))
    }

    /// Like [`validate`], for a function that may also change the object, with
    /// [`AdmissionResponse::with_patch`].
    pub fn mutate<K, F, Fut>(f: F) -> Webhook
    where
        K: Resource + DeserializeOwned + 'static,
        F: Fn(AdmissionRequest<K>) -> Fut + 'static,
        Fut: Future<Output = AdmissionResponse>,
    {
        Webhook::default(move |a: &Admission<'_>, ctx: &Context<'_>| judge(&f, a, ctx))
    }

    fn judge<K, Fut>(
        f: impl Fn(AdmissionRequest<K>) -> Fut,
        a: &Admission<'_>,
        ctx: &Context<'_>,
    ) -> Result<Verdict, Error>
    where
        K: Resource + DeserializeOwned,
        Fut: Future<Output = AdmissionResponse>,
    {
        match request(a) {
            Ok(request) => verdict(executor::block_on(ctx, f(request))?, a),
            Err(e) => verdict(AdmissionResponse::invalid(e), a), // an object that does not fit the type
        }
    }

    fn request<K: Resource + DeserializeOwned>(a: &Admission<'_>) -> Result<AdmissionRequest<K>, Error> {
        let (user, target) = (a.user(), a.target);
        let text = |s: &str| Some(s.to_owned()).filter(|s| !s.is_empty());
        Ok(AdmissionRequest {
            types: review(META_API_VERSION_V1, META_KIND),
            uid: a.id.to_owned(),
            kind: kind(&target),
            resource: resource(&target),
            sub_resource: text(target.subresource),
            request_kind: Some(kind(&a.requested)),
            request_resource: Some(resource(&a.requested)),
            request_sub_resource: text(a.requested.subresource),
            name: a.key.name.clone(),
            namespace: text(&a.key.namespace),
            operation: operation(&a.operation)?,
            user_info: UserInfo {
                username: text(&user.username),
                uid: text(&user.uid),
                groups: Some(user.groups),
                extra: Some(user.extra),
            },
            object: a.object.decode(&[])?,
            old_object: a.old.decode(&[])?,
            dry_run: a.dry_run,
            options: a.options.decode::<Option<Value>>(&[])?.map(RawExtension),
        })
    }

    fn kind(t: &AdmissionTarget<'_>) -> GroupVersionKind {
        GroupVersionKind::gvk(t.group, t.version, t.kind)
    }

    fn resource(t: &AdmissionTarget<'_>) -> GroupVersionResource {
        GroupVersionResource::gvr(t.group, t.version, t.resource)
    }

    fn operation(o: &wasmctl::Operation) -> Result<Operation, Error> {
        Ok(match o {
            wasmctl::Operation::Create => Operation::Create,
            wasmctl::Operation::Update => Operation::Update,
            wasmctl::Operation::Delete => Operation::Delete,
            wasmctl::Operation::Connect => Operation::Connect,
            other => return Err(Error::msg(format!("request: unknown operation {}", other.as_str()))),
        })
    }

    /// The verdict of a response. The patch is applied here, because the host makes its own
    /// from the changed object.
    fn verdict(response: AdmissionResponse, a: &Admission<'_>) -> Result<Verdict, Error> {
        let mut verdict = match response.patch {
            _ if !response.allowed => denial(response.result).into(),
            None => Verdict::allow(),
            Some(patch) => {
                let mut object: Value = a.object.decode(&[])?;
                json_patch::patch(&mut object, &serde_json::from_slice::<json_patch::Patch>(&patch)?)?;
                Verdict::defaulted(&object)
            }
        };
        for text in response.warnings.into_iter().flatten() {
            verdict = verdict.warn(text);
        }
        for (key, value) in response.audit_annotations {
            verdict = verdict.audit(key, value);
        }
        Ok(verdict)
    }

    fn denial(status: kube_core::response::Status) -> Denial {
        let causes = status.details.into_iter().flat_map(|d| d.causes);
        Denial {
            code: status.code.clamp(400, 599), // the API server makes 400 of a lower code
            reason: status.reason,
            message: status.message,
            causes: causes.map(|c| Cause { type_: c.reason, field: c.field, message: c.message }).collect(),
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Converts the parameters of calls to those of the SDK.

use kube_core::params::{
    DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, PropagationPolicy, VersionMatch,
};
use serde::Serialize;
use wasmctl::{CodecError, Object};

pub(crate) fn get(p: &GetParams) -> wasmctl::GetParams {
    let resource_version = p.resource_version.clone().unwrap_or_default();
    wasmctl::GetParams { resource_version, ..Default::default() }
}

pub(crate) fn list(p: &ListParams) -> wasmctl::ListParams {
    let resource_version_match = match &p.version_match {
        None => "",
        Some(VersionMatch::NotOlderThan) => "NotOlderThan",
        Some(VersionMatch::Exact) => "Exact",
    };
    wasmctl::ListParams {
        label_selector: p.label_selector.clone().unwrap_or_default(),
        field_selector: p.field_selector.clone().unwrap_or_default(),
        limit: p.limit.unwrap_or_default().into(),
        continue_token: p.continue_token.clone().unwrap_or_default(),
        resource_version: p.resource_version.clone().unwrap_or_default(),
        resource_version_match: resource_version_match.to_owned(),
        ..Default::default()
    }
}

pub(crate) fn post(p: &PostParams) -> wasmctl::PostParams {
    let field_manager = p.field_manager.clone().unwrap_or_default();
    wasmctl::PostParams { dry_run: p.dry_run, field_manager, ..Default::default() }
}

pub(crate) fn patch(p: &PatchParams) -> wasmctl::PatchParams {
    wasmctl::PatchParams {
        dry_run: p.dry_run,
        field_manager: p.field_manager.clone().unwrap_or_default(),
        field_validation: p.field_validation.as_ref().map(|v| v.as_str().to_owned()).unwrap_or_default(),
        force: p.force,
        ..Default::default()
    }
}

pub(crate) fn delete(p: &DeleteParams) -> wasmctl::DeleteParams {
    let mut out = wasmctl::DeleteParams { dry_run: p.dry_run, ..Default::default() };
    out.grace_period_seconds = p.grace_period_seconds.map(i64::from);
    if let Some(policy) = &p.propagation_policy {
        out.propagation_policy = match policy {
            PropagationPolicy::Orphan => "Orphan",
            PropagationPolicy::Background => "Background",
            PropagationPolicy::Foreground => "Foreground",
        }
        .to_owned();
    }
    if let Some(p) = &p.preconditions {
        out.preconditions.uid = p.uid.clone().unwrap_or_default();
        out.preconditions.resource_version = p.resource_version.clone().unwrap_or_default();
    }
    out
}

/// Encodes a patch.
pub(crate) fn body<P: Serialize>(p: &Patch<P>) -> Result<wasmctl::Patch<Object<'static>>, CodecError> {
    Ok(match p {
        Patch::Apply(v) => wasmctl::Patch::Apply(Object::new(v)?),
        Patch::Merge(v) => wasmctl::Patch::Merge(Object::new(v)?),
        Patch::Strategic(v) => wasmctl::Patch::Strategic(Object::new(v)?),
        #[cfg(feature = "jsonpatch")]
        Patch::Json(patch) => wasmctl::Patch::Json(operations(&Object::new(&patch)?)?),
        _ => return Err(serde::ser::Error::custom("patch: of a kind that this crate does not know")),
    })
}

/// Converts the operations of a JSON patch.
#[cfg(feature = "jsonpatch")]
fn operations(patch: &Object<'_>) -> Result<Vec<wasmctl::PatchOp>, CodecError> {
    use wasmctl::PatchOp;
    patch
        .elements(&[])
        .map(|op| {
            let (path, from, value) = (op.str(&["path"]), op.str(&["from"]), op.at(&["value"]));
            match op.str(&["op"]) {
                "add" => PatchOp::add(path, &value),
                "replace" => PatchOp::replace(path, &value),
                "test" => PatchOp::test(path, &value),
                "remove" => Ok(PatchOp::remove(path)),
                "move" => Ok(PatchOp::rename(from, path)),
                "copy" => Ok(PatchOp::copy(from, path)),
                other => Err(serde::ser::Error::custom(format!("patch: no operation {other:?}"))),
            }
        })
        .collect()
}

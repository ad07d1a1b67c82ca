// SPDX-License-Identifier: Apache-2.0
//! The two phases in the life of an object.

use std::error::Error as StdError;
use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;

use kube_core::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde::Serialize;
use wasmctl::{Object, PatchOp};

use super::controller::Action;
use crate::api::Api;
use crate::error::Result;

/// The event for an object that has the finalizer.
pub enum Event<K> {
    /// The object is not being deleted: reconcile its desired state.
    Apply(Arc<K>),
    /// The deletion of the object was requested: clean up.
    Cleanup(Arc<K>),
}

/// The reason why a run with a finalizer failed.
#[derive(Debug, thiserror::Error)]
pub enum Error<ReconcileErr: StdError + 'static> {
    /// The function failed in [`Event::Apply`].
    #[error("failed to apply object: {0}")]
    ApplyFailed(#[source] ReconcileErr),
    /// The function failed in [`Event::Cleanup`]; the finalizer stays.
    #[error("failed to clean up object: {0}")]
    CleanupFailed(#[source] ReconcileErr),
    /// The finalizer was not added.
    #[error("failed to add finalizer: {0}")]
    AddFinalizer(#[source] crate::Error),
    /// The finalizer was not removed; the cleanup runs again.
    #[error("failed to remove finalizer: {0}")]
    RemoveFinalizer(#[source] crate::Error),
    /// The object has no name.
    #[error("object has no name")]
    UnnamedObject,
    /// The name is not a valid finalizer.
    #[error("invalid finalizer")]
    InvalidFinalizer,
}

/// Runs a function for an object that must not disappear before the function has cleaned
/// up.
///
/// The first run only adds the finalizer; that change causes the next run. So each
/// `Apply` is followed by a `Cleanup`. A `Cleanup` may also occur without an `Apply`, and
/// more than once. The finalizer is removed after a cleanup without an error. This needs
/// the right to patch objects of this kind; `metadata.finalizers` is the only field.
///
/// # Errors
///
/// The error of the function, or of the patch of the finalizer.
pub async fn finalizer<K, Fut, E>(
    api: &Api<K>,
    finalizer_name: &str,
    obj: Arc<K>,
    reconcile: impl FnOnce(Event<K>) -> Fut,
) -> std::result::Result<Action, Error<E>>
where
    K: Resource + Clone + DeserializeOwned + Serialize + Debug,
    Fut: Future<Output = std::result::Result<Action, E>>,
    E: StdError + 'static,
{
    let name = obj.meta().name.clone().ok_or(Error::UnnamedObject)?;
    let index = obj.finalizers().iter().position(|f| f == finalizer_name);
    let deleting = obj.meta().deletion_timestamp.is_some();
    match (index, deleting) {
        (Some(_), false) => reconcile(Event::Apply(obj)).await.map_err(Error::ApplyFailed),
        (Some(index), true) => {
            let action = reconcile(Event::Cleanup(obj)).await.map_err(Error::CleanupFailed)?;
            let ops = removal(index, finalizer_name).map_err(|_| Error::InvalidFinalizer)?;
            patch(api, &name, ops).await.map_err(Error::RemoveFinalizer)?;
            Ok(action)
        }
        (None, false) => {
            let ops = addition(obj.finalizers(), finalizer_name).map_err(|_| Error::InvalidFinalizer)?;
            patch(api, &name, ops).await.map_err(Error::AddFinalizer)?;
            Ok(Action::await_change())
        }
        (None, true) => Ok(Action::await_change()),
    }
}

type Operations = std::result::Result<Vec<PatchOp>, wasmctl::CodecError>;

/// Adds a finalizer to the list that was read. The patch fails if the list has changed in
/// the meantime.
fn addition(seen: &[String], name: &str) -> Operations {
    const LIST: &str = "/metadata/finalizers";
    if seen.is_empty() {
        return Ok(vec![PatchOp::test(LIST, &None::<String>)?, PatchOp::add(LIST, &[name])?]);
    }
    Ok(vec![PatchOp::test(LIST, seen)?, PatchOp::add("/metadata/finalizers/-", name)?])
}

/// Removes the finalizer at an index, if the index still refers to it.
fn removal(index: usize, name: &str) -> Operations {
    let path = format!("/metadata/finalizers/{index}");
    Ok(vec![PatchOp::test(&path, name)?, PatchOp::remove(&path)])
}

async fn patch<K>(api: &Api<K>, name: &str, ops: Vec<PatchOp>) -> Result<Object<'static>> {
    api.send_body(name, wasmctl::PatchParams::default(), wasmctl::Patch::Json(ops)).await
}

// SPDX-License-Identifier: Apache-2.0
//! A run of a controller's functions, and the stream of their results.

use std::cell::RefCell;
use std::error::Error as StdError;
use std::fmt::Debug;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll};
use std::time::Duration;

use futures_core::Stream;
use serde::de::DeserializeOwned;
use wasmctl::{Context, Manifest, Object, Reconciler};

use super::controller::{Action, Error};
use super::reflector::ObjectRef;
use super::watcher;
use crate::{executor, logger, Resource};

/// Makes a reconciler from a controller's functions.
pub(super) fn reconciler<K, Ctx, Fut, E>(
    manifest: Manifest,
    reconcile: impl FnMut(Arc<K>, Arc<Ctx>) -> Fut + 'static,
    error_policy: impl Fn(Arc<K>, &E, Arc<Ctx>) -> Action + 'static,
    context: Arc<Ctx>,
) -> Reconciler
where
    K: DeserializeOwned + 'static,
    Ctx: 'static,
    Fut: Future<Output = Result<Action, E>>,
    E: StdError + 'static,
{
    let reconcile = RefCell::new(reconcile);
    Reconciler::new(manifest, move |obj: &Object<'_>, ctx: &Context<'_>| {
        let obj: Arc<K> = Arc::new(decode(obj)?);
        let future = (reconcile.borrow_mut())(obj.clone(), context.clone());
        match executor::block_on(ctx, future)? {
            Ok(action) => Ok(action.into()),
            Err(e) => {
                let policy = error_policy(obj, &e, context.clone());
                logger::flush(ctx);
                Err(failed(&e, policy))
            }
        }
    })
}

fn decode<K: DeserializeOwned>(obj: &Object<'_>) -> Result<K, wasmctl::Error> {
    let explain = |e| wasmctl::Error::from(e).context(obj.to_ref()).permanent().with_reason("InvalidObject");
    obj.decode(&[]).map_err(explain)
}

/// The error of a run, with the decision of the error policy. It has only the text of the
/// original error, so that its type, for example a conflict, does not override the
/// policy.
fn failed<E: StdError + 'static>(e: &E, policy: Action) -> wasmctl::Error {
    let error = wasmctl::Error::msg(text(e)).with_reason(reason(e));
    match policy.requeue_after {
        Some(after) => error.retry_after(after.max(Duration::from_millis(1))), // 0 would mean the host's back-off
        None => error.permanent(),
    }
}

/// The error and its causes. It skips causes whose text the error already includes.
fn text(e: &dyn StdError) -> String {
    let mut text = e.to_string();
    let mut cause = e.source();
    while let Some(e) = cause {
        let more = e.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = e.source();
    }
    text
}

/// The reason of the API server, if the error is or wraps one of its answers.
fn reason<E: StdError + 'static>(e: &E) -> String {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(e);
    while let Some(e) = cause {
        if let Some(crate::Error::Api(status)) = e.downcast_ref() {
            return status.reason.clone();
        }
        cause = e.source();
    }
    String::new()
}

/// The results of a controller, for `for_each`. It never yields a result, because the
/// host logs and counts them. `main` stops here.
#[must_use = "main has to await the stream of a controller"]
pub struct Running<K: Resource, E> {
    results: PhantomData<fn() -> (K, E)>,
}

impl<K: Resource, E> Running<K, E> {
    pub(super) fn new() -> Self {
        Running { results: PhantomData }
    }
}

impl<K: Resource, E> Stream for Running<K, E>
where
    E: Debug + 'static,
{
    type Item = Result<(ObjectRef<K>, Action), Error<E, watcher::Error>>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Task<'_>) -> Poll<Option<Self::Item>> {
        Poll::Pending
    }
}

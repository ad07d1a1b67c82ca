// SPDX-License-Identifier: Apache-2.0
//! The runs of a controller, and the stream of their results.
//!
//! `main` owns the functions of the controller, which may borrow from it. So `main` stays
//! alive in the module, and each run polls it: the stream takes the object of the run,
//! calls the functions, and yields the result to `main`.

use std::any::Any;
use std::error::Error as StdError;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as Task, Poll, Waker};
use std::time::Duration;

use futures_core::{Stream, TryFuture};
use kube_core::Resource;
use serde::de::DeserializeOwned;
use wasmctl::Object;

use super::controller::{Action, Error};
use super::reflector::ObjectRef;
use super::watcher;

/// An object whose type the stream knows.
type AnyObject = Arc<dyn Any + Send + Sync>;

/// Hands the runs of a module to the stream of its controller, and takes their ends back.
pub(crate) struct Runs {
    /// The kind of the objects.
    pub(crate) kind: String,
    decode: fn(&Object<'_>) -> Result<AnyObject, wasmctl::Error>,
    current: Mutex<Current>,
}

/// The run in progress.
#[derive(Default)]
struct Current {
    state: State,
    /// Wakes the stream, which may be in a set of futures that polls only those that were
    /// woken.
    stream: Option<Waker>,
}

#[derive(Default)]
enum State {
    #[default]
    Idle,
    Begun(AnyObject),
    Ended(Result<Action, Failed>),
}

/// The error of a run, with the decision of the error policy. It has only the text of the
/// original error, so that its type, for example a conflict, does not override the
/// policy.
pub(crate) struct Failed {
    text: String,
    reason: String,
    policy: Action,
}

impl From<Failed> for wasmctl::Error {
    fn from(failed: Failed) -> Self {
        let error = wasmctl::Error::msg(failed.text).with_reason(failed.reason);
        match failed.policy.requeue_after {
            Some(after) => error.retry_after(after.max(Duration::from_millis(1))), // 0 would mean the host's back-off
            None => error.permanent(),
        }
    }
}

impl Runs {
    /// Starts a run of an object. A run that is still in progress, because it cannot end,
    /// is abandoned.
    pub(crate) fn begin(&self, obj: &Object<'_>) -> Result<(), wasmctl::Error> {
        let explain = |e: wasmctl::Error| e.context(obj.to_ref()).permanent().with_reason("InvalidObject");
        let object = (self.decode)(obj).map_err(explain)?;
        let mut current = self.lock();
        current.state = State::Begun(object);
        if let Some(stream) = current.stream.take() {
            drop(current);
            stream.wake();
        }
        Ok(())
    }

    /// The end of the run, if it has ended.
    pub(crate) fn end(&self) -> Option<Result<Action, Failed>> {
        let mut current = self.lock();
        match mem::take(&mut current.state) {
            State::Ended(end) => Some(end),
            state => {
                current.state = state;
                None
            }
        }
    }

    /// The object of a run that has begun.
    fn take(&self, task: &Task<'_>) -> Option<AnyObject> {
        let mut current = self.lock();
        current.stream = Some(task.waker().clone());
        match mem::take(&mut current.state) {
            State::Begun(object) => Some(object),
            state => {
                current.state = state;
                None
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The results of a controller.
pub(super) struct Running<K: Resource, F, P, Fut, Ctx> {
    pub(super) dyntype: K::DynamicType,
    pub(super) reconcile: F,
    pub(super) error_policy: P,
    pub(super) context: Arc<Ctx>,
    runs: Arc<Runs>,
    /// The run in progress.
    run: Option<(Arc<K>, Pin<Box<Fut>>)>,
}

impl<K, F, P, Fut, Ctx> Running<K, F, P, Fut, Ctx>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
{
    pub(super) fn new(dyntype: K::DynamicType, reconcile: F, error_policy: P, context: Arc<Ctx>) -> Self {
        let decode = |obj: &Object<'_>| Ok(Arc::new(obj.decode::<K>(&[])?) as AnyObject);
        let kind = K::kind(&dyntype).into_owned();
        let runs = Arc::new(Runs { kind, decode, current: Mutex::default() });
        Running { dyntype, reconcile, error_policy, context, runs, run: None }
    }

    pub(super) fn runs(&self) -> Arc<Runs> {
        self.runs.clone()
    }
}

// No field is pinned in place: the future of a run is in a box.
impl<K: Resource, F, P, Fut, Ctx> Unpin for Running<K, F, P, Fut, Ctx> {}

impl<K, F, P, Fut, Ctx> Stream for Running<K, F, P, Fut, Ctx>
where
    K: Resource + Send + Sync + 'static,
    K::DynamicType: Clone,
    F: FnMut(Arc<K>, Arc<Ctx>) -> Fut,
    P: Fn(Arc<K>, &Fut::Error, Arc<Ctx>) -> Action,
    Fut: TryFuture<Ok = Action>,
    Fut::Error: StdError + 'static,
{
    type Item = Result<(ObjectRef<K>, Action), Error<Fut::Error, watcher::Error>>;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Option<Self::Item>> {
        if let Some(object) = self.runs.take(task) {
            self.run = None; // the abandoned run may hold what the new one needs
            let object: Arc<K> =
                object.downcast().unwrap_or_else(|_| unreachable!("decode makes objects of this type"));
            let context = self.context.clone();
            let future = (self.reconcile)(object.clone(), context);
            self.run = Some((object, Box::pin(future)));
        }
        let Some((object, future)) = &mut self.run else { return Poll::Pending };
        let Poll::Ready(result) = future.as_mut().try_poll(task) else { return Poll::Pending };
        let object = object.clone();
        self.run = None;
        let named = ObjectRef::from_obj_with(object.as_ref(), self.dyntype.clone());
        let (end, item) = match result {
            Ok(action) => (Ok(action.clone()), Ok((named, action))),
            Err(e) => {
                let policy = (self.error_policy)(object, &e, self.context.clone());
                let failed = Failed { text: text(&e), reason: reason(&e), policy };
                (Err(failed), Err(Error::ReconcilerFailed(e, Box::new(named.erase()))))
            }
        };
        self.runs.lock().state = State::Ended(end);
        Poll::Ready(Some(item))
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

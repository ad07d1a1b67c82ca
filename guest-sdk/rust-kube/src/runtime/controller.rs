// SPDX-License-Identifier: Apache-2.0
//! The controller: its watches and functions.

use std::error::Error as StdError;
use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use futures_core::{Stream, TryFuture};
use kube_core::{DynamicObject, Resource};
use serde::de::DeserializeOwned;
use wasmctl::{Capability, Context, Conversion, Manifest, WatchEvent, Webhook};

use super::reflector::ObjectRef;
use super::running::Running;
use super::watcher;
use crate::api::Api;
use crate::module;

/// The next step after a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    pub(super) requeue_after: Option<Duration>,
}

impl Action {
    /// Asks for another run after the given time. An earlier change replaces the request.
    #[must_use]
    pub const fn requeue(duration: Duration) -> Self {
        Action { requeue_after: Some(duration) }
    }

    /// Waits until the object, or an object that concerns it, changes. If an error policy
    /// returns it, the failed run is not retried before that.
    #[must_use]
    pub const fn await_change() -> Self {
        Action { requeue_after: None }
    }
}

impl From<Action> for wasmctl::Action {
    fn from(action: Action) -> Self {
        action.requeue_after.map_or_else(wasmctl::Action::await_change, wasmctl::Action::requeue)
    }
}

/// The reason why a run failed, in the stream of [`Controller::run`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error<ReconcilerErr: 'static, QueueErr: 'static> {
    /// The object is gone.
    #[error("tried to reconcile object {0} that was not found in local store")]
    ObjectNotFound(Box<ObjectRef<DynamicObject>>),
    /// The function failed.
    #[error("reconciler for object {1} failed")]
    ReconcilerFailed(#[source] ReconcilerErr, Box<ObjectRef<DynamicObject>>),
    /// A watch failed.
    #[error("event queue error")]
    QueueError(#[source] QueueErr),
}

/// The number of objects that run at a time.
#[derive(Clone, Debug, Default)]
pub struct Config {
    concurrency: u16,
}

impl Config {
    /// Has no effect: the debounce of a module is an option of the host.
    #[must_use]
    pub fn debounce(self, _: Duration) -> Self {
        self
    }

    /// Sets the number of objects that run at a time; if 0, the host decides.
    #[must_use]
    pub fn concurrency(mut self, concurrency: u16) -> Self {
        self.concurrency = concurrency;
        self
    }
}

/// Declares the watches of a module, and runs its functions.
///
/// The host watches, queues and retries; see [`run`](Self::run). A module may have several
/// controllers: `main` joins their streams.
pub struct Controller<K: Resource> {
    manifest: Manifest,
    dyntype: K::DynamicType,
}

impl<K> Controller<K>
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    /// Makes a controller for the objects of `main_api`.
    #[must_use]
    pub fn new(main_api: Api<K>, wc: watcher::Config) -> Self
    where
        K::DynamicType: Default,
    {
        Self::new_with(main_api, wc, K::DynamicType::default())
    }

    /// `new` for a type without a fixed kind.
    #[must_use]
    pub fn new_with(main_api: Api<K>, wc: watcher::Config, dyntype: K::DynamicType) -> Self {
        Controller { manifest: Manifest { for_: wc.watch(&main_api), ..Manifest::default() }, dyntype }
    }

    /// Makes changes of an object reconcile its owners.
    #[must_use]
    pub fn owns<Child: Resource>(mut self, api: Api<Child>, wc: watcher::Config) -> Self {
        self.manifest.owns.push(wc.watch(&api));
        self
    }

    /// `owns` for a type without a fixed kind.
    #[must_use]
    pub fn owns_with<Child: Resource>(self, api: Api<Child>, _: Child::DynamicType, wc: watcher::Config) -> Self {
        self.owns(api, wc)
    }

    /// Reconciles the objects that `mapper` returns for a changed object. The host also
    /// calls it for the object before the change, so that both the old and the new target
    /// run if a change moves an object.
    #[must_use]
    pub fn watches<Other, I>(
        mut self,
        api: Api<Other>,
        wc: watcher::Config,
        mapper: impl Fn(Other) -> I + Sync + Send + 'static,
    ) -> Self
    where
        Other: Clone + Resource + DeserializeOwned + Debug + Send + 'static,
        I: IntoIterator<Item = ObjectRef<K>> + 'static,
    {
        let watch = wc.watch(&api).mapper(move |event: &WatchEvent<'_>, ctx: &Context<'_>| {
            let mut keys = Vec::new();
            for obj in [&event.old, &event.new].into_iter().filter(|obj| obj.exists(&[])) {
                let other: Other = obj.decode(&[]).map_err(|e| wasmctl::Error::from(e).context(obj.to_ref()))?;
                keys.extend(mapper(other).into_iter().map(|r| r.key()));
            }
            keys.sort_unstable();
            keys.dedup();
            crate::logger::flush(ctx);
            Ok::<_, wasmctl::Error>(keys)
        });
        self.manifest.watches.push(watch);
        self
    }

    /// `watches` for a type without a fixed kind.
    #[must_use]
    pub fn watches_with<Other, I>(
        self,
        api: Api<Other>,
        _: Other::DynamicType,
        wc: watcher::Config,
        mapper: impl Fn(Other) -> I + Sync + Send + 'static,
    ) -> Self
    where
        Other: Clone + Resource + DeserializeOwned + Debug + Send + 'static,
        I: IntoIterator<Item = ObjectRef<K>> + 'static,
    {
        self.watches(api, wc, mapper)
    }

    /// Sets the number of objects that run at a time.
    #[must_use]
    pub fn with_config(mut self, config: Config) -> Self {
        self.manifest.concurrency = config.concurrency.into();
        self
    }

    /// Adds a right that the functions need. Without it, the module may only watch, read
    /// the objects of this kind, and write their status. kube-rs does not have this
    /// method, because there the rights are those of the service account.
    #[must_use]
    pub fn capability(mut self, capability: Capability) -> Self {
        self.manifest.capabilities.push(capability);
        self
    }

    /// Adds a webhook; see [`webhook`](crate::webhook). kube-rs does not have this method,
    /// because there a program has a server of its own.
    #[must_use]
    pub fn webhook(mut self, webhook: Webhook) -> Self {
        self.manifest.webhooks.push(webhook);
        self
    }

    /// Adds a conversion between versions of a kind; see
    /// [`webhook::convert`](crate::webhook::convert).
    #[must_use]
    pub fn conversion(mut self, conversion: Conversion) -> Self {
        self.manifest.conversions.push(conversion);
        self
    }

    /// Has no effect: the host decides when to stop.
    #[must_use]
    pub fn shutdown_on_signal(self) -> Self {
        self
    }

    /// Has no effect: the host decides when to stop.
    #[must_use]
    pub fn graceful_shutdown_on(self, _: impl Future<Output = ()> + Send + Sync + 'static) -> Self {
        self
    }

    /// Has no effect: a module has no timer, thread or socket that could feed the stream.
    #[must_use]
    #[deprecated(
        note = "has no effect in a module: run objects with `wasmctl trigger`, or start the controller with --resync"
    )]
    pub fn reconcile_all_on(self, _: impl Stream<Item = ()> + Send + 'static) -> Self {
        self
    }

    /// Has no effect: a module has no timer, thread or socket that could feed the stream.
    #[must_use]
    #[deprecated(
        note = "has no effect in a module: run objects with `wasmctl trigger`, or start the controller with --trigger-on-stdin"
    )]
    pub fn reconcile_on(self, _: impl Stream<Item = ObjectRef<K>> + Send + 'static) -> Self {
        self
    }

    /// Makes this a controller of the module. `main` must await the stream, which yields
    /// the result of each run of this instance, and never ends.
    ///
    /// The error policy is called within the failed run. After a trap or a timeout there
    /// is no error, and the host's back-off decides. A run whose object does not fit the
    /// type fails and waits for a change.
    pub fn run<ReconcilerFut, Ctx>(
        self,
        reconciler: impl FnMut(Arc<K>, Arc<Ctx>) -> ReconcilerFut,
        error_policy: impl Fn(Arc<K>, &ReconcilerFut::Error, Arc<Ctx>) -> Action,
        context: Arc<Ctx>,
    ) -> impl Stream<Item = Result<(ObjectRef<K>, Action), Error<ReconcilerFut::Error, watcher::Error>>>
    where
        ReconcilerFut: TryFuture<Ok = Action> + Send + 'static,
        ReconcilerFut::Error: StdError + Send + 'static,
    {
        let running = Running::new(self.dyntype, reconciler, error_policy, context);
        module::start(self.manifest, running.runs());
        running
    }
}

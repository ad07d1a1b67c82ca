//! The controller: what it watches, and its functions.

use std::error::Error as StdError;
use std::fmt::Debug;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use kube_core::{DynamicObject, Resource};
use serde::de::DeserializeOwned;
use wasmctl::{Capability, Context, Manifest, WatchEvent};

use super::reflector::ObjectRef;
use super::running::{self, Running};
use super::watcher;
use crate::api::Api;
use crate::module;

/// What happens after a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    pub(super) requeue_after: Option<Duration>,
}

impl Action {
    /// Asks for another run after the given time. An earlier change absorbs it.
    #[must_use]
    pub const fn requeue(duration: Duration) -> Self {
        Action { requeue_after: Some(duration) }
    }

    /// Waits until the object, or one that concerns it, changes. From an error policy it
    /// means that a failed run is not tried again before that.
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

/// Why a run did not end well, in the stream of [`Controller::run`].
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

/// How many objects run at a time.
#[derive(Clone, Debug, Default)]
pub struct Config {
    concurrency: u16,
}

impl Config {
    /// Nothing: the debounce of a module is an option of the host.
    #[must_use]
    pub fn debounce(self, _: Duration) -> Self {
        self
    }

    /// So many objects at a time; 0 leaves it to the host.
    #[must_use]
    pub fn concurrency(mut self, concurrency: u16) -> Self {
        self.concurrency = concurrency;
        self
    }
}

/// Says what a module reconciles, and runs its functions.
///
/// The host watches, queues and retries; see [`run`](Self::run). One module has one
/// controller.
pub struct Controller<K> {
    manifest: Manifest,
    type_: PhantomData<fn() -> K>,
}

impl<K> Controller<K>
where
    K: Clone + Resource + DeserializeOwned + Debug + Send + Sync + 'static,
{
    /// A controller of the objects of `main_api`.
    #[must_use]
    pub fn new(main_api: Api<K>, wc: watcher::Config) -> Self {
        Controller { manifest: Manifest { for_: wc.watch(&main_api), ..Manifest::default() }, type_: PhantomData }
    }

    /// `new`, of a type without a kind of its own.
    #[must_use]
    pub fn new_with(main_api: Api<K>, wc: watcher::Config, _: K::DynamicType) -> Self {
        Self::new(main_api, wc)
    }

    /// Reconciles the owners of a changed object.
    #[must_use]
    pub fn owns<Child: Resource>(mut self, api: Api<Child>, wc: watcher::Config) -> Self {
        self.manifest.owns.push(wc.watch(&api));
        self
    }

    /// `owns`, of a type without a kind of its own.
    #[must_use]
    pub fn owns_with<Child: Resource>(self, api: Api<Child>, _: Child::DynamicType, wc: watcher::Config) -> Self {
        self.owns(api, wc)
    }

    /// Reconciles what `mapper` returns for a changed object. The host calls it for the
    /// object before the change too, so that an object moves from one to another.
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

    /// `watches`, of a type without a kind of its own.
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

    /// How many objects run at a time.
    #[must_use]
    pub fn with_config(mut self, config: Config) -> Self {
        self.manifest.concurrency = config.concurrency.into();
        self
    }

    /// A right that the functions need. There is none without it but to watch, to read the
    /// objects of this kind, and to write their status. kube-rs does not have this method:
    /// there, the rights are those of the service account.
    #[must_use]
    pub fn capability(mut self, capability: Capability) -> Self {
        self.manifest.capabilities.push(capability);
        self
    }

    /// Nothing: the host stops when it is told to.
    #[must_use]
    pub fn shutdown_on_signal(self) -> Self {
        self
    }

    /// Nothing: the host stops when it is told to.
    #[must_use]
    pub fn graceful_shutdown_on(self, _: impl Future<Output = ()> + Send + Sync + 'static) -> Self {
        self
    }

    /// Makes this the controller of the module. The stream never yields: `main` waits for
    /// it to the end of the module.
    ///
    /// The error policy is called in the run that has failed, right after it. After a trap
    /// or a timeout there is no error, and the host's back-off decides. A run whose object
    /// does not fit the type fails and waits for a change.
    ///
    /// # Panics
    ///
    /// If `main` has run another controller.
    pub fn run<Fut, E, Ctx>(
        self,
        reconciler: impl FnMut(Arc<K>, Arc<Ctx>) -> Fut + 'static,
        error_policy: impl Fn(Arc<K>, &E, Arc<Ctx>) -> Action + 'static,
        context: Arc<Ctx>,
    ) -> Running<K, E>
    where
        Fut: Future<Output = Result<Action, E>> + Send + 'static,
        E: StdError + Send + 'static,
        Ctx: 'static,
    {
        let (name, version) = module::package();
        let manifest = Manifest { name, version, ..self.manifest };
        module::start(running::reconciler(manifest, reconciler, error_policy, context));
        Running::new()
    }
}

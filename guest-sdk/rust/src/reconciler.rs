// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeMap;

use crate::action::Action;
use crate::context::Context;
use crate::error::Error;
use crate::failure::Failure;
use crate::finalizer::Event;
use crate::guest::Entry;
use crate::manifest::Manifest;
use crate::object::Object;
use crate::webhook::Webhook;
use crate::Resource;

pub(crate) type Run = Box<dyn Fn(&Object<'_>, &Context<'_>) -> Result<Action, Error>>;
type Policy = Box<dyn Fn(&Object<'_>, &Failure, &Context<'_>) -> Action>;
type Configure = Box<dyn Fn(&BTreeMap<String, String>, &Context<'_>) -> Result<(), Error>>;

/// Defines a module: its functions and its manifest.
///
/// ```
/// use std::time::Duration;
/// use wasmctl::{Action, Context, Error, Failure, Manifest, Object, Reconciler, Watch};
///
/// fn reconcile(obj: &Object, _: &Context) -> Result<Action, Error> {
///     Ok(Action::await_change())
/// }
///
/// fn error_policy(_: &Object, _: &Failure, _: &Context) -> Action {
///     Action::requeue(Duration::from_secs(60))
/// }
///
/// fn reconciler() -> Reconciler {
///     let manifest = Manifest { for_: Watch::new("example.com", "v1", "Greeting"), ..Manifest::default() };
///     Reconciler::new(manifest, reconcile).error_policy(error_policy)
/// }
///
/// wasmctl::export!(reconciler);
/// ```
pub struct Reconciler {
    pub(crate) manifest: Manifest,
    pub(crate) reconcile: Run,
    pub(crate) finalize: Option<Run>,
    pub(crate) error_policy: Option<Policy>,
    pub(crate) configure: Option<Configure>,
}

impl Reconciler {
    /// Makes a reconciler whose `reconcile` moves the cluster toward the desired state of
    /// its object.
    ///
    /// The host calls it repeatedly, also without a change, so it must compare the
    /// current state and not rely on events. An error fails the run; see
    /// [`Error::permanent`] and [`Error::retry_after`]. The object does not exist only if
    /// [`Watch::deletes`](crate::Watch::deletes) asks for calls after it is gone.
    pub fn new<F, E>(mut manifest: Manifest, reconcile: F) -> Self
    where
        F: Fn(&Object<'_>, &Context<'_>) -> Result<Action, E> + 'static,
        E: Into<Error>,
    {
        manifest.webhooks.iter_mut().for_each(|w| w.complete(&manifest.for_));
        Reconciler { manifest, reconcile: run(reconcile), finalize: None, error_policy: None, configure: None }
    }

    /// Like [`new`](Self::new), with the complete object decoded by serde. That costs
    /// more than reading some fields, and is worthwhile if a run uses most of them. An
    /// object that does not fit the type is a permanent error with the reason
    /// `InvalidObject`.
    pub fn typed<K, F, E>(manifest: Manifest, reconcile: F) -> Self
    where
        K: Resource + serde::de::DeserializeOwned + 'static,
        F: Fn(&K, &Context<'_>) -> Result<Action, E> + 'static,
        E: Into<Error>,
    {
        Self::new(manifest, decoding(reconcile))
    }

    /// Makes a reconciler with a finalizer, for example `example.com/cleanup`, in one
    /// function, as in kube-rs. It receives [`Event::Apply`] until the deletion of the
    /// object is requested, and [`Event::Cleanup`] after that. See
    /// [`finalize`](Self::finalize).
    pub fn with_finalizer<F, E>(mut manifest: Manifest, name: &str, f: F) -> Self
    where
        F: Fn(Event<'_>, &Context<'_>) -> Result<Action, E> + 'static,
        E: Into<Error>,
    {
        manifest.finalizer = name.to_owned();
        let apply = std::rc::Rc::new(f);
        let cleanup = apply.clone();
        Self::new(manifest, move |obj: &Object<'_>, ctx: &Context<'_>| apply(Event::Apply(obj), ctx))
            .finalize(move |obj: &Object<'_>, ctx: &Context<'_>| cleanup(Event::Cleanup(obj), ctx))
    }

    /// Cleans up resources that the garbage collector does not know. The host calls it
    /// instead of `reconcile` after the deletion of the object was requested.
    ///
    /// The host adds [`Manifest::finalizer`] to each object before its first run, and
    /// removes it after the first cleanup that returns neither an error nor a requeue.
    /// Until then the object stays. Return a requeue to wait for a slow cleanup: the host
    /// then calls it again. The host may also call it again after it succeeded, so it
    /// must accept that everything is already gone.
    #[must_use]
    pub fn finalize<F, E>(mut self, f: F) -> Self
    where
        F: Fn(&Object<'_>, &Context<'_>) -> Result<Action, E> + 'static,
        E: Into<Error>,
    {
        self.finalize = Some(run(f));
        self
    }

    /// Like [`finalize`](Self::finalize), with the complete object decoded, as in
    /// [`typed`](Self::typed).
    #[must_use]
    pub fn finalize_typed<K, F, E>(self, f: F) -> Self
    where
        K: Resource + serde::de::DeserializeOwned + 'static,
        F: Fn(&K, &Context<'_>) -> Result<Action, E> + 'static,
        E: Into<Error>,
    {
        self.finalize(decoding(f))
    }

    /// Like [`error_policy`](Self::error_policy), with the complete object decoded, as in
    /// [`typed`](Self::typed). The object is `None` if the failed run had none, or one
    /// that does not fit the type.
    #[must_use]
    pub fn error_policy_typed<K, F>(self, f: F) -> Self
    where
        K: Resource + serde::de::DeserializeOwned + 'static,
        F: Fn(Option<&K>, &Failure, &Context<'_>) -> Action + 'static,
    {
        self.error_policy(move |obj, failure, ctx| f(obj.decode::<K>(&[]).ok().as_ref(), failure, ctx))
    }

    /// Decides what to do after a failed run. The host calls it once for each failed run.
    /// After a panic or a timeout it runs in a fresh instance. The host ignores its
    /// answer after a permanent error. It must not declare children or a status. Without
    /// it, the host's back-off decides.
    #[must_use]
    pub fn error_policy<F>(mut self, f: F) -> Self
    where
        F: Fn(&Object<'_>, &Failure, &Context<'_>) -> Action + 'static,
    {
        self.error_policy = Some(Box::new(f));
        self
    }

    /// Receives all settings when an instance of the module starts, and again before the
    /// next call after the settings have changed.
    ///
    /// An error refuses the settings: the host does not load the module, or all instances
    /// continue with the old settings. The function must reset variables that depend on
    /// earlier settings. It may call only [`Context::config`], which also works without
    /// it.
    #[must_use]
    pub fn configure<F, E>(mut self, f: F) -> Self
    where
        F: Fn(&BTreeMap<String, String>, &Context<'_>) -> Result<(), E> + 'static,
        E: Into<Error>,
    {
        self.configure = Some(Box::new(move |settings, ctx| f(settings, ctx).map_err(Into::into)));
        self
    }

    /// The manifest of the module.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The optional exports that have a function.
    pub(crate) fn hooks(&self) -> Vec<&'static str> {
        [
            ("error_policy", self.error_policy.is_some()),
            ("finalize", self.finalize.is_some()),
            ("map", self.manifest.has_mapper()),
            ("filter", self.manifest.has_filter()),
            ("configure", self.configure.is_some()),
            ("validate", self.manifest.webhooks.iter().any(|w| w.entry() == Entry::Validate)),
            ("default", self.manifest.webhooks.iter().any(|w| w.entry() == Entry::Default)),
            ("convert", !self.manifest.conversions.is_empty()),
        ]
        .into_iter()
        .filter_map(|(name, real)| real.then_some(name))
        .collect()
    }

    pub(crate) fn describe(&self) -> Vec<u8> {
        self.manifest.describe(&self.hooks())
    }

    /// The reason why the reconciler is inconsistent, if it is.
    pub(crate) fn problem(&self) -> Option<String> {
        match (&self.finalize, self.manifest.finalizer.as_str()) {
            (Some(_), "") => {
                return Some("finalize needs a name in Manifest::finalizer, \"example.com/cleanup\"".into())
            }
            (None, name) if !name.is_empty() => {
                return Some(
                    "Manifest::finalizer needs Reconciler::finalize, otherwise deleted objects never go away".into(),
                )
            }
            _ => {}
        }
        if !self.manifest.webhooks.iter().all(Webhook::is_complete) {
            return Some("a webhook without a path or a rule needs kind and version in Manifest::for_".into());
        }
        let watches = &self.manifest.watches;
        for (i, w) in watches.iter().enumerate() {
            let kind = &w.kind;
            match (&w.mapper, w.map.as_str()) {
                (Some(_), map) if !map.is_empty() => {
                    return Some(format!("the watch of {kind} has a mapper and map {map}"))
                }
                (None, "" | "func") => return Some(format!("the watch of {kind} has neither a mapper nor a map")),
                (None, _) => {}
                (Some(_), _) if watches[..i].iter().any(|v| v.mapper.is_some() && v.is(&w.group, kind)) => {
                    return Some(format!("two watches of {kind} have a mapper; only one may have one"))
                }
                (Some(_), _) => {}
            }
        }
        None
    }
}

/// Converts a function of the decoded object to a function of the object.
fn decoding<K, F, E>(f: F) -> Run
where
    K: serde::de::DeserializeOwned,
    F: Fn(&K, &Context<'_>) -> Result<Action, E> + 'static,
    E: Into<Error>,
{
    Box::new(move |obj, ctx| {
        let k = obj
            .decode::<K>(&[])
            .map_err(|e| Error::from(e).context(obj.to_ref()).permanent().with_reason("InvalidObject"))?;
        f(&k, ctx).map_err(Into::into)
    })
}

fn run<F, E>(f: F) -> Run
where
    F: Fn(&Object<'_>, &Context<'_>) -> Result<Action, E> + 'static,
    E: Into<Error>,
{
    Box::new(move |obj, ctx| f(obj, ctx).map_err(Into::into))
}

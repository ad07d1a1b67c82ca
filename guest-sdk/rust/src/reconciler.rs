use std::collections::BTreeMap;

use crate::action::Action;
use crate::context::Context;
use crate::error::Error;
use crate::failure::Failure;
use crate::finalizer::Event;
use crate::manifest::Manifest;
use crate::object::Object;
use crate::Resource;

pub(crate) type Run = Box<dyn Fn(&Object<'_>, &Context<'_>) -> Result<Action, Error>>;
type Policy = Box<dyn Fn(&Object<'_>, &Failure, &Context<'_>) -> Action>;
type Configure = Box<dyn Fn(&BTreeMap<String, String>, &Context<'_>) -> Result<(), Error>>;

/// What a module does: some functions, and what it says of itself.
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
    /// A reconciler whose `reconcile` brings the world closer to what its object
    /// asks for.
    ///
    /// It is called again and again, also without a change, so it must look at
    /// what is there and not at what happened. An error makes the run a failed
    /// one; see [`Error::permanent`] and [`Error::retry_after`]. The object does
    /// not exist only if [`Watch::deletes`](crate::Watch::deletes) asks for calls
    /// after it is gone.
    pub fn new<F, E>(manifest: Manifest, reconcile: F) -> Self
    where
        F: Fn(&Object<'_>, &Context<'_>) -> Result<Action, E> + 'static,
        E: Into<Error>,
    {
        Reconciler { manifest, reconcile: run(reconcile), finalize: None, error_policy: None, configure: None }
    }

    /// As [`new`](Self::new), with the object decoded by serde, whole: dearer than
    /// reading some fields, and worth it where a run uses most of them. What does
    /// not fit is a permanent error of reason `InvalidObject`.
    pub fn typed<K, F, E>(manifest: Manifest, reconcile: F) -> Self
    where
        K: Resource + serde::de::DeserializeOwned + 'static,
        F: Fn(&K, &Context<'_>) -> Result<Action, E> + 'static,
        E: Into<Error>,
    {
        Self::new(manifest, move |obj: &Object<'_>, ctx: &Context<'_>| {
            let k = obj
                .decode::<K>(&[])
                .map_err(|e| Error::from(e).context(obj.to_ref()).permanent().with_reason("InvalidObject"))?;
            reconcile(&k, ctx).map_err(Into::into)
        })
    }

    /// A reconciler with a finalizer of that name, `example.com/cleanup`, in one
    /// function, as in kube-rs: [`Event::Apply`] while the object lives and
    /// [`Event::Cleanup`] once it was asked to be deleted. See
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

    /// Cleans up what the garbage collector does not know, in the place of
    /// `reconcile`, once the object was asked to be deleted.
    ///
    /// The host puts [`Manifest::finalizer`] on each object before its first run,
    /// and takes it off after the first cleanup that returns neither an error nor
    /// a requeue: until then the object stays, and with a requeue it is called
    /// again, to wait for something that takes its time. It may also be called
    /// again after it succeeded: what is gone already is no error.
    #[must_use]
    pub fn finalize<F, E>(mut self, f: F) -> Self
    where
        F: Fn(&Object<'_>, &Context<'_>) -> Result<Action, E> + 'static,
        E: Into<Error>,
    {
        self.finalize = Some(run(f));
        self
    }

    /// Says what to do after a failed run, also after one that panicked or took
    /// too long: then it runs in a fresh instance. It is called once for each, and
    /// what it says counts except after a permanent error. It declares nothing.
    /// Without one the host's back-off decides.
    #[must_use]
    pub fn error_policy<F>(mut self, f: F) -> Self
    where
        F: Fn(&Object<'_>, &Failure, &Context<'_>) -> Action + 'static,
    {
        self.error_policy = Some(Box::new(f));
        self
    }

    /// Is given all settings when an instance of the module starts, and before its
    /// next call when they have changed.
    ///
    /// An error refuses them: the module is not loaded, or all instances go on
    /// with those they had. Nothing of earlier settings may stay. It calls nothing
    /// but [`Context::config`], which also works without it.
    #[must_use]
    pub fn configure<F, E>(mut self, f: F) -> Self
    where
        F: Fn(&BTreeMap<String, String>, &Context<'_>) -> Result<(), E> + 'static,
        E: Into<Error>,
    {
        self.configure = Some(Box::new(move |settings, ctx| f(settings, ctx).map_err(Into::into)));
        self
    }

    /// What the module says of itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The optional exports that are real.
    pub(crate) fn hooks(&self) -> Vec<&'static str> {
        [
            ("error_policy", self.error_policy.is_some()),
            ("finalize", self.finalize.is_some()),
            ("map", self.manifest.has_mapper()),
            ("filter", self.manifest.has_filter()),
            ("configure", self.configure.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, real)| real.then_some(name))
        .collect()
    }

    pub(crate) fn describe(&self) -> Vec<u8> {
        self.manifest.describe(&self.hooks())
    }

    /// Why the parts do not fit together.
    pub(crate) fn problem(&self) -> Option<String> {
        match (&self.finalize, self.manifest.finalizer.as_str()) {
            (Some(_), "") => {
                return Some("finalize needs a name in Manifest::finalizer, \"example.com/cleanup\"".into())
            }
            (None, name) if !name.is_empty() => {
                return Some("Manifest::finalizer needs Reconciler::finalize, or objects would never go".into())
            }
            _ => {}
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
                    return Some(format!(
                        "two watches of {kind} have a mapper; an event does not say which of them it is of"
                    ))
                }
                (Some(_), _) => {}
            }
        }
        None
    }
}

fn run<F, E>(f: F) -> Run
where
    F: Fn(&Object<'_>, &Context<'_>) -> Result<Action, E> + 'static,
    E: Into<Error>,
{
    Box::new(move |obj, ctx| f(obj, ctx).map_err(Into::into))
}

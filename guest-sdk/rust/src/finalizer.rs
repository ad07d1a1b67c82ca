// SPDX-License-Identifier: Apache-2.0
//! The two phases in the life of an object; see
//! [`Reconciler::with_finalizer`](crate::Reconciler::with_finalizer).

use crate::object::Object;

/// The event for a reconciler with a finalizer, as in kube-rs.
///
/// ```
/// use wasmctl::finalizer::Event;
/// use wasmctl::{Action, Context, Error, Manifest, Reconciler, Watch};
///
/// fn reconciler() -> Reconciler {
///     let manifest = Manifest { for_: Watch::new("example.com", "v1", "Record"), ..Manifest::default() };
///     Reconciler::with_finalizer(manifest, "example.com/cleanup", |event: Event, _: &Context| match event {
///         Event::Apply(_) => Ok::<_, Error>(Action::await_change()),
///         Event::Cleanup(_) => Ok(Action::await_change()),
///     })
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The object is not being deleted, and has the finalizer.
    Apply(&'a Object<'a>),
    /// The deletion of the object was requested, and the object still has the finalizer.
    Cleanup(&'a Object<'a>),
}

impl<'a> Event<'a> {
    /// The object.
    pub fn object(&self) -> &'a Object<'a> {
        match self {
            Event::Apply(o) | Event::Cleanup(o) => o,
        }
    }
}

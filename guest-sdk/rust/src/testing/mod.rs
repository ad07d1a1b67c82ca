//! Runs a reconciler in a plain `cargo test`: without WebAssembly, and without a
//! cluster. A [`Host`] stands in for wasmctl and for the API server behind it, and calls
//! the reconciler by the same messages. It is there with the feature `testing`:
//!
//! ```toml
//! [dev-dependencies]
//! wasmctl = { version = "0.1", features = ["testing"] }
//! ```
//!
//! ```
//! use wasmctl::{json, testing::Host, Action, Context, Error, Manifest, Object, ObjectRef, Reconciler, Watch};
//!
//! let manifest = Manifest { for_: Watch::new("example.com", "v1", "Greeting"), ..Manifest::default() };
//! let reconciler = Reconciler::new(manifest, |_: &Object, _: &Context| {
//!     Ok::<_, Error>(Action::await_change().status(&json!({"seen": true})))
//! });
//!
//! let host = Host::new();
//! host.add(&json!({
//!     "apiVersion": "example.com/v1", "kind": "Greeting",
//!     "metadata": {"name": "hello", "namespace": "default"},
//! }));
//! host.run(&reconciler);
//! let hello = ObjectRef::new("example.com/v1", "Greeting", "hello").within("default");
//! assert!(host.get(&hello).bool(&["status", "seen"]));
//! ```
//!
//! [`Host::reconcile`] makes one run of one object. [`Host::run`] makes all that a host
//! would make until nothing is left to do: it follows changes to the objects that they
//! concern, by `owns`, `watches`, mappers and filters, and fails a reconciler that never
//! rests. [`Host::edit`], `delete`, `add` and `remove` change the cluster between runs,
//! and [`Host::advance`] moves the clock to the next requeue. A wrong use panics, as
//! asserts do.
//!
//! # What it does as wasmctl
//!
//! Attempts, error policy and what follows from each class of error; a panic as a trap;
//! the finalizer before the first run and after the cleanup; children, pruning and status
//! of a result, with their checks and in their order; the cache, with the kinds that are
//! watched, their namespaces and label selectors, and nothing else; events; settings; and
//! capabilities: a call that the manifest does not allow is denied. Objects are run one at
//! a time, predicates hide nothing, and the cache never lags behind.
//!
//! # What it does as the API server
//!
//! Names and namespaces; uid, resourceVersion, generation and creationTimestamp; a write
//! that changes nothing is none; conflicts of resourceVersion, uid and preconditions; the
//! status as a subresource, which other writes leave alone; dry-run; finalizers and
//! deletionTimestamp; label selectors and pages of lists; merge patch and JSON patch; one
//! controller per object. `Host::run` also removes objects whose owners are gone.
//!
//! Server-side apply merges maps by key, and the lists ownerReferences, conditions,
//! containers, env, ports and volumes by theirs; every other list is one value. It knows
//! which manager applied which field: fields that a manager leaves out are removed, and
//! fields that another one applied are a conflict. Writers other than apply own nothing.
//!
//! # What it does not do
//!
//! It has no schemas: nothing is defaulted, checked or pruned, and every kind has a status
//! subresource and is in a namespace unless it is a known one or [`Host::cluster_scoped`]
//! was called. Admission, RBAC, other controllers, strategic patches and other
//! subresources are not there; a call that needs one of the last two says so. The plural of
//! a kind is guessed.

mod api;
mod apply;
mod cache;
mod declare;
mod drive;
mod fault;
mod functions;
mod host;
mod json;
mod patch;
mod rights;
mod rules;
mod run;
mod selector;
mod store;

pub use host::{Call, Host, Line};
pub use run::{Run, RunResult};

//! Runs a reconciler in a plain `cargo test`: without WebAssembly, and without a cluster.
//! A [`Host`] replaces wasmctl and the API server behind it, and calls the reconciler with
//! the same messages. It needs the feature `testing`:
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
//! [`Host::reconcile`] makes one run of one object. [`Host::run`] makes all runs that a
//! host would make until nothing is left to do. It maps changes to objects by `owns`,
//! `watches`, mappers and filters. It fails the test if the reconciler never rests.
//! [`Host::edit`], `delete`, `add` and `remove` change the cluster between runs, and
//! [`Host::advance`] moves the clock to the next requeue. Wrong use panics, as asserts do.
//!
//! # Behavior like wasmctl
//!
//! The host implements attempts, the error policy and the effect of each class of error; a
//! panic as a trap; and the finalizer before the first run and after the cleanup. It
//! implements children, pruning and status of a result, with their checks and in their
//! order; the cache with the watched kinds, their namespaces and label selectors, and
//! nothing else; events; settings; and capabilities. It denies a call that the manifest
//! does not allow.
//!
//! Objects run one at a time, predicates hide nothing, and the cache never lags behind.
//!
//! # Behavior like the API server
//!
//! The host implements names and namespaces; uid, resourceVersion, generation and
//! creationTimestamp; conflicts of resourceVersion, uid and preconditions; and the status
//! as a subresource, which other writes leave alone. It implements dry-run; finalizers and
//! deletionTimestamp; label selectors and pages of lists; merge patch and JSON patch; and
//! one controller per object. A write that changes nothing is not a write. `Host::run`
//! also removes objects whose owners are gone.
//!
//! Server-side apply merges maps by key, and the lists ownerReferences, conditions,
//! containers, env, ports and volumes by their keys. Every other list is one value. The
//! host records which manager applied which field. It removes fields that a manager leaves
//! out, and reports fields that another manager applied as a conflict. Writers other than
//! apply own nothing.
//!
//! # What the host does not do
//!
//! The host has no schemas: it defaults, checks and prunes nothing. Every kind has a
//! status subresource. A kind is namespaced unless it is a known cluster-scoped one or
//! [`Host::cluster_scoped`] was called. The host has no admission, RBAC, other
//! controllers, strategic patches or other subresources; a call that needs one of the last
//! two returns an error that says so. The host guesses the plural of a kind.

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

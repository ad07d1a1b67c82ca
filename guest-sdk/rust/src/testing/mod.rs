// SPDX-License-Identifier: Apache-2.0
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
//! [`Host::reconcile`] runs the reconciler once, for one object. [`Host::run`] runs it as
//! often as a host would, until no work is left. It maps changes to objects by `owns`,
//! `watches`, mappers and filters. It fails the test if the reconciler never stops
//! changing objects. [`Host::admit`] and [`Host::convert`] call webhooks and conversions.
//! [`Host::edit`], `delete`, `add` and `remove` change the cluster
//! between runs, and [`Host::advance`] moves the clock to the next requeue. Incorrect use
//! panics, like a failed assertion.
//!
//! # Behavior like wasmctl
//!
//! The host implements attempts, the error policy and the effect of each class of error;
//! a panic as a trap; and the finalizer before the first run and after the cleanup. It
//! implements children, pruning and status of a result, with their checks and in their
//! order. Its cache has only the watched kinds, in their namespaces and with their label
//! selectors. It implements events, settings and capabilities, and denies a call that the
//! manifest does not allow.
//!
//! Objects run one at a time, predicates are ignored, and the cache is always up to date.
//!
//! # Behavior like the API server
//!
//! The host implements names and namespaces; uid, resourceVersion, generation and
//! creationTimestamp; conflicts of resourceVersion, uid and preconditions; and the status
//! as a subresource, which other writes do not change. It implements dry-run; finalizers
//! and deletionTimestamp; label selectors and pages of lists; merge patch and JSON patch;
//! and the rule that an object has at most one controller. A write without a change is
//! not stored. `Host::run` also removes objects whose owners are gone.
//!
//! Server-side apply merges maps by key, and the lists ownerReferences, conditions,
//! containers, env, ports and volumes by their keys. Every other list is one value. The
//! host records which manager applied which field. It removes fields that a manager no
//! longer applies, and reports a conflict for fields that another manager applied.
//! Writers other than apply own no fields.
//!
//! # Limitations
//!
//! The host has no schemas: it sets no defaults, and neither validates nor removes
//! fields. Every kind has a status subresource. A kind is namespaced unless it is a known
//! cluster-scoped one or [`Host::cluster_scoped`] was called. The host calls webhooks
//! only in `admit`. It has no RBAC, other controllers, strategic patches or other subresources; a call that needs
//! one of the last two returns an error that names it. The host guesses the plural of a
//! kind.

mod admit;
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

pub use admit::Admitted;
pub use host::{Call, Host, Line};
pub use run::{Run, RunResult};

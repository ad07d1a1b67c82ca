// SPDX-License-Identifier: Apache-2.0
//! The SDK for Kubernetes reconcilers that run as sandboxed WebAssembly modules in a
//! wasmctl host. This is a complete module:
//!
//! ```
//! use wasmctl::{json, Action, Capability, Context, Error, Manifest, Object, Reconciler, Watch};
//!
//! fn reconcile(obj: &Object, _: &Context) -> Result<Action, Error> {
//!     Ok(Action::apply(&json!({
//!         "apiVersion": "v1", "kind": "ConfigMap",
//!         "metadata": {"name": obj.name()},
//!         "data": {"text": obj.str(&["spec", "text"])},
//!     }))
//!     .force())
//! }
//!
//! fn reconciler() -> Reconciler {
//!     let manifest = Manifest {
//!         for_: Watch::new("example.com", "v1", "Greeting"),
//!         owns: vec![Watch::new("", "v1", "ConfigMap")],
//!         capabilities: vec![Capability::new("", "configmaps", &["create", "patch"])],
//!         ..Manifest::default()
//!     };
//!     Reconciler::new(manifest, reconcile)
//! }
//!
//! wasmctl::export!(reconciler);
//! ```
//!
//! It is a `cdylib`, built with
//!
//! ```text
//! cargo build --release --target wasm32-unknown-unknown
//! ```
//!
//! A reconciler has two styles. It can declare the desired children and status in its
//! result, as above, and the host applies them. Or it can make calls itself, with
//! [`Context::client`] or [`Api`]. A run reads its object in place: `obj.str(&["spec",
//! "text"])` decodes that field and nothing else. The host may discard the memory of a
//! module between any two runs. With the feature `testing`, the module `testing` runs a
//! reconciler in a plain `cargo test`, on a host and a cluster in memory.
//!
//! # Panics
//!
//! A panic ends its run as a trap, because wasm32 has no unwinding. The message and its
//! location go to the host first. The host logs them, puts them into the [`Failure`] for
//! the error policy, and discards the instance.
#![deny(missing_docs, unsafe_code)]
#![warn(rust_2018_idioms)]
// In a plain native build, no code calls a reconciler.
#![cfg_attr(not(any(target_arch = "wasm32", feature = "testing", test)), allow(dead_code))]

mod action;
mod admission;
mod api;
mod api_error;
mod builder;
mod cache;
mod client;
mod condition;
mod context;
mod conversion;
mod error;
mod event;
mod export_macro;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
#[path = "export.rs"]
pub mod exports;
mod failure;
pub mod finalizer;
#[cfg(test)]
mod golden_edge_tests;
#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod golden_webhook_tests;
mod guest;
mod host;
#[cfg(target_arch = "wasm32")]
mod imports;
#[cfg(not(target_arch = "wasm32"))]
#[path = "imports_native.rs"]
mod imports;
mod input;
mod list;
mod log;
mod manifest;
#[cfg(any(target_arch = "wasm32", test))]
mod memory;
mod meta;
mod object;
mod opaque;
mod owner;
mod params;
mod plural;
mod reconciler;
#[cfg(test)]
mod script;
#[cfg(all(feature = "testing", not(target_arch = "wasm32")))]
pub mod testing;
mod time;
mod value;
mod verdict;
mod watch;
mod webhook;
mod wire;

pub use action::Action;
pub use admission::{Admission, AdmissionTarget, Operation, User};
pub use api::{Api, Resource};
pub use api_error::{status, ApiError};
pub use builder::Builder;
pub use cache::Cache;
pub use client::{Client, Subresource};
pub use condition::{Condition, Conditions};
pub use context::{Budget, Context, Metric, Reason};
pub use conversion::Conversion;
pub use error::{Error, ErrorClass};
pub use event::{Event, EventObject, EventType};
pub use failure::{Failure, FailureKind};
pub use list::{Items, List, Pages};
pub use log::{Attr, Level, Logger};
pub use manifest::{Capability, Limits, Manifest};
pub use meta::{ObjectKey, ObjectMeta, ObjectRef};
pub use object::Object;
pub use opaque::OpaqueJson;
pub use owner::OwnerReference;
pub use params::{DeleteParams, GetParams, ListParams, Patch, PatchOp, PatchParams, PostParams, Preconditions};
pub use reconciler::Reconciler;
pub use time::Time;
pub use value::{Elements, Entries, Value};
pub use verdict::{Cause, Denial, Verdict};
pub use watch::{Filter, Mapper, Watch, WatchEvent, WatchEventType};
pub use webhook::{Webhook, WebhookRule};
pub use wire::{CodecError, Type};

/// The name of the controller that this instance runs; see abi/ABI.md, section 8. Only a
/// module with several controllers needs it. In a native build it is empty.
#[doc(hidden)]
pub fn controller() -> String {
    imports::controller()
}

// SPDX-License-Identifier: Apache-2.0
//! The controller and its helpers.

pub mod controller;
pub mod events;
pub mod finalizer;
pub mod reflector;
pub(crate) mod running;
pub mod watcher;

pub use controller::{Config, Controller};
pub use finalizer::finalizer;

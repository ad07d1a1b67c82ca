// SPDX-License-Identifier: Apache-2.0
//! The traits that most files need.

pub use crate::core::crd::CustomResourceExt as _;
pub use crate::core::{PartialObjectMetaExt as _, SelectorExt as _};
pub use crate::{Resource as _, ResourceExt as _};

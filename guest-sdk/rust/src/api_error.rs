// SPDX-License-Identifier: Apache-2.0
use std::fmt;

use crate::host::Op;
use crate::manifest::Capability;
use crate::meta::ObjectRef;
use crate::value::Value;
use crate::wire::CodecError;

/// Statuses of the host (abi/ABI.md, section 7). A positive status is the API
/// server's HTTP code.
pub mod status {
    /// The host does not have this operation.
    pub const UNSUPPORTED: i32 = -1;
    /// The module lacks a capability, see `ApiError::rule`.
    pub const DENIED: i32 = -2;
    /// The host cannot parse the request.
    pub const BAD_REQUEST: i32 = -3;
    /// Request or answer is over a limit.
    pub const TOO_LARGE: i32 = -4;
    /// The call has used up its budget.
    pub const BUDGET: i32 = -5;
    /// The host is stopping, or the run's time is over.
    pub const CANCELLED: i32 = -6;
    /// The API server cannot be reached; try again later.
    pub const UNAVAILABLE: i32 = -7;
    /// The cache is not filled yet.
    pub const NOT_SYNCED: i32 = -8;
    /// The host has a bug or an internal failure.
    pub const INTERNAL: i32 = -9;
}

/// A failed call to the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiError {
    /// The operation, for example `api_get`.
    pub op: &'static str,
    /// The object, as far as the call named it. It may be incomplete.
    pub object: Box<ObjectRef>,
    /// The API server's HTTP code, or a negative code of [`status`].
    pub status: i32,
    /// A CamelCase word for programs, for example `NotFound`; may be empty.
    pub reason: String,
    /// For people.
    pub message: String,
    /// Set if the status is `DENIED`: the capability that is missing in the module's
    /// manifest, or in the operator's grant.
    pub rule: Option<Box<Capability>>,
}

impl ApiError {
    /// Makes an error with that status, reason and message, for tests.
    pub fn new(status: i32, reason: impl Into<String>, message: impl Into<String>) -> Self {
        ApiError { status, reason: reason.into(), message: message.into(), ..ApiError::default() }
    }

    /// Reads the body of a failed answer: `{code, reason, message, rule?}` of the host,
    /// or a Status of meta/v1. The body may be empty or have fields that this SDK does
    /// not know.
    pub(crate) fn read(op: &Op, status: i32, body: &[u8]) -> Self {
        let v = Value::of(body);
        ApiError {
            op: op.name,
            rule: v.exists(&["rule"]).then(|| Box::new(Capability::read(v.at(&["rule"])))),
            ..ApiError::new(status, v.str(&["reason"]), v.str(&["message"]))
        }
    }

    /// The error of a request that cannot be encoded; no call was made.
    pub(crate) fn encode(op: &Op, object: &ObjectRef, e: &CodecError) -> Self {
        ApiError {
            op: op.name,
            object: Box::new(object.clone()),
            ..ApiError::new(status::BAD_REQUEST, "BadRequest", format!("encode: {e}"))
        }
    }

    /// Whether the object, or its kind, does not exist.
    pub fn is_not_found(&self) -> bool {
        self.status == 404
    }

    /// Whether another client wrote first: a resourceVersion or a precondition does not
    /// match, or another manager owns a field. It is false for `is_already_exists`.
    pub fn is_conflict(&self) -> bool {
        self.status == 409 && !self.is_already_exists()
    }

    /// Whether an object of that name already exists.
    pub fn is_already_exists(&self) -> bool {
        self.status == 409 && self.reason == "AlreadyExists"
    }

    /// Whether the API server refused the object as invalid.
    pub fn is_invalid(&self) -> bool {
        self.status == 422
    }

    /// Whether the API server's own rules (RBAC, admission) forbid the call. `is_denied`
    /// is the counterpart for the rules of the host.
    pub fn is_forbidden(&self) -> bool {
        self.status == 403
    }

    /// Whether the module lacks the capability for this call; `rule` is the missing
    /// capability.
    pub fn is_denied(&self) -> bool {
        self.status == status::DENIED
    }

    /// Whether the host does not have this operation.
    pub fn is_unsupported(&self) -> bool {
        self.status == status::UNSUPPORTED
    }

    /// Whether the API server cannot be reached now, or asks clients to wait.
    pub fn is_unavailable(&self) -> bool {
        matches!(self.status, status::UNAVAILABLE | 503 | 429)
    }

    /// Whether the host's cache is not filled yet. Retry the run soon.
    pub fn is_not_synced(&self) -> bool {
        self.status == status::NOT_SYNCED
    }

    /// Whether the API server no longer has the requested version of the list. This
    /// happens to the later pages of a list that takes minutes: start the list again.
    pub fn is_gone(&self) -> bool {
        self.status == 410
    }

    /// Whether the host is stopping or the run's time is over.
    pub fn is_cancelled(&self) -> bool {
        self.status == status::CANCELLED
    }
}

/// `api_get ConfigMap[default/a]: NotFound: ...`.
impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.op)?;
        if !self.object.kind.is_empty() {
            write!(f, " {}", self.object)?;
        }
        if self.reason.is_empty() {
            write!(f, ": status {}", self.status)?;
        } else {
            write!(f, ": {}", self.reason)?;
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for ApiError {}

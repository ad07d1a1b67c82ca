// SPDX-License-Identifier: Apache-2.0
//! Errors of calls.

use kube_core::response::{Status, StatusSummary};
use wasmctl::{status, ApiError, CodecError};

/// The reason why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The API server or the host refused the call. A refusal of the host has a code of
    /// an API server, too: 403 if the module lacks the capability, 429 if the run has
    /// used up its calls, 503 if the API server cannot be reached.
    #[error("{0}")]
    Api(#[source] Box<Status>),

    /// An object cannot be encoded, or an answer does not fit the type.
    #[error("Error deserializing response: {0}")]
    SerdeError(#[source] CodecError),

    /// A call outside of a run.
    #[error("client: there is no run: {0}")]
    NoRun(&'static str),
}

/// A result of a call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<CodecError> for Error {
    fn from(e: CodecError) -> Self {
        Error::SerdeError(e)
    }
}

impl From<ApiError> for Error {
    fn from(e: ApiError) -> Self {
        let code = code(e.status);
        let reason = if e.is_denied() { "Forbidden" } else { e.reason.as_str() };
        let message = match &e.rule {
            // A status of the API server has no field for the next step.
            Some(rule) => format!("{e}; Controller::capability: {}", text(rule)),
            None => e.to_string(),
        };
        let status = Status { status: Some(StatusSummary::Failure), ..Status::failure(&message, reason) };
        Error::Api(status.with_code(code).boxed())
    }
}

/// The closest code of an API server.
fn code(host: i32) -> u16 {
    match host {
        status::DENIED => 403,
        status::BAD_REQUEST => 400,
        status::TOO_LARGE => 413,
        status::BUDGET => 429,
        status::UNSUPPORTED => 501,
        status::CANCELLED | status::UNAVAILABLE | status::NOT_SYNCED => 503,
        code => u16::try_from(code).unwrap_or(500),
    }
}

/// The Rust code of a capability.
fn text(rule: &wasmctl::Capability) -> String {
    let new = format!("Capability::new({:?}, {:?}, &{:?})", rule.group, rule.resource, rule.verbs);
    if rule.subresources.is_empty() {
        return new;
    }
    format!("{new} with subresources {:?}", rule.subresources)
}

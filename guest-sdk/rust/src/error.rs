// SPDX-License-Identifier: Apache-2.0
use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use serde::ser::Serialize;

use crate::action::{encode, millis};
use crate::api_error::ApiError;
use crate::wire::{CodecError, Message};

/// How the host retries a run that returned an error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorClass {
    /// Retry after the back-off; the default.
    Transient,
    /// Wait for a change.
    Permanent,
    /// Another client wrote first; the class of a 409 from the client.
    Conflict,
    /// A class that is newer than this SDK; treated as `Transient`.
    Other(String),
}

impl ErrorClass {
    /// The name in the ABI.
    pub fn as_str(&self) -> &str {
        match self {
            ErrorClass::Other(word) => word,
            ErrorClass::Transient => "transient",
            ErrorClass::Permanent => "permanent",
            ErrorClass::Conflict => "conflict",
        }
    }

    pub(crate) fn read(s: &str) -> Self {
        match s {
            "transient" => ErrorClass::Transient,
            "permanent" => ErrorClass::Permanent,
            "conflict" => ErrorClass::Conflict,
            _ => ErrorClass::Other(s.to_owned()),
        }
    }
}

/// The error of a run: any error, with additional details for the host.
///
/// The operator `?` converts every type that implements `std::error::Error`, for example
/// your own enum. If the error wraps an [`ApiError`], it takes over the reason of that
/// error, and a 409 makes it a conflict.
///
/// ```
/// # use wasmctl::{Action, Context, Error, Object, ObjectRef};
/// fn reconcile(obj: &Object, ctx: &Context) -> Result<Action, Error> {
///     let port: u16 = obj.str(&["spec", "port"]).parse()?;
///     match ctx.client().get(&ObjectRef::new("v1", "Secret", "web").within(obj.namespace())) {
///         Err(e) if e.is_not_found() => Err(Error::msg("the Secret is missing").with_reason("NoSecret")),
///         other => Ok(other.map(|_| Action::await_change())?),
///     }
/// }
/// ```
///
/// It does not implement `std::error::Error` itself, which makes the conversion from all
/// types that do possible.
pub struct Error(Box<Inner>);

struct Inner {
    cause: Cause,
    context: String,
    class: Option<ErrorClass>,
    reason: String,
    after: Duration,
    status: Option<Result<Vec<u8>, CodecError>>,
}

enum Cause {
    Message(String),
    Error(Box<dyn StdError>),
}

impl<E: StdError + 'static> From<E> for Error {
    fn from(e: E) -> Self {
        Error::of(Cause::Error(Box::new(e)))
    }
}

impl Error {
    fn of(cause: Cause) -> Self {
        Error(Box::new(Inner {
            cause,
            context: String::new(),
            class: None,
            reason: String::new(),
            after: Duration::ZERO,
            status: None,
        }))
    }

    /// Makes an error with a text.
    pub fn msg(text: impl Into<String>) -> Self {
        Error::of(Cause::Message(text.into()))
    }

    /// Adds the failed operation to the text: `what: error`.
    #[must_use]
    pub fn context(mut self, what: impl fmt::Display) -> Self {
        self.0.context = format!("{what}: {}", self.0.context);
        self
    }

    /// Marks the error as one that a retry does not fix. The object waits for a change,
    /// whatever the error policy returns.
    #[must_use]
    pub fn permanent(mut self) -> Self {
        self.0.class = Some(ErrorClass::Permanent);
        self
    }

    /// Marks the error as a conflict: another client wrote first. The host retries at
    /// once, a few times.
    #[must_use]
    pub fn conflict(mut self) -> Self {
        self.0.class = Some(ErrorClass::Conflict);
        self
    }

    /// Asks for a retry after `d`, unless an error policy decides otherwise.
    #[must_use]
    pub fn retry_after(mut self, d: Duration) -> Self {
        self.0.after = d;
        self
    }

    /// Adds a CamelCase reason to the error, which appears in logs, metrics and
    /// [`Failure::reason`](crate::Failure).
    #[must_use]
    pub fn with_reason(mut self, reason: impl Into<String>) -> Self {
        self.0.reason = reason.into();
        self
    }

    /// Also declares the status of the object, so that a failed run can report its
    /// reason.
    #[must_use]
    pub fn with_status<T: Serialize + ?Sized>(mut self, status: &T) -> Self {
        self.0.status = Some(encode(status));
        self
    }

    /// The failed call to the host that caused this error, if any.
    pub fn api(&self) -> Option<&ApiError> {
        self.downcast_ref()
    }

    /// The first error of type `T` in the chain of this error.
    pub fn downcast_ref<T: StdError + 'static>(&self) -> Option<&T> {
        let mut cause: Option<&(dyn StdError + 'static)> = match &self.0.cause {
            Cause::Message(_) => None,
            Cause::Error(e) => Some(e.as_ref()),
        };
        while let Some(e) = cause {
            if let Some(found) = e.downcast_ref() {
                return Some(found);
            }
            cause = e.source();
        }
        None
    }

    /// The class of the error, which determines how it is retried.
    pub fn class(&self) -> ErrorClass {
        self.0.class.clone().unwrap_or_else(|| match self.api() {
            Some(e) if e.status == 409 => ErrorClass::Conflict,
            _ => ErrorClass::Transient,
        })
    }

    /// The reason of the error; may be empty.
    pub fn reason(&self) -> &str {
        match self.api() {
            Some(e) if self.0.reason.is_empty() => &e.reason,
            _ => &self.0.reason,
        }
    }

    /// Whether the object, or its kind, does not exist; see [`ApiError::is_not_found`].
    /// For other checks use [`api`](Self::api).
    pub fn is_not_found(&self) -> bool {
        self.api().map_or(false, ApiError::is_not_found)
    }

    /// Whether another client wrote first; see [`ApiError::is_conflict`].
    pub fn is_conflict(&self) -> bool {
        self.api().map_or(false, ApiError::is_conflict)
    }

    /// Whether the module lacks the capability for a call; see [`ApiError::is_denied`].
    pub fn is_denied(&self) -> bool {
        self.api().map_or(false, ApiError::is_denied)
    }

    /// Writes a Result with the error (abi/ABI.md, section 4).
    pub(crate) fn append(&self, dst: &mut Vec<u8>) {
        let mut text = self.to_string();
        let mut m = Message::new(dst);
        if let Some(Err(e)) = &self.0.status {
            text.push_str(&format!("; and result: status: encode: {e}"));
        }
        m.map("error", |e| {
            e.text("class", self.class().as_str());
            e.text("message", clip(&text));
            e.str("reason", clip(self.reason()));
            e.int("after_ms", millis(self.0.after));
        });
        if let Some(Ok(status)) = &self.0.status {
            m.key("status").extend_from_slice(status);
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.context)?;
        match &self.0.cause {
            Cause::Message(text) => f.write_str(text),
            Cause::Error(e) => e.fmt(f),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({self}; {:?}, {:?})", self.class(), self.reason())
    }
}

/// Bounds a text that goes into logs.
pub(crate) fn clip(s: &str) -> &str {
    const MOST: usize = 32 << 10; // bytes
    let mut end = s.len().min(MOST);
    while !s.is_char_boundary(end) {
        end -= 1;
    }
    &s[..end]
}

// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeMap;
use std::fmt;

use serde::ser::Serialize;

use crate::action::encode;
use crate::error::Error;
use crate::wire::{CodecError, Message};

/// One reason of a denial, as in the details of a Kubernetes Status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// A CamelCase word, for example `FieldValueRequired`; may be empty.
    pub type_: String,
    /// The path of the field, for example `spec.replicas`; may be empty.
    pub field: String,
    /// For people.
    pub message: String,
}

impl Cause {
    /// The cause that a field has an invalid value.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Cause { type_: "FieldValueInvalid".into(), field: field.into(), message: message.into() }
    }

    fn write(&self, m: &mut Message<'_>) {
        m.str("type", &self.type_);
        m.str("field", &self.field);
        m.text("message", &self.message);
    }
}

/// `spec.replicas: must not be negative`.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)
    }
}

/// A refusal, with the fields of a Kubernetes Status. It converts into a [`Verdict`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Denial {
    /// The HTTP status, 400 to 599; 0 means 403.
    pub code: u16,
    /// A CamelCase word, for example `Invalid`; may be empty.
    pub reason: String,
    /// For people.
    pub message: String,
    /// The single reasons.
    pub causes: Vec<Cause>,
}

/// The answer of a [`Webhook`](crate::Webhook).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    denied: Option<Denial>,
    change: Option<Result<Change, CodecError>>,
    warnings: Vec<String>,
    audit: BTreeMap<String, String>,
}

/// The msgpack of a changed object, and of the object of the request as the guest has
/// read it. An empty base is the object of the request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    pub(crate) object: Vec<u8>,
    pub(crate) base: Vec<u8>,
}

impl Verdict {
    /// Allows the request.
    pub fn allow() -> Self {
        Verdict::default()
    }

    /// Denies the request with the status 403.
    pub fn deny(message: impl Into<String>) -> Self {
        Denial { message: message.into(), ..Denial::default() }.into()
    }

    /// Denies the request with the status 422 and the reason `Invalid`, as the API server
    /// does for an object that does not fit its schema. Without causes, it allows the
    /// request.
    pub fn invalid(causes: impl IntoIterator<Item = Cause>) -> Self {
        let causes: Vec<_> = causes.into_iter().collect();
        let texts: Vec<_> = causes.iter().map(ToString::to_string).collect();
        let message = match &texts[..] {
            [] => return Verdict::allow(),
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        Denial { code: 422, reason: "Invalid".into(), message, causes }.into()
    }

    /// Allows the request with a changed object, which must be complete. Only
    /// [`Webhook::default`](crate::Webhook::default) may use it. See also
    /// [`Webhook::default_typed`](crate::Webhook::default_typed).
    ///
    /// ```
    /// # use wasmctl::{Admission, Context, Error, Verdict};
    /// fn default(a: &Admission, _: &Context) -> Result<Verdict, Error> {
    ///     if a.object.exists(&["spec", "replicas"]) {
    ///         return Ok(Verdict::allow());
    ///     }
    ///     let mut object = a.object.clone();
    ///     object.set(&["spec", "replicas"], &1)?;
    ///     Ok(Verdict::defaulted(&object))
    /// }
    /// ```
    pub fn defaulted<T: Serialize + ?Sized>(object: &T) -> Self {
        Verdict::default().with_change(encode(object).map(|object| Change { object, base: Vec::new() }))
    }

    /// Like [`defaulted`](Self::defaulted), for an object that was read into a type and is
    /// written back. `base` is the object of the request as it was read: the host changes
    /// only the fields in which `object` differs from it, so fields that the type lacks
    /// stay.
    pub fn defaulted_from<T: Serialize + ?Sized>(base: &T, object: &T) -> Self {
        let change = encode(base).and_then(|base| Ok(Change { object: encode(object)?, base }));
        Verdict::default().with_change(change)
    }

    pub(crate) fn with_change(mut self, change: Result<Change, CodecError>) -> Self {
        self.change = Some(change);
        self
    }

    /// Adds a warning for the client. The host receives the first 50.
    #[must_use]
    pub fn warn(mut self, text: impl Into<String>) -> Self {
        self.warnings.push(text.into());
        self
    }

    /// Adds an annotation to the audit log, at most 20.
    #[must_use]
    pub fn audit(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.audit.insert(key.into(), value.into());
        self
    }

    /// The denial, unless the request is allowed.
    pub fn denied(&self) -> Option<&Denial> {
        self.denied.as_ref()
    }
}

impl From<Denial> for Verdict {
    fn from(denial: Denial) -> Self {
        Verdict { denied: Some(denial), ..Verdict::default() }
    }
}

/// Bounds of a verdict (abi/ABI.md, section 4). Further entries are left out, because a
/// verdict that the host refuses would leave the decision to the failure policy.
const MAX_WARNINGS: usize = 50;
const MAX_CAUSES: usize = 200;
const MAX_AUDIT: usize = 20;

/// Writes a Verdict (abi/ABI.md, section 4).
pub(crate) fn append_verdict(dst: &mut Vec<u8>, verdict: Result<Verdict, Error>) {
    let verdict = match verdict {
        Ok(verdict) => verdict,
        Err(e) => return e.append(dst),
    };
    if let Some(Err(e)) = &verdict.change {
        return Error::msg(format!("verdict: object: encode: {e}")).with_reason("BadResult").append(dst);
    }
    let mut m = Message::new(dst);
    if let Some(d) = &verdict.denied {
        m.map("denied", |m| {
            m.text("message", &d.message);
            m.str("reason", &d.reason);
            m.int("code", i64::from(d.code));
            m.maps("causes", &d.causes[..d.causes.len().min(MAX_CAUSES)], Cause::write);
        });
    }
    if let Some(Ok(change)) = &verdict.change {
        m.key("object").extend_from_slice(&change.object);
        if !change.base.is_empty() {
            m.key("base").extend_from_slice(&change.base);
        }
    }
    m.strs("warnings", &verdict.warnings[..verdict.warnings.len().min(MAX_WARNINGS)]);
    if !verdict.audit.is_empty() {
        m.map("audit", |m| verdict.audit.iter().take(MAX_AUDIT).for_each(|(k, v)| m.text(k, v)));
    }
}

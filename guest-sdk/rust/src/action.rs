// SPDX-License-Identifier: Apache-2.0
use std::fmt;
use std::time::Duration;

use serde::ser::Serialize;

use crate::error::Error;
use crate::wire::{self, CodecError, Message};

/// The result of a run: whether to run again, and the desired children and status.
///
/// A run that declares its result makes no calls, so you can test, compare and repeat it
/// as a function of its object. The host applies the children in their order by
/// server-side apply, and makes the object their controller. It deletes children that are
/// no longer listed if [`prune`](Self::prune) asks for it, and applies the status last.
/// The host checks all children before it applies the first.
#[derive(Clone, Debug, Default)]
pub struct Action {
    requeue: Option<Duration>,
    declared: Option<Box<Declared>>,
}

/// The desired state in an action.
#[derive(Clone, Debug, Default)]
struct Declared {
    /// Complete objects in msgpack, one after the other.
    children: Vec<u8>,
    n: usize,
    prune: bool,
    force: bool,
    status: Option<Vec<u8>>,
    /// The first value that cannot be encoded, with its name.
    mistake: Option<(&'static str, CodecError)>,
}

impl Action {
    /// Waits until the object, or an object that it owns, changes.
    pub fn await_change() -> Self {
        Action::default()
    }

    /// Asks for another run after the given time, counted from the end of this run. If
    /// the time is zero, the run follows at once. An earlier change replaces the request.
    /// The time is rounded up to milliseconds.
    pub fn requeue(after: Duration) -> Self {
        Action::default().and_requeue(after)
    }

    /// Declares a child of the object: a complete object, as for
    /// [`Client::apply`](crate::Client::apply). A child without a namespace gets the
    /// namespace of the object.
    ///
    /// ```
    /// # fn reconcile(obj: &wasmctl::Object) -> Result<wasmctl::Action, wasmctl::Error> {
    /// Ok(wasmctl::Action::apply(&wasmctl::json!({
    ///     "apiVersion": "v1", "kind": "ConfigMap",
    ///     "metadata": {"name": obj.name()},
    ///     "data": {"text": obj.str(&["spec", "text"])},
    /// })).force())
    /// # }
    /// ```
    pub fn apply<T: Serialize + ?Sized>(child: &T) -> Self {
        Action::default().and_apply(child)
    }

    /// Also asks for another run; see [`requeue`](Self::requeue).
    #[must_use]
    pub fn and_requeue(mut self, after: Duration) -> Self {
        self.requeue = Some(Duration::from_millis(millis(after) as u64));
        self
    }

    /// Declares one more child; see [`apply`](Self::apply).
    #[must_use]
    pub fn and_apply<T: Serialize + ?Sized>(mut self, child: &T) -> Self {
        let d = self.declare();
        match wire::append(&mut d.children, child) {
            Ok(()) => d.n += 1,
            Err(e) => d.fail("result: apply", e),
        }
        self
    }

    /// Deletes the objects that the object controls and that this action does not list,
    /// after the host has applied the children. It deletes only kinds of
    /// [`Manifest::owns`](crate::Manifest). Without children it deletes all of them.
    #[must_use]
    pub fn prune(mut self) -> Self {
        self.declare().prune = true;
        self
    }

    /// Takes over fields of the children and of the status from other field managers. A
    /// controller usually wants that for the fields that it owns. Without it, a field of
    /// another manager is a conflict.
    #[must_use]
    pub fn force(mut self) -> Self {
        self.declare().force = true;
        self
    }

    /// Declares the status of the object. The host applies it last. A failed run declares
    /// its status with [`Error::with_status`].
    #[must_use]
    pub fn status<T: Serialize + ?Sized>(mut self, status: &T) -> Self {
        let d = self.declare();
        match encode(status) {
            Ok(bytes) => d.status = Some(bytes),
            Err(e) => d.fail("result: status", e),
        }
        self
    }

    /// The time until the next run, if one is scheduled without a change.
    pub fn requeued(&self) -> Option<Duration> {
        self.requeue
    }

    /// Whether the action declares children or a status.
    pub(crate) fn declares(&self) -> bool {
        self.declared.is_some()
    }

    fn declare(&mut self) -> &mut Declared {
        self.declared.get_or_insert_with(Box::default)
    }

    fn write(&self, m: &mut Message<'_>) {
        match self.requeue {
            None => m.text("action", "await"),
            Some(after) => {
                m.text("action", "requeue");
                wire::append_int(m.key("after_ms"), millis(after));
            }
        }
        let d = match &self.declared {
            None => return,
            Some(d) => d,
        };
        if d.n > 0 {
            let dst = m.key("apply");
            wire::append_array(dst, d.n);
            dst.extend_from_slice(&d.children);
        }
        m.bool("prune", d.prune);
        m.bool("force", d.force);
        if let Some(status) = &d.status {
            m.key("status").extend_from_slice(status);
        }
    }
}

impl Declared {
    /// Records the first mistake.
    fn fail(&mut self, what: &'static str, e: CodecError) {
        self.mistake.get_or_insert((what, e));
    }
}

pub(crate) fn encode<T: Serialize + ?Sized>(v: &T) -> Result<Vec<u8>, CodecError> {
    let mut bytes = Vec::new();
    wire::append(&mut bytes, v)?;
    Ok(bytes)
}

/// Actions are equal if they request the same run and declare the same bytes.
impl PartialEq for Action {
    fn eq(&self, other: &Self) -> bool {
        let bytes = |a: &Action| {
            let mut dst = Vec::new();
            a.write(&mut Message::new(&mut dst));
            dst
        };
        bytes(self) == bytes(other)
    }
}

/// `await change` or `requeue after 5s`.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.requeue {
            None => f.write_str("await change"),
            Some(after) => write!(f, "requeue after {after:?}"),
        }
    }
}

/// Rounds up, so that a short wait does not become 0.
pub(crate) fn millis(d: Duration) -> i64 {
    let ms = d.as_nanos() / 1_000_000 + u128::from(d.as_nanos() % 1_000_000 != 0);
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// Writes a Result (abi/ABI.md, section 4). The run fails if the result cannot be
/// encoded.
pub(crate) fn append_result(dst: &mut Vec<u8>, result: Result<Action, Error>) {
    match result {
        Err(e) => e.append(dst),
        Ok(action) => match action.declared.as_ref().and_then(|d| d.mistake.as_ref()) {
            Some((what, e)) => Error::msg(format!("{what}: encode: {e}")).with_reason("BadResult").append(dst),
            None => action.write(&mut Message::new(dst)),
        },
    }
}

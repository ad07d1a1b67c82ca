// SPDX-License-Identifier: Apache-2.0
use crate::value::Value;
use crate::wire::{self, Type};

/// A decoded input of an entry function. Only the top level is decoded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Input<'a> {
    /// The message, for the fields of an Admission and a Conversion.
    pub(crate) message: Value<'a>,
    pub(crate) id: &'a [u8],
    pub(crate) controller: &'a [u8],
    pub(crate) reason: &'a [u8],
    pub(crate) reasons: &'a [u8],
    pub(crate) key: &'a [u8],
    pub(crate) object: &'a [u8],
    pub(crate) caps: &'a [u8],
    /// Field of a Failure.
    pub(crate) failure: &'a [u8],
    pub(crate) failure_kind: &'a [u8],
    /// Fields of an Event.
    pub(crate) watch: &'a [u8],
    pub(crate) event_type: &'a [u8],
    pub(crate) old: &'a [u8],
    pub(crate) new: &'a [u8],
    /// Field of Settings.
    pub(crate) config: &'a [u8],

    pub(crate) attempt: i64,
    pub(crate) reasons_dropped: i64,
    pub(crate) config_gen: i64,
    pub(crate) deadline_ms: i64,
    pub(crate) first_failed_ms: i64,
    pub(crate) stale: bool,
    pub(crate) dry_run: bool,
}

impl<'a> Input<'a> {
    /// Reads a message; `None` if it is not a map. It does not scan the object, which the
    /// host writes last.
    pub(crate) fn parse(msg: &'a [u8]) -> Option<Self> {
        let mut input = Input { message: Value::of(msg), ..Input::default() };
        let mut walk = wire::walk(msg);
        for (key, value) in &mut walk {
            input.take(key, value);
        }
        (wire::type_of(msg) == Type::Map && !walk.bad()).then_some(input)
    }

    fn take(&mut self, key: &[u8], value: &'a [u8]) {
        let v = Value::of(value);
        match key {
            b"id" => self.id = value,
            b"controller" => self.controller = value,
            b"reason" => self.reason = value,
            b"reasons" => self.reasons = value,
            b"reasons_dropped" => self.reasons_dropped = v.int(&[]),
            b"key" => self.key = value,
            b"object" => self.object = value,
            b"caps" => self.caps = value,
            b"error" => self.failure = value,
            b"kind" => self.failure_kind = value,
            b"watch" => self.watch = value,
            b"type" => self.event_type = value,
            b"old" => self.old = value,
            b"new" => self.new = value,
            b"config" => self.config = value,
            b"attempt" => self.attempt = v.int(&[]),
            b"config_gen" => self.config_gen = v.int(&[]),
            b"deadline_ms" => self.deadline_ms = v.int(&[]),
            b"first_failed_ms" => self.first_failed_ms = v.int(&[]),
            b"stale" => self.stale = v.bool(&[]),
            b"dry_run" => self.dry_run = v.bool(&[]),
            _ => {}
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
use std::time::Duration;

use crate::error::ErrorClass;
use crate::input::Input;
use crate::time::Time;
use crate::value::Value;

/// The way in which a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// The run returned an error.
    Error,
    /// The run panicked or exited.
    Trap,
    /// The run exceeded its time limit.
    Timeout,
    /// The run exceeded its memory limit.
    Memory,
    /// The host cannot decode the result of the run.
    Output,
    /// A kind that is newer than this SDK.
    Other(String),
}

impl FailureKind {
    pub(crate) fn read(s: &str) -> Self {
        match s {
            "error" => FailureKind::Error,
            "trap" => FailureKind::Trap,
            "timeout" => FailureKind::Timeout,
            "memory" => FailureKind::Memory,
            "output" => FailureKind::Output,
            _ => FailureKind::Other(s.to_owned()),
        }
    }

    /// The name in the ABI.
    pub fn as_str(&self) -> &str {
        match self {
            FailureKind::Error => "error",
            FailureKind::Trap => "trap",
            FailureKind::Timeout => "timeout",
            FailureKind::Memory => "memory",
            FailureKind::Output => "output",
            FailureKind::Other(word) => word,
        }
    }
}

/// Describes a failed run to an error policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The way in which the run failed.
    pub kind: FailureKind,
    /// The class of the error, which determines how it is retried.
    pub class: ErrorClass,
    /// The message of the error that the run returned, or of the host.
    pub message: String,
    /// The reason of the error; may be empty.
    pub reason: String,
    /// The time given to [`Error::retry_after`](crate::Error::retry_after), or zero.
    pub after: Duration,
    /// The number of consecutive failed runs, from 1.
    pub attempt: u32,
    /// The end of the first of these failed runs.
    pub first_failed: Time,
}

impl Failure {
    pub(crate) fn read(input: &Input<'_>) -> Self {
        let e = Value::of(input.failure);
        Failure {
            kind: FailureKind::read(Value::of(input.failure_kind).str(&[])),
            class: ErrorClass::read(e.str(&["class"])),
            message: e.str(&["message"]).to_owned(),
            reason: e.str(&["reason"]).to_owned(),
            after: Duration::from_millis(u64::try_from(e.int(&["after_ms"])).unwrap_or(0)),
            attempt: u32::try_from(input.attempt).unwrap_or(0),
            first_failed: Time::from_unix_ms(input.first_failed_ms),
        }
    }
}

use std::time::Duration;

use crate::error::ErrorClass;
use crate::input::Input;
use crate::time::Time;
use crate::value::Value;

/// How a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// It returned an error.
    Error,
    /// It panicked or exited.
    Trap,
    /// It took longer than it may.
    Timeout,
    /// It needed more memory than it may have.
    Memory,
    /// What it returned cannot be read.
    Output,
    /// In a way that is younger than this SDK.
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

    /// The word of the ABI.
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

/// A failed run, as an error policy receives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// How it failed.
    pub kind: FailureKind,
    /// How it is retried.
    pub class: ErrorClass,
    /// The message of the error that the run returned, or that of the host.
    pub message: String,
    /// The reason of the error; may be empty.
    pub reason: String,
    /// The time of [`Error::retry_after`](crate::Error::retry_after), or zero.
    pub after: Duration,
    /// Counts the failed runs in a row, from 1.
    pub attempt: u32,
    /// When the first of them ended.
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

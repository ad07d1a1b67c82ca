// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::api_error::{status, ApiError};
use crate::cache::Cache;
use crate::client::Client;
use crate::guest::Guest;
use crate::imports;
use crate::input::Input;
use crate::log::Logger;
use crate::meta::ObjectKey;
use crate::time::Time;
use crate::value::Value;
use crate::wire::Message;

/// One run of one object, or one call of a mapper, a filter or `configure`, which have no
/// object.
pub struct Context<'a> {
    pub(crate) guest: &'a Guest<'a>,
    pub(crate) input: Input<'a>,
}

/// The trigger of a run. For `Related`, `resource` (`deployments.apps`) and `object` name
/// the related object.
///
/// The types are `Listed`, `ObjectUpdated`, `ObjectDeleted`, `Related`, `Requeue`,
/// `Retry`, `ModuleSwapped`, `Triggered`, `Resync`, `ConfigChanged`; a host may send
/// others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reason<'a> {
    /// The type of the trigger.
    pub type_: &'a str,
    /// The resource of a related object, or "".
    pub resource: &'a str,
    /// The name of a related object.
    pub object: ObjectKey,
}

impl<'a> Reason<'a> {
    fn read(v: Value<'a>) -> Self {
        Reason { type_: v.str(&["type"]), resource: v.str(&["resource"]), object: ObjectKey::read(v.at(&["ref"])) }
    }
}

/// In the form of the host's logs: `Related deployments.apps default/web`.
impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.type_)?;
        if !self.resource.is_empty() {
            write!(f, " {} {}", self.resource, self.object)?;
        }
        Ok(())
    }
}

/// The kind of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// Time until the run is interrupted, in milliseconds.
    Milliseconds,
    /// Operations of the client, the cache and other host functions.
    HostCalls,
    /// Work, about one unit for each instruction.
    Fuel,
    /// A kind that is newer than this SDK, by its number.
    Other(i32),
}

impl Budget {
    fn number(self) -> i32 {
        match self {
            Budget::Milliseconds => 0,
            Budget::HostCalls => 1,
            Budget::Fuel => 2,
            Budget::Other(n) => n,
        }
    }
}

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// The value is added.
    Counter = 0,
    /// The value replaces the previous value.
    Gauge = 1,
}

impl<'a> Context<'a> {
    pub(crate) fn new(guest: &'a Guest<'a>, input: Input<'a>) -> Self {
        Context { guest, input }
    }

    /// The run's unique id, which also appears in the host's logs.
    pub fn id(&self) -> &'a str {
        Value::of(self.input.id).str(&[])
    }

    /// The controller's name. It is empty in the error policy.
    pub fn controller(&self) -> &'a str {
        Value::of(self.input.controller).str(&[])
    }

    /// The name of the object that is reconciled.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::read(Value::of(self.input.key))
    }

    /// The first trigger of the run.
    ///
    /// It is for people. A reconciler must not base decisions on it, because triggers are
    /// merged, and get lost if the host stops. It is empty in the error policy.
    pub fn reason(&self) -> Reason<'a> {
        Reason::read(Value::of(self.input.reason))
    }

    /// The triggers of the run in their order, and the number of further triggers that
    /// the host did not record.
    pub fn reasons(&self) -> (Vec<Reason<'a>>, u64) {
        let first = Some(self.reason()).filter(|r| !r.type_.is_empty());
        let rest = Value::of(self.input.reasons).elements(&[]).map(Reason::read);
        (first.into_iter().chain(rest).collect(), u64::try_from(self.input.reasons_dropped).unwrap_or(0))
    }

    /// 1 for the first run, and one more after each failed run of this object. In the
    /// error policy it is the attempt of the failed run.
    pub fn attempt(&self) -> u32 {
        u32::try_from(self.input.attempt).unwrap_or(0)
    }

    /// The time at which the host interrupts the run, if the run has a time limit.
    pub fn deadline(&self) -> Option<Time> {
        Some(Time::from_unix_ms(self.input.deadline_ms)).filter(|t| t.unix_ms() != 0)
    }

    /// Whether this is a dry run, in which the host carries out no writes.
    pub fn dry_run(&self) -> bool {
        self.input.dry_run
    }

    /// Whether the host's cache did not reach the writes of this object's previous run in
    /// time. The object may then be older than those writes.
    pub fn stale(&self) -> bool {
        self.input.stale
    }

    /// The number of the current settings: 1 at first, and one more after each change.
    pub fn config_generation(&self) -> i64 {
        self.input.config_gen
    }

    /// Whether the host has an optional ability, for example `cache_get`.
    pub fn host_has(&self, capability: &str) -> bool {
        Value::of(self.input.caps).elements(&[]).any(|c| c.as_str() == Some(capability))
    }

    /// Whether the host is stopping. If so, finish soon, or return a requeue.
    pub fn cancelled(&self) -> bool {
        self.guest.host.cancelled()
    }

    /// The host's time, in milliseconds. Prefer it to other clocks: tests can set it, and
    /// it works on every target. The standard library has no clock on
    /// wasm32-unknown-unknown.
    pub fn now(&self) -> Time {
        Time::from_unix_ms(self.guest.host.now_ms())
    }

    /// A clock that never goes back. Use it to measure durations.
    pub fn monotonic(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.guest.host.mono_ns()).unwrap_or(0))
    }

    /// Fills `dst` with random bytes.
    ///
    /// # Errors
    ///
    /// A status of the host.
    pub fn random(&self, dst: &mut [u8]) -> Result<(), ApiError> {
        answered("random", if self.guest.host.random(dst) { 0 } else { status::INTERNAL })
    }

    /// Adds to a counter, or sets a gauge, of the module. wasmctl serves it at
    /// `/metrics`: a counter `"greetings"` appears as `wasmctl_custom_greetings_total`.
    /// The host adds the controller as the only label. A name consists of letters, digits
    /// and `_`. The number of names is limited: do not build names from user input.
    ///
    /// # Errors
    ///
    /// A status of the host. A lost metric seldom justifies a failed run: ignore the
    /// error, or log it.
    pub fn metric(&self, kind: Metric, name: &str, value: f64) -> Result<(), ApiError> {
        answered("metric", self.guest.host.metric(kind as i32, name, value))
    }

    /// The remaining budget of a kind for this run; `None` if the kind has no known limit.
    pub fn budget(&self, kind: Budget) -> Option<u64> {
        u64::try_from(self.guest.host.budget(kind.number())).ok()
    }

    /// The client of the Kubernetes API.
    pub fn client(&self) -> Client<'_> {
        Client::new(self.guest)
    }

    /// The host's copies of the watched objects.
    pub fn cache(&self) -> Cache<'_> {
        Cache::new(self.guest)
    }

    /// The logger. The host adds the controller, the object and the run's id to
    /// each line.
    pub fn log(&self) -> Logger<'_> {
        Logger::new(self.guest)
    }

    /// A setting: its current value, otherwise the default in
    /// [`Manifest::config`](crate::Manifest), otherwise "". Settings can change while the
    /// module is loaded, so read them in each run.
    ///
    /// # Errors
    ///
    /// A status of the host.
    pub fn config(&self, key: &str) -> Result<String, ApiError> {
        self.config_get(key, |v| v.str(&[]).to_owned())
    }

    /// All settings.
    ///
    /// # Errors
    ///
    /// A status of the host.
    pub fn all_config(&self) -> Result<BTreeMap<String, String>, ApiError> {
        self.config_get("", |v| v.string_map(&[]))
    }

    fn config_get<T>(&self, key: &str, read: impl FnOnce(Value<'_>) -> T) -> Result<T, ApiError> {
        {
            let mut request = self.guest.request.borrow_mut();
            request.clear();
            Message::new(&mut request).str("key", key);
        }
        self.guest.perform(&imports::CONFIG_GET, |body| read(Value::of(body)))
    }
}

/// The result of a host function that answers only a status.
fn answered(op: &'static str, code: i32) -> Result<(), ApiError> {
    match code {
        0 => Ok(()),
        status::UNSUPPORTED => Err(ApiError { op, ..ApiError::new(code, "Unsupported", "") }),
        _ => Err(ApiError { op, ..ApiError::new(code, "", "") }),
    }
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context({} of {})", self.id(), self.key())
    }
}

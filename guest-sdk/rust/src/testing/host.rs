// SPDX-License-Identifier: Apache-2.0
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use serde::Serialize;

use super::json::{map, Json};
use super::rules::Rules;
use super::run::Series;
use super::store::{Id, Store};
use crate::api_error::ApiError;
use crate::event::{Event, EventObject};
use crate::guest::Entry;
use crate::log::Level;
use crate::meta::ObjectRef;
use crate::object::Object;
use crate::time::Time;

/// Simulates a host and a cluster in memory. Create one for each test.
pub struct Host {
    pub(super) state: RefCell<State>,
}

/// A call of an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The operation, for example `api_apply`.
    pub op: String,
    /// The object of the call.
    pub object: ObjectRef,
    /// The subresource, or "".
    pub subresource: String,
    /// 0, an HTTP code or a negative status of the host.
    pub status: i32,
    /// Whether the call changed the cluster.
    pub changed: bool,
}

/// A line of the log.
#[derive(Clone, Debug)]
pub struct Line {
    /// The number of its [`Level`].
    pub level: i32,
    /// The text.
    pub message: String,
    /// The attributes.
    pub attrs: Object<'static>,
}

/// The state of a [`Host`].
pub(super) struct State {
    pub(super) store: Store,
    pub(super) now: Time,
    pub(super) dry_run: bool,
    pub(super) cancelled: bool,
    pub(super) log_level: i32,
    pub(super) config: BTreeMap<String, String>,
    pub(super) config_gen: i64,
    pub(super) calls: Vec<Call>,
    pub(super) lines: Vec<Line>,
    pub(super) events: Vec<Event>,
    pub(super) metrics: BTreeMap<String, f64>,
    pub(super) faults: BTreeMap<String, VecDeque<ApiError>>,
    pub(super) failed: BTreeMap<ObjectRef, Series>,
    /// Kinds whose objects the cache has not listed yet.
    pub(super) not_synced: BTreeSet<String>,
    /// Whether `run` has queued the initial objects.
    pub(super) listed: bool,
    /// The requeues that `run` waits for.
    pub(super) due: BTreeMap<ObjectRef, Time>,
    /// The rules from the manifest of the current run.
    pub(super) rules: Rules,
    /// The object of the current run.
    pub(super) running: Option<EventObject>,
    /// The current entry function; `None` for `filter`.
    pub(super) entered: Option<Entry>,
    /// The user of requests that webhooks judge, as in an Admission.
    pub(super) user: Json,
    /// The last answer.
    pub(super) held: Vec<u8>,
}

/// The initial time of the clock: the beginning of the year 2026.
const START_MS: i64 = 1_767_225_600_000;

impl Default for Host {
    fn default() -> Self {
        Host::new()
    }
}

impl Host {
    /// Makes a host with an empty cluster. Its clock starts at the beginning of the year
    /// 2026; see `set_time`.
    pub fn new() -> Self {
        let state = State {
            store: Store::new(),
            now: Time::from_unix_ms(START_MS),
            dry_run: false,
            cancelled: false,
            log_level: Level::Info as i32,
            config: BTreeMap::new(),
            config_gen: 1,
            calls: Vec::new(),
            lines: Vec::new(),
            events: Vec::new(),
            metrics: BTreeMap::new(),
            faults: BTreeMap::new(),
            failed: BTreeMap::new(),
            not_synced: BTreeSet::new(),
            listed: false,
            due: BTreeMap::new(),
            rules: Rules::default(),
            running: None,
            entered: None,
            user: map([("username", "tester".into())]),
            held: Vec::new(),
        };
        Host { state: RefCell::new(state) }
    }

    /// Adds an object to the cluster unchanged. It fills in missing fields that the API
    /// server would set. It replaces an object of the same name.
    ///
    /// # Panics
    ///
    /// If it has no apiVersion, kind or name, or cannot be sent.
    #[track_caller]
    pub fn add<T: Serialize + ?Sized>(&self, obj: &T) {
        let obj = Object::new(obj).unwrap_or_else(|e| panic!("testing: object: {e}"));
        if [obj.api_version(), obj.kind(), obj.name()].contains(&"") {
            panic!("testing: object {obj:?}: needs apiVersion, kind and metadata.name");
        }
        let json = Json::read(obj.value());
        let mut s = self.state.borrow_mut();
        let now = s.now;
        s.store.put(&Id::of(&json), json, now);
    }

    /// Removes an object from the cluster at once, even if it has finalizers.
    pub fn remove(&self, at: &ObjectRef) {
        self.state.borrow_mut().store.remove(&Id::of_ref(at));
    }

    /// Deletes an object as a user does: an object with finalizers stays until they are
    /// removed.
    ///
    /// # Panics
    ///
    /// If there is no such object.
    #[track_caller]
    pub fn delete(&self, at: &ObjectRef) {
        if let Err(e) = self.state.borrow_mut().delete_as_user(at) {
            panic!("testing: delete {at}: {e}");
        }
    }

    /// Changes an object as a user does with an editor: it stores the object after `f`
    /// has changed it. A change outside of metadata and status increments
    /// `metadata.generation`.
    ///
    /// # Panics
    ///
    /// If there is no such object.
    #[track_caller]
    pub fn edit(&self, at: &ObjectRef, f: impl FnOnce(&mut Object<'_>)) {
        let mut obj = self.get(at);
        assert!(obj.exists(&[]), "testing: edit {at}: not in the cluster");
        let old = Json::read(obj.value());
        f(&mut obj);
        let edited = Json::read(obj.value());
        let mut s = self.state.borrow_mut();
        let now = s.now;
        s.store.replace(&Id::of_ref(at), &old, edited, now);
    }

    /// An object of the cluster. If there is none, `exists(&[])` returns false for the
    /// result.
    pub fn get(&self, at: &ObjectRef) -> Object<'static> {
        self.state.borrow().store.objects.get(&Id::of_ref(at)).map(Json::to_object).unwrap_or_default()
    }

    /// All objects of a kind, ordered by name.
    pub fn list(&self, api_version: &str, kind: &str) -> Vec<Object<'static>> {
        let of = Id::of_ref(&ObjectRef::all(api_version, kind));
        let s = self.state.borrow();
        s.sorted(&of.group, &of.kind, "").iter().map(|id| s.store.objects[id].to_object()).collect()
    }

    /// Makes all runs dry runs, in which the host carries out no writes.
    pub fn set_dry_run(&self, dry: bool) {
        self.state.borrow_mut().dry_run = dry;
    }

    /// Sets the result of [`Context::cancelled`](crate::Context::cancelled).
    pub fn set_cancelled(&self, cancelled: bool) {
        self.state.borrow_mut().cancelled = cancelled;
    }

    /// Sets the lowest level that the host records; the default is `Info`.
    pub fn set_log_level(&self, level: Level) {
        self.state.borrow_mut().log_level = level as i32;
    }

    /// Sets whether the cache has listed the objects of a kind.
    pub fn set_synced(&self, kind: &str, synced: bool) {
        let not_synced = &mut self.state.borrow_mut().not_synced;
        if synced {
            not_synced.remove(kind);
        } else {
            not_synced.insert(kind.to_owned());
        }
    }

    /// Sets a setting, which overrides the default of the manifest, without a call of
    /// `configure`; see [`Host::configure`].
    pub fn set_config(&self, key: &str, value: &str) {
        self.state.borrow_mut().config.insert(key.to_owned(), value.to_owned());
    }

    /// The current time of the clock.
    pub fn now(&self) -> Time {
        self.state.borrow().now
    }

    /// Sets the clock.
    pub fn set_time(&self, now: Time) {
        self.state.borrow_mut().now = now;
    }

    /// Moves the clock forward.
    pub fn advance(&self, d: Duration) {
        let mut s = self.state.borrow_mut();
        s.now = s.now + d;
    }

    /// Declares that a kind is cluster-scoped. The built-in kinds of Kubernetes are
    /// known.
    pub fn cluster_scoped(&self, kind: &str) {
        self.state.borrow_mut().store.cluster_scoped.insert(kind.to_owned());
    }

    /// Sets the resource name of a kind, if the guess is wrong.
    pub fn plural(&self, kind: &str, resource: &str) {
        self.state.borrow_mut().store.plurals.insert(kind.to_owned(), resource.to_owned());
    }

    /// Makes the next call of an operation, for example `api_apply`, return an error
    /// without any effect. Several calls queue up.
    pub fn fail_next(&self, op: &str, e: ApiError) {
        self.state.borrow_mut().faults.entry(op.to_owned()).or_default().push_back(e);
    }

    /// The calls of operations so far.
    pub fn calls(&self) -> Vec<Call> {
        self.state.borrow().calls.clone()
    }

    /// The calls so far that changed the cluster.
    pub fn changes(&self) -> Vec<Call> {
        self.state.borrow().calls.iter().filter(|c| c.changed).cloned().collect()
    }

    /// The events recorded so far, with `regarding` filled in.
    pub fn events(&self) -> Vec<Event> {
        self.state.borrow().events.clone()
    }

    /// The metrics that the reconciler has reported with
    /// [`Context::metric`](crate::Context::metric) so far, by name: the sum of each
    /// counter and the last value of each gauge. The name of a counter ends in `_total`,
    /// as in Prometheus.
    pub fn metrics(&self) -> BTreeMap<String, f64> {
        self.state.borrow().metrics.clone()
    }

    /// The lines logged so far.
    pub fn log(&self) -> Vec<Line> {
        self.state.borrow().lines.clone()
    }
}

impl State {
    /// Deletes an object, regardless of the rights of the run.
    pub(super) fn delete_as_user(&mut self, at: &ObjectRef) -> Result<(), ApiError> {
        let dry = std::mem::take(&mut self.dry_run);
        let request = super::api::Request {
            op: "api_delete",
            id: Id::of_ref(at),
            at: at.clone(),
            sub: String::new(),
            object: Json::Null,
            msg: Json::Null,
        };
        let result = State::delete(self, &request);
        self.dry_run = dry;
        result.map(drop)
    }
}

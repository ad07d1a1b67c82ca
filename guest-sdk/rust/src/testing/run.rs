// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::Duration;

use super::api::OPS;
use super::declare::Declared;
use super::functions::Functions;
use super::host::{Host, State};
use super::json::{map, Json};
use super::rules::Rules;
use super::store::{finalizers, Id};
use crate::action::{encode, Action};
use crate::error::ErrorClass;
use crate::event::EventObject;
use crate::failure::{Failure, FailureKind};
use crate::guest::{Entry, Guest};
use crate::meta::{ObjectKey, ObjectRef};
use crate::object::Object;
use crate::reconciler::Reconciler;
use crate::time::Time;
use crate::value::Value;
use crate::wire;

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunResult {
    /// The next step. After a failed run, it is the host's decision, from the error and
    /// the answer of the policy.
    pub action: Action,
    /// The failure, if the run failed.
    pub failure: Option<Failure>,
    /// Whether the run failed and the host's back-off sets the time of the retry, because
    /// neither the error nor the policy does.
    pub back_off: bool,
}

/// One run that [`Host::run`] has made.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The object that was reconciled.
    pub object: ObjectRef,
    /// The outcome of the run.
    pub result: RunResult,
}

/// The number of consecutive failed runs of one object.
#[derive(Clone, Copy, Default)]
pub(super) struct Series {
    attempts: u32,
    since: Time,
}

impl Host {
    /// Runs the reconciler once for an object, as a host does after a change.
    ///
    /// It calls `finalize` instead of `reconcile` for an object that is being deleted and
    /// has the manifest's finalizer. It calls the error policy if the run fails. It adds
    /// the finalizer before the run, removes it after the cleanup, and applies the
    /// declared result.
    ///
    /// # Panics
    ///
    /// If the object does not exist, unless the manifest's `for_` sets `deletes`; and if
    /// a host would not load the reconciler.
    #[track_caller]
    pub fn reconcile(&self, r: &Reconciler, at: &ObjectRef) -> RunResult {
        self.load(r);
        let there = self.get(at).exists(&[]);
        assert!(
            there || r.manifest.for_.deletes,
            "testing: {at}: not in the cluster, so a host would not reconcile it"
        );
        self.state.borrow_mut().add_finalizer(at);
        let obj = self.get(at);
        let mut entry = Entry::Reconcile;
        if !r.manifest.finalizer.is_empty() && obj.is_deleting() {
            if !obj.finalizers().contains(&r.manifest.finalizer) {
                // Already cleaned up; another finalizer still delays the deletion.
                return RunResult { action: Action::await_change(), failure: None, back_off: false };
            }
            entry = Entry::Finalize;
        }
        self.run_of(r, at, &obj, entry)
    }

    fn run_of(&self, r: &Reconciler, at: &ObjectRef, obj: &Object<'_>, entry: Entry) -> RunResult {
        let request = {
            let mut s = self.state.borrow_mut();
            s.running = Some(EventObject { object: at.clone(), uid: obj.uid().to_owned() });
            let series = s.failed.entry(at.clone()).or_default();
            series.attempts += 1;
            let attempts = series.attempts;
            s.request(at, obj, attempts)
        };
        let (action, failed) = self.enter(r, entry, &request);
        let mut s = self.state.borrow_mut();
        let failure = match failed {
            None => {
                s.failed.remove(at);
                if entry == Entry::Finalize && action.requeued().is_none() {
                    s.remove_finalizer(at);
                }
                return RunResult { action, failure: None, back_off: false };
            }
            Some(failure) => s.count(at, failure),
        };
        let msg = s.failure(at, obj, &failure);
        drop(s);
        self.decide(r, failure, &msg)
    }

    /// Determines the step after a failed run, as the host does. It calls the policy
    /// once. A permanent error waits for a change, whatever the policy returns. The time
    /// of the error counts only if there is no policy.
    #[track_caller]
    fn decide(&self, r: &Reconciler, failure: Failure, msg: &Json) -> RunResult {
        let mut action = Action::await_change();
        let mut back_off = r.error_policy.is_none();
        if !back_off {
            let (answer, failed) = self.enter(r, Entry::ErrorPolicy, msg);
            if let Some(failed) = failed {
                panic!("testing: error policy: {}", failed.message);
            }
            action = answer;
        }
        if failure.class == ErrorClass::Permanent {
            action = Action::await_change();
            back_off = false;
        } else if back_off && failure.after > Duration::ZERO {
            action = Action::requeue(failure.after);
            back_off = false;
        }
        RunResult { action, failure: Some(failure), back_off }
    }

    /// Calls `configure` with all settings: the previous settings, overridden by
    /// `changes`.
    ///
    /// # Errors
    ///
    /// The text of the error that refuses the settings; the old settings then stay in
    /// force.
    pub fn configure(&self, r: &Reconciler, changes: &[(&str, &str)]) -> Result<(), String> {
        self.load(r);
        let before = {
            let mut s = self.state.borrow_mut();
            let before = (s.config.clone(), s.config_gen);
            s.config.extend(changes.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
            s.config_gen += 1;
            before
        };
        let settings = self.state.borrow().settings();
        let refused = self.answer(r, Entry::Configure, &settings).map(drop);
        if refused.is_err() {
            let mut s = self.state.borrow_mut();
            s.config = before.0;
            s.config_gen = before.1;
        }
        refused
    }

    /// Calls the mapper and returns the objects that a change of a watched object
    /// concerns. Pass an object that does not exist for an absent state.
    ///
    /// # Errors
    ///
    /// The text of the mapper's error.
    pub fn map(&self, r: &Reconciler, old: &Object<'_>, new: &Object<'_>) -> Result<Vec<ObjectKey>, String> {
        self.load(r);
        let out = self.answer(r, Entry::Map, &event(old, new))?;
        let key = |k: &Json| ObjectKey::new(k.str(&["namespace"]), k.str(&["name"]));
        Ok(out.at(&["keys"]).as_list().iter().map(key).collect())
    }

    /// Calls the filters and returns whether they accept a change of a watched object.
    pub fn filter(&self, r: &Reconciler, old: &Object<'_>, new: &Object<'_>) -> bool {
        self.load(r);
        let msg = encode(&event(old, new)).expect("an event can be sent");
        self.state.borrow_mut().entered = None;
        let functions = Functions(&self.state);
        Guest::new(&functions).keep(r, &msg)
    }

    /// The manifest in the form that a host receives, including the additions of the SDK.
    pub fn manifest(r: &Reconciler) -> Object<'static> {
        Object::view(&r.describe()).to_owned()
    }

    /// Applies the manifest to the host.
    #[track_caller]
    pub(super) fn load(&self, r: &Reconciler) {
        if let Some(problem) = r.problem() {
            panic!("testing: the host would not load this: {problem}");
        }
        self.state.borrow_mut().rules = Rules::of(&r.manifest);
    }

    /// Makes one entry call, decodes its result as strictly as a host does, and carries
    /// out the declarations.
    #[track_caller]
    fn enter(&self, r: &Reconciler, entry: Entry, msg: &Json) -> (Action, Option<Failure>) {
        let result = match self.invoke(r, entry, msg) {
            Ok(result) => result,
            Err(text) => return (Action::await_change(), Some(trap(text))),
        };
        let failed = result.at(&["error"]).as_map().map(|_| read_failure(result.at(&["error"])));
        let declared = Declared::read(&result);
        let mut action = Action::await_change();
        if let ("requeue", Json::Int(ms)) = (result.str(&["action"]), result.at(&["after_ms"])) {
            action = Action::requeue(Duration::from_millis(u64::try_from(*ms).expect("after_ms is not negative")));
        }
        assert!(
            failed.is_none() || declared.only_status(),
            "testing: {entry:?}: with an error, only a status is allowed"
        );
        let undone = self.state.borrow_mut().declare(declared);
        (action, failed.or(undone))
    }

    /// Makes one entry call and returns its result, or the text of its error or panic.
    #[track_caller]
    pub(super) fn answer(&self, r: &Reconciler, entry: Entry, msg: &Json) -> Result<Json, String> {
        let out = self.invoke(r, entry, msg)?;
        match out.at(&["error"]) {
            Json::Null => Ok(out),
            e => Err(e.str(&["message"]).to_owned()),
        }
    }

    /// Makes one entry call and decodes its result. If it panics, the error is the text of
    /// the panic.
    #[track_caller]
    fn invoke(&self, r: &Reconciler, entry: Entry, msg: &Json) -> Result<Json, String> {
        let msg = encode(msg).expect("a message of the host can be sent");
        self.state.borrow_mut().entered = Some(entry);
        let functions = Functions(&self.state);
        let called = catch_unwind(AssertUnwindSafe(|| {
            let mut out = Vec::new();
            Guest::new(&functions).call(r, entry, &msg, &mut out);
            out
        }));
        let out = called.map_err(|panic| match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
            (Some(text), _) => (*text).to_owned(),
            (_, Some(text)) => text.clone(),
            _ => "panicked".to_owned(),
        })?;
        match wire::check(&out) {
            Err(e) if !out.is_empty() => panic!("testing: {entry:?}: result {out:x?}: {e}"),
            _ => Ok(Json::read(Value::of(&out))),
        }
    }
}

impl State {
    /// Adds the manifest's finalizer to an object that is not being deleted, as the host
    /// does before the first run.
    fn add_finalizer(&mut self, at: &ObjectRef) {
        let id = Id::of_ref(at);
        let name = Json::Str(self.rules.finalizer.clone());
        let old = match self.store.objects.get(&id) {
            Some(old) if !self.dry_run && !self.rules.finalizer.is_empty() => old.clone(),
            _ => return,
        };
        if !old.str(&["metadata", "deletionTimestamp"]).is_empty() || finalizers(&old).contains(&name) {
            return;
        }
        let mut obj = old.clone();
        let list = finalizers(&old).iter().cloned().chain([name]).collect();
        obj.metadata().insert("finalizers".into(), Json::List(list));
        self.store.replace(&id, &old, obj, self.now);
    }

    /// Removes the finalizer after the cleanup. The object may be gone by then.
    fn remove_finalizer(&mut self, at: &ObjectRef) {
        let id = Id::of_ref(at);
        let old = match self.store.objects.get(&id) {
            Some(old) if !self.dry_run => old.clone(),
            _ => return,
        };
        let name = Json::Str(self.rules.finalizer.clone());
        let rest: Vec<_> = finalizers(&old).iter().filter(|f| **f != name).cloned().collect();
        let mut obj = old.clone();
        obj.metadata().remove("finalizers");
        if !rest.is_empty() {
            obj.metadata().insert("finalizers".into(), Json::List(rest));
        }
        self.store.replace(&id, &old, obj, self.now);
    }

    /// Adds the counters of the host to a failure.
    fn count(&mut self, at: &ObjectRef, failure: Failure) -> Failure {
        let now = self.now;
        let series = self.failed.entry(at.clone()).or_default();
        if series.attempts <= 1 {
            series.since = now;
        }
        Failure { attempt: series.attempts, first_failed: series.since, ..failure }
    }

    /// A message with the entries that most inputs have, and with others.
    pub(super) fn message<const N: usize>(&self, entries: [(&str, Json); N]) -> Json {
        let words = ["declare", "finalize", "map", "filter", "configure", "admission", "convert"];
        let caps = words.iter().chain(&OPS).map(|c| Json::from(*c)).collect();
        let mut m = map(entries);
        for (key, value) in [
            ("v", Json::Int(1)),
            ("id", Json::Str(format!("run-{}", self.calls.len()))),
            ("controller", Json::Str(self.rules.name.clone())),
            ("config_gen", Json::Int(self.config_gen)),
            ("caps", Json::List(caps)),
        ] {
            *m.entry(key) = value;
        }
        m
    }

    fn request(&self, at: &ObjectRef, obj: &Object<'_>, attempts: u32) -> Json {
        let reason = if attempts > 1 { "Retry" } else { "ObjectUpdated" };
        let mut m = self.message([
            ("reason", map([("type", reason.into())])),
            ("attempt", Json::Int(i64::from(attempts))),
            ("key", key(at)),
            ("dry_run", Json::Bool(self.dry_run)),
        ]);
        if obj.exists(&[]) {
            *m.entry("object") = Json::read(obj.value());
        }
        m
    }

    fn failure(&self, at: &ObjectRef, obj: &Object<'_>, f: &Failure) -> Json {
        let error = map([
            ("class", f.class.as_str().into()),
            ("message", Json::Str(f.message.clone())),
            ("reason", Json::Str(f.reason.clone())),
            ("after_ms", Json::Int(f.after.as_millis() as i64)),
        ]);
        let mut m = map([
            ("v", Json::Int(1)),
            ("id", Json::Str(format!("run-{}", self.calls.len()))),
            ("key", key(at)),
            ("error", error),
            ("kind", f.kind.as_str().into()),
            ("attempt", Json::Int(i64::from(f.attempt))),
            ("first_failed_ms", Json::Int(f.first_failed.unix_ms())),
        ]);
        if obj.exists(&[]) {
            *m.entry("object") = Json::read(obj.value());
        }
        m
    }

    fn settings(&self) -> Json {
        let mut all: BTreeMap<_, _> = self.rules.config.clone();
        all.extend(self.config.clone());
        let config = Json::Map(all.into_iter().map(|(k, v)| (k, Json::Str(v))).collect());
        map([("v", Json::Int(1)), ("config_gen", Json::Int(self.config_gen)), ("config", config)])
    }
}

pub(super) fn key(at: &ObjectRef) -> Json {
    let mut m = map([("name", at.name.as_str().into())]);
    if !at.namespace.is_empty() {
        *m.entry("namespace") = at.namespace.as_str().into();
    }
    m
}

/// The Event for a change of a watched object.
fn event(old: &Object<'_>, new: &Object<'_>) -> Json {
    let there = if new.exists(&[]) { new } else { old };
    let (group, version) = there.api_version().split_once('/').unwrap_or(("", there.api_version()));
    let watch = map([("group", group.into()), ("version", version.into()), ("kind", there.kind().into())]);
    let type_ = if new.exists(&[]) { "Updated" } else { "Deleted" };
    let mut m = map([("v", Json::Int(1)), ("watch", watch), ("type", type_.into()), ("key", key(&there.to_ref()))]);
    for (name, obj) in [("old", old), ("new", new)] {
        if obj.exists(&[]) {
            *m.entry(name) = Json::read(obj.value());
        }
    }
    m
}

fn trap(message: String) -> Failure {
    Failure {
        kind: FailureKind::Trap,
        class: ErrorClass::Transient,
        message,
        reason: String::new(),
        after: Duration::ZERO,
        attempt: 0,
        first_failed: Time::default(),
    }
}

fn read_failure(e: &Json) -> Failure {
    let after = match e.at(&["after_ms"]) {
        Json::Int(ms) => u64::try_from(*ms).unwrap_or(0),
        _ => 0,
    };
    Failure {
        kind: FailureKind::Error,
        class: ErrorClass::read(e.str(&["class"])),
        reason: e.str(&["reason"]).to_owned(),
        after: Duration::from_millis(after),
        ..trap(e.str(&["message"]).to_owned())
    }
}

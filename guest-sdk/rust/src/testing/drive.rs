// SPDX-License-Identifier: Apache-2.0
use std::collections::VecDeque;
use std::time::Duration;

use super::host::{Host, State};
use super::json::Json;
use super::rules::Watched;
use super::run::{Run, RunResult};
use super::store::{finalizers, ref_of, Change, Id};
use crate::meta::{ObjectKey, ObjectRef};
use crate::object::Object;
use crate::reconciler::Reconciler;
use crate::watch::Watch;

/// The number of runs after which `run` fails, because the reconciler keeps changing
/// objects.
const MAX_RUNS: usize = 1000;
/// Replaces the back-off of a host.
const RETRY_DELAY: Duration = Duration::from_secs(1);

impl Host {
    /// Reconciles as a host does until no work is left, and returns the runs in their
    /// order.
    ///
    /// The first call starts with all objects of the manifest's `for_`. Each call starts
    /// with all changes since the previous one, and with the requeues and retries that
    /// are due (see [`advance`](Host::advance)). It maps changes to objects by `owns` and
    /// `watches`, calls filters, and removes dependents of objects that are gone, as the
    /// garbage collector does. Declarative predicates are ignored here, and objects run
    /// one at a time.
    ///
    /// # Panics
    ///
    /// If the reconciler never stops changing objects. A change by a run can start
    /// another run, so a reconciler that changes something in every run would run
    /// forever.
    #[track_caller]
    pub fn run(&self, r: &Reconciler) -> Vec<Run> {
        self.load(r);
        assert!(!r.manifest.for_.kind.is_empty(), "testing: the manifest needs for_, the reconciled kind");
        let mut queue = self.state.borrow_mut().start();
        let mut runs = Vec::new();
        loop {
            self.state.borrow_mut().collect_garbage();
            let changes = std::mem::take(&mut self.state.borrow_mut().store.changes);
            for change in &changes {
                self.concerned(r, change).into_iter().for_each(|at| queue.add(at));
            }
            let at = match queue.next() {
                Some(at) => at,
                None => return runs,
            };
            if !self.get(&at).exists(&[]) && !r.manifest.for_.deletes {
                continue;
            }
            assert!(
                runs.len() < MAX_RUNS,
                "testing: still not settled after {MAX_RUNS} runs; the last was of {at}: a run must write nothing once the object is up to date"
            );
            let result = self.reconcile(r, &at);
            self.state.borrow_mut().reschedule(&mut queue, &at, &result);
            runs.push(Run { object: at, result });
        }
    }

    /// The objects that a change reconciles.
    #[track_caller]
    fn concerned(&self, r: &Reconciler, c: &Change) -> Vec<ObjectRef> {
        let m = &r.manifest;
        let mut keys = Vec::new();
        if self.sees(r, &m.for_, c) {
            keys.push(ObjectKey::new(c.at.namespace.as_str(), c.at.name.as_str()));
        }
        for w in m.owns.iter().filter(|w| self.sees(r, w, c)) {
            keys.extend(self.state.borrow().owners(c, w.controller_only));
        }
        for w in m.watches.iter().filter(|w| self.sees(r, w, c)) {
            keys.extend(self.mapped(r, w, c));
        }
        let s = self.state.borrow();
        keys.into_iter().filter_map(|k| s.reconciled(k)).collect()
    }

    /// Whether a watch covers the change and its filters accept it.
    fn sees(&self, r: &Reconciler, w: &Watch, c: &Change) -> bool {
        if !w.is(&c.at.group, &c.at.kind) {
            return false;
        }
        let watched = Watched::of(w);
        let covered = [&c.old, &c.new].into_iter().flatten().any(|obj| watched.covers(obj));
        covered && (w.filter.is_none() || self.filter(r, &object(&c.old), &object(&c.new)))
    }

    /// The objects that the watch's map or its mapper selects for both states of the
    /// object.
    #[track_caller]
    fn mapped(&self, r: &Reconciler, w: &Watch, c: &Change) -> Vec<ObjectKey> {
        if w.mapper.is_some() {
            return self
                .map(r, &object(&c.old), &object(&c.new))
                .unwrap_or_else(|e| panic!("testing: map of {} {}: {e}", c.at.kind, c.at.name));
        }
        let (how, key) = w.map.split_once(':').unwrap_or((&w.map, ""));
        if how == "owner" {
            return self.state.borrow().owners(c, w.controller_only);
        }
        let place = format!("{how}s");
        let mut keys = Vec::new();
        for obj in [&c.old, &c.new].into_iter().flatten() {
            match obj.str(&["metadata", &place, key]) {
                "" => {}
                value => keys.push(match value.split_once('/') {
                    Some((namespace, name)) if how == "annotation" => ObjectKey::new(namespace, name),
                    _ => ObjectKey::new(c.at.namespace.as_str(), value),
                }),
            }
        }
        keys
    }
}

fn object(state: &Option<Json>) -> Object<'static> {
    state.as_ref().map(Json::to_object).unwrap_or_default()
}

impl State {
    /// The initial queue of a call of `run`.
    fn start(&mut self) -> Queue {
        let mut queue = Queue::default();
        if !self.listed {
            self.listed = true;
            self.store.changes.clear();
            let w = self.rules.for_.clone();
            for id in self.sorted(&w.group, &w.kind, "") {
                let obj = &self.store.objects[&id];
                if w.covers(obj) {
                    queue.add(ref_of(obj));
                }
            }
        }
        let now = self.now;
        let late: Vec<_> = self.due.iter().filter(|(_, at)| **at <= now).map(|(object, _)| object.clone()).collect();
        for object in late {
            self.due.remove(&object);
            queue.add(object);
        }
        queue
    }

    /// Records the time of a run that follows without a change.
    fn reschedule(&mut self, queue: &mut Queue, at: &ObjectRef, result: &RunResult) {
        self.due.remove(at);
        match result.action.requeued() {
            _ if result.back_off => drop(self.due.insert(at.clone(), self.now + RETRY_DELAY)),
            Some(Duration::ZERO) => queue.add(at.clone()),
            Some(after) => drop(self.due.insert(at.clone(), self.now + after)),
            None => {}
        }
    }

    /// The reference of an object of the manifest's `for_`; `None` if it does not exist,
    /// unless `deletes` asks for calls without an object.
    fn reconciled(&self, mut k: ObjectKey) -> Option<ObjectRef> {
        let w = &self.rules.for_;
        if self.store.cluster_scoped.contains(&w.kind) {
            k.namespace.clear();
        }
        let at = k.to_ref(w.api_version.as_str(), w.kind.as_str());
        match self.store.objects.get(&Id::of_ref(&at)) {
            Some(obj) => w.covers(obj).then(|| ref_of(obj)),
            None => w.deletes.then_some(at),
        }
    }

    /// The owners in both states of the object.
    fn owners(&self, c: &Change, controller_only: bool) -> Vec<ObjectKey> {
        let w = &self.rules.for_;
        let refs =
            [&c.old, &c.new].into_iter().flatten().flat_map(|o| o.at(&["metadata", "ownerReferences"]).as_list());
        let ours = refs.filter(|r| w.is(&Id::of(r)) && (!controller_only || r.bool(&["controller"])));
        ours.map(|r| ObjectKey::new(c.at.namespace.as_str(), r.str(&["name"]))).collect()
    }

    /// Removes the objects whose owners are all gone.
    fn collect_garbage(&mut self) {
        loop {
            let gone = &self.store.gone;
            let orphaned = |obj: &Json| {
                let owners = obj.at(&["metadata", "ownerReferences"]).as_list();
                let held = !finalizers(obj).is_empty() && !obj.str(&["metadata", "deletionTimestamp"]).is_empty();
                !owners.is_empty() && !held && owners.iter().all(|o| gone.contains(o.str(&["uid"])))
            };
            let orphan = self.store.objects.values().find(|o| orphaned(o)).map(ref_of);
            match orphan {
                Some(at) => drop(self.delete_as_user(&at)),
                None => return,
            }
        }
    }
}

/// The objects to run, each once, in the order of their arrival.
#[derive(Default)]
struct Queue(VecDeque<ObjectRef>);

impl Queue {
    fn add(&mut self, at: ObjectRef) {
        if !self.0.contains(&at) {
            self.0.push_back(at);
        }
    }

    fn next(&mut self) -> Option<ObjectRef> {
        self.0.pop_front()
    }
}

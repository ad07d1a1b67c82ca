// SPDX-License-Identifier: Apache-2.0
use super::fault::{api_fault, bad_request, not_served, Fault};
use super::host::{Call, State};
use super::json::{map, Json};
use super::store::{finalizers, Id};
use crate::api_error::{status, ApiError};
use crate::event::{Event, EventObject, EventType};
use crate::guest::Entry;
use crate::meta::ObjectRef;

/// The operations that this host implements.
pub(super) const OPS: [&str; 11] = [
    "api_get",
    "api_list",
    "api_create",
    "api_update",
    "api_patch",
    "api_apply",
    "api_delete",
    "cache_get",
    "cache_list",
    "event_record",
    "config_get",
];

/// A decoded request of an `api_*` operation (abi/ABI.md, section 6).
pub(super) struct Request {
    pub(super) op: &'static str,
    pub(super) id: Id,
    pub(super) at: ObjectRef,
    pub(super) sub: String,
    pub(super) object: Json,
    pub(super) msg: Json,
}

/// Whether an operation is available in an entry function (abi/ABI.md, section 5).
fn works(op: &str, entered: Option<Entry>) -> bool {
    match entered {
        None | Some(Entry::Map | Entry::Validate | Entry::Default) => {
            matches!(op, "config_get" | "cache_get" | "cache_list")
        }
        Some(Entry::Configure | Entry::Convert) => op == "config_get",
        Some(_) => true,
    }
}

impl State {
    /// Runs an operation of the guest and records the call.
    pub(super) fn operate(&mut self, op: &'static str, msg: Json) -> Result<Json, Fault> {
        if !works(op, self.entered) {
            return Err(ApiError::new(status::UNAVAILABLE, "Unavailable", format!("{op} cannot be used here")));
        }
        let mut call = Call { op: op.to_owned(), ..Call::default() };
        let result = self.dispatch(op, msg, &mut call);
        call.status = result.as_ref().err().map_or(0, |e| e.status);
        self.calls.push(call);
        result
    }

    fn dispatch(&mut self, op: &'static str, msg: Json, call: &mut Call) -> Result<Json, Fault> {
        match op {
            "config_get" => return Ok(self.setting(msg.str(&["key"]))),
            "event_record" => return self.record(&msg),
            _ if !OPS.contains(&op) => return Err(not_served(op)),
            _ => {}
        }
        let r = self.parse(op, msg)?;
        call.object = r.at.clone();
        call.subresource = r.sub.clone();
        if let Some(fault) = self.faults.get_mut(op).and_then(|f| f.pop_front()) {
            return Err(fault);
        }
        self.allowed(&r)?;
        let before = self.store.version;
        let result = self.carry_out(&r);
        call.changed = self.store.version != before;
        result
    }

    fn carry_out(&mut self, r: &Request) -> Result<Json, Fault> {
        match r.op {
            "api_get" => self.stored(r),
            "api_list" => self.api_list(r),
            "api_create" => self.create(r),
            "api_update" => self.update(r),
            "api_patch" => self.patch(r),
            "api_apply" => self.apply(r),
            "api_delete" => self.delete(r),
            "cache_get" => self.cache_get(r),
            _ => self.cache_list(r),
        }
    }

    /// One setting, or all settings if `key` is empty.
    fn setting(&self, key: &str) -> Json {
        let mut all = self.rules.config.clone();
        all.extend(self.config.clone());
        if key.is_empty() {
            return Json::Map(all.into_iter().map(|(k, v)| (k, Json::Str(v))).collect());
        }
        all.remove(key).map_or(Json::Null, Json::Str)
    }

    fn record(&mut self, msg: &Json) -> Result<Json, Fault> {
        if msg.str(&["reason"]).is_empty() {
            return Err(bad_request("reason is needed"));
        }
        let object = |key: &str| {
            let o = msg.at(&[key]).as_map().map(|_| msg.at(&[key]))?;
            let at = ObjectRef::new(o.str(&["apiVersion"]), o.str(&["kind"]), o.str(&["name"]));
            Some(EventObject { object: at.within(o.str(&["namespace"])), uid: o.str(&["uid"]).to_owned() })
        };
        let event = Event {
            type_: Some(if msg.str(&["type"]) == "Warning" { EventType::Warning } else { EventType::Normal }),
            reason: msg.str(&["reason"]).to_owned(),
            action: msg.str(&["action"]).to_owned(),
            note: msg.str(&["note"]).to_owned(),
            regarding: object("regarding").or_else(|| self.running.clone()),
            related: object("related"),
        };
        self.events.push(event);
        Ok(Json::Null)
    }

    /// Reads the reference of the request from its keys, otherwise from its object. If
    /// both have a value, the values must be equal.
    pub(super) fn parse(&self, op: &'static str, msg: Json) -> Result<Request, Fault> {
        let object = msg.at(&["object"]).clone();
        let field = |key: &str, path: &[&str]| match (msg.str(&[key]), object.str(path)) {
            (said, inside) if !said.is_empty() && !inside.is_empty() && said != inside => {
                Err(bad_request(format!("{key} of the request and of its object differ")))
            }
            ("", inside) => Ok(inside.to_owned()),
            (said, _) => Ok(said.to_owned()),
        };
        // The body of a subresource may be of another kind than the object.
        let at = ObjectRef {
            api_version: field("apiVersion", &["apiVersion"])?,
            kind: field("kind", &["kind"])?,
            namespace: field("namespace", &["metadata", "namespace"])?,
            name: field("name", &["metadata", "name"])?,
        };
        let sub = msg.str(&["subresource"]).to_owned();
        let mut r = Request { op, id: Id::of_ref(&at), at, sub, object, msg };
        self.complete(&mut r)?;
        Ok(r)
    }

    /// Checks that no required key is missing.
    fn complete(&self, r: &mut Request) -> Result<(), Fault> {
        let list = matches!(r.op, "api_list" | "cache_list");
        let writes = matches!(r.op, "api_create" | "api_update" | "api_apply");
        let scoped = self.store.cluster_scoped.contains(&r.at.kind);
        let kind = &r.at.kind;
        if r.at.api_version.is_empty() || kind.is_empty() {
            return Err(bad_request("apiVersion and kind are needed"));
        } else if writes && r.object.as_map().is_none() {
            return Err(bad_request("object is needed"));
        } else if !list && r.at.name.is_empty() {
            return Err(bad_request("name is needed"));
        } else if scoped && !r.at.namespace.is_empty() {
            return Err(bad_request(format!("{kind} is cluster-scoped: it has no namespace")));
        } else if !scoped && r.at.namespace.is_empty() && !list {
            let hint = "there is no default namespace (if it is cluster-scoped, call Host::cluster_scoped)";
            return Err(bad_request(format!("{kind} is namespaced and {hint}")));
        } else if !r.sub.is_empty() && r.sub != "status" {
            return Err(not_served(&format!("the subresource {}", r.sub)));
        }
        if writes {
            // Copy the reference into the object.
            *r.object.entry("apiVersion") = r.at.api_version.as_str().into();
            *r.object.entry("kind") = r.at.kind.as_str().into();
            r.object.metadata().insert("name".into(), r.at.name.as_str().into());
            if !r.at.namespace.is_empty() {
                r.object.metadata().insert("namespace".into(), r.at.namespace.as_str().into());
            }
        }
        Ok(())
    }

    pub(super) fn stored(&self, r: &Request) -> Result<Json, Fault> {
        self.store.objects.get(&r.id).cloned().ok_or_else(|| self.not_found(r))
    }

    pub(super) fn not_found(&self, r: &Request) -> Fault {
        api_fault(404, "NotFound", format!("{} not found", self.named(r)))
    }

    /// The object's name in the style of the API server: `configmaps "a"`.
    pub(super) fn named(&self, r: &Request) -> String {
        let dot = if r.id.group.is_empty() { "" } else { "." };
        format!("{}{dot}{} \"{}\"", self.plural(&r.at.kind), r.id.group, r.at.name)
    }

    fn create(&mut self, r: &Request) -> Result<Json, Fault> {
        if self.store.objects.contains_key(&r.id) {
            return Err(api_fault(409, "AlreadyExists", format!("{} already exists", self.named(r))));
        }
        if !r.object.str(&["metadata", "resourceVersion"]).is_empty() {
            return Err(api_fault(400, "BadRequest", "resourceVersion should not be set on objects to be created"));
        }
        let mut obj = r.object.clone();
        for key in ["uid", "generation", "creationTimestamp", "deletionTimestamp", "managedFields"] {
            obj.metadata().remove(key);
        }
        self.insert(r, obj)
    }

    /// Stores a new object, for create and for an apply that creates.
    pub(super) fn insert(&mut self, r: &Request, mut obj: Json) -> Result<Json, Fault> {
        obj.map_mut().remove("status");
        self.valid(r, &obj)?;
        if self.dry(r) {
            return Ok(obj);
        }
        Ok(self.store.put(&r.id, obj, self.now))
    }

    fn update(&mut self, r: &Request) -> Result<Json, Fault> {
        let old = self.stored(r)?;
        let custom = r.id.group.contains('.') && !r.id.group.ends_with(".k8s.io");
        let versioned = |v: &Json, path: &[&str]| !v.str(path).is_empty();
        if custom
            && !versioned(&r.object, &["metadata", "resourceVersion"])
            && !versioned(&r.msg, &["preconditions", "resourceVersion"])
        {
            let message =
                format!("{} is invalid: metadata.resourceVersion: must be specified for an update", self.named(r));
            return Err(api_fault(422, "Invalid", message));
        }
        self.overwrite(r, &old, r.object.clone())
    }

    /// Stores a changed object, for every write to an existing object.
    pub(super) fn overwrite(&mut self, r: &Request, old: &Json, mut obj: Json) -> Result<Json, Fault> {
        self.holds(r, old, &obj)?;
        let status = if r.sub == "status" { obj.at(&["status"]).clone() } else { old.at(&["status"]).clone() };
        if r.sub == "status" {
            obj = old.clone();
        }
        obj.map_mut().remove("status");
        if status != Json::Null {
            *obj.entry("status") = status;
        }
        obj.metadata().remove("managedFields");
        self.valid(r, &obj)?;
        if self.dry(r) {
            return Ok(obj);
        }
        Ok(self.store.replace(&r.id, old, obj, self.now))
    }

    pub(super) fn delete(&mut self, r: &Request) -> Result<Json, Fault> {
        let old = self.stored(r)?;
        self.holds(r, &old, &Json::Null)?;
        if self.dry(r) {
            return Ok(old);
        }
        if finalizers(&old).is_empty() {
            self.store.remove(&r.id);
            let success = [("apiVersion", "v1"), ("kind", "Status"), ("status", "Success")];
            return Ok(map(success.map(|(k, v)| (k, Json::from(v)))));
        }
        if !old.str(&["metadata", "deletionTimestamp"]).is_empty() {
            return Ok(old);
        }
        let mut obj = old;
        obj.metadata().insert("deletionTimestamp".into(), Json::Str(self.now.to_string()));
        Ok(self.store.put(&r.id, obj, self.now))
    }

    fn dry(&self, r: &Request) -> bool {
        self.dry_run || r.msg.bool(&["dryRun"])
    }

    /// Whether an apply or an update stores nothing.
    pub(super) fn is_dry(&self, r: &Request) -> bool {
        self.dry(r)
    }

    /// Checks the preconditions before `old` is written.
    fn holds(&self, r: &Request, old: &Json, obj: &Json) -> Result<(), Fault> {
        for field in ["uid", "resourceVersion"] {
            let have = old.str(&["metadata", field]);
            for want in [r.msg.str(&["preconditions", field]), obj.str(&["metadata", field])] {
                if !want.is_empty() && want != have {
                    let message = format!(
                        "Operation cannot be fulfilled on {}: {field} is {have}, not {want}; please apply your changes to the latest version and try again",
                        self.named(r)
                    );
                    return Err(api_fault(409, "Conflict", message));
                }
            }
        }
        Ok(())
    }

    /// Makes the checks that the API server makes for every object.
    fn valid(&self, r: &Request, obj: &Json) -> Result<(), Fault> {
        let owners = obj.at(&["metadata", "ownerReferences"]).as_list();
        let whole = |o: &Json| ["apiVersion", "kind", "name", "uid"].iter().all(|key| !o.str(&[key]).is_empty());
        let wrong = if !owners.iter().all(whole) {
            "apiVersion, kind, name and uid are required"
        } else if owners.iter().filter(|o| o.bool(&["controller"])).count() > 1 {
            "Only one reference can have Controller set to true"
        } else {
            return Ok(());
        };
        let message = format!("{} is invalid: metadata.ownerReferences: {wrong}", self.named(r));
        Err(api_fault(422, "Invalid", message))
    }
}

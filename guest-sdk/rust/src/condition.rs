// SPDX-License-Identifier: Apache-2.0
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::object::Object;
use crate::time::Time;
use crate::value::Value;

/// One condition of a status, as in meta/v1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// A CamelCase word, for example `Ready`.
    pub type_: String,
    /// [`TRUE`](Self::TRUE), [`FALSE`](Self::FALSE) or [`UNKNOWN`](Self::UNKNOWN).
    pub status: String,
    /// The cause: a CamelCase word. The API server requires one.
    pub reason: String,
    /// For people.
    pub message: String,
    /// The generation of the object that the condition describes.
    pub observed_generation: i64,
    /// The time of the last change of `status`. [`Conditions::set`] sets it.
    pub last_transition_time: Option<Time>,
}

impl Condition {
    /// The status of a condition that is met.
    pub const TRUE: &'static str = "True";
    /// The status of a condition that is not met.
    pub const FALSE: &'static str = "False";
    /// The status of a condition that is unknown.
    pub const UNKNOWN: &'static str = "Unknown";

    /// Makes a condition with that type, status and reason.
    pub fn new(type_: impl Into<String>, status: impl Into<String>, reason: impl Into<String>) -> Self {
        Condition { type_: type_.into(), status: status.into(), reason: reason.into(), ..Condition::default() }
    }

    /// Iterates over the entries once: a lookup for each field would iterate six times.
    fn read(v: Value<'_>) -> Self {
        let mut c = Condition::default();
        for (key, value) in v.entries(&[]) {
            match key {
                "type" => c.type_ = value.str(&[]).to_owned(),
                "status" => c.status = value.str(&[]).to_owned(),
                "reason" => c.reason = value.str(&[]).to_owned(),
                "message" => c.message = value.str(&[]).to_owned(),
                "observedGeneration" => c.observed_generation = value.int(&[]),
                "lastTransitionTime" => c.last_transition_time = value.time(&[]),
                _ => {}
            }
        }
        c
    }
}

impl Serialize for Condition {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        map.serialize_entry("type", &self.type_)?;
        map.serialize_entry("status", &self.status)?;
        map.serialize_entry("reason", &self.reason)?;
        map.serialize_entry("message", &self.message)?; // the API server requires the field, even if it is empty
        if self.observed_generation != 0 {
            map.serialize_entry("observedGeneration", &self.observed_generation)?;
        }
        if let Some(t) = self.last_transition_time {
            map.serialize_entry("lastTransitionTime", &t)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Condition {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(Condition::read(Object::deserialize(d)?.value()))
    }
}

/// The conditions of a status, with at most one of each type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions(Vec<Condition>);

impl Conditions {
    /// The condition of a type, if there is one.
    pub fn get(&self, type_: &str) -> Option<&Condition> {
        self.0.iter().find(|c| c.type_ == type_)
    }

    /// Whether the condition of that type exists and is true.
    pub fn is_true(&self, type_: &str) -> bool {
        self.get(type_).map_or(false, |c| c.status == Condition::TRUE)
    }

    /// Iterates over the conditions.
    pub fn iter(&self) -> std::slice::Iter<'_, Condition> {
        self.0.iter()
    }

    /// Adds a condition, or replaces the one of its type, and returns whether that changed
    /// anything.
    ///
    /// As in meta/v1, `last_transition_time` changes only if `status` does; it becomes
    /// `now`, unless the condition has a time. Write the status only if something
    /// changed: each write causes another run.
    pub fn set(&mut self, condition: Condition, now: Time) -> bool {
        self.set_with(condition, || now)
    }

    /// [`Conditions::set`] with a clock, which it calls only if it needs the time. With
    /// `--memo`, the host can skip a run that did not read the time.
    pub fn set_with(&mut self, mut condition: Condition, now: impl FnOnce() -> Time) -> bool {
        let old = self.0.iter_mut().find(|c| c.type_ == condition.type_);
        let kept = old.as_ref().filter(|o| o.status == condition.status).and_then(|o| o.last_transition_time);
        // The API server stores seconds. Truncate, so that a condition that was read back
        // is equal.
        let since = kept.unwrap_or_else(|| condition.last_transition_time.unwrap_or_else(now).to_seconds());
        condition.last_transition_time = Some(since);
        match old {
            None => {
                self.0.push(condition);
                true
            }
            Some(old) => {
                let changed = *old != condition;
                *old = condition;
                changed
            }
        }
    }

    /// Removes the condition of a type, and returns whether there was one.
    pub fn remove(&mut self, type_: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|c| c.type_ != type_);
        self.0.len() != before
    }
}

impl<'a> IntoIterator for &'a Conditions {
    type Item = &'a Condition;
    type IntoIter = std::slice::Iter<'a, Condition>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Serialize for Conditions {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(s)
    }
}

impl<'de> Deserialize<'de> for Conditions {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Vec::deserialize(d).map(Conditions)
    }
}

impl Object<'_> {
    /// `status.conditions`, as a copy.
    pub fn conditions(&self) -> Conditions {
        Conditions(self.elements(&["status", "conditions"]).map(Condition::read).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(status: &str) -> Condition {
        Condition::new("Ready", status, "Because")
    }

    #[test]
    fn the_transition_time_moves_with_the_status_only() {
        let (t1, t2) = (Time::from_unix_ms(1_000_500), Time::from_unix_ms(2_000_000));
        let mut conditions = Conditions::default();
        assert!(conditions.set(ready("True"), t1));
        assert!(!conditions.set(ready("True"), t2));
        assert_eq!(conditions.get("Ready").unwrap().last_transition_time, Some(t1.to_seconds()));
        assert!(conditions.set(Condition { message: "more".into(), ..ready("True") }, t2));
        assert_eq!(conditions.get("Ready").unwrap().last_transition_time, Some(t1.to_seconds()));
        assert!(conditions.set(ready("False"), t2));
        assert_eq!(conditions.get("Ready").unwrap().last_transition_time, Some(t2));
        assert!(!conditions.is_true("Ready") && conditions.remove("Ready") && !conditions.remove("Ready"));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut conditions = Conditions::default();
        conditions.set(Condition { observed_generation: 3, ..ready("True") }, Time::from_unix_ms(1_000));
        let obj = Object::new(&crate::json!({"status": {"conditions": &conditions}})).unwrap();
        assert_eq!(obj.conditions(), conditions);
        assert_eq!(obj.decode::<Conditions>(&["status", "conditions"]).unwrap(), conditions);
    }
}

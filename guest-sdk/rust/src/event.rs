// SPDX-License-Identifier: Apache-2.0
use crate::api_error::ApiError;
use crate::client::write_ref;
use crate::context::Context;
use crate::error::clip;
use crate::imports;
use crate::meta::ObjectRef;
use crate::object::Object;
use crate::wire::Message;

/// The severity of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// An ordinary event.
    Normal,
    /// A problem that deserves attention.
    Warning,
}

impl EventType {
    /// The name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        }
    }
}

/// An event of an object, as `kubectl events` shows it.
///
/// It is for people and expires after an hour; use a condition for lasting information.
/// The host counts equal events instead of writing each one, and limits their number. So
/// a call without an error means that the host accepted the event, not that it wrote the
/// event. It needs the right `Capability::new("events.k8s.io", "events", &["create",
/// "patch"])`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The severity; `Normal` if `None`.
    pub type_: Option<EventType>,
    /// The cause: a CamelCase word of at most 128 bytes. Required.
    pub reason: String,
    /// The action that was taken or failed: a CamelCase word, `Reconcile` if empty.
    pub action: String,
    /// For people. It has at most 1024 bytes; a longer note is truncated.
    pub note: String,
    /// The object of the event. If `None`, it is the object of the run.
    pub regarding: Option<EventObject>,
    /// A second object, for example a child.
    pub related: Option<EventObject>,
}

/// An object of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventObject {
    /// The reference of the object.
    pub object: ObjectRef,
    /// The UID of the object; may be empty.
    pub uid: String,
}

impl Object<'_> {
    /// A reference to the object for an event.
    pub fn to_event_object(&self) -> EventObject {
        EventObject { object: self.to_ref(), uid: self.uid().to_owned() }
    }
}

impl EventObject {
    fn write(&self, m: &mut Message<'_>) {
        write_ref(m, &self.object);
        m.str("uid", &self.uid);
    }
}

impl Context<'_> {
    /// Records an event about the object of the run. If that fails, it logs the error,
    /// because a lost event does not justify a failed run.
    /// [`record_event`](Self::record_event) offers all fields.
    pub fn event(&self, type_: EventType, reason: &str, note: &str) {
        let event = Event { type_: Some(type_), reason: reason.to_owned(), note: note.to_owned(), ..Event::default() };
        if let Err(e) = self.record_event(&event) {
            self.log().warn("event not recorded", &[("reason", &reason), ("error", &e.to_string())]);
        }
    }

    /// Records an event.
    ///
    /// # Errors
    ///
    /// A status of the host.
    pub fn record_event(&self, event: &Event) -> Result<(), ApiError> {
        {
            let mut request = self.guest.request.borrow_mut();
            request.clear();
            let mut m = Message::new(&mut request);
            m.str("type", event.type_.map_or("", EventType::as_str));
            m.text("reason", clip(&event.reason));
            m.str("action", clip(&event.action));
            m.str("note", clip(&event.note));
            for (key, object) in [("regarding", &event.regarding), ("related", &event.related)] {
                if let Some(object) = object {
                    m.map(key, |o| object.write(o));
                }
            }
        }
        self.guest.perform(&imports::EVENT_RECORD, |_| ())
    }
}

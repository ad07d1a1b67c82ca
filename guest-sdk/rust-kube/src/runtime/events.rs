// SPDX-License-Identifier: Apache-2.0
//! Events of objects, as `kubectl events` shows them.

use k8s_openapi::api::core::v1::ObjectReference;
use wasmctl::EventObject;

use crate::client::Client;
use crate::error::Result;
use crate::executor::ask;

/// An event of an object.
pub struct Event {
    /// The severity.
    pub type_: EventType,
    /// The cause: a CamelCase word of at most 128 bytes.
    pub reason: String,
    /// For people. It has at most 1024 bytes; a longer note is truncated.
    pub note: Option<String>,
    /// The action that was taken or failed: a CamelCase word.
    pub action: String,
    /// A second object, for example a child.
    pub secondary: Option<ObjectReference>,
}

/// The severity of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// An ordinary event.
    Normal,
    /// A problem that deserves attention.
    Warning,
}

/// The reporter of an event. The host ignores it, because its events are the
/// controller's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reporter {
    /// The name of the controller.
    pub controller: String,
    /// The name of the replica.
    pub instance: Option<String>,
}

impl From<String> for Reporter {
    fn from(controller: String) -> Self {
        Reporter { instance: Some(controller.clone()), controller }
    }
}

impl From<&str> for Reporter {
    fn from(controller: &str) -> Self {
        controller.to_owned().into()
    }
}

/// Records events through the host.
///
/// The host counts equal events instead of writing each one, and limits their number. So
/// a call without an error means that the host accepted the event, not that it wrote the
/// event. It needs the right `Capability::new("events.k8s.io", "events", &["create",
/// "patch"])`.
#[derive(Clone)]
pub struct Recorder(());

impl Recorder {
    /// Makes a recorder.
    #[must_use]
    pub fn new(_: Client, _: Reporter) -> Self {
        Recorder(())
    }

    /// Records an event about an object.
    ///
    /// # Errors
    ///
    /// A refusal of the host.
    pub async fn publish(&self, ev: &Event, reference: &ObjectReference) -> Result<()> {
        let event = wasmctl::Event {
            type_: Some(match ev.type_ {
                EventType::Normal => wasmctl::EventType::Normal,
                EventType::Warning => wasmctl::EventType::Warning,
            }),
            reason: ev.reason.clone(),
            action: ev.action.clone(),
            note: ev.note.clone().unwrap_or_default(),
            regarding: Some(object(reference)),
            related: ev.secondary.as_ref().map(object),
        };
        ask(move |ctx| ctx.record_event(&event)).await
    }
}

fn object(r: &ObjectReference) -> EventObject {
    let text = |s: &Option<String>| s.clone().unwrap_or_default();
    let object = wasmctl::ObjectRef::new(text(&r.api_version), text(&r.kind), text(&r.name)).within(text(&r.namespace));
    EventObject { object, uid: text(&r.uid) }
}

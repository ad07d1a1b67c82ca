// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeMap;

use crate::input::Input;
use crate::meta::ObjectKey;
use crate::object::Object;
use crate::value::Value;

/// What a request does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// Creates an object.
    Create,
    /// Changes an object.
    Update,
    /// Deletes an object.
    Delete,
    /// Connects to an object, for example with `kubectl exec`.
    Connect,
    /// An operation that is newer than this SDK.
    Other(String),
}

impl Operation {
    fn read(s: &str) -> Self {
        match s {
            "CREATE" => Operation::Create,
            "UPDATE" => Operation::Update,
            "DELETE" => Operation::Delete,
            "CONNECT" => Operation::Connect,
            _ => Operation::Other(s.to_owned()),
        }
    }

    /// The name in Kubernetes, `CREATE`.
    pub fn as_str(&self) -> &str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
            Operation::Other(word) => word,
        }
    }
}

/// The kind and the resource of a request, in one version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdmissionTarget<'a> {
    /// The group; empty for the core group.
    pub group: &'a str,
    /// The version.
    pub version: &'a str,
    /// The kind of the request's body, for example `Deployment` or `Scale`.
    pub kind: &'a str,
    /// The plural name, for example `deployments`.
    pub resource: &'a str,
    /// The subresource, for example `scale`; may be empty.
    pub subresource: &'a str,
}

impl<'a> AdmissionTarget<'a> {
    fn read(v: Value<'a>) -> Self {
        AdmissionTarget {
            group: v.str(&["group"]),
            version: v.str(&["version"]),
            kind: v.str(&["kind"]),
            resource: v.str(&["resource"]),
            subresource: v.str(&["subresource"]),
        }
    }
}

/// The sender of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name, for example `system:serviceaccount:default:builder`.
    pub username: String,
    /// Identifies the user, if the authenticator reports it.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// Further values of the authenticator.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// One request to the API server, as a [`Webhook`](crate::Webhook) receives it.
#[derive(Clone, Debug)]
pub struct Admission<'a> {
    /// The uid of the request.
    pub id: &'a str,
    /// The path of the webhook.
    pub webhook: &'a str,
    /// What the request does.
    pub operation: Operation,
    /// What the webhook selects, and the version of the objects.
    pub target: AdmissionTarget<'a>,
    /// What the client sent. It differs from `target` if the API server has converted the
    /// request.
    pub requested: AdmissionTarget<'a>,
    /// The name of the object. It is empty if the API server will generate it.
    pub key: ObjectKey,
    /// The object after the request; it does not exist for a deletion.
    pub object: Object<'a>,
    /// The object before the request; it does not exist for a creation.
    pub old: Object<'a>,
    /// The options of the request, for example CreateOptions; may be absent.
    pub options: Object<'a>,
    /// Whether the API server will not store the result.
    pub dry_run: bool,
    user: Value<'a>,
}

impl<'a> Admission<'a> {
    /// Decodes the request of an entry call.
    pub(crate) fn read(input: &Input<'a>) -> Self {
        let m = input.message;
        Admission {
            id: m.str(&["id"]),
            webhook: m.str(&["webhook"]),
            operation: Operation::read(m.str(&["operation"])),
            target: AdmissionTarget::read(m.at(&["target"])),
            requested: AdmissionTarget::read(m.at(&["requested"])),
            key: ObjectKey::read(Value::of(input.key)),
            object: Object::view(input.object),
            old: Object::view(input.old),
            options: Object::view(m.at(&["options"]).view),
            dry_run: input.dry_run,
            user: m.at(&["user"]),
        }
    }

    /// The sender of the request.
    pub fn user(&self) -> User {
        let extra = self.user.entries(&["extra"]);
        User {
            username: self.user.str(&["username"]).to_owned(),
            uid: self.user.str(&["uid"]).to_owned(),
            groups: self.user.strings(&["groups"]),
            extra: extra.map(|(key, values)| (key.to_owned(), values.strings(&[]))).collect(),
        }
    }
}

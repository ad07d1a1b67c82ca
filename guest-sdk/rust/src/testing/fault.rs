// SPDX-License-Identifier: Apache-2.0
use super::json::{map, Json};
use crate::api_error::{status, ApiError};
use crate::manifest::Capability;

/// An answer that is not OK.
pub(super) type Fault = ApiError;

pub(super) fn api_fault(code: i32, reason: &str, message: impl Into<String>) -> Fault {
    ApiError::new(code, reason, message)
}

pub(super) fn bad_request(message: impl Into<String>) -> Fault {
    ApiError::new(status::BAD_REQUEST, "BadRequest", message)
}

/// The answer for features that this host lacks; such a test needs a real cluster.
pub(super) fn not_served(what: &str) -> Fault {
    ApiError::new(status::UNSUPPORTED, "Unsupported", format!("testing does not serve {what}"))
}

/// The body of an error: the host's own form, or the API server's Status.
pub(super) fn body(fault: &Fault) -> Json {
    let code = ("code", Json::Int(i64::from(fault.status)));
    let reason = ("reason", Json::from(fault.reason.as_str()));
    let message = ("message", Json::from(fault.message.as_str()));
    if fault.status > 0 {
        let metadata = map([]);
        return map([
            ("apiVersion", "v1".into()),
            ("kind", "Status".into()),
            ("metadata", metadata),
            ("status", "Failure".into()),
            code,
            reason,
            message,
        ]);
    }
    let mut body = map([code, reason, message]);
    if let Some(rule) = &fault.rule {
        *body.entry("rule") = capability(rule);
    }
    body
}

fn capability(c: &Capability) -> Json {
    let list = |l: &[String]| Json::List(l.iter().map(|s| Json::from(s.as_str())).collect());
    let mut m =
        map([("group", c.group.as_str().into()), ("resource", c.resource.as_str().into()), ("verbs", list(&c.verbs))]);
    for (key, l) in [("subresources", &c.subresources), ("namespaces", &c.namespaces), ("names", &c.names)] {
        if !l.is_empty() {
            *m.entry(key) = list(l);
        }
    }
    m
}

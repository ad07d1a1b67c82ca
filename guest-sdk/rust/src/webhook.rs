// SPDX-License-Identifier: Apache-2.0
use std::fmt;

use serde::de::DeserializeOwned;
use serde::ser::Serialize;

use crate::action::{encode, Action};
use crate::admission::Admission;
use crate::context::Context;
use crate::error::{Error, ErrorClass};
use crate::guest::Entry;
use crate::input::Input;
use crate::object::Object;
use crate::plural;
use crate::verdict::{append_verdict, Change, Denial, Verdict};
use crate::watch::Watch;
use crate::wire::Message;

/// Judges the request of an entry call, and writes the verdict. A module without webhooks
/// does not link the code for either.
type Judge = Box<dyn Fn(&Context<'_>, &mut Vec<u8>)>;

/// Requests to the API server that the module judges before they take effect; see
/// [`Manifest::webhooks`](crate::Manifest).
///
/// ```
/// use wasmctl::{Admission, Cause, Context, Error, Verdict, Webhook};
///
/// fn validate(a: &Admission, _: &Context) -> Result<Verdict, Error> {
///     if a.object.int(&["spec", "replicas"]) < 0 {
///         return Ok(Verdict::invalid([Cause::new("spec.replicas", "must not be negative")]));
///     }
///     Ok(Verdict::allow())
/// }
///
/// let webhooks = vec![Webhook::validate(validate)];
/// ```
///
/// A webhook may only read the cache and the settings. A verdict must depend on nothing
/// but these and the request, because the API server may ask again. After an error, a
/// panic or a timeout, the failure policy decides.
pub struct Webhook {
    entry: Entry,
    judge: Judge,
    path: String,
    name: String,
    rules: Vec<WebhookRule>,
    failure_policy: String,
    match_policy: String,
    reinvocation_policy: String,
    timeout_seconds: u32,
    namespace_selector: String,
    object_selector: String,
    match_conditions: Vec<(String, String)>,
}

/// Defines methods that set a text.
macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $name: &str) -> Self {
            self.$name = $name.to_owned();
            self
        }
    )*};
}

impl Webhook {
    fn new<F, E>(entry: Entry, f: F) -> Self
    where
        F: Fn(&Admission<'_>, &Context<'_>) -> Result<Verdict, E> + 'static,
        E: Into<Error>,
    {
        let judge = move |ctx: &Context<'_>, dst: &mut Vec<u8>| {
            append_verdict(dst, f(&Admission::read(&ctx.input), ctx).map_err(Into::into));
        };
        Webhook {
            entry,
            judge: Box::new(judge),
            path: String::new(),
            name: String::new(),
            rules: Vec::new(),
            failure_policy: String::new(),
            match_policy: String::new(),
            reinvocation_policy: String::new(),
            timeout_seconds: 0,
            namespace_selector: String::new(),
            object_selector: String::new(),
            match_conditions: Vec::new(),
        }
    }

    /// Makes a webhook that allows or denies requests.
    pub fn validate<F, E>(f: F) -> Self
    where
        F: Fn(&Admission<'_>, &Context<'_>) -> Result<Verdict, E> + 'static,
        E: Into<Error>,
    {
        Self::new(Entry::Validate, f)
    }

    /// Makes a webhook that may also change the object of a request, with
    /// [`Verdict::defaulted`]. If it is called with its own result, it must not change
    /// anything.
    pub fn default<F, E>(f: F) -> Self
    where
        F: Fn(&Admission<'_>, &Context<'_>) -> Result<Verdict, E> + 'static,
        E: Into<Error>,
    {
        Self::new(Entry::Default, f)
    }

    /// Like [`validate`](Self::validate), with the objects decoded by serde: the object
    /// of the request and, for an update, the existing object. For a deletion, the first
    /// is the object that is deleted. An object that does not fit the type is denied.
    pub fn validate_typed<K, F, E>(f: F) -> Self
    where
        K: DeserializeOwned + 'static,
        F: Fn(&K, Option<&K>, &Admission<'_>, &Context<'_>) -> Result<Verdict, E> + 'static,
        E: Into<Error>,
    {
        Self::validate(move |a, ctx| {
            let (first, second) = if a.object.exists(&[]) { (&a.object, &a.old) } else { (&a.old, &a.object) };
            let decoded = decode::<K>(first).and_then(|k| match second.exists(&[]) {
                true => Ok((k, Some(decode::<K>(second)?))),
                false => Ok((k, None)),
            });
            match decoded {
                Err(denial) => Ok(denial.into()),
                Ok((k, old)) => f(&k, old.as_ref(), a, ctx).map_err(Into::into),
            }
        })
    }

    /// Like [`default`](Self::default), with the object of the request decoded by serde.
    /// The function changes it in place, and the verdict contains the change. Fields that
    /// the type lacks stay in the object. An object that does not fit the type is denied,
    /// and a deletion is allowed without a call.
    pub fn default_typed<K, F, E>(f: F) -> Self
    where
        K: Serialize + DeserializeOwned + 'static,
        F: Fn(&mut K, &Admission<'_>, &Context<'_>) -> Result<Verdict, E> + 'static,
        E: Into<Error>,
    {
        Self::default(move |a, ctx| {
            if !a.object.exists(&[]) {
                return Ok(Verdict::allow());
            }
            let mut k: K = match decode(&a.object) {
                Ok(k) => k,
                Err(denial) => return Ok::<_, Error>(denial.into()),
            };
            let base = encode(&k)?;
            let verdict = f(&mut k, a, ctx).map_err(Into::into)?;
            let object = encode(&k)?;
            if verdict.denied().is_some() || object == base {
                return Ok(verdict);
            }
            Ok(verdict.with_change(Ok(Change { object, base })))
        })
    }

    /// Makes a webhook that runs `reconcile` on the object of the request and discards its
    /// action. If `reconcile` returns a [permanent](Error::permanent) error, the request
    /// is denied with this error. Any other error allows the request, because it may be
    /// over when the object is reconciled.
    ///
    /// The run reads the settings and the cache as they are. [`Context::dry_run`] is true,
    /// and calls of the client return an error that
    /// [`ApiError::is_unavailable`](crate::ApiError::is_unavailable) matches, so a
    /// `reconcile` that uses the client is checked up to its first call. The webhook
    /// judges the object itself, not its subresources. It allows updates that leave the
    /// generation unchanged, and updates of an object that is being deleted, so an object
    /// that is already wrong can be labeled and deleted.
    pub fn validate_by_reconcile<F, E>(reconcile: F) -> Self
    where
        F: Fn(&Object<'_>, &Context<'_>) -> Result<Action, E> + 'static,
        E: Into<Error>,
    {
        Self::validate(move |a, ctx| {
            let (object, old) = (&a.object, &a.old);
            let unchanged = old.exists(&[]) && object.generation() != 0 && object.generation() == old.generation();
            if !object.exists(&[]) || !a.target.subresource.is_empty() || object.is_deleting() || unchanged {
                return Ok::<_, Error>(Verdict::allow());
            }
            let dry = Context::new(ctx.guest, Input { dry_run: true, ..ctx.input.clone() });
            let error = reconcile(object, &dry).err().map(Into::into);
            Ok(match error.filter(|e| e.class() == ErrorClass::Permanent) {
                Some(e) => {
                    Denial { code: 422, reason: "Invalid".into(), message: e.to_string(), causes: Vec::new() }.into()
                }
                None => Verdict::allow(),
            })
        })
    }

    texts! {
        /// Sets the path of the webhook's URL, which identifies it. Without it, the path
        /// is that of kubebuilder for the kind of `for_`:
        /// `/validate-example-com-v1-greeting`, or `/mutate-...` for a default.
        path
        /// Sets the qualified name in the configuration. Without it, the host makes one.
        name
        /// Sets `Fail` or `Ignore`. The default is `Fail` for the kind of `for_`, and
        /// `Ignore` for other kinds.
        failure_policy
        /// Sets `Exact` or `Equivalent`, the default.
        match_policy
        /// Sets `Never`, the default, or `IfNeeded`.
        reinvocation_policy
        /// Restricts the webhook to namespaces with these labels, in the syntax of
        /// kubectl.
        namespace_selector
        /// Restricts the webhook to objects with these labels, in the syntax of kubectl.
        object_selector
    }

    /// Adds a rule that selects requests. Without rules, the webhook selects CREATE and
    /// UPDATE of the kind of `for_`.
    #[must_use]
    pub fn rule(mut self, rule: WebhookRule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Sets the time limit of a call, 1 to 30 seconds; the default is 10.
    #[must_use]
    pub fn timeout_seconds(mut self, seconds: u32) -> Self {
        self.timeout_seconds = seconds;
        self
    }

    /// Adds a CEL expression that must be true for a request.
    #[must_use]
    pub fn match_condition(mut self, name: &str, expression: &str) -> Self {
        self.match_conditions.push((name.to_owned(), expression.to_owned()));
        self
    }

    /// Adds the path and the rule that are absent, from the reconciled kind.
    pub(crate) fn complete(&mut self, of: &Watch) {
        if of.kind.is_empty() || of.version.is_empty() {
            return;
        }
        if self.rules.is_empty() {
            let resource = plural::guess(&of.kind);
            self.rules.push(WebhookRule::new(&of.group, &of.version, &resource, &["CREATE", "UPDATE"]));
        }
        if self.path.is_empty() {
            let verb = if self.entry == Entry::Default { "mutate" } else { "validate" };
            let group: String = of.group.chars().map(|c| if c == '.' { '-' } else { c }).collect();
            self.path = format!("/{verb}-{group}-{}-{}", of.version, of.kind.to_ascii_lowercase());
        }
    }

    /// Whether the path and a rule are known.
    pub(crate) fn is_complete(&self) -> bool {
        !self.path.is_empty() && !self.rules.is_empty()
    }

    /// The entry function that calls this webhook.
    pub(crate) fn entry(&self) -> Entry {
        self.entry
    }

    /// Whether a rule selects requests for a resource.
    #[cfg(feature = "testing")]
    pub(crate) fn selects(&self, group: &str, version: &str, resource: &str, operation: &str) -> bool {
        let has = |list: &[String], word: &str| list.iter().any(|w| w == "*" || w == word);
        self.rules.iter().any(|r| {
            has(&r.groups, group)
                && has(&r.versions, version)
                && has(&r.resources, resource)
                && has(&r.operations, operation)
        })
    }

    pub(crate) fn url_path(&self) -> &str {
        &self.path
    }

    /// Judges the request of the entry call, and writes the verdict to `dst`.
    pub(crate) fn judge(&self, ctx: &Context<'_>, dst: &mut Vec<u8>) {
        (self.judge)(ctx, dst);
    }

    /// Writes the webhook in its form in a manifest.
    pub(crate) fn write(&self, m: &mut Message<'_>) {
        m.text("type", if self.entry == Entry::Default { "default" } else { "validate" });
        m.text("path", &self.path);
        m.str("name", &self.name);
        m.maps("rules", &self.rules, WebhookRule::write);
        m.str("failurePolicy", &self.failure_policy);
        m.str("matchPolicy", &self.match_policy);
        m.str("reinvocationPolicy", &self.reinvocation_policy);
        m.int("timeoutSeconds", i64::from(self.timeout_seconds));
        m.str("namespaceSelector", &self.namespace_selector);
        m.str("objectSelector", &self.object_selector);
        m.maps("matchConditions", &self.match_conditions, |(name, expression), c| {
            c.text("name", name);
            c.text("expression", expression);
        });
    }
}

/// Decodes an object of a request. An object that does not fit the type is denied.
fn decode<K: DeserializeOwned>(obj: &Object<'_>) -> Result<K, Denial> {
    obj.decode(&[]).map_err(|e| Denial {
        code: 400,
        reason: "BadRequest".into(),
        message: format!("{}: {e}", obj.to_ref()),
        causes: Vec::new(),
    })
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Webhook({:?} {})", self.entry, self.path)
    }
}

/// Selects requests by resource and operation. `*` matches everything in its list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebhookRule {
    /// The groups; "" is the core group.
    pub groups: Vec<String>,
    /// The versions.
    pub versions: Vec<String>,
    /// The plural names, with a subresource as in `deployments/scale`.
    pub resources: Vec<String>,
    /// CREATE, UPDATE, DELETE, CONNECT, or `*` for all.
    pub operations: Vec<String>,
    /// `Cluster`, `Namespaced` or `*`, the default.
    pub scope: String,
}

impl WebhookRule {
    /// The rule for operations on one resource.
    pub fn new(group: &str, version: &str, resource: &str, operations: &[&str]) -> Self {
        WebhookRule {
            groups: vec![group.to_owned()],
            versions: vec![version.to_owned()],
            resources: vec![resource.to_owned()],
            operations: operations.iter().map(|o| (*o).to_owned()).collect(),
            scope: String::new(),
        }
    }

    fn write(&self, m: &mut Message<'_>) {
        m.strs("apiGroups", &self.groups);
        m.strs("apiVersions", &self.versions);
        m.strs("resources", &self.resources);
        m.strs("operations", &self.operations);
        m.str("scope", &self.scope);
    }
}

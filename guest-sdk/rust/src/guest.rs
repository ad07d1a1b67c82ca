// SPDX-License-Identifier: Apache-2.0
//! One entry call: a message in, a message out.

use std::cell::RefCell;

use crate::action::append_result;
use crate::api_error::{status, ApiError};
use crate::context::Context;
use crate::error::Error;
use crate::failure::Failure;
use crate::host::{Host, Op};
use crate::input::Input;
use crate::object::Object;
use crate::reconciler::{Reconciler, Run};
use crate::value::Value;
use crate::watch::WatchEvent;
use crate::wire::{self, CodecError, Ends, Message, MAX_BYTES};

/// The entry functions that take a message and return one (abi/ABI.md, section 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Reconcile,
    ErrorPolicy,
    Finalize,
    Map,
    Configure,
    Validate,
    Default,
    Convert,
}

/// The most objects that one event may select (abi/ABI.md, section 4).
const MAX_KEYS: usize = 10_000;

/// The initial size of the block for answers, in bytes.
const MIN_ANSWER: usize = 8 << 10;

/// One instance of the module: its host, and the memory that each call reuses. Only one
/// thread uses it at a time.
pub(crate) struct Guest<'h> {
    pub(crate) host: &'h dyn Host,
    /// The request of the current operation.
    pub(crate) request: RefCell<Vec<u8>>,
    /// The answer of the last operation.
    answer: RefCell<Vec<u8>>,
}

impl<'h> Guest<'h> {
    pub(crate) fn new(host: &'h dyn Host) -> Self {
        Guest { host, request: RefCell::default(), answer: RefCell::default() }
    }

    /// Runs one entry call and writes its result to `dst`.
    pub(crate) fn call(&self, r: &Reconciler, entry: Entry, msg: &[u8], dst: &mut Vec<u8>) {
        dst.clear();
        let _ends = Ends::of(msg);
        match Input::parse(msg) {
            None => Error::msg("request[]: cannot be understood").permanent().append(dst),
            Some(input) => self.enter(r, entry, &Context::new(self, input), dst),
        }
        if dst.len() > MAX_BYTES {
            dst.clear();
            Error::from(CodecError::too_large()).permanent().with_reason("BadResult").append(dst);
        }
    }

    /// Runs the entry call `filter`. It returns true if the message cannot be decoded,
    /// because an unneeded event does no harm.
    pub(crate) fn keep(&self, r: &Reconciler, msg: &[u8]) -> bool {
        let _ends = Ends::of(msg);
        Input::parse(msg).map_or(true, |input| {
            let ctx = Context::new(self, input);
            r.manifest.keeps(&WatchEvent::read(&ctx.input), &ctx)
        })
    }

    fn enter(&self, r: &Reconciler, entry: Entry, ctx: &Context<'_>, dst: &mut Vec<u8>) {
        match entry {
            Entry::Reconcile => run(Some(&r.reconcile), ctx, dst),
            Entry::Finalize => run(r.finalize.as_ref(), ctx, dst),
            Entry::ErrorPolicy => error_policy(r, ctx, dst),
            Entry::Map => map_event(r, ctx, dst),
            Entry::Configure => configure(r, ctx, dst),
            Entry::Validate | Entry::Default => admit(r, entry, ctx, dst),
            Entry::Convert => convert(r, ctx, dst),
        }
    }

    /// Runs an operation with the request that was written, and reads its answer.
    pub(crate) fn perform<T>(&self, op: &Op, read: impl FnOnce(&[u8]) -> T) -> Result<T, ApiError> {
        let mut answer = self.answer.borrow_mut();
        if answer.is_empty() {
            answer.resize(MIN_ANSWER, 0);
        }
        let (code, n) = self.host.call(op, &self.request.borrow(), &mut answer);
        if n > MAX_BYTES {
            return Err(local(op, status::TOO_LARGE, "TooLarge", "the answer is longer than the longest message"));
        }
        if n > answer.len() {
            answer.resize(n + n / 4, 0);
            let taken = self.host.take(&mut answer[..n]);
            if usize::try_from(taken) != Ok(n) {
                return Err(local(op, status::INTERNAL, "Internal", "the host no longer has its answer"));
            }
        }
        if code != 0 {
            return Err(ApiError::read(op, code, &answer[..n]));
        }
        Ok(read(&answer[..n]))
    }
}

fn local(op: &Op, code: i32, reason: &str, message: &str) -> ApiError {
    ApiError { op: op.name, ..ApiError::new(code, reason, message) }
}

fn run(f: Option<&Run>, ctx: &Context<'_>, dst: &mut Vec<u8>) {
    match f {
        None => no_function().append(dst),
        Some(f) => append_result(dst, f(&Object::view(ctx.input.object), ctx)),
    }
}

fn no_function() -> Error {
    Error::msg("module: no function for this call; the manifest's hooks list the functions")
}

fn error_policy(r: &Reconciler, ctx: &Context<'_>, dst: &mut Vec<u8>) {
    let policy = match &r.error_policy {
        None => return no_function().append(dst),
        Some(policy) => policy,
    };
    let action = policy(&Object::view(ctx.input.object), &Failure::read(&ctx.input), ctx);
    if action.declares() {
        return Error::msg("error_policy: the action declares objects or a status; only a run may").append(dst);
    }
    append_result(dst, Ok(action));
}

/// Writes the keys that an event concerns: `{keys}` or `{error}`.
fn map_event(r: &Reconciler, ctx: &Context<'_>, dst: &mut Vec<u8>) {
    let event = WatchEvent::read(&ctx.input);
    let mapper = match r.manifest.mapper(event.group, event.kind) {
        None => return no_function().append(dst),
        Some(mapper) => mapper,
    };
    let mut keys = match mapper(&event, ctx) {
        Err(e) => return e.append(dst),
        Ok(keys) => keys,
    };
    // Skip keys that no object can have: mappers often read keys from labels and
    // annotations, which users write.
    keys.retain(|k| k.is_valid());
    if keys.len() > MAX_KEYS {
        return Error::msg("map: more than 10000 keys").permanent().append(dst);
    }
    let mut m = Message::new(dst);
    let list = m.key("keys");
    wire::append_array(list, keys.len());
    for k in &keys {
        let mut key = Message::new(list);
        key.str("namespace", &k.namespace);
        key.text("name", &k.name);
    }
}

fn configure(r: &Reconciler, ctx: &Context<'_>, dst: &mut Vec<u8>) {
    if let Some(configure) = &r.configure {
        if let Err(e) = configure(&Value::of(ctx.input.config).string_map(&[]), ctx) {
            e.append(dst);
        }
    }
}

fn admit(r: &Reconciler, entry: Entry, ctx: &Context<'_>, dst: &mut Vec<u8>) {
    let path = ctx.input.message.str(&["webhook"]);
    match r.manifest.webhooks.iter().find(|w| w.entry() == entry && w.url_path() == path) {
        None => no_function().append(dst),
        Some(w) => w.judge(ctx, dst),
    }
}

fn convert(r: &Reconciler, ctx: &Context<'_>, dst: &mut Vec<u8>) {
    if let Err(e) = r.manifest.convert(ctx, dst) {
        dst.clear();
        e.append(dst);
    }
}

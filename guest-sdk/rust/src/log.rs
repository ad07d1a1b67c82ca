// SPDX-License-Identifier: Apache-2.0
use crate::error::clip;
use crate::guest::Guest;
use crate::wire::{self, CodecError, Message};

/// The level of a log line; the numbers are those of Go's log/slog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Details for debugging.
    Debug = -4,
    /// An ordinary event.
    Info = 0,
    /// A problem that deserves attention but needs no immediate action.
    Warn = 4,
    /// A failure.
    Error = 8,
}

/// The value of an attribute: anything that serde serializes.
pub trait Attr {
    #[doc(hidden)]
    fn append(&self, dst: &mut Vec<u8>) -> Result<(), CodecError>;
}

impl<T: serde::Serialize + ?Sized> Attr for T {
    fn append(&self, dst: &mut Vec<u8>) -> Result<(), CodecError> {
        wire::append(dst, self)
    }
}

/// Writes to the host's log.
///
/// ```
/// # fn f(ctx: &wasmctl::Context, n: i64) {
/// ctx.log().info("scaled", &[("deployment", &"web"), ("replicas", &n)]);
/// # }
/// ```
///
/// If the host discards a level, the logger does not encode its lines.
#[derive(Clone, Copy)]
pub struct Logger<'a> {
    guest: &'a Guest<'a>,
}

impl<'a> Logger<'a> {
    pub(crate) fn new(guest: &'a Guest<'a>) -> Self {
        Logger { guest }
    }

    /// Whether the host records lines of this level.
    pub fn enabled(&self, level: Level) -> bool {
        level as i32 >= self.guest.host.log_level()
    }

    /// Logs details for debugging.
    pub fn debug(&self, msg: &str, attrs: &[(&str, &dyn Attr)]) {
        self.log(Level::Debug, msg, attrs);
    }

    /// Logs an ordinary event.
    pub fn info(&self, msg: &str, attrs: &[(&str, &dyn Attr)]) {
        self.log(Level::Info, msg, attrs);
    }

    /// Logs a problem that deserves attention but needs no immediate action.
    pub fn warn(&self, msg: &str, attrs: &[(&str, &dyn Attr)]) {
        self.log(Level::Warn, msg, attrs);
    }

    /// Logs a failure. Do not log errors that a run returns: the host logs them.
    pub fn error(&self, msg: &str, attrs: &[(&str, &dyn Attr)]) {
        self.log(Level::Error, msg, attrs);
    }

    /// Logs at a level.
    pub fn log(&self, level: Level, msg: &str, attrs: &[(&str, &dyn Attr)]) {
        if !self.enabled(level) {
            return;
        }
        let mut request = self.guest.request.borrow_mut();
        request.clear();
        let mut m = Message::new(&mut request);
        m.text("msg", clip(msg));
        for (i, (key, value)) in attrs.iter().enumerate() {
            let mut key = clip(key).to_owned();
            while key == "msg" || attrs[..i].iter().any(|(k, _)| *k == key) {
                key.push('_'); // keys of a map must be unique
            }
            let dst = m.key(&key);
            if let Err(e) = value.append(dst) {
                wire::append_str(dst, &format!("!ERROR: {e}"));
            }
        }
        drop(m);
        self.guest.host.log(level as i32, &request);
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Sends the output of the crate `log` to the host's log. This includes `tracing` with
//! its feature `log`.

use std::cell::RefCell;

use log::{LevelFilter, Log, Metadata, Record};
use wasmctl::{Context, Level};

struct Lines;

thread_local! {
    static LINES: RefCell<Vec<(Level, String, String)>> = const { RefCell::new(Vec::new()) };
}

/// The number of lines that can wait for a run; further lines are discarded.
const MAX_LINES: usize = 1_000;

/// Becomes the logger of the module, unless it has one.
pub(crate) fn install() {
    if log::set_logger(&Lines).is_ok() {
        log::set_max_level(LevelFilter::Debug);
    }
}

/// Sends the waiting lines to the host.
pub(crate) fn flush(ctx: &Context<'_>) {
    for (level, target, text) in LINES.take() {
        ctx.log().log(level, &text, &[("target", &target)]);
    }
}

impl Log for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= LevelFilter::Debug
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let level = match record.level() {
            log::Level::Error => Level::Error,
            log::Level::Warn => Level::Warn,
            log::Level::Info => Level::Info,
            log::Level::Debug | log::Level::Trace => Level::Debug,
        };
        LINES.with_borrow_mut(|lines| {
            if lines.len() < MAX_LINES {
                lines.push((level, record.target().to_owned(), record.args().to_string()));
            }
        });
    }

    fn flush(&self) {}
}

// SPDX-License-Identifier: Apache-2.0
use std::cell::{Cell, RefCell};
use std::fmt::Debug;
use std::future::Future;
use std::task::Poll;

use wasmctl::Reconciler;

use crate::{executor, logger};

thread_local! {
    /// The controller that `main` has started.
    static STARTED: RefCell<Option<Reconciler>> = const { RefCell::new(None) };
    /// Name and version of the package that calls `main!`.
    static PACKAGE: Cell<(&'static str, &'static str)> = const { Cell::new(("", "")) };
}

/// Makes a module from the `async fn main` of a controller. Use it once, in the root of a
/// `cdylib`. In a native build it defines nothing.
///
/// The function runs in each instance of the module, before its first run, until it waits
/// for the controller. See [`module`].
#[macro_export]
macro_rules! main {
    ($main:path) => {
        const _: () = {
            #[allow(dead_code)]
            fn reconciler() -> $crate::__private::wasmctl::Reconciler {
                $crate::__private::module(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"), $main)
            }
            $crate::__private::wasmctl::export!(reconciler);
        };
    };
}

/// The result of `main`: nothing, or a `Result`.
pub trait Outcome {
    /// The error, as text.
    fn error(self) -> Option<String>;
}

impl Outcome for () {
    fn error(self) -> Option<String> {
        None
    }
}

impl<E: Debug> Outcome for Result<(), E> {
    fn error(self) -> Option<String> {
        self.err().map(|e| format!("{e:?}"))
    }
}

/// The controller that `main` runs, for a host; see [`main!`](crate::main).
///
/// # Panics
///
/// If `main` fails, or does not run exactly one
/// [`Controller`](crate::runtime::Controller). The host then does not load the module,
/// and shows the text.
pub fn module<F, Fut>(main: F) -> Reconciler
where
    F: FnOnce() -> Fut,
    Fut: Future,
    Fut::Output: Outcome,
{
    logger::install();
    STARTED.set(None);
    let end = executor::poll_once(main());
    match (STARTED.take(), end) {
        (Some(reconciler), _) => reconciler,
        (None, Poll::Pending) => {
            panic!("main waits for something before it runs a Controller: a module has no timers, sockets and tasks")
        }
        (None, Poll::Ready(out)) => match out.error() {
            Some(e) => panic!("main: {e}"),
            None => panic!("main ends without Controller::run"),
        },
    }
}

/// The module of a package; see [`module`].
pub fn module_of<F, Fut>(name: &'static str, version: &'static str, main: F) -> Reconciler
where
    F: FnOnce() -> Fut,
    Fut: Future,
    Fut::Output: Outcome,
{
    PACKAGE.set((name, version));
    module(main)
}

/// Name and version of the package, if known.
pub(crate) fn package() -> (String, String) {
    let (name, version) = PACKAGE.get();
    (name.to_owned(), version.to_owned())
}

/// Stores the controller that `main` runs.
pub(crate) fn start(reconciler: Reconciler) {
    STARTED.with_borrow_mut(|started| {
        assert!(started.is_none(), "main runs two controllers: make a module of each");
        *started = Some(reconciler);
    });
}

// SPDX-License-Identifier: Apache-2.0
use std::cell::{Cell, RefCell};
use std::fmt::Debug;
use std::future::{self, Future};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use wasmctl::{Action, Context, Error, Manifest, Object, Reconciler};

use crate::runtime::running::Runs;
use crate::{executor, logger};

thread_local! {
    /// The controller that `main` has started.
    static STARTED: RefCell<Option<(Manifest, Arc<Runs>)>> = const { RefCell::new(None) };
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
    Fut: Future + 'static,
    Fut::Output: Outcome,
{
    logger::install();
    STARTED.set(None);
    let mut main = Box::pin(main());
    let end = executor::poll_once(main.as_mut());
    match (STARTED.take(), end) {
        (Some((manifest, runs)), Poll::Pending) => {
            let main = RefCell::new(Some(main));
            Reconciler::new(manifest, move |obj: &Object<'_>, ctx: &Context<'_>| run(&main, &runs, obj, ctx))
        }
        (None, Poll::Pending) => {
            panic!("main waits for something before it runs a Controller: a module has no timers, sockets and tasks")
        }
        (started, Poll::Ready(out)) => match (out.error(), started) {
            (Some(e), _) => panic!("main: {e}"),
            (None, Some(_)) => panic!("main ends without waiting for the stream of Controller::run: await it"),
            (None, None) => panic!("main ends without Controller::run"),
        },
    }
}

/// Runs an object: polls `main`, which waits for the stream of its controller, until the
/// run has ended.
fn run<Fut: Future>(
    main: &RefCell<Option<Pin<Box<Fut>>>>,
    runs: &Runs,
    obj: &Object<'_>,
    ctx: &Context<'_>,
) -> Result<Action, Error> {
    runs.begin(obj)?;
    let mut main = main.borrow_mut();
    let end = executor::block_on(
        ctx,
        future::poll_fn(|task| {
            if main.as_mut().is_some_and(|main| main.as_mut().poll(task).is_ready()) {
                *main = None;
            }
            match runs.end() {
                Some(end) => Poll::Ready(Some(end)),
                None if main.is_none() => Poll::Ready(None),
                None => Poll::Pending,
            }
        }),
    )?;
    match end {
        Some(Ok(action)) => Ok(action.into()),
        Some(Err(failed)) => Err(failed.into()),
        None => Err(Error::msg("main has ended: it must await the stream of Controller::run for ever").permanent()),
    }
}

/// The module of a package; see [`module`].
pub fn module_of<F, Fut>(name: &'static str, version: &'static str, main: F) -> Reconciler
where
    F: FnOnce() -> Fut,
    Fut: Future + 'static,
    Fut::Output: Outcome,
{
    PACKAGE.set((name, version));
    module(main)
}

/// Stores the controller that `main` runs.
pub(crate) fn start(manifest: Manifest, runs: Arc<Runs>) {
    let (name, version) = PACKAGE.get();
    let manifest = Manifest { name: name.to_owned(), version: version.to_owned(), ..manifest };
    STARTED.with_borrow_mut(|started| {
        assert!(started.is_none(), "main runs two controllers: make a module of each");
        *started = Some((manifest, runs));
    });
}

// SPDX-License-Identifier: Apache-2.0
use std::cell::{Cell, RefCell};
use std::fmt::Debug;
use std::future::{self, Future};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use wasmctl::{Action, Context, Error, Manifest, Object, Reconciler};

use crate::runtime::running::Runs;
use crate::{executor, logger};

thread_local! {
    /// The controllers that `main` has started.
    static STARTED: RefCell<Vec<(Manifest, Arc<Runs>)>> = const { RefCell::new(Vec::new()) };
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

/// The only controller that `main` runs, for a host; see [`main!`](crate::main).
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
    let mut all = controllers(main);
    assert!(all.len() == 1, "main runs {} controllers: use kube::controllers", all.len());
    all.remove(0).1
}

/// The controllers that `main` runs, and their names. If there are several, they are named
/// like their kinds, in lower case. A host loads the module once for each.
///
/// # Panics
///
/// If `main` fails, or runs no [`Controller`](crate::runtime::Controller).
pub fn controllers<F, Fut>(main: F) -> Vec<(String, Reconciler)>
where
    F: FnOnce() -> Fut,
    Fut: Future + 'static,
    Fut::Output: Outcome,
{
    logger::install();
    STARTED.take();
    let mut main = Box::pin(main());
    let end = executor::poll_once(main.as_mut());
    let started = STARTED.take();
    match (started.is_empty(), end.map(Outcome::error)) {
        (_, Poll::Ready(Some(e))) => panic!("main: {e}"),
        (true, Poll::Ready(None)) => panic!("main ends without Controller::run"),
        (false, Poll::Ready(None)) => panic!("main ends without waiting for the stream of Controller::run: await it"),
        (true, Poll::Pending) => {
            panic!("main waits for something before it runs a Controller: a module has no timers, sockets and tasks")
        }
        (false, Poll::Pending) => {}
    }
    let main = Rc::new(RefCell::new(Some(main)));
    let names = names(&started);
    let all = started.into_iter().zip(names).map(|((manifest, runs), name)| {
        let (main, manifest) = (main.clone(), Manifest { name: name.clone(), ..manifest });
        (name, Reconciler::new(manifest, move |obj: &Object<'_>, ctx: &Context<'_>| run(&main, &runs, obj, ctx)))
    });
    all.collect()
}

/// The names of the controllers: that of the package for a single one, otherwise those of
/// the kinds, with a number if a kind has several.
fn names(started: &[(Manifest, Arc<Runs>)]) -> Vec<String> {
    if started.len() == 1 {
        return vec![PACKAGE.get().0.to_owned()];
    }
    let mut names: Vec<String> = Vec::new();
    for (_, runs) in started {
        let kind = runs.kind.to_lowercase();
        let name = match started.iter().take(names.len()).filter(|(_, before)| before.kind == runs.kind).count() {
            0 => kind,
            n => format!("{kind}-{}", n + 1),
        };
        names.push(name);
    }
    names
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

/// The controller of this instance, for `main!`.
pub fn module_of<F, Fut>(name: &'static str, version: &'static str, main: F) -> Reconciler
where
    F: FnOnce() -> Fut,
    Fut: Future + 'static,
    Fut::Output: Outcome,
{
    PACKAGE.set((name, version));
    choose(controllers(main), &wasmctl::controller())
}

/// The only controller, or the one with that name.
fn choose(mut all: Vec<(String, Reconciler)>, name: &str) -> Reconciler {
    if all.len() == 1 {
        return all.remove(0).1;
    }
    let names: Vec<String> = all.iter().map(|(name, _)| name.clone()).collect();
    let Some((_, chosen)) = all.into_iter().find(|(n, _)| n == name) else {
        // wasmctl build reads the names from this text.
        panic!(
            "main runs {} controllers, and none is named {name:?}: run it once for each, with --name and one of {}",
            names.len(),
            names.join(", "),
        );
    };
    chosen
}

/// Stores a controller that `main` runs.
pub(crate) fn start(manifest: Manifest, runs: Arc<Runs>) {
    let manifest = Manifest { version: PACKAGE.get().1.to_owned(), ..manifest };
    STARTED.with_borrow_mut(|started| started.push((manifest, runs)));
}

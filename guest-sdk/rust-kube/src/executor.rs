// SPDX-License-Identifier: Apache-2.0
//! Runs one future, and serves its requests.
//!
//! A future that calls the host adds a request to a queue of its thread and is pending.
//! The executor, which has the run, carries out the queued requests and polls again. So
//! no future keeps a reference to the run, and futures may be joined, selected and
//! dropped as with any executor.

use std::cell::RefCell;
use std::future::Future;
use std::pin::{pin, Pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context as Task, Poll, Wake, Waker};

use wasmctl::{ApiError, Context};

use crate::error::{Error, Result};
use crate::logger;

type Request = Box<dyn FnOnce(&Context<'_>)>;

thread_local! {
    /// The requests of the run of this thread; `None` outside of a run.
    static REQUESTS: RefCell<Option<Vec<Request>>> = const { RefCell::new(None) };
}

/// The number of times that a future may wake itself without a request. Beyond that, it
/// is a loop that waits for time to pass, which would end without a message at the time
/// limit of the run.
const MAX_IDLE: usize = 10_000;

/// A future that cannot make progress.
#[derive(Debug, thiserror::Error)]
#[error(
    "run: the future waits for something that a module does not have (a timer, a socket, a thread or a task): \
     return Action::requeue to wait"
)]
pub(crate) struct Stuck;

/// Runs a future to its end, and serves its requests with `ctx`.
pub(crate) fn block_on<F: Future>(ctx: &Context<'_>, future: F) -> std::result::Result<F::Output, Stuck> {
    let _run = Run::enter();
    let mut future = pin!(future);
    let mut idle = 0;
    loop {
        let (polled, woken) = poll(future.as_mut());
        logger::flush(ctx);
        if let Poll::Ready(out) = polled {
            return Ok(out);
        }
        let requests = REQUESTS.with_borrow_mut(|r| r.replace(Vec::new())).unwrap_or_default();
        idle = if requests.is_empty() { idle + 1 } else { 0 };
        if requests.is_empty() && !woken || idle > MAX_IDLE {
            return Err(Stuck);
        }
        requests.into_iter().for_each(|request| request(ctx));
    }
}

/// Polls a future once, outside of a run.
pub(crate) fn poll_once<F: Future>(future: F) -> Poll<F::Output> {
    poll(pin!(future)).0
}

/// Polls a future, and returns whether it has woken itself.
fn poll<F: Future>(future: Pin<&mut F>) -> (Poll<F::Output>, bool) {
    let flag = Arc::new(Flag(AtomicBool::new(false)));
    let polled = future.poll(&mut Task::from_waker(&Waker::from(flag.clone())));
    (polled, flag.0.load(Ordering::Relaxed))
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Enables the queue of requests. Dropping it disables the queue with the run, even after
/// a panic in a test.
struct Run;

impl Run {
    fn enter() -> Self {
        REQUESTS.set(Some(Vec::new()));
        Run
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        REQUESTS.set(None);
    }
}

/// Calls the host, within the run.
pub(crate) async fn ask<T: Send + 'static>(
    f: impl FnOnce(&Context<'_>) -> std::result::Result<T, ApiError> + Send + 'static,
) -> Result<T> {
    Ok(Ask { request: Some(Box::new(f)), answer: Arc::default() }.await??)
}

type Answer<T> = std::result::Result<T, ApiError>;
type Question<T> = Box<dyn FnOnce(&Context<'_>) -> Answer<T> + Send>;

/// The future of one request.
struct Ask<T> {
    request: Option<Question<T>>,
    answer: Arc<Mutex<Option<Answer<T>>>>,
}

impl<T: 'static> Future for Ask<T> {
    type Output = Result<Answer<T>>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Self::Output> {
        if let Some(answer) = lock(&self.answer).take() {
            return Poll::Ready(Ok(answer));
        }
        let Some(request) = self.request.take() else {
            return Poll::Pending; // it is in the queue
        };
        let (slot, waker) = (Arc::downgrade(&self.answer), task.waker().clone());
        let put = REQUESTS.with_borrow_mut(|box_| match box_ {
            Some(requests) => {
                requests.push(Box::new(move |ctx| serve(ctx, request, &slot, waker)));
                true
            }
            None => false,
        });
        if put {
            return Poll::Pending;
        }
        Poll::Ready(Err(Error::NoRun("make calls in reconcile; main only declares the watches of the controller")))
    }
}

/// Carries out a request, unless its future has been dropped: then the call is never
/// made.
fn serve<T>(
    ctx: &Context<'_>,
    request: impl FnOnce(&Context<'_>) -> Answer<T>,
    slot: &Weak<Mutex<Option<Answer<T>>>>,
    waker: Waker,
) {
    if let Some(slot) = slot.upgrade() {
        *lock(&slot) = Some(request(ctx));
        waker.wake();
    }
}

fn lock<T>(slot: &Mutex<T>) -> MutexGuard<'_, T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

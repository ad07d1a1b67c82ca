// SPDX-License-Identifier: Apache-2.0
//! Tests of the executor and of the controller, on a host in memory.

use std::future::{self, Future};
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context as Task, Poll};
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{
    Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, ObjectMeta, Patch, PatchParams, PostParams,
};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::reflector::ObjectRef as Ref;
use kube::runtime::watcher;
use kube::testing::{json, ApiError, Host, ObjectRef, Run};
use kube::{Capability, Client, Error, ResourceExt};

type Reconciled<'a> = Pin<Box<dyn Future<Output = Result<Action, Error>> + Send + 'a>>;
type Reconcile = fn(Arc<ConfigMap>, Client) -> Reconciled<'static>;

/// Makes a module from a function for ConfigMaps, with all rights.
async fn main_of(reconcile: Reconcile) {
    let client = Client::try_default().await.unwrap();
    let maps = Api::<ConfigMap>::all(client.clone());
    Controller::new(maps, watcher::Config::default())
        .capability(Capability::new("", "configmaps", &["*"]))
        .capability(Capability::new("", "secrets", &["get"]))
        .run(
            move |map, client: Arc<Client>| reconcile(map, client.as_ref().clone()),
            |_, _: &Error, _| Action::requeue(Duration::from_secs(7)),
            Arc::new(client),
        )
        .for_each(|_| future::ready(()))
        .await;
}

fn at(name: &str) -> ObjectRef {
    ObjectRef::new("v1", "ConfigMap", name).within("default")
}

/// Makes a host with the ConfigMap `a`, and runs it once.
fn run(reconcile: Reconcile) -> (Host, Run) {
    let host = Host::new();
    host.add(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}, "data": {"n": "1"}}));
    let run = host.reconcile(&kube::module(|| main_of(reconcile)), &at("a"));
    let run = Run { object: at("a"), result: run };
    (host, run)
}

fn maps(client: Client) -> Api<ConfigMap> {
    Api::namespaced(client, "default")
}

#[test]
fn calls_are_those_of_kube_rs() {
    let (host, run) = run(|map, client| {
        Box::pin(async move {
            let maps = maps(client);
            assert_eq!(maps.get_opt("b").await?, None);
            assert!(matches!(maps.get("b").await, Err(Error::Api(e)) if e.code == 404 && e.is_not_found()));
            let new = ConfigMap {
                metadata: ObjectMeta { name: Some("b".into()), ..ObjectMeta::default() },
                data: map.data.clone(),
                ..ConfigMap::default()
            };
            let mut b = maps.create(&PostParams::default(), &new).await?;
            assert!(
                matches!(maps.create(&PostParams::default(), &new).await, Err(Error::Api(e)) if e.is_already_exists())
            );
            let stale = b.clone();
            b.labels_mut().insert("app".into(), "b".into());
            assert_eq!(maps.replace("b", &PostParams::default(), &b).await?.labels()["app"], "b");
            let refused = maps.replace("b", &PostParams::default(), &stale).await;
            assert!(matches!(refused, Err(Error::Api(e)) if e.is_conflict()), "a stale replace went through");
            let list = maps.list(&ListParams::default().labels("app=b")).await?;
            assert_eq!(list.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["b"]);
            let page = maps.list(&ListParams::default().limit(1)).await?;
            assert!(page.items.len() == 1 && page.metadata.continue_.is_some());
            assert_eq!(maps.get_metadata("b").await?.labels()["app"], "b");
            let patch = json_patch(&[("add", "/data/m")]);
            assert_eq!(maps.patch("b", &PatchParams::default(), &patch).await?.data.unwrap()["m"], "2");
            maps.delete("b", &Default::default()).await?;
            assert_eq!(maps.get_opt("b").await?, None);
            Ok(Action::requeue(Duration::from_secs(1)))
        })
    });
    assert!(run.result.failure.is_none(), "{run:?}");
    assert_eq!(run.result.action.requeued(), Some(Duration::from_secs(1)));
    assert!(!host.get(&at("b")).exists(&[]));
}

fn json_patch(ops: &[(&str, &str)]) -> Patch<()> {
    let ops: Vec<_> = ops.iter().map(|(op, path)| serde_json::json!({"op": op, "path": path, "value": "2"})).collect();
    Patch::Json(serde_json::from_value(ops.into()).unwrap())
}

#[test]
fn a_type_without_a_kind_of_its_own_is_read_and_written() {
    let (host, run) = run(|_, client| {
        Box::pin(async move {
            let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
            let maps: Api<DynamicObject> = Api::namespaced_with(client, "default", &kind);
            let mut a = maps.get("a").await?;
            assert_eq!(a.data["data"]["n"], "1");
            a.data["data"]["n"] = "2".into();
            maps.replace("a", &PostParams::default(), &a).await?;
            Ok(Action::await_change())
        })
    });
    assert!(run.result.failure.is_none(), "{run:?}");
    assert_eq!(host.get(&at("a")).str(&["data", "n"]), "2");
}

#[test]
fn requests_of_joined_futures_are_all_answered() {
    let (host, run) = run(|_, client| {
        Box::pin(async move {
            let maps = maps(client);
            let (one, two) = futures::join!(maps.get("a"), maps.get_opt("b"));
            assert!(one.is_ok() && two?.is_none());
            let mut many: futures::stream::FuturesUnordered<_> = (0..40).map(|_| maps.get("a")).collect();
            while let Some(map) = many.next().await {
                assert_eq!(map?.name_any(), "a");
            }
            Ok(Action::await_change())
        })
    });
    assert!(run.result.failure.is_none(), "{run:?}");
    assert_eq!(host.calls().len(), 42);
}

#[test]
fn a_request_whose_future_was_dropped_is_not_made() {
    let (host, run) = run(|_, client| {
        Box::pin(async move {
            let maps = maps(client);
            let mut delete = Box::pin(async { maps.delete("a", &Default::default()).await });
            assert!(futures::poll!(&mut delete).is_pending());
            drop(delete);
            maps.get("a").await?;
            Ok(Action::await_change())
        })
    });
    assert!(run.result.failure.is_none(), "{run:?}");
    assert_eq!(host.calls().iter().map(|c| c.op.clone()).collect::<Vec<_>>(), ["api_get"]);
}

/// A future that wakes itself and is never ready.
struct Restless;

impl Future for Restless {
    type Output = ();

    fn poll(self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<()> {
        task.waker().wake_by_ref();
        Poll::Pending
    }
}

#[test]
fn a_future_that_waits_for_something_else_fails_the_run() {
    let never: [Reconcile; 2] = [
        |_, _| Box::pin(async { future::pending().await }),
        |_, _| {
            Box::pin(async {
                Restless.await;
                Ok(Action::await_change())
            })
        },
    ];
    for reconcile in never {
        let (_, run) = run(reconcile);
        let failure = run.result.failure.expect("the run has failed");
        assert!(failure.message.contains("Action::requeue"), "{failure:?}");
    }
}

#[test]
fn the_error_policy_decides_after_a_conflict_too() {
    let host = Host::new();
    host.add(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}));
    host.fail_next("api_get", ApiError::new(409, "Conflict", "somebody else"));
    let module = kube::module(|| {
        main_of(|_, client| Box::pin(async move { maps(client).get("a").await.map(|_| Action::await_change()) }))
    });
    let run = host.reconcile(&module, &at("a"));
    let failure = run.failure.expect("the run has failed");
    assert_eq!((failure.after, failure.reason.as_str()), (Duration::from_secs(7), "Conflict"));
    assert_eq!(failure.class, wasmctl::ErrorClass::Transient);
}

#[test]
fn a_right_that_is_missing_is_a_403_that_says_what_to_do() {
    let (_, run) = run(|_, client| {
        Box::pin(async move {
            let secrets: Api<Secret> = Api::namespaced(client, "default");
            let denied = secrets.delete("s", &Default::default()).await;
            match denied {
                Err(Error::Api(e)) if e.code == 403 && e.is_forbidden() => {
                    assert!(e.message.contains(r#"Capability::new("", "secrets", &["delete"])"#), "{e}");
                }
                other => panic!("{other:?}"),
            }
            Ok(Action::await_change())
        })
    });
    assert!(run.result.failure.is_none(), "{run:?}");
}

#[test]
fn a_call_outside_of_a_run_is_an_error() {
    let seen: Arc<Mutex<Option<String>>> = Arc::default();
    let saw = seen.clone();
    drop(kube::module(|| async move {
        let client = Client::try_default().await.unwrap();
        *saw.lock().unwrap() = Some(maps(client).get("a").await.unwrap_err().to_string());
        main_of(|_, _| Box::pin(async { Ok(Action::await_change()) })).await;
    }));
    assert!(seen.lock().unwrap().as_deref().unwrap().contains("make calls in reconcile"));
}

/// A `main` whose functions borrow from it, and whose stream is in a set of futures that
/// polls only those that were woken. It writes the results to `seen`.
async fn borrowing(seen: Arc<Mutex<Vec<String>>>) {
    let client = Client::try_default().await.unwrap();
    let runs = AtomicU32::new(0);
    let maps = Api::<ConfigMap>::all(client.clone());
    let results = Controller::new(maps, watcher::Config::default())
        .run(
            |map, _| {
                let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
                let run = runs.fetch_add(1, Ordering::Relaxed);
                async move {
                    match run {
                        0 => future::pending().await,
                        1 => maps.get("missing").await.map(|_| Action::await_change()),
                        _ => maps.get(&map.name_any()).await.map(|_| Action::requeue(Duration::from_secs(3))),
                    }
                }
            },
            |_, _, _| Action::requeue(Duration::from_secs(1 + u64::from(runs.load(Ordering::Relaxed)))),
            Arc::new(()),
        )
        .for_each(|result| {
            seen.lock().unwrap().push(match result {
                Ok((object, _)) => format!("{object}"),
                Err(e) => format!("{e}"),
            });
            future::ready(())
        });
    let mut all: futures::stream::FuturesUnordered<_> = [results].into_iter().collect();
    all.next().await;
}

#[test]
fn functions_borrow_from_main_and_results_reach_it() {
    let host = Host::new();
    host.add(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}));
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let main_seen = seen.clone();
    let module = kube::module(|| borrowing(main_seen));
    let failed = |run: kube::testing::RunResult| run.failure.expect("the run has failed");
    assert!(failed(host.reconcile(&module, &at("a"))).message.contains("Action::requeue"));
    assert_eq!(
        failed(host.reconcile(&module, &at("a"))).after,
        Duration::from_secs(3),
        "the error policy borrows, too"
    );
    for _ in 0..2 {
        let run = host.reconcile(&module, &at("a"));
        assert_eq!(run.action.requeued(), Some(Duration::from_secs(3)), "{run:?}");
    }
    let seen = seen.lock().unwrap();
    assert_eq!(
        *seen,
        ["reconciler for object ConfigMap.v1./a.default failed", "ConfigMap.v1./a.default", "ConfigMap.v1./a.default"]
    );
}

#[test]
#[allow(deprecated)]
fn triggers_and_boxed_streams_are_accepted() {
    drop(kube::module(|| async {
        let client = Client::try_default().await.unwrap();
        let config = watcher::Config::default();
        let boxed: Pin<Box<dyn Future<Output = ()> + Send>> = Controller::new(Api::<ConfigMap>::all(client), config)
            .reconcile_all_on(futures::stream::pending())
            .reconcile_on(futures::stream::pending())
            .run(|_, _| async { Ok(Action::await_change()) }, |_, _: &Error, _| Action::await_change(), Arc::new(()))
            .for_each(|_| future::ready(()))
            .boxed();
        boxed.await;
    }));
}

#[test]
fn a_main_that_has_ended_fails_the_next_run() {
    let host = Host::new();
    host.add(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}));
    let module = kube::module(|| async {
        let client = Client::try_default().await.unwrap();
        let maps = Api::<ConfigMap>::all(client);
        let results = Controller::new(maps, watcher::Config::default()).run(
            |_, _| async { Ok(Action::await_change()) },
            |_, _: &Error, _| Action::await_change(),
            Arc::new(()),
        );
        results.take(1).for_each(|_| future::ready(())).await;
    });
    assert!(host.reconcile(&module, &at("a")).failure.is_none());
    let failure = host.reconcile(&module, &at("a")).failure.expect("the run has failed");
    assert!(failure.message.contains("main has ended"), "{failure:?}");
}

#[test]
#[should_panic(expected = "without waiting for the stream")]
fn a_main_that_does_not_await_the_stream_is_refused() {
    drop(kube::module(|| async {
        let client = Client::try_default().await.unwrap();
        drop(Controller::new(Api::<ConfigMap>::all(client), watcher::Config::default()).run(
            |_, _| async { Ok(Action::await_change()) },
            |_, _: &Error, _| Action::await_change(),
            Arc::new(()),
        ));
    }));
}

#[test]
#[should_panic(expected = "main ends without Controller::run")]
fn a_main_without_a_controller_is_refused() {
    drop(kube::module(|| async {}));
}

#[test]
#[should_panic(expected = "main: NoRun")]
fn a_main_that_fails_is_refused() {
    drop(kube::module(|| async { maps(Client::try_default().await?).get("a").await.map(drop) }));
}

async fn after<K>(_: Arc<K>, seconds: Arc<u64>) -> Result<Action, Error> {
    Ok(Action::requeue(Duration::from_secs(*seconds)))
}

fn ignore<K>(_: Arc<K>, _: &Error, _: Arc<u64>) -> Action {
    Action::await_change()
}

fn idle<T>(_: T) -> future::Ready<()> {
    future::ready(())
}

#[test]
fn several_controllers_share_main_and_have_the_names_of_their_kinds() {
    let all = kube::controllers(|| async {
        let client = Client::try_default().await.unwrap();
        let config = watcher::Config::default;
        let maps = Api::<ConfigMap>::all(client.clone());
        let one = Controller::new(maps.clone(), config()).run(after, ignore, Arc::new(1));
        let two = Controller::new(Api::<Secret>::all(client), config()).run(after, ignore, Arc::new(2));
        let three = Controller::new(maps, config()).run(after, ignore, Arc::new(3));
        futures::join!(one.for_each(idle), two.for_each(idle), three.for_each(idle));
    });
    let names: Vec<_> = all.iter().map(|(name, module)| (name.as_str(), module.manifest().name.as_str())).collect();
    assert_eq!(names, [("configmap", "configmap"), ("secret", "secret"), ("configmap-2", "configmap-2")]);
    let host = Host::new();
    host.add(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}));
    host.add(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "default"}}));
    let secret = ObjectRef::new("v1", "Secret", "a").within("default");
    for (i, object) in [(2, at("a")), (0, at("a")), (1, secret)] {
        let run = host.reconcile(&all[i].1, &object);
        assert_eq!(run.action.requeued(), Some(Duration::from_secs(i as u64 + 1)), "{run:?}");
    }
}

#[test]
#[should_panic(expected = "main runs 2 controllers")]
fn a_test_of_one_controller_refuses_two() {
    let idle: Reconcile = |_, _| Box::pin(async { Ok(Action::await_change()) });
    drop(kube::module(move || async move { futures::join!(main_of(idle), main_of(idle)).0 }));
}

#[test]
fn references_are_names() {
    let a: Ref<ConfigMap> = Ref::new("a").within("default");
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: Some("a".into()),
            namespace: Some("default".into()),
            uid: Some("u".into()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    };
    assert_eq!(a, Ref::from_obj(&map), "a uid is no part of the name");
    assert_eq!(a.to_string(), "ConfigMap.v1./a.default");
    assert_eq!(a.erase().to_string(), "ConfigMap.v1./a.default");
}

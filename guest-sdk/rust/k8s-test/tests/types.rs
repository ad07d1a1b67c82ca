// SPDX-License-Identifier: Apache-2.0
//! Tests that the types of k8s-openapi are read, declared and sent unchanged.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Container, ContainerPort, PodSpec, PodTemplateSpec, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use k8s_openapi::{ByteString, Resource};
use wasmctl::testing::Host;
use wasmctl::{
    json, Action, Api, Capability, Context, Error, Manifest, Object, ObjectRef, Patch, PatchParams, Reconciler, Watch,
};

fn deployment(name: &str, image: &str) -> Deployment {
    let labels = BTreeMap::from([("app".to_owned(), name.to_owned())]);
    let port = ContainerPort { container_port: 8080, ..ContainerPort::default() };
    let container =
        Container { name: "web".into(), image: Some(image.into()), ports: Some(vec![port]), ..Container::default() };
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta { labels: Some(labels.clone()), ..ObjectMeta::default() }),
        spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
    };
    Deployment {
        metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
        spec: Some(DeploymentSpec {
            replicas: Some(2),
            selector: LabelSelector { match_labels: Some(labels), ..LabelSelector::default() },
            template,
            ..DeploymentSpec::default()
        }),
        status: None,
    }
}

fn reconcile(obj: &Object, ctx: &Context) -> Result<Action, Error> {
    let deployments: Api<Deployment> =
        Api::namespaced_with(ctx.client(), obj.namespace(), Deployment::API_VERSION, Deployment::KIND);
    if let Some(old) = deployments.get_opt("legacy")? {
        assert_eq!(old.spec.and_then(|s| s.replicas), Some(7));
        let scaled: Deployment =
            deployments.patch("legacy", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 8}})))?;
        assert_eq!(scaled.metadata.generation, Some(2));
    }
    let map = ConfigMap {
        metadata: ObjectMeta { name: Some("settings".into()), ..ObjectMeta::default() },
        data: Some(BTreeMap::from([("a".into(), "b".into())])),
        ..ConfigMap::default()
    };
    Ok(Action::apply(&deployment(obj.name(), obj.str(&["spec", "image"]))).and_apply(&map).force())
}

fn reconciler() -> Reconciler {
    let manifest = Manifest {
        name: "web".into(),
        for_: Watch::new("example.com", "v1", "Web"),
        owns: vec![Watch::new("apps", "v1", "Deployment"), Watch::new("", "v1", "ConfigMap")],
        capabilities: vec![Capability::new("apps", "deployments", &["*"]), Capability::new("", "configmaps", &["*"])],
        ..Manifest::default()
    };
    Reconciler::new(manifest, reconcile)
}

#[test]
fn they_are_declared_and_read() {
    let host = Host::new();
    host.add(&json!({
        "apiVersion": "example.com/v1", "kind": "Web",
        "metadata": {"name": "shop", "namespace": "default"}, "spec": {"image": "shop:1"},
    }));
    let mut legacy = deployment("legacy", "old:1");
    legacy.metadata.namespace = Some("default".into());
    legacy.spec.as_mut().unwrap().replicas = Some(7);
    host.add(&legacy);

    let web = ObjectRef::new("example.com/v1", "Web", "shop").within("default");
    assert_eq!(host.reconcile(&reconciler(), &web).failure, None);
    let made = host.get(&ObjectRef::new("apps/v1", "Deployment", "shop").within("default"));
    assert!(made.is_controlled_by(&host.get(&web)));
    let made: Deployment = made.decode(&[]).unwrap();
    assert_eq!(made.spec.as_ref().unwrap().template, deployment("shop", "shop:1").spec.unwrap().template);
    assert_eq!(made.metadata.owner_references.unwrap().len(), 1);
    let legacy = host.get(&ObjectRef::new("apps/v1", "Deployment", "legacy").within("default"));
    assert_eq!(legacy.int(&["spec", "replicas"]), 8);
    assert_eq!(host.get(&ObjectRef::new("v1", "ConfigMap", "settings").within("default")).str(&["data", "a"]), "b");
}

#[test]
fn what_serde_asks_twice_for_comes_through() {
    let obj = Object::new(
        &json!({"n": 80, "s": "http", "data": {"token": "aGk="}, "apiVersion": "v1", "kind": "Secret", "metadata": {}}),
    )
    .unwrap();
    assert_eq!(obj.decode::<IntOrString>(&["n"]).unwrap(), IntOrString::Int(80));
    assert_eq!(obj.decode::<IntOrString>(&["s"]).unwrap(), IntOrString::String("http".into()));
    let secret: Secret = obj.decode(&[]).unwrap();
    assert_eq!(secret.data.as_ref().unwrap()["token"], ByteString(b"hi".to_vec()));
    assert_eq!(Object::new(&secret).unwrap().str(&["data", "token"]), "aGk=");
    assert!(obj.decode::<Deployment>(&[]).is_err(), "it is of another kind");
}

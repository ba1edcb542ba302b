//! Server-side apply: two managers share a Deployment, and a watch sees what they write.
use futures::{TryStreamExt, pin_mut};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams, WatchEvent, WatchParams},
};
use serde_json::{Value, json};

use crate::{Result, expect, new_namespace, refused};

const NAMESPACE: &str = "rust-apply";

pub async fn run(client: Client) -> Result {
    new_namespace(&client, NAMESPACE).await?;
    let api: Api<Deployment> = Api::namespaced(client, NAMESPACE);
    let since = api.list(&Default::default()).await?.metadata.resource_version.unwrap_or_default();
    let one = PatchParams::apply("one");
    let two = PatchParams::apply("two");

    let made = api.patch("web", &one, &Patch::Apply(web("nginx:1", json!({ "a": "b" })))).await?;
    expect(managers(&made) == ["one"], || format!("{made:?}"))?;
    let again = api.patch("web", &one, &Patch::Apply(web("nginx:1", json!({ "a": "b" })))).await?;
    expect(again.resource_version() == made.resource_version(), || "an equal apply wrote".to_owned())?;
    refused(409, api.patch("web", &two, &Patch::Apply(web("nginx:2", json!({})))).await)?;
    api.patch("web", &two.clone().force(), &Patch::Apply(web("nginx:2", json!({})))).await?;
    let labels = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web", "labels": { "c": "d" } } });
    let shared = api.patch("web", &one, &Patch::Apply(labels)).await?;
    let names: Vec<&str> = shared.labels().keys().map(String::as_str).collect();
    expect(managers(&shared) == ["one", "two"] && names == ["c"] && image(&shared) == "nginx:2", || format!("{shared:?}"))?;

    let events = api.watch(&WatchParams::default().timeout(20), &since).await?;
    pin_mut!(events);
    for (number, expected) in ["nginx:1", "nginx:2", "nginx:2"].into_iter().enumerate() {
        match events.try_next().await? {
            Some(WatchEvent::Added(found)) if number == 0 => expect(image(&found) == expected, || format!("{found:?}"))?,
            Some(WatchEvent::Modified(found)) if number > 0 => expect(image(&found) == expected, || format!("{found:?}"))?,
            other => return Err(format!("event {number}: {other:?}").into()),
        }
    }
    Ok(())
}

fn web(image: &str, labels: Value) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "web", "labels": labels },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": image }] },
            },
        },
    })
}

/// Sorted: the server sorts entries by their time, which has a resolution of a second.
fn managers(deployment: &Deployment) -> Vec<&str> {
    let mut names: Vec<&str> = deployment.managed_fields().iter().filter_map(|entry| entry.manager.as_deref()).collect();
    names.sort_unstable();
    names
}

fn image(deployment: &Deployment) -> &str {
    let pod = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    pod.and_then(|pod| pod.containers.first()?.image.as_deref()).unwrap_or_default()
}

//! Built-in kinds: create to delete, patches, subresources, pages, dry runs, tokens and reviews.
use k8s_openapi::api::{
    apps::v1::Deployment,
    authentication::v1::{TokenRequest, TokenRequestSpec},
    authorization::v1::SelfSubjectAccessReview,
    core::v1::{ConfigMap, Secret, ServiceAccount},
};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::{from_value, json};

use crate::{Result, expect, named, new_namespace, refused};

const NAMESPACE: &str = "rust-typed";

pub async fn run(client: Client) -> Result {
    new_namespace(&client, NAMESPACE).await?;
    config_maps(&client).await?;
    deployments(&client).await?;
    pages(&client).await?;
    identity(&client).await
}

async fn config_maps(client: &Client) -> Result {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let post = PostParams::default();
    let wanted: ConfigMap = from_value(json!({ "metadata": { "name": "one" }, "data": { "a": "b" } }))?;
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    api.create(&dry, &wanted).await?;
    expect(api.get_opt("one").await?.is_none(), || "a dry run was stored".into())?;
    let created = api.create(&post, &wanted).await?;
    expect(created.data == wanted.data, || format!("{created:?}"))?;
    refused(409, api.create(&post, &wanted).await)?;

    let mut fresh = api.get("one").await?;
    let stale = fresh.clone();
    fresh.data.get_or_insert_default().insert("c".into(), "d".into());
    let replaced = api.replace("one", &post, &fresh).await?;
    expect(replaced.metadata.resource_version != stale.metadata.resource_version, || "no new revision".into())?;
    refused(409, api.replace("one", &post, &stale).await)?;

    // Get or create, change, update, as controllers do.
    let mut entry = api.entry("two").await?.or_insert(ConfigMap::default);
    entry.get_mut().data.get_or_insert_default().insert("x".into(), "y".into());
    entry.commit(&post).await?;
    expect(api.get("two").await?.data.is_some_and(|data| data["x"] == "y"), || "the entry is not there".into())?;

    let wrong = DeleteParams {
        preconditions: Some(Preconditions { uid: Some("other".into()), resource_version: None }),
        ..DeleteParams::default()
    };
    refused(409, api.delete("one", &wrong).await)?;
    api.delete("one", &DeleteParams::default()).await?;
    refused(404, api.get("one").await)?;
    refused(422, api.create(&post, &ConfigMap { metadata: named("No Name"), ..ConfigMap::default() }).await)
}

async fn deployments(client: &Client) -> Result {
    let api: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    let wanted: Deployment = from_value(json!({
        "metadata": { "name": "web", "labels": { "app": "web" } },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "nginx:1", "ports": [{ "containerPort": 80 }] }] },
            },
        },
    }))?;
    api.create(&PostParams::default(), &wanted).await?;
    let params = PatchParams::default();

    let strategic = json!({ "spec": { "template": { "spec": { "containers": [{ "name": "web", "image": "nginx:2" }] } } } });
    let web = api.patch("web", &params, &Patch::Strategic(strategic)).await?;
    let container = web.spec.and_then(|spec| spec.template.spec).map(|spec| spec.containers[0].clone());
    let ports = container.as_ref().and_then(|container| container.ports.as_ref()).map(Vec::len);
    expect(ports == Some(1), || format!("{container:?}"))?;

    let merge = json!({ "metadata": { "labels": { "app": null, "tier": "front" } } });
    let web = api.patch_metadata("web", &params, &Patch::Merge(merge)).await?;
    let labels = web.metadata.labels.unwrap_or_default();
    expect(labels.len() == 1 && labels["tier"] == "front", || format!("{labels:?}"))?;

    let scaled = api.patch_scale("web", &params, &Patch::Merge(json!({ "spec": { "replicas": 3 } }))).await?;
    expect(scaled.spec.and_then(|spec| spec.replicas) == Some(3), || "the scale is not 3".into())?;
    let status = json!({ "status": { "replicas": 3, "readyReplicas": 2 }, "spec": { "replicas": 9 } });
    let web = api.patch_status("web", &params, &Patch::Merge(status)).await?;
    let ready = web.status.and_then(|status| status.ready_replicas);
    let replicas = web.spec.and_then(|spec| spec.replicas);
    expect(ready == Some(2) && replicas == Some(3), || format!("{ready:?} of {replicas:?}"))?;

    api.restart("web").await?;
    let annotations = api.get("web").await?.spec.and_then(|spec| spec.template.metadata?.annotations);
    expect(
        annotations.is_some_and(|found| found.contains_key("kube.kubernetes.io/restartedAt")
            || found.contains_key("kubectl.kubernetes.io/restartedAt")),
        || "not restarted".into(),
    )
}

async fn pages(client: &Client) -> Result {
    let api: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    for index in 0..23 {
        let secret = json!({ "metadata": { "name": format!("s-{index:02}"), "labels": { "set": "pages" } } });
        api.create(&PostParams::default(), &from_value(secret)?).await?;
    }
    let mut found = Vec::new();
    let mut params = ListParams::default().labels("set=pages").limit(5);
    loop {
        let page = api.list(&params).await?;
        expect(page.items.len() <= 5, || format!("a page of {}", page.items.len()))?;
        found.extend(page.items.into_iter().filter_map(|secret| secret.metadata.name));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    expect(found.len() == 23 && found.is_sorted(), || format!("{found:?}"))?;
    let metadata = api.list_metadata(&ListParams::default().fields("metadata.name=s-07")).await?;
    expect(metadata.items.len() == 1, || format!("{} of one name", metadata.items.len()))?;
    api.delete_collection(&DeleteParams::default(), &ListParams::default().labels("set=pages")).await?;
    let left = api.list(&ListParams::default().labels("set=pages")).await?;
    expect(left.items.is_empty(), || format!("{} are left", left.items.len()))
}

async fn identity(client: &Client) -> Result {
    let version = client.apiserver_version().await?;
    expect(version.major == "1", || format!("{version:?}"))?;
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
    let request = TokenRequest {
        spec: TokenRequestSpec { expiration_seconds: Some(600), ..TokenRequestSpec::default() },
        ..TokenRequest::default()
    };
    let token = accounts.create_token_request("default", &PostParams::default(), &request).await?;
    let token = token.status.map(|status| status.token).unwrap_or_default();
    expect(token.split('.').count() == 3, || "no token".into())?;
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let review = json!({ "spec": { "resourceAttributes": { "verb": "create", "resource": "pods" } } });
    let review = reviews.create(&PostParams::default(), &from_value(review)?).await?;
    expect(review.status.is_some_and(|status| status.allowed), || "may not create pods".into())
}

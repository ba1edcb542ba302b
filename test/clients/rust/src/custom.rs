//! A kind of one's own, as the derive macro makes it: its CustomResourceDefinition, then objects of it.
use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, CustomResource, CustomResourceExt, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    runtime::wait::{await_condition, conditions},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{Result, expect, new_namespace, refused};

#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "rust.test.dev",
    version = "v1",
    kind = "Document",
    namespaced,
    status = "DocumentStatus",
    shortname = "doc",
    category = "rusty",
    printcolumn = r#"{"name":"Title","type":"string","jsonPath":".spec.title"}"#,
    scale(spec_replicas_path = ".spec.copies", status_replicas_path = ".status.copies"),
    derive = "Default",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct DocumentSpec {
    pub title: String,
    #[serde(default = "one")]
    pub copies: i32,
    #[serde(default)]
    pub format: Format,
    pub author: Option<Author>,
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub enum Format {
    #[default]
    Plain,
    Rich,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Author {
    pub name: String,
    #[schemars(range(min = 0, max = 150))]
    pub age: Option<u8>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct DocumentStatus {
    #[serde(default)]
    pub copies: i32,
    #[serde(default)]
    pub printed: bool,
}

fn one() -> i32 {
    1
}

const NAMESPACE: &str = "rust-custom";

pub async fn run(client: Client) -> Result {
    new_namespace(&client, NAMESPACE).await?;
    define(&client, &Document::crd()).await?;
    let api: Api<Document> = Api::namespaced(client.clone(), NAMESPACE);
    let post = PostParams::default();

    let mut wanted = Document::new("guide", DocumentSpec { title: "Guide".into(), copies: 2, ..DocumentSpec::default() });
    wanted.status = Some(DocumentStatus { copies: 9, printed: true });
    let created = api.create(&post, &wanted).await?;
    expect(created.spec == wanted.spec && created.status.is_none(), || format!("{created:?}"))?;

    let printed = json!({ "status": { "printed": true, "copies": 2 } });
    let document = api.patch_status("guide", &PatchParams::default(), &Patch::Merge(printed)).await?;
    expect(document.status == Some(DocumentStatus { copies: 2, printed: true }), || format!("{:?}", document.status))?;
    expect(document.metadata.generation == Some(1), || "a status has a generation".into())?;

    let scale = api.get_scale("guide").await?;
    expect(scale.status.is_some_and(|status| status.replicas == 2), || "the scale knows no replicas".into())?;
    api.patch_scale("guide", &PatchParams::default(), &Patch::Merge(json!({ "spec": { "replicas": 5 } }))).await?;
    expect(api.get("guide").await?.spec.copies == 5, || "not scaled".into())?;

    let old = json!({ "spec": { "author": { "name": "Ada", "age": 200 } } });
    refused(422, api.patch("guide", &PatchParams::default(), &Patch::Merge(old)).await)?;
    let strange = json!({ "spec": { "format": "Odd" } });
    refused(422, api.patch("guide", &PatchParams::default(), &Patch::Merge(strange)).await)?;
    refused(415, api.patch("guide", &PatchParams::default(), &Patch::Strategic(json!({ "spec": {} }))).await)?;
    let author = json!({ "spec": { "author": { "name": "Ada", "unknown": true } } });
    let document = api.patch("guide", &PatchParams::default(), &Patch::Merge(author)).await?;
    expect(document.spec.author.as_ref().is_some_and(|author| author.name == "Ada"), || format!("{document:?}"))?;
    expect(document.metadata.generation == Some(3), || format!("{:?}", document.metadata.generation))?;

    let listed = api.list(&ListParams::default()).await?;
    expect(listed.items.len() == 1 && listed.items[0].name_any() == "guide", || format!("{listed:?}"))?;
    api.delete("guide", &DeleteParams::default()).await?;
    remove(&client, &Document::crd()).await?;
    refused(404, api.list(&ListParams::default()).await)
}

/// Creates a definition and waits until it is established.
pub async fn define(client: &Client, definition: &CustomResourceDefinition) -> Result {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.create(&PostParams::default(), definition).await?;
    await_condition(definitions, &definition.name_any(), conditions::is_crd_established()).await?;
    Ok(())
}

/// Deletes a definition and waits until it is gone.
pub async fn remove(client: &Client, definition: &CustomResourceDefinition) -> Result {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = definition.name_any();
    let uid = definitions.get(&name).await?.uid().unwrap_or_default();
    definitions.delete(&name, &DeleteParams::default()).await?;
    await_condition(definitions, &name, conditions::is_deleted(&uid)).await?;
    Ok(())
}

//! A controller as they are written with kube-rs: a finalizer, owned objects, a status, events, two workers at most.
use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use k8s_openapi::api::{core::v1::ConfigMap, events::v1::Event as EventObject};
use kube::{
    Api, Client, CustomResource, CustomResourceExt, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    runtime::{
        Controller,
        controller::{Action, Config},
        events::{Event, EventType, Recorder, Reporter},
        finalizer::{Event as Finalizer, finalizer},
        watcher,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    Result,
    custom::{define, remove},
    expect, new_namespace, until,
};

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "rust.test.dev", version = "v1", kind = "Greeting", namespaced, status = "GreetingStatus")]
pub struct GreetingSpec {
    pub text: String,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GreetingStatus {
    pub observed_generation: i64,
}

const NAMESPACE: &str = "rust-controller";

struct Context {
    client: Client,
    recorder: Recorder,
}

#[derive(Debug)]
struct Failure(String);

impl std::fmt::Display for Failure {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        Self(error.to_string())
    }
}

pub async fn run(client: Client) -> Result {
    new_namespace(&client, NAMESPACE).await?;
    define(&client, &Greeting::crd()).await?;
    let api: Api<Greeting> = Api::namespaced(client.clone(), NAMESPACE);
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let reporter = Reporter { controller: "greeter".into(), instance: Some("greeter-0".into()) };
    let context = Arc::new(Context { client: client.clone(), recorder: Recorder::new(client.clone(), reporter) });
    let controller = Controller::new(api.clone(), watcher::Config::default())
        .owns(maps.clone(), watcher::Config::default())
        .with_config(Config::default().concurrency(2))
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(100)), context)
        .for_each(|_| futures::future::ready(()));
    tokio::select! {
        done = scenario(&client, &api, &maps) => done?,
        () = controller => return Err("the controller ended".into()),
    }
    remove(&client, &Greeting::crd()).await
}

async fn reconcile(greeting: Arc<Greeting>, context: Arc<Context>) -> std::result::Result<Action, Failure> {
    let api: Api<Greeting> = Api::namespaced(context.client.clone(), NAMESPACE);
    finalizer(&api, "rust.test.dev/greeter", greeting, |event| async {
        match event {
            Finalizer::Apply(greeting) => apply(&greeting, &context).await,
            Finalizer::Cleanup(greeting) => cleanup(&greeting, &context).await,
        }
    })
    .await
    .map_err(|error| Failure(error.to_string()))
}

async fn apply(greeting: &Greeting, context: &Context) -> std::result::Result<Action, Failure> {
    let maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), NAMESPACE);
    let name = greeting.name_any();
    let mut entry = maps.entry(&name).await?.or_insert(ConfigMap::default);
    let map = entry.get_mut();
    map.metadata.owner_references = greeting.controller_owner_ref(&()).map(|owner| vec![owner]);
    map.data = Some([("text".to_owned(), greeting.spec.text.clone())].into());
    entry.commit(&PostParams::default()).await.map_err(|error| Failure(error.to_string()))?;
    let api: Api<Greeting> = Api::namespaced(context.client.clone(), NAMESPACE);
    let status = json!({ "status": { "observedGeneration": greeting.metadata.generation } });
    api.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
    tell(greeting, context, "Greeted").await?;
    Ok(Action::await_change())
}

async fn cleanup(greeting: &Greeting, context: &Context) -> std::result::Result<Action, Failure> {
    tell(greeting, context, "Parted").await?;
    Ok(Action::await_change())
}

async fn tell(greeting: &Greeting, context: &Context, reason: &str) -> kube::Result<()> {
    let event = Event {
        type_: EventType::Normal,
        reason: reason.into(),
        note: Some(greeting.spec.text.clone()),
        action: "Greet".into(),
        secondary: None,
    };
    context.recorder.publish(&event, &greeting.object_ref(&())).await
}

async fn scenario(client: &Client, api: &Api<Greeting>, maps: &Api<ConfigMap>) -> Result {
    for name in ["hello", "welcome"] {
        let greeting = Greeting::new(name, GreetingSpec { text: name.into() });
        api.create(&PostParams::default(), &greeting).await?;
    }
    let observed = async |name: &str, generation: i64| {
        until(async || Ok(api.get(name).await?.status.is_some_and(|status| status.observed_generation == generation))).await
    };
    observed("hello", 1).await?;
    observed("welcome", 1).await?;
    let text = json!({ "spec": { "text": "hi" } });
    api.patch("hello", &PatchParams::default(), &Patch::Merge(text)).await?;
    observed("hello", 2).await?;
    let text = async |name: &str| maps.get(name).await.map(|map| map.data.unwrap_or_default()["text"].clone());
    expect(text("hello").await? == "hi", || "the ConfigMap is not up to date".into())?;

    // The owned object is changed and deleted: the controller restores it.
    maps.patch("hello", &PatchParams::default(), &Patch::Merge(json!({ "data": { "text": "bye" } }))).await?;
    until(async || Ok(text("hello").await? == "hi")).await?;
    maps.delete("welcome", &DeleteParams::default()).await?;
    until(async || Ok(maps.get_opt("welcome").await?.is_some())).await?;

    let events: Api<EventObject> = Api::namespaced(client.clone(), NAMESPACE);
    let told = events.list(&ListParams::default().fields("reason=Greeted")).await?;
    expect(told.items.len() >= 2, || format!("{} events", told.items.len()))?;
    let repeated = told.items.iter().find(|event| event.series.as_ref().is_some_and(|series| series.count >= 2));
    expect(repeated.is_some(), || "no event became a series".into())?;

    // The finalizer runs, then garbage collection deletes the owned object.
    api.delete("hello", &DeleteParams::default()).await?;
    until(async || Ok(api.get_opt("hello").await?.is_none() && maps.get_opt("hello").await?.is_none())).await?;
    api.delete("welcome", &DeleteParams::default()).await?;
    until(async || Ok(api.get_opt("welcome").await?.is_none())).await
}

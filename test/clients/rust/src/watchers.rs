//! Watches, watchers that list and that stream their first list, reflectors, waiting for a condition.
use std::{collections::BTreeSet, pin::pin, time::Duration};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
    runtime::{
        WatchStreamExt, metadata_watcher, reflector,
        reflector::ObjectRef,
        wait::{await_condition, conditions},
        watcher,
    },
};
use serde_json::{from_value, json};

use crate::{Result, expect, new_namespace, until};

const NAMESPACE: &str = "rust-watchers";
const COUNT: usize = 12;

pub async fn run(client: Client) -> Result {
    new_namespace(&client, NAMESPACE).await?;
    let api: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
    create(&api, "before").await?;
    plain_watch(&api).await?;
    // With a page size of five, the initial list has several pages.
    follow(&api, watcher::Config::default().labels("set").page_size(5)).await?;
    follow(&api, watcher::Config::default().labels("set").streaming_lists()).await?;
    reflect(&api).await?;
    wait(&api).await
}

async fn create(api: &Api<ConfigMap>, set: &str) -> Result {
    for index in 0..COUNT {
        let object = json!({ "metadata": { "name": format!("{set}-{index}"), "labels": { "set": set } } });
        api.create(&PostParams::default(), &from_value(object)?).await?;
    }
    Ok(())
}

async fn clear(api: &Api<ConfigMap>, set: &str) -> Result {
    let selected = ListParams::default().labels(&format!("set={set}"));
    api.delete_collection(&DeleteParams::default(), &selected).await?;
    Ok(())
}

/// One watch from a revision, up to its bookmark and its end.
async fn plain_watch(api: &Api<ConfigMap>) -> Result {
    let since = api.list(&ListParams::default()).await?.metadata.resource_version.unwrap_or_default();
    create(api, "plain").await?;
    clear(api, "plain").await?;
    let params = WatchParams::default().labels("set=plain").timeout(1);
    let mut events = pin!(api.watch(&params, &since).await?);
    let (mut added, mut deleted, mut bookmark) = (0, 0, None);
    while let Some(event) = events.try_next().await? {
        match event {
            WatchEvent::Added(_) => added += 1,
            WatchEvent::Deleted(_) => deleted += 1,
            WatchEvent::Bookmark(mark) => bookmark = Some(mark.metadata.resource_version),
            other => return Err(format!("{other:?}").into()),
        }
    }
    expect(added == COUNT && deleted == COUNT, || format!("{added} added, {deleted} deleted"))?;
    // A watch resumed from the bookmark has no events.
    let mark = bookmark.ok_or("no bookmark")?;
    let mut resumed = pin!(api.watch(&params, &mark).await?);
    while let Some(event) = resumed.try_next().await? {
        expect(matches!(event, WatchEvent::Bookmark(_)), || format!("{event:?}"))?;
    }
    Ok(())
}

/// The first list whole, then what comes and goes.
async fn follow(api: &Api<ConfigMap>, config: watcher::Config) -> Result {
    let mut events = pin!(watcher(api.clone(), config).default_backoff());
    let mut first = BTreeSet::new();
    loop {
        match events.try_next().await?.ok_or("the watcher ended")? {
            watcher::Event::Init => first.clear(),
            watcher::Event::InitApply(object) => _ = first.insert(object.name_any()),
            watcher::Event::InitDone => break,
            other => return Err(format!("{other:?} before the first list was complete").into()),
        }
    }
    expect(first.len() == COUNT, || format!("{first:?}"))?;
    create(api, "after").await?;
    clear(api, "after").await?;
    let (mut applied, mut deleted) = (0, 0);
    while deleted < COUNT {
        match events.try_next().await?.ok_or("the watcher ended")? {
            watcher::Event::Apply(_) => applied += 1,
            watcher::Event::Delete(_) => deleted += 1,
            other => return Err(format!("{other:?} though nothing broke").into()),
        }
    }
    expect(applied == COUNT, || format!("{applied} applied"))
}

/// A store kept by a reflector of whole objects, and a watcher of their metadata alone.
async fn reflect(api: &Api<ConfigMap>) -> Result {
    let (reader, writer) = reflector::store();
    // Short watches: the store stays correct across their ends.
    let config = watcher::Config::default().labels("set").timeout(1);
    let stream = reflector(writer, watcher(api.clone(), config)).applied_objects();
    let mut metadata = pin!(metadata_watcher(api.clone(), watcher::Config::default().labels("set=late")).touched_objects());
    let work = async {
        reader.wait_until_ready().await?;
        expect(reader.len() == COUNT, || format!("{} in the store", reader.len()))?;
        tokio::time::sleep(Duration::from_millis(2500)).await;
        create(api, "late").await?;
        until(async || Ok(reader.len() == 2 * COUNT)).await?;
        let seen = metadata.try_next().await?.ok_or("the metadata watcher ended")?;
        expect(seen.labels()["set"] == "late", || format!("{seen:?}"))?;
        let patch = Patch::Merge(json!({ "data": { "changed": "yes" } }));
        api.patch("late-3", &PatchParams::default(), &patch).await?;
        let key = ObjectRef::new("late-3").within(NAMESPACE);
        until(async || Ok(reader.get(&key).is_some_and(|object| object.data.is_some()))).await?;
        clear(api, "late").await?;
        until(async || Ok(reader.len() == COUNT)).await
    };
    tokio::select! {
        done = work => done,
        _ = stream.for_each(|_| futures::future::ready(())) => Err("the reflector ended".into()),
    }
}

async fn wait(api: &Api<ConfigMap>) -> Result {
    let uid = api.get("before-0").await?.uid().unwrap_or_default();
    let (gone, deleted) = futures::future::join(
        await_condition(api.clone(), "before-0", conditions::is_deleted(&uid)),
        api.delete("before-0", &DeleteParams::default()),
    )
    .await;
    gone?;
    deleted?;
    Ok(())
}

//! Kinds found by discovery: every one that can be listed is listed, objects of some are written without types.
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
    discovery::{self, Discovery, Scope, verbs},
};
use serde_json::json;

use crate::{Result, expect, new_namespace};

const NAMESPACE: &str = "rust-dynamic";

pub async fn run(client: Client) -> Result {
    new_namespace(&client, NAMESPACE).await?;
    for discovery in [Discovery::new(client.clone()).run().await?, Discovery::new(client.clone()).run_aggregated().await?] {
        let mut listed = 0;
        for group in discovery.groups() {
            for (resource, capabilities) in group.recommended_resources() {
                if !capabilities.supports_operation(verbs::LIST) {
                    continue;
                }
                let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
                api.list(&ListParams::default().limit(2)).await.map_err(|error| format!("{}: {error}", resource.kind))?;
                listed += 1;
            }
        }
        expect(listed > 50, || format!("{listed} kinds are listed"))?;
    }

    let kind = GroupVersionKind::gvk("networking.k8s.io", "v1", "NetworkPolicy");
    let (resource, capabilities) = discovery::pinned_kind(&client, &kind).await?;
    expect(resource.plural == "networkpolicies" && capabilities.scope == Scope::Namespaced, || format!("{resource:?}"))?;
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), NAMESPACE, &resource);
    let policy = DynamicObject::new("web", &resource).data(json!({ "spec": { "podSelector": { "matchLabels": { "app": "web" } } } }));
    let created = api.create(&PostParams::default(), &policy).await?;
    expect(created.data["spec"]["policyTypes"] == json!(["Ingress"]), || format!("{created:?}"))?;
    let patch: Patch<()> = Patch::Json(
        serde_json::from_value(json!([{ "op": "add", "path": "/spec/egress", "value": [{}] }]))?,
    );
    let patched = api.patch("web", &PatchParams::default(), &patch).await?;
    expect(patched.data["spec"]["egress"] == json!([{}]), || format!("{patched:?}"))?;
    api.delete("web", &DeleteParams::default()).await?;

    // Built by hand, as in programs that know the kind but not its type.
    let maps = ApiResource::erase::<k8s_openapi::api::core::v1::ConfigMap>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(client, NAMESPACE, &maps);
    let found = api.list(&ListParams::default()).await?;
    expect(found.items.len() <= 1, || format!("{} ConfigMaps", found.items.len()))
}

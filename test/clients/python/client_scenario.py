"""The kubernetes package of Python against the cluster of a kubeconfig: client_scenario.py KUBECONFIG."""
import sys
import time

from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException

NAMESPACE = "python"


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def refused(status, call):
    try:
        call()
    except ApiException as error:
        expect(error.status == status, f"{error.status} instead of {status}: {error.body}")
        return
    raise AssertionError(f"was not refused with {status}")


def typed(api):
    core = client.CoreV1Api(api)
    apps = client.AppsV1Api(api)
    core.create_namespace({"metadata": {"name": NAMESPACE}})
    since = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version
    body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="one", labels={"set": "yes"}), data={"a": "b"})
    core.create_namespaced_config_map(NAMESPACE, body)
    refused(409, lambda: core.create_namespaced_config_map(NAMESPACE, body))
    core.patch_namespaced_config_map("one", NAMESPACE, {"data": {"c": "d"}})
    read = core.read_namespaced_config_map("one", NAMESPACE)
    expect(read.data == {"a": "b", "c": "d"}, read.data)
    stale = core.read_namespaced_config_map("one", NAMESPACE)
    read.data["c"] = "e"
    core.replace_namespaced_config_map("one", NAMESPACE, read)
    refused(409, lambda: core.replace_namespaced_config_map("one", NAMESPACE, stale))
    core.delete_namespaced_config_map("one", NAMESPACE)
    refused(404, lambda: core.read_namespaced_config_map("one", NAMESPACE))
    seen = []
    for event in watch.Watch().stream(
        core.list_namespaced_config_map, NAMESPACE, label_selector="set=yes", resource_version=since, timeout_seconds=20
    ):
        seen.append((event["type"], event["object"].metadata.name))
        if len(seen) == 4:
            break
    expect([kind for kind, _ in seen] == ["ADDED", "MODIFIED", "MODIFIED", "DELETED"], seen)

    labels = {"app": "web"}
    container = client.V1Container(name="web", image="nginx", ports=[client.V1ContainerPort(container_port=80)])
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels=labels), spec=client.V1PodSpec(containers=[container])
    )
    spec = client.V1DeploymentSpec(replicas=1, selector=client.V1LabelSelector(match_labels=labels), template=template)
    apps.create_namespaced_deployment(NAMESPACE, client.V1Deployment(metadata={"name": "web"}, spec=spec))
    apps.patch_namespaced_deployment_scale("web", NAMESPACE, {"spec": {"replicas": 3}})
    expect(apps.read_namespaced_deployment("web", NAMESPACE).spec.replicas == 3, "replicas")
    names = [f"s-{index}" for index in range(7)]
    for name in names:
        core.create_namespaced_secret(NAMESPACE, {"metadata": {"name": name}, "stringData": {"k": "v"}})
    found, token = [], None
    while token != "":
        page = core.list_namespaced_secret(NAMESPACE, limit=3, _continue=token)
        found += [item.metadata.name for item in page.items]
        token = page.metadata._continue or ""
    expect(found == names, found)
    review = client.V1SelfSubjectAccessReview(spec={"resourceAttributes": {"verb": "get", "resource": "pods"}})
    expect(client.AuthorizationV1Api(api).create_self_subject_access_review(review).status.allowed, "not allowed")


def dynamic_client(api):
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.python.test.dev"},
        "spec": {
            "group": "python.test.dev",
            "scope": "Namespaced",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget"},
            "versions": [{
                "name": "v1", "served": True, "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                }}},
            }],
        },
    }
    dynamics = dynamic.DynamicClient(api)
    crds = dynamics.resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
    crds.create(body=definition)
    for _ in range(200):
        conditions = crds.get(name="gadgets.python.test.dev").to_dict().get("status", {}).get("conditions", [])
        if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
            break
        time.sleep(0.05)
    dynamics.resources.invalidate_cache()
    gadgets = dynamics.resources.get(api_version="python.test.dev/v1", kind="Gadget")
    body = {"apiVersion": "python.test.dev/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {"size": 1}}
    gadgets.create(body=body, namespace=NAMESPACE)
    refused(422, lambda: gadgets.create(
        body={**body, "metadata": {"name": "h"}, "spec": {"size": "big"}}, namespace=NAMESPACE))
    patched = gadgets.patch(
        body={"metadata": {"name": "g"}, "spec": {"size": 2}}, namespace=NAMESPACE,
        content_type="application/merge-patch+json")
    expect(patched.spec.size == 2, patched)
    for event in gadgets.watch(namespace=NAMESPACE, timeout=20):
        expect(event["type"] == "ADDED" and event["object"].spec.size == 2, event)
        break
    expect(len(gadgets.get(namespace=NAMESPACE).items) == 1, "list")
    gadgets.delete(name="g", namespace=NAMESPACE)
    apply(gadgets, body)
    crds.delete(name="gadgets.python.test.dev")


def apply(gadgets, body):
    """Two managers share an object by server-side apply."""
    def applied(manager, spec, **options):
        return gadgets.server_side_apply(
            body={**body, "spec": spec}, namespace=NAMESPACE, field_manager=manager, **options)

    def owners(gadget):
        return [(entry.manager, entry.operation) for entry in gadget.metadata.managedFields]

    made = applied("one", {"size": 1})
    expect(owners(made) == [("one", "Apply")], made)
    again = applied("one", {"size": 1})
    expect(again.metadata.resourceVersion == made.metadata.resourceVersion, "an equal apply wrote")
    refused(409, lambda: applied("two", {"size": 2}))
    forced = applied("two", {"size": 2}, force_conflicts=True)
    expect(forced.spec.size == 2 and owners(forced) == [("two", "Apply")], forced)
    dropped = applied("two", {})
    expect(not dropped.to_dict().get("spec"), dropped)
    gadgets.delete(name="g", namespace=NAMESPACE)


def main():
    api = config.new_client_from_config(config_file=sys.argv[1])
    expect(client.VersionApi(api).get_code().major == "1", "version")
    typed(api)
    dynamic_client(api)


main()

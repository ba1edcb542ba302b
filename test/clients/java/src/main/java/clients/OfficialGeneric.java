package clients;

import static clients.Check.expect;
import static clients.Check.refused;
import static clients.Check.same;
import static clients.Check.until;

import com.google.gson.JsonParser;
import io.kubernetes.client.Discovery;
import io.kubernetes.client.common.KubernetesObject;
import io.kubernetes.client.custom.V1Patch;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.apis.BatchV1Api;
import io.kubernetes.client.openapi.models.V1CustomResourceDefinition;
import io.kubernetes.client.openapi.models.V1CustomResourceDefinitionList;
import io.kubernetes.client.openapi.models.V1Job;
import io.kubernetes.client.openapi.models.V1JobList;
import io.kubernetes.client.openapi.models.V1JobStatus;
import io.kubernetes.client.openapi.models.V1Namespace;
import io.kubernetes.client.openapi.models.V1NamespaceList;
import io.kubernetes.client.openapi.models.V1ObjectMeta;
import io.kubernetes.client.util.Yaml;
import io.kubernetes.client.util.generic.GenericKubernetesApi;
import io.kubernetes.client.util.generic.dynamic.DynamicKubernetesApi;
import io.kubernetes.client.util.generic.dynamic.DynamicKubernetesObject;
import io.kubernetes.client.util.generic.options.ListOptions;

/** The official client's generic and dynamic API, YAML and discovery; a kind of one's own without a class for it. */
final class OfficialGeneric {
  private static final String NAMESPACE = "java-generic";

  private OfficialGeneric() {}

  static void run(String kubeconfig) throws Exception {
    ApiClient client = OfficialTyped.client(kubeconfig);
    V1Namespace namespace = new V1Namespace().metadata(new V1ObjectMeta().name(NAMESPACE));
    new GenericKubernetesApi<>(V1Namespace.class, V1NamespaceList.class, "", "v1", "namespaces", client)
        .create(namespace)
        .throwsApiException();
    jobs(client);
    gadgets(client);
    var found = new Discovery(client).findAll();
    expect(found.size() > 50, found.size() + " resources");
    expect(found.stream().noneMatch(resource -> resource.getGroup().equals("java.test.dev")), "java.test.dev is still there");
  }

  private static void jobs(ApiClient client) throws Exception {
    var jobs = new GenericKubernetesApi<>(V1Job.class, V1JobList.class, "batch", "v1", "jobs", client);
    V1Job job =
        Yaml.loadAs(
            """
            apiVersion: batch/v1
            kind: Job
            metadata: {name: work, namespace: java-generic, labels: {set: jobs}}
            spec:
              template:
                spec:
                  restartPolicy: Never
                  containers: [{name: c, image: busybox}]
            """,
            V1Job.class);
    job = jobs.create(job).throwsApiException().getObject();
    same(1, job.getSpec().getParallelism());
    job.setStatus(new V1JobStatus().active(1).ready(0));
    // Its own updateStatus sends a media type that no API server accepts (415).
    job = new BatchV1Api(client).replaceNamespacedJobStatus("work", NAMESPACE, job).execute();
    same(1, job.getStatus().getActive());
    var suspended = new V1Patch("{\"spec\":{\"suspend\":true}}");
    job = jobs.patch(NAMESPACE, "work", V1Patch.PATCH_FORMAT_JSON_MERGE_PATCH, suspended).throwsApiException().getObject();
    expect(job.getSpec().getSuspend(), job);
    ListOptions selected = new ListOptions();
    selected.setLabelSelector("set=jobs");
    selected.setFieldSelector("status.successful=0");
    same(1, jobs.list(NAMESPACE, selected).throwsApiException().getObject().getItems().size());
    same(404, jobs.get(NAMESPACE, "none").getHttpStatusCode());
    try (var events = jobs.watch(NAMESPACE, selected)) {
      same("ADDED", events.next().type);
    }
    jobs.delete(NAMESPACE, "work").throwsApiException();
  }

  private static void gadgets(ApiClient client) throws Exception {
    var definitions =
        new GenericKubernetesApi<>(
            V1CustomResourceDefinition.class,
            V1CustomResourceDefinitionList.class,
            "apiextensions.k8s.io",
            "v1",
            "customresourcedefinitions",
            client);
    definitions.create(Yaml.loadAs(Fabric8Custom.DEFINITION, V1CustomResourceDefinition.class)).throwsApiException();
    until("the definition to be established", () -> isEstablished(definitions.get("gadgets.java.test.dev").getObject()));
    var gadgets = new DynamicKubernetesApi("java.test.dev", "v1", "gadgets", client);
    var gadget = gadgets.create(gadget("g", "1")).throwsApiException().getObject();
    same("grey", gadget.getRaw().getAsJsonObject("spec").get("colour").getAsString());
    gadget.getRaw().getAsJsonObject("spec").addProperty("size", 2);
    KubernetesObject updated = gadgets.update(gadget).throwsApiException().getObject();
    same(2L, updated.getMetadata().getGeneration());
    same(409, gadgets.update(gadget).getHttpStatusCode());
    refused(422, () -> gadgets.create(gadget("h", "\"big\"")).throwsApiException());
    same(1, gadgets.list(NAMESPACE).throwsApiException().getObject().getItems().size());
    definitions.delete("gadgets.java.test.dev").throwsApiException();
    until("the definition to go", () -> definitions.get("gadgets.java.test.dev").getHttpStatusCode() == 404);
    same(404, gadgets.get(NAMESPACE, "g").getHttpStatusCode());
  }

  private static boolean isEstablished(V1CustomResourceDefinition definition) {
    return definition.getStatus() != null
        && definition.getStatus().getConditions() != null
        && definition.getStatus().getConditions().stream()
            .anyMatch(condition -> condition.getType().equals("Established") && condition.getStatus().equals("True"));
  }

  private static DynamicKubernetesObject gadget(String name, String size) {
    String text =
        """
        {"apiVersion":"java.test.dev/v1","kind":"Gadget","metadata":{"name":"%s","namespace":"%s"},"spec":{"size":%s}}
        """;
    return new DynamicKubernetesObject(JsonParser.parseString(String.format(text, name, NAMESPACE, size)).getAsJsonObject());
  }
}

package clients;

import static clients.Check.expect;
import static clients.Check.same;

import io.kubernetes.client.custom.V1Patch;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.models.V1ConfigMap;
import io.kubernetes.client.openapi.models.V1ConfigMapList;
import io.kubernetes.client.openapi.models.V1Namespace;
import io.kubernetes.client.openapi.models.V1NamespaceList;
import io.kubernetes.client.openapi.models.V1ObjectMeta;
import io.kubernetes.client.util.generic.GenericKubernetesApi;
import io.kubernetes.client.util.generic.KubernetesApiResponse;
import io.kubernetes.client.util.generic.options.ListOptions;
import io.kubernetes.client.util.generic.options.PatchOptions;
import java.util.Map;

/** Server-side apply with the official client: two managers share a ConfigMap, and a watch sees what they write. */
final class OfficialApply {
  private static final String NAMESPACE = "java-apply";

  private OfficialApply() {}

  static void run(String kubeconfig) throws Exception {
    ApiClient client = OfficialTyped.client(kubeconfig);
    new GenericKubernetesApi<>(V1Namespace.class, V1NamespaceList.class, "", "v1", "namespaces", client)
        .create(new V1Namespace().metadata(new V1ObjectMeta().name(NAMESPACE)))
        .throwsApiException();
    var maps = new GenericKubernetesApi<>(V1ConfigMap.class, V1ConfigMapList.class, "", "v1", "configmaps", client);
    V1ConfigMap made = applied(maps, "one", "{\"a\":\"1\",\"b\":\"1\"}", false).throwsApiException().getObject();
    V1ConfigMap again = applied(maps, "one", "{\"a\":\"1\",\"b\":\"1\"}", false).throwsApiException().getObject();
    same(made.getMetadata().getResourceVersion(), again.getMetadata().getResourceVersion());
    same(409, applied(maps, "two", "{\"a\":\"2\"}", false).getHttpStatusCode());
    V1ConfigMap forced = applied(maps, "two", "{\"a\":\"2\"}", true).throwsApiException().getObject();
    same(Map.of("a", "2", "b", "1"), forced.getData());
    V1ConfigMap dropped = applied(maps, "one", "{}", false).throwsApiException().getObject();
    same(Map.of("a", "2"), dropped.getData());
    ListOptions shared = new ListOptions();
    shared.setFieldSelector("metadata.name=shared");
    try (var events = maps.watch(NAMESPACE, shared)) {
      var event = events.next();
      expect(event.type.equals("ADDED") && event.object.getData().get("a").equals("2"), event);
    }
  }

  private static KubernetesApiResponse<V1ConfigMap> applied(
      GenericKubernetesApi<V1ConfigMap, V1ConfigMapList> maps, String manager, String data, boolean isForced) {
    String text = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"shared\"},\"data\":" + data + "}";
    PatchOptions options = new PatchOptions();
    options.setFieldManager(manager);
    options.setForce(isForced);
    return maps.patch(NAMESPACE, "shared", V1Patch.PATCH_FORMAT_APPLY_YAML, new V1Patch(text), options);
  }
}

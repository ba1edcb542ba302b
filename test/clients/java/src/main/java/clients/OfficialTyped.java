package clients;

import static clients.Check.expect;
import static clients.Check.refused;
import static clients.Check.same;

import com.google.gson.reflect.TypeToken;
import io.kubernetes.client.custom.IntOrString;
import io.kubernetes.client.custom.Quantity;
import io.kubernetes.client.custom.V1Patch;
import io.kubernetes.client.extended.pager.Pager;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.ApiException;
import io.kubernetes.client.openapi.apis.AppsV1Api;
import io.kubernetes.client.openapi.apis.AuthorizationV1Api;
import io.kubernetes.client.openapi.apis.CoreV1Api;
import io.kubernetes.client.openapi.apis.VersionApi;
import io.kubernetes.client.openapi.models.AuthenticationV1TokenRequest;
import io.kubernetes.client.openapi.models.V1ConfigMap;
import io.kubernetes.client.openapi.models.V1Container;
import io.kubernetes.client.openapi.models.V1ContainerPort;
import io.kubernetes.client.openapi.models.V1Deployment;
import io.kubernetes.client.openapi.models.V1DeploymentSpec;
import io.kubernetes.client.openapi.models.V1HTTPGetAction;
import io.kubernetes.client.openapi.models.V1LabelSelector;
import io.kubernetes.client.openapi.models.V1Namespace;
import io.kubernetes.client.openapi.models.V1ObjectMeta;
import io.kubernetes.client.openapi.models.V1PodSpec;
import io.kubernetes.client.openapi.models.V1PodTemplateSpec;
import io.kubernetes.client.openapi.models.V1Probe;
import io.kubernetes.client.openapi.models.V1ResourceAttributes;
import io.kubernetes.client.openapi.models.V1ResourceRequirements;
import io.kubernetes.client.openapi.models.V1Secret;
import io.kubernetes.client.openapi.models.V1SecretList;
import io.kubernetes.client.openapi.models.V1SelfSubjectAccessReview;
import io.kubernetes.client.openapi.models.V1SelfSubjectAccessReviewSpec;
import io.kubernetes.client.openapi.models.V1TokenRequestSpec;
import io.kubernetes.client.util.ClientBuilder;
import io.kubernetes.client.util.KubeConfig;
import io.kubernetes.client.util.PatchUtils;
import io.kubernetes.client.util.Watch;
import java.io.FileReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import okhttp3.Call;

/** The official client's generated API: create to delete, every kind of patch, pages, a watch, a token, a review. */
final class OfficialTyped {
  private static final String NAMESPACE = "java-typed";

  private OfficialTyped() {}

  /** The client of a kubeconfig; nothing it reads has a time limit, as its informers ask for. */
  static ApiClient client(String kubeconfig) throws Exception {
    try (FileReader file = new FileReader(kubeconfig)) {
      ApiClient client = ClientBuilder.kubeconfig(KubeConfig.loadKubeConfig(file)).build();
      client.setReadTimeout(0);
      return client;
    }
  }

  static void run(String kubeconfig) throws Exception {
    ApiClient client = client(kubeconfig);
    CoreV1Api core = new CoreV1Api(client);
    core.createNamespace(new V1Namespace().metadata(new V1ObjectMeta().name(NAMESPACE))).execute();
    String since = core.listNamespacedConfigMap(NAMESPACE).execute().getMetadata().getResourceVersion();
    configMaps(core);
    watch(client, core, since);
    deployments(client);
    pages(client, core);
    identity(client, core);
  }

  private static void configMaps(CoreV1Api core) throws Exception {
    V1ObjectMeta metadata = new V1ObjectMeta().name("one").putLabelsItem("set", "yes");
    V1ConfigMap body = new V1ConfigMap().metadata(metadata).putDataItem("a", "b").putBinaryDataItem("c", new byte[] {0, -1});
    core.createNamespacedConfigMap(NAMESPACE, body).dryRun("All").execute();
    refused(404, () -> core.readNamespacedConfigMap("one", NAMESPACE).execute());
    core.createNamespacedConfigMap(NAMESPACE, body).execute();
    refused(409, () -> core.createNamespacedConfigMap(NAMESPACE, body).execute());
    V1ConfigMap read = core.readNamespacedConfigMap("one", NAMESPACE).execute();
    V1ConfigMap stale = core.readNamespacedConfigMap("one", NAMESPACE).execute();
    expect(read.getBinaryData().get("c")[1] == -1 && read.getMetadata().getUid() != null, read);
    core.replaceNamespacedConfigMap("one", NAMESPACE, read.putDataItem("a", "c")).execute();
    refused(409, () -> core.replaceNamespacedConfigMap("one", NAMESPACE, stale.putDataItem("a", "d")).execute());
    same("Success", core.deleteNamespacedConfigMap("one", NAMESPACE).execute().getStatus());
    refused(404, () -> core.readNamespacedConfigMap("one", NAMESPACE).execute());
    V1ConfigMap wrong = new V1ConfigMap().metadata(new V1ObjectMeta().name("No Name"));
    refused(422, () -> core.createNamespacedConfigMap(NAMESPACE, wrong).execute());
  }

  private static void watch(ApiClient client, CoreV1Api core, String since) throws Exception {
    var call =
        core.listNamespacedConfigMap(NAMESPACE)
            .labelSelector("set=yes")
            .resourceVersion(since)
            .allowWatchBookmarks(true)
            .timeoutSeconds(1)
            .watch(true)
            .buildCall(null);
    List<String> seen = new ArrayList<>();
    try (Watch<V1ConfigMap> events = Watch.createWatch(client, call, new TypeToken<Watch.Response<V1ConfigMap>>() {}.getType())) {
      for (Watch.Response<V1ConfigMap> event : events) {
        seen.add(event.type);
      }
    }
    same(List.of("ADDED", "MODIFIED", "DELETED", "BOOKMARK"), seen);
  }

  private static V1Deployment web() {
    V1Container container =
        new V1Container()
            .name("web")
            .image("nginx:1")
            .addPortsItem(new V1ContainerPort().name("http").containerPort(80))
            .readinessProbe(new V1Probe().httpGet(new V1HTTPGetAction().path("/").port(new IntOrString("http"))))
            .resources(new V1ResourceRequirements().putLimitsItem("memory", new Quantity("64Mi")));
    Map<String, String> labels = Map.of("app", "web");
    V1PodTemplateSpec template =
        new V1PodTemplateSpec()
            .metadata(new V1ObjectMeta().labels(labels))
            .spec(new V1PodSpec().addContainersItem(container));
    return new V1Deployment()
        .metadata(new V1ObjectMeta().name("web").labels(labels))
        .spec(new V1DeploymentSpec().selector(new V1LabelSelector().matchLabels(labels)).template(template));
  }

  private static void deployments(ApiClient client) throws Exception {
    AppsV1Api apps = new AppsV1Api(client);
    V1Deployment created = apps.createNamespacedDeployment(NAMESPACE, web()).execute();
    V1Container container = created.getSpec().getTemplate().getSpec().getContainers().get(0);
    same("http", container.getReadinessProbe().getHttpGet().getPort().getStrValue());
    same("64Mi", container.getResources().getLimits().get("memory").toSuffixedString());
    same("RollingUpdate", created.getSpec().getStrategy().getType());
    String[][] patches = {
      {V1Patch.PATCH_FORMAT_JSON_PATCH, "[{\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":2}]"},
      {V1Patch.PATCH_FORMAT_JSON_MERGE_PATCH, "{\"metadata\":{\"labels\":{\"app\":null,\"tier\":\"front\"}}}"},
      {
        V1Patch.PATCH_FORMAT_STRATEGIC_MERGE_PATCH,
        "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"web\",\"image\":\"nginx:2\"}]}}}}"
      },
    };
    for (String[] patch : patches) {
      PatchUtils.patch(
          V1Deployment.class,
          () -> apps.patchNamespacedDeployment("web", NAMESPACE, new V1Patch(patch[1])).buildCall(null),
          patch[0],
          client);
    }
    V1Deployment patched = apps.readNamespacedDeployment("web", NAMESPACE).execute();
    same(2, patched.getSpec().getReplicas());
    same(Map.of("tier", "front"), patched.getMetadata().getLabels());
    container = patched.getSpec().getTemplate().getSpec().getContainers().get(0);
    expect(container.getImage().equals("nginx:2") && container.getPorts().size() == 1, container);

    var scale = apps.readNamespacedDeploymentScale("web", NAMESPACE).execute();
    scale.getSpec().setReplicas(4);
    apps.replaceNamespacedDeploymentScale("web", NAMESPACE, scale).execute();
    V1Deployment status = apps.readNamespacedDeploymentStatus("web", NAMESPACE).execute();
    same(4, status.getSpec().getReplicas());
    status.getStatus().setReplicas(4);
    same(4, apps.replaceNamespacedDeploymentStatus("web", NAMESPACE, status).execute().getStatus().getReplicas());
    apps.deleteCollectionNamespacedDeployment(NAMESPACE).execute();
    same(0, apps.listNamespacedDeployment(NAMESPACE).execute().getItems().size());
  }

  private static void pages(ApiClient client, CoreV1Api core) throws Exception {
    List<String> wanted = new ArrayList<>();
    for (int index = 0; index < 13; index++) {
      String name = String.format("s-%02d", index);
      wanted.add(name);
      core.createNamespacedSecret(NAMESPACE, new V1Secret().metadata(new V1ObjectMeta().name(name)).putStringDataItem("k", "v"))
          .execute();
    }
    Pager<V1Secret, V1SecretList> pager =
        new Pager<>(
            params -> page(core, params),
            client,
            5,
            V1SecretList.class);
    List<String> found = new ArrayList<>();
    for (V1Secret secret : pager) {
      found.add(secret.getMetadata().getName());
    }
    same(wanted, found);
  }

  private static Call page(CoreV1Api core, Pager.PagerParams params) {
    try {
      return core.listNamespacedSecret(NAMESPACE)
          .limit(params.getLimit())
          ._continue(params.getContinueToken())
          .buildCall(null);
    } catch (ApiException error) {
      throw new IllegalStateException(error);
    }
  }

  private static void identity(ApiClient client, CoreV1Api core) throws Exception {
    same("1", new VersionApi(client).getCode().execute().getMajor());
    AuthenticationV1TokenRequest request =
        new AuthenticationV1TokenRequest().spec(new V1TokenRequestSpec().audiences(List.of()).expirationSeconds(600L));
    String token = core.createNamespacedServiceAccountToken("default", NAMESPACE, request).execute().getStatus().getToken();
    expect(token.split("\\.").length == 3, "no token");
    V1SelfSubjectAccessReviewSpec asked =
        new V1SelfSubjectAccessReviewSpec().resourceAttributes(new V1ResourceAttributes().verb("create").resource("pods"));
    V1SelfSubjectAccessReview review = new V1SelfSubjectAccessReview().spec(asked);
    expect(
        new AuthorizationV1Api(client).createSelfSubjectAccessReview(review).execute().getStatus().getAllowed(),
        "may not create pods");
  }
}

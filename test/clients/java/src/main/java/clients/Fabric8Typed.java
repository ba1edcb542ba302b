package clients;

import static clients.Check.expect;
import static clients.Check.refused;
import static clients.Check.same;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.HasMetadata;
import io.fabric8.kubernetes.api.model.ListOptionsBuilder;
import io.fabric8.kubernetes.api.model.NamespaceBuilder;
import io.fabric8.kubernetes.api.model.SecretBuilder;
import io.fabric8.kubernetes.api.model.SecretList;
import io.fabric8.kubernetes.api.model.apps.Deployment;
import io.fabric8.kubernetes.api.model.authorization.v1.SelfSubjectAccessReview;
import io.fabric8.kubernetes.api.model.authorization.v1.SelfSubjectAccessReviewBuilder;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import java.io.ByteArrayInputStream;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** The fabric8 client with built-in kinds: create to delete, edits, every kind of patch, pages, many at once. */
final class Fabric8Typed {
  private static final String NAMESPACE = "fabric8-typed";
  private static final String MANIFESTS =
      """
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: web, labels: {app: web}}
      spec:
        selector: {matchLabels: {app: web}}
        template:
          metadata: {labels: {app: web}}
          spec:
            containers:
              - {name: web, image: 'nginx:1', ports: [{containerPort: 80}]}
      ---
      apiVersion: v1
      kind: Service
      metadata: {name: web}
      spec: {selector: {app: web}, ports: [{port: 80}]}
      """;

  private Fabric8Typed() {}

  static KubernetesClient client(String kubeconfig) {
    return new KubernetesClientBuilder().withConfig(Config.fromKubeconfig(new File(kubeconfig))).build();
  }

  static void newNamespace(KubernetesClient client, String name) {
    client.resource(new NamespaceBuilder().withNewMetadata().withName(name).endMetadata().build()).create();
  }

  static ConfigMap configMap(String name, String set) {
    return new ConfigMapBuilder().withNewMetadata().withName(name).addToLabels("set", set).endMetadata().build();
  }

  static void run(String kubeconfig) throws Exception {
    try (KubernetesClient client = client(kubeconfig)) {
      newNamespace(client, NAMESPACE);
      same("1", client.getKubernetesVersion().getMajor());
      expect(client.supports(Deployment.class), "no Deployments");
      configMaps(client);
      deployments(client);
      pages(client);
      SelfSubjectAccessReview review =
          new SelfSubjectAccessReviewBuilder()
              .withNewSpec()
              .withNewResourceAttributes()
              .withVerb("create")
              .withResource("pods")
              .endResourceAttributes()
              .endSpec()
              .build();
      expect(client.authorization().v1().selfSubjectAccessReview().create(review).getStatus().getAllowed(), "may not");
    }
  }

  private static void configMaps(KubernetesClient client) throws Exception {
    var maps = client.configMaps().inNamespace(NAMESPACE);
    ConfigMap created = maps.resource(configMap("one", "yes")).create();
    refused(409, () -> maps.resource(configMap("one", "yes")).create());
    maps.withName("one").edit(map -> new ConfigMapBuilder(map).addToData("a", "b").build());
    maps.withName("one").patch(PatchContext.of(PatchType.JSON_MERGE), "{\"data\":{\"c\":\"d\"}}");
    same(2, maps.withName("one").get().getData().size());
    created.setData(java.util.Map.of("stale", "yes"));
    refused(409, () -> maps.resource(created).lockResourceVersion(created.getMetadata().getResourceVersion()).update());
    maps.resource(configMap("one", "other")).createOr(resource -> resource.update());
    same("other", maps.withName("one").get().getMetadata().getLabels().get("set"));
    same(1, maps.withName("one").delete().size());
    same(null, maps.withName("one").get());
    same(0, maps.withName("one").delete().size());
  }

  private static void deployments(KubernetesClient client) throws Exception {
    var manifests = new ByteArrayInputStream(MANIFESTS.getBytes(StandardCharsets.UTF_8));
    List<HasMetadata> created = client.load(manifests).inNamespace(NAMESPACE).create();
    same(2, created.size());
    var web = client.apps().deployments().inNamespace(NAMESPACE).withName("web");
    web.patch(
        PatchContext.of(PatchType.STRATEGIC_MERGE),
        "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"web\",\"image\":\"nginx:2\"}]}}}}");
    web.patch(PatchContext.of(PatchType.JSON), "[{\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":2}]");
    var container = web.get().getSpec().getTemplate().getSpec().getContainers().get(0);
    expect(container.getImage().equals("nginx:2") && container.getPorts().size() == 1, container);
    same(2, web.get().getSpec().getReplicas());
    web.scale(3);
    same(3, web.get().getSpec().getReplicas());
    Deployment before = web.get();
    web.editStatus(
        deployment -> {
          deployment.getStatus().setReplicas(3);
          deployment.getStatus().setReadyReplicas(3);
          deployment.getStatus().setObservedGeneration(before.getMetadata().getGeneration());
          return deployment;
        });
    same(3, web.waitUntilCondition(found -> found != null && found.getStatus().getReadyReplicas() != null, 20, TimeUnit.SECONDS).getStatus().getReadyReplicas());
    client.resourceList(created).inNamespace(NAMESPACE).delete();
    same(null, web.get());
    same(null, client.services().inNamespace(NAMESPACE).withName("web").get());
  }

  private static void pages(KubernetesClient client) {
    List<String> wanted = new ArrayList<>();
    for (int index = 0; index < 11; index++) {
      String name = String.format("s-%02d", index);
      wanted.add(name);
      client.secrets().inNamespace(NAMESPACE)
          .resource(new SecretBuilder().withNewMetadata().withName(name).endMetadata().addToStringData("k", "v").build())
          .create();
    }
    List<String> found = new ArrayList<>();
    String token = null;
    do {
      SecretList page =
          client.secrets().inNamespace(NAMESPACE).list(new ListOptionsBuilder().withLimit(4L).withContinue(token).build());
      page.getItems().forEach(secret -> found.add(secret.getMetadata().getName()));
      token = page.getMetadata().getContinue();
    } while (token != null && !token.isEmpty());
    same(wanted, found);
    client.secrets().inNamespace(NAMESPACE).delete();
    same(0, client.secrets().inNamespace(NAMESPACE).list().getItems().size());
  }
}

package clients;

import static clients.Check.expect;
import static clients.Check.refused;
import static clients.Check.same;

import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.api.model.apiextensions.v1.CustomResourceDefinition;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Version;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A kind of one's own with fabric8: as a class, and without one. */
final class Fabric8Custom {
  /** Used by the official client's scenario too. */
  static final String DEFINITION =
      """
      apiVersion: apiextensions.k8s.io/v1
      kind: CustomResourceDefinition
      metadata: {name: gadgets.java.test.dev}
      spec:
        group: java.test.dev
        scope: Namespaced
        names: {plural: gadgets, singular: gadget, kind: Gadget}
        versions:
          - name: v1
            served: true
            storage: true
            subresources: {status: {}}
            schema:
              openAPIV3Schema:
                type: object
                properties:
                  spec:
                    type: object
                    properties:
                      size: {type: integer}
                      colour: {type: string, default: grey}
                  status:
                    type: object
                    properties: {ready: {type: boolean}}
      """;

  private static final String NAMESPACE = "fabric8-custom";

  private Fabric8Custom() {}

  /** What is wanted of a Gadget. */
  public static final class Spec {
    public int size;
    public String colour;
  }

  /** What is. */
  public static final class Status {
    public boolean ready;
  }

  /** The kind as a class. */
  @Group("java.test.dev")
  @Version("v1")
  public static final class Gadget extends CustomResource<Spec, Status> implements Namespaced {}

  static void run(String kubeconfig) throws Exception {
    try (KubernetesClient client = Fabric8Typed.client(kubeconfig)) {
      Fabric8Typed.newNamespace(client, NAMESPACE);
      CustomResourceDefinition definition = client.getKubernetesSerialization().unmarshal(DEFINITION, CustomResourceDefinition.class);
      var defined = client.resource(definition);
      defined.create();
      defined.waitUntilCondition(Fabric8Custom::isEstablished, 20, TimeUnit.SECONDS);
      typed(client);
      generic(client);
      defined.delete();
      defined.waitUntilCondition(found -> found == null, 20, TimeUnit.SECONDS);
      refused(404, () -> client.resources(Gadget.class).inNamespace(NAMESPACE).list());
    }
  }

  private static boolean isEstablished(CustomResourceDefinition definition) {
    return definition != null
        && definition.getStatus() != null
        && definition.getStatus().getConditions().stream()
            .anyMatch(condition -> condition.getType().equals("Established") && condition.getStatus().equals("True"));
  }

  private static void typed(KubernetesClient client) throws Exception {
    var gadgets = client.resources(Gadget.class).inNamespace(NAMESPACE);
    Gadget gadget = new Gadget();
    gadget.getMetadata().setName("g");
    gadget.setSpec(new Spec());
    gadget.getSpec().size = 1;
    Gadget created = gadgets.resource(gadget).create();
    same("grey", created.getSpec().colour);
    created.setStatus(new Status());
    created.getStatus().ready = true;
    expect(gadgets.resource(created).updateStatus().getStatus().ready, "not ready");
    Gadget edited = gadgets.withName("g").edit(found -> resized(found, 5));
    same(2L, edited.getMetadata().getGeneration());
    expect(edited.getStatus().ready, "the status is lost");
    gadgets.withName("g").waitUntilCondition(found -> found.getSpec().size == 5, 20, TimeUnit.SECONDS);
    refused(422, () -> gadgets.withName("g").patch(PatchContext.of(PatchType.JSON_MERGE), "{\"spec\":{\"size\":\"big\"}}"));
  }

  private static Gadget resized(Gadget gadget, int size) {
    gadget.getSpec().size = size;
    return gadget;
  }

  private static void generic(KubernetesClient client) {
    var gadgets = client.genericKubernetesResources("java.test.dev/v1", "Gadget").inNamespace(NAMESPACE);
    List<GenericKubernetesResource> found = gadgets.list().getItems();
    same(1, found.size());
    same(5, found.get(0).<Integer>get("spec", "size"));
    gadgets.withName("g").delete();
    same(null, gadgets.withName("g").get());
  }
}

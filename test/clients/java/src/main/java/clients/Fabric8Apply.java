package clients;

import static clients.Check.expect;
import static clients.Check.refused;
import static clients.Check.same;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.Watcher;
import io.fabric8.kubernetes.client.WatcherException;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Server-side apply with fabric8: two managers share a ConfigMap, and a watch sees what they write. */
final class Fabric8Apply {
  private static final String NAMESPACE = "fabric8-apply";

  private Fabric8Apply() {}

  static void run(String kubeconfig) throws Exception {
    try (KubernetesClient client = Fabric8Typed.client(kubeconfig)) {
      Fabric8Typed.newNamespace(client, NAMESPACE);
      BlockingQueue<String> seen = new LinkedBlockingQueue<>();
      try (var watch = client.configMaps().inNamespace(NAMESPACE).withName("shared").watch(into(seen))) {
        ConfigMap made = client.resource(map(Map.of("a", "1", "b", "1"))).fieldManager("one").serverSideApply();
        same("one", made.getMetadata().getManagedFields().get(0).getManager());
        ConfigMap again = client.resource(map(Map.of("a", "1", "b", "1"))).fieldManager("one").serverSideApply();
        same(made.getMetadata().getResourceVersion(), again.getMetadata().getResourceVersion());
        refused(409, () -> client.resource(map(Map.of("a", "2"))).fieldManager("two").serverSideApply());
        ConfigMap forced = client.resource(map(Map.of("a", "2"))).fieldManager("two").forceConflicts().serverSideApply();
        same(Map.of("a", "2", "b", "1"), forced.getData());
        ConfigMap dropped = client.resource(map(Map.of())).fieldManager("one").serverSideApply();
        same(Map.of("a", "2"), dropped.getData());
        for (String wanted : new String[] {"ADDED 2", "MODIFIED 2", "MODIFIED 1"}) {
          same(wanted, seen.poll(20, TimeUnit.SECONDS));
        }
        expect(seen.isEmpty(), seen);
      }
    }
  }

  private static ConfigMap map(Map<String, String> data) {
    return new ConfigMapBuilder()
        .withNewMetadata()
        .withName("shared")
        .withNamespace(NAMESPACE)
        .endMetadata()
        .withData(data)
        .build();
  }

  private static Watcher<ConfigMap> into(BlockingQueue<String> seen) {
    return new Watcher<>() {
      @Override
      public void eventReceived(Action action, ConfigMap map) {
        seen.add(action + " " + map.getData().size());
      }

      @Override
      public void onClose(WatcherException cause) {}
    };
  }
}

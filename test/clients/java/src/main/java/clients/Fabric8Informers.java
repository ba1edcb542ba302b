package clients;

import static clients.Check.expect;
import static clients.Check.same;
import static clients.Check.until;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.Watcher;
import io.fabric8.kubernetes.client.WatcherException;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** fabric8's watches, which come over a WebSocket, and its informers, whose first list is in pages. */
final class Fabric8Informers {
  private static final String NAMESPACE = "fabric8-informers";
  private static final int COUNT = 15;

  private Fabric8Informers() {}

  static void run(String kubeconfig) throws Exception {
    try (KubernetesClient client = Fabric8Typed.client(kubeconfig)) {
      Fabric8Typed.newNamespace(client, NAMESPACE);
      create(client, "before");
      watch(client);
      inform(client);
    }
  }

  private static void create(KubernetesClient client, String set) {
    for (int index = 0; index < COUNT; index++) {
      client.configMaps().inNamespace(NAMESPACE).resource(Fabric8Typed.configMap(set + "-" + index, set)).create();
    }
  }

  private static void watch(KubernetesClient client) throws Exception {
    BlockingQueue<String> seen = new LinkedBlockingQueue<>();
    var watcher =
        new Watcher<ConfigMap>() {
          @Override
          public void eventReceived(Action action, ConfigMap object) {
            seen.add(action + " " + object.getMetadata().getName());
          }

          @Override
          public void onClose(WatcherException cause) {
            seen.add("closed by " + cause);
          }
        };
    var maps = client.configMaps().inNamespace(NAMESPACE);
    try (var watch = maps.withLabel("set", "watched").watch(watcher)) {
      maps.resource(Fabric8Typed.configMap("watched", "watched")).create();
      maps.withName("watched").edit(map -> new ConfigMapBuilder(map).addToData("text", "x".repeat(100_000)).build());
      maps.withName("watched").delete();
      for (String wanted : new String[] {"ADDED", "MODIFIED", "DELETED"}) {
        same(wanted + " watched", seen.poll(20, TimeUnit.SECONDS));
      }
    }
    expect(seen.isEmpty(), seen);
  }

  private static void inform(KubernetesClient client) throws Exception {
    Tally tally = new Tally();
    try (var informer = client.configMaps().inNamespace(NAMESPACE).withLabel("set").withLimit(4L).inform(tally)) {
      same(COUNT, informer.getStore().list().size());
      create(client, "after");
      client.configMaps().inNamespace(NAMESPACE).withName("after-3")
          .edit(map -> new ConfigMapBuilder(map).addToData("a", "b").build());
      until("the change", () -> tally.updated.get() == 1);
      same("b", informer.getStore().getByKey(NAMESPACE + "/after-3").getData().get("a"));
      client.configMaps().inNamespace(NAMESPACE).withLabel("set", "after").delete();
      until("the deletes", () -> tally.deleted.get() == COUNT);
      same(COUNT, informer.getStore().list().size());
      same(2 * COUNT, tally.added.get());
      expect(informer.isWatching(), "the informer gave up");
    }
  }

  private static final class Tally implements ResourceEventHandler<ConfigMap> {
    private final AtomicInteger added = new AtomicInteger();
    private final AtomicInteger updated = new AtomicInteger();
    private final AtomicInteger deleted = new AtomicInteger();

    @Override
    public void onAdd(ConfigMap object) {
      added.incrementAndGet();
    }

    @Override
    public void onUpdate(ConfigMap before, ConfigMap after) {
      updated.incrementAndGet();
    }

    @Override
    public void onDelete(ConfigMap object, boolean stateUnknown) {
      deleted.incrementAndGet();
    }
  }
}

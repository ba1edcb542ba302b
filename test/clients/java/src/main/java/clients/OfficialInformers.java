package clients;

import static clients.Check.same;
import static clients.Check.until;

import io.kubernetes.client.extended.controller.Controller;
import io.kubernetes.client.extended.controller.builder.ControllerBuilder;
import io.kubernetes.client.extended.controller.reconciler.Request;
import io.kubernetes.client.extended.controller.reconciler.Result;
import io.kubernetes.client.informer.ResourceEventHandler;
import io.kubernetes.client.informer.SharedIndexInformer;
import io.kubernetes.client.informer.SharedInformerFactory;
import io.kubernetes.client.informer.cache.Lister;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.apis.CoreV1Api;
import io.kubernetes.client.openapi.models.V1ConfigMap;
import io.kubernetes.client.openapi.models.V1ConfigMapList;
import io.kubernetes.client.openapi.models.V1Namespace;
import io.kubernetes.client.openapi.models.V1ObjectMeta;
import io.kubernetes.client.util.CallGeneratorParams;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;

/** A shared informer with its lister and its handlers, and a controller that works off what it sees. */
final class OfficialInformers {
  private static final String NAMESPACE = "java-informers";
  private static final int COUNT = 15;

  private OfficialInformers() {}

  static void run(String kubeconfig) throws Exception {
    ApiClient client = OfficialTyped.client(kubeconfig);
    CoreV1Api core = new CoreV1Api(client);
    core.createNamespace(new V1Namespace().metadata(new V1ObjectMeta().name(NAMESPACE))).execute();
    create(core, "before");

    SharedInformerFactory factory = new SharedInformerFactory(client);
    SharedIndexInformer<V1ConfigMap> informer =
        factory.sharedIndexInformerFor(
            (CallGeneratorParams params) ->
                core.listNamespacedConfigMap(NAMESPACE)
                    .labelSelector("set")
                    .resourceVersion(params.resourceVersion)
                    .timeoutSeconds(params.timeoutSeconds)
                    .watch(params.watch)
                    .buildCall(null),
            V1ConfigMap.class,
            V1ConfigMapList.class);
    Tally tally = new Tally();
    informer.addEventHandler(tally);
    Set<String> reconciled = ConcurrentHashMap.newKeySet();
    Controller controller =
        ControllerBuilder.defaultBuilder(factory)
            .watch(queue -> ControllerBuilder.controllerWatchBuilder(V1ConfigMap.class, queue).build())
            .withReadyFunc(informer::hasSynced)
            .withWorkerCount(2)
            .withReconciler(
                (Request request) -> {
                  reconciled.add(request.getName());
                  return new Result(false);
                })
            .build();
    var threads = Executors.newCachedThreadPool();
    threads.submit(controller);
    factory.startAllRegisteredInformers();
    until("the informer to sync", informer::hasSynced);
    Lister<V1ConfigMap> lister = new Lister<>(informer.getIndexer(), NAMESPACE);
    until("the first list", () -> lister.list().size() == COUNT && tally.added.get() == COUNT);

    create(core, "after");
    V1ConfigMap changed = core.readNamespacedConfigMap("after-3", NAMESPACE).execute();
    core.replaceNamespacedConfigMap("after-3", NAMESPACE, changed.putDataItem("a", "b")).execute();
    until("the change in the lister", () -> lister.get("after-3") != null && lister.get("after-3").getData() != null);
    core.deleteCollectionNamespacedConfigMap(NAMESPACE).labelSelector("set=after").execute();
    until("the deletes", () -> tally.deleted.get() == COUNT && lister.list().size() == COUNT);
    same(2 * COUNT, tally.added.get());
    same(1, tally.updated.get());
    until("the controller", () -> reconciled.size() == 2 * COUNT);
    controller.shutdown();
    factory.stopAllRegisteredInformers();
    threads.shutdownNow();
  }

  private static void create(CoreV1Api core, String set) throws Exception {
    for (int index = 0; index < COUNT; index++) {
      V1ObjectMeta metadata = new V1ObjectMeta().name(set + "-" + index).putLabelsItem("set", set);
      core.createNamespacedConfigMap(NAMESPACE, new V1ConfigMap().metadata(metadata)).execute();
    }
  }

  private static final class Tally implements ResourceEventHandler<V1ConfigMap> {
    private final AtomicInteger added = new AtomicInteger();
    private final AtomicInteger updated = new AtomicInteger();
    private final AtomicInteger deleted = new AtomicInteger();

    @Override
    public void onAdd(V1ConfigMap object) {
      added.incrementAndGet();
    }

    @Override
    public void onUpdate(V1ConfigMap before, V1ConfigMap after) {
      // A relist reports every object again, unchanged.
      if (!before.getMetadata().getResourceVersion().equals(after.getMetadata().getResourceVersion())) {
        updated.incrementAndGet();
      }
    }

    @Override
    public void onDelete(V1ConfigMap object, boolean stateUnknown) {
      deleted.incrementAndGet();
    }
  }
}

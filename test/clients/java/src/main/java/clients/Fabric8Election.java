package clients;

import static clients.Check.expect;
import static clients.Check.same;
import static clients.Check.until;

import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderCallbacks;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderElectionConfigBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import java.time.Duration;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Two candidates want one Lease: one leads, gives up, the other one leads. */
final class Fabric8Election {
  private Fabric8Election() {}

  static void run(String kubeconfig) throws Exception {
    try (KubernetesClient client = Fabric8Typed.client(kubeconfig)) {
      BlockingQueue<String> led = new LinkedBlockingQueue<>();
      BlockingQueue<String> resigned = new LinkedBlockingQueue<>();
      CompletableFuture<?> first = stand(client, "first", led, resigned);
      same("first", led.poll(20, TimeUnit.SECONDS));
      CompletableFuture<?> second = stand(client, "second", led, resigned);
      var lease = client.leases().inNamespace("default").withName("fabric8");
      same("first", lease.get().getSpec().getHolderIdentity());
      String version = lease.get().getMetadata().getResourceVersion();
      until("a renewal", () -> !lease.get().getMetadata().getResourceVersion().equals(version));
      expect(led.isEmpty(), "two lead at once");
      first.cancel(true);
      same("first", resigned.poll(20, TimeUnit.SECONDS));
      same("second", led.poll(20, TimeUnit.SECONDS));
      second.cancel(true);
    }
  }

  private static CompletableFuture<?> stand(
      KubernetesClient client, String name, BlockingQueue<String> led, BlockingQueue<String> resigned) {
    return client
        .leaderElector()
        .withConfig(
            new LeaderElectionConfigBuilder()
                .withName("fabric8")
                .withLock(new LeaseLock("default", "fabric8", name))
                .withLeaseDuration(Duration.ofSeconds(30))
                .withRenewDeadline(Duration.ofSeconds(20))
                .withRetryPeriod(Duration.ofMillis(200))
                .withReleaseOnCancel(true)
                .withLeaderCallbacks(new LeaderCallbacks(() -> led.add(name), () -> resigned.add(name), leader -> {}))
                .build())
        .build()
        .start();
  }
}

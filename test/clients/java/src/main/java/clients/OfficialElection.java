package clients;

import static clients.Check.expect;
import static clients.Check.same;
import static clients.Check.until;

import io.kubernetes.client.extended.leaderelection.LeaderElectionConfig;
import io.kubernetes.client.extended.leaderelection.LeaderElector;
import io.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.apis.CoordinationV1Api;
import java.time.Duration;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Two candidates want one Lease: one leads, gives up, the other one leads. */
final class OfficialElection {
  private OfficialElection() {}

  static void run(String kubeconfig) throws Exception {
    ApiClient client = OfficialTyped.client(kubeconfig);
    CoordinationV1Api leases = new CoordinationV1Api(client);
    BlockingQueue<String> led = new LinkedBlockingQueue<>();
    BlockingQueue<String> resigned = new LinkedBlockingQueue<>();
    LeaderElector first = stand(client, "first", led, resigned);
    same("first", led.poll(20, TimeUnit.SECONDS));
    stand(client, "second", led, resigned);
    var lease = leases.readNamespacedLease("official", "default").execute();
    same("first", lease.getSpec().getHolderIdentity());
    String version = lease.getMetadata().getResourceVersion();
    until("a renewal", () -> !leases.readNamespacedLease("official", "default").execute().getMetadata().getResourceVersion().equals(version));
    expect(led.isEmpty(), "two lead at once");
    first.close();
    same("first", resigned.poll(20, TimeUnit.SECONDS));
    same("second", led.poll(20, TimeUnit.SECONDS));
  }

  private static LeaderElector stand(ApiClient client, String name, BlockingQueue<String> led, BlockingQueue<String> resigned) {
    LeaseLock lock = new LeaseLock("default", "official", name, client);
    LeaderElector elector =
        new LeaderElector(new LeaderElectionConfig(lock, Duration.ofSeconds(30), Duration.ofSeconds(20), Duration.ofMillis(200)));
    Thread thread = new Thread(() -> elector.run(() -> led.add(name), () -> resigned.add(name)));
    thread.setDaemon(true);
    thread.start();
    return elector;
  }
}

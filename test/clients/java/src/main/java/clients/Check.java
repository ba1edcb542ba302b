package clients;

import io.fabric8.kubernetes.client.KubernetesClientException;
import io.kubernetes.client.openapi.ApiException;
import java.time.Duration;
import java.time.Instant;
import java.util.Objects;

/** What scenarios are sure of. */
final class Check {
  private static final Duration PATIENCE = Duration.ofSeconds(20);

  private Check() {}

  /** Anything that may fail. */
  interface Call {
    void run() throws Exception;
  }

  /** A question that may fail. */
  interface Question {
    boolean ask() throws Exception;
  }

  static void expect(boolean isSo, Object what) {
    if (!isSo) {
      throw new AssertionError(what);
    }
  }

  static void same(Object wanted, Object found) {
    expect(Objects.equals(wanted, found), "not " + wanted + " but " + found);
  }

  /** Fails unless the API server answers with this code. */
  static void refused(int code, Call call) throws Exception {
    try {
      call.run();
    } catch (ApiException error) {
      expect(error.getCode() == code, error.getCode() + " instead of " + code + ": " + error.getResponseBody());
      return;
    } catch (KubernetesClientException error) {
      expect(error.getCode() == code, error.getCode() + " instead of " + code + ": " + error.getMessage());
      return;
    }
    throw new AssertionError("was not refused with " + code);
  }

  /** Asks until it is true. */
  static void until(String what, Question question) throws Exception {
    Instant end = Instant.now().plus(PATIENCE);
    while (!question.ask()) {
      expect(Instant.now().isBefore(end), "waited in vain: " + what);
      Thread.sleep(20);
    }
  }
}

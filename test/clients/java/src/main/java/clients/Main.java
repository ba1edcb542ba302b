package clients;

import java.util.Map;

/**
 * Runs one scenario of a Java client against the cluster of a kubeconfig: Main KUBECONFIG SCENARIO. It exits 0 when
 * every check passed, else prints the failed one.
 */
public final class Main {
  private static final Map<String, Scenario> SCENARIOS =
      Map.ofEntries(
          Map.entry("official-typed", OfficialTyped::run),
          Map.entry("official-informers", OfficialInformers::run),
          Map.entry("official-generic", OfficialGeneric::run),
          Map.entry("official-apply", OfficialApply::run),
          Map.entry("official-election", OfficialElection::run),
          Map.entry("fabric8-typed", Fabric8Typed::run),
          Map.entry("fabric8-informers", Fabric8Informers::run),
          Map.entry("fabric8-custom", Fabric8Custom::run),
          Map.entry("fabric8-apply", Fabric8Apply::run),
          Map.entry("fabric8-election", Fabric8Election::run));

  private Main() {}

  /** A program with one client, given the path of a kubeconfig. */
  interface Scenario {
    void run(String kubeconfig) throws Exception;
  }

  public static void main(String[] arguments) {
    Scenario scenario = arguments.length == 2 ? SCENARIOS.get(arguments[1]) : null;
    if (scenario == null) {
      System.err.println("usage: Main KUBECONFIG SCENARIO");
      System.exit(2);
    }
    int code = 0;
    try {
      scenario.run(arguments[0]);
    } catch (Throwable error) {
      error.printStackTrace();
      code = 1;
    }
    System.exit(code); // clients leave threads behind
  }
}

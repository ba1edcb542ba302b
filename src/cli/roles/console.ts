// The console of a server: where its record of ended sessions is, and at which addresses it is served.
import type { KubeClient, Transport } from '#client/index.ts'
import { ownServingNames, type HostUsers, type VirtualApi } from '#virtualapi/index.ts'
import { installationNamespace } from './host-installation.ts'

export interface ConsoleSettings {
  /** Origins at which browsers reach the console through something else, such as an Ingress. */
  readonly origins: readonly string[]
}

interface ConsolePlace {
  /** The API with the LogicalClusters. */
  readonly client: KubeClient
  /** Host names of the listener. */
  readonly hosts: readonly string[]
  /** Absent without a host. */
  readonly hostUsers?: HostUsers
  readonly host?: Transport
}

/** Serves the console on all listeners that are opened afterwards. */
export function openConsole(
  api: VirtualApi,
  { origins }: ConsoleSettings,
  { client, hosts, ...ofHost }: ConsolePlace,
): AsyncDisposable {
  const names = [...hosts, ...ownServingNames]
  const namespace = installationNamespace
  return api.openConsole({ origins, hosts: names, client, namespace, ...ofHost })
}

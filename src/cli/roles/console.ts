// The console of a server: where its record of ended sessions is, and at which addresses it is served.
import type { KubeClient } from '#client/index.ts'
import { ownServingNames, type VirtualApi } from '#virtualapi/index.ts'
import { installationNamespace } from './host-installation.ts'

export interface ConsoleSettings {
  /** Origins at which browsers reach the console through something else, such as an Ingress. */
  readonly origins: readonly string[]
}

/** Serves the console on all listeners that are opened afterwards. */
export function openConsole(
  api: VirtualApi,
  { origins }: ConsoleSettings,
  { client, hosts }: { readonly client: KubeClient; readonly hosts: readonly string[] },
): AsyncDisposable {
  const names = [...hosts, ...ownServingNames]
  return api.openConsole({ origins, hosts: names, client, namespace: installationNamespace })
}

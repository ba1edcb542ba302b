// Installs the nameserver in a member.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { serviceUnavailable } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { syncerFieldManager, systemNamespace } from '#crds/index.ts'
import { gvrs } from '#syncer/context/resources.ts'
import { corefile } from './corefile.ts'
import { defaultNameserverImage, nameserverName, nameserverObjects, type SyncerAddress } from './nameserver-objects.ts'

const resources: Readonly<Record<string, (typeof gvrs)[keyof typeof gvrs]>> = {
  ConfigMap: gvrs.configmaps,
  Deployment: gvrs.deployments,
  Service: gvrs.services,
}

export interface NameserverOptions {
  /** The name of the member, for names of pods in it. */
  readonly memberName: string
  /** A client of the member with the syncer's rights. */
  readonly member: KubeClient
  readonly apiAddress: SyncerAddress
  /** Default registry.k8s.io/coredns/coredns:v1.12.4. */
  readonly image?: string
  readonly signal: AbortSignal
}

/**
 * Applies the nameserver. Resolves with its cluster IP, which does not change. Rejects with the member's StatusError.
 */
export async function ensureNameserver({
  memberName,
  member,
  apiAddress,
  image = defaultNameserverImage,
  signal,
}: NameserverOptions): Promise<string> {
  let address: string | undefined
  for (const object of nameserverObjects({ corefile: corefile({ apiAddress, memberName }), image })) {
    const gvr = resources[object.kind] ?? gvrs.configmaps
    const options = { fieldManager: syncerFieldManager, force: true, signal }
    const applied = await member.patch<KubeObject>(
      gvr,
      { namespace: systemNamespace, name: nameserverName },
      'apply',
      object,
      options,
    )
    if (object.kind === 'Service') address = (applied['spec'] as { clusterIP?: string }).clusterIP
  }
  if (address === undefined || address === '')
    throw serviceUnavailable(`Service "${systemNamespace}/${nameserverName}" has no cluster IP in the member`)
  return address
}

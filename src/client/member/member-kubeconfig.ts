// The location of a member's credentials: the Secret to which its MemberCluster refers.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { DeepReadonly, KubeClient } from '#client/index.ts'
import type { MemberCluster } from '#crds/index.ts'

const secrets = { group: '', version: 'v1', resource: 'secrets' } as const

export type MemberKubeconfig =
  | { readonly kind: 'found'; readonly text: string }
  /** The MemberCluster refers to no Secret: an agent is expected to connect. */
  | { readonly kind: 'noReference' }
  /** There is no such Secret, or it does not have the key. `secret` is `NAMESPACE/NAME`. */
  | { readonly kind: 'noSecret'; readonly secret: string; readonly key: string }

/** Reads the kubeconfig of a member. `clusters` is where MemberClusters live. Rejects with the StatusError of that API. */
export async function memberKubeconfig(
  member: DeepReadonly<MemberCluster>,
  clusters: Pick<KubeClient, 'tryGet'>,
  signal: AbortSignal,
): Promise<MemberKubeconfig> {
  const ref = member.spec?.connection?.kubeconfigSecretRef
  if (ref === undefined) return { kind: 'noReference' }
  const { namespace, name, key = 'kubeconfig' } = ref
  const secret = await clusters.tryGet<KubeObject>(secrets, { namespace, name }, { signal })
  const data = (secret?.['data'] as Record<string, string> | undefined)?.[key]
  if (data === undefined) return { kind: 'noSecret', secret: `${namespace}/${name}`, key }
  return { kind: 'found', text: Buffer.from(data, 'base64').toString() }
}

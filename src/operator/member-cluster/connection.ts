// The connection to one member: made from the kubeconfig its MemberCluster refers to, made anew when that changes.
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import { isStatusError } from '../../apimachinery/status/index.ts'
import { childSignal } from '../../async/index.ts'
import { createClient, httpTransport, loadKubeconfig, type KubeClient } from '../../client/index.ts'
import type { DeepReadonly } from '../../client/index.ts'
import type { MemberCluster } from '../../crds/index.ts'
import type { Probe } from './status.ts'

const secrets = { group: '', version: 'v1', resource: 'secrets' } as const
const namespaces = { group: '', version: 'v1', resource: 'namespaces' } as const
const nodes = { group: '', version: 'v1', resource: 'nodes' } as const

export interface Connection extends AsyncDisposable {
  readonly client: KubeClient
  /** Names this kubeconfig: another text is another connection. */
  readonly kubeconfig: string
}

/** The text of the kubeconfig. Rejects with StatusError where the MemberCluster refers to none or it is not there. */
export async function kubeconfigOf(
  member: DeepReadonly<MemberCluster>,
  clusters: KubeClient,
  signal: AbortSignal,
): Promise<string> {
  const ref = member.spec?.connection?.kubeconfigSecretRef
  if (ref === undefined) throw new Error('it has no spec.connection: an agent is expected to connect')
  const { namespace, name, key = 'kubeconfig' } = ref
  const secret = await clusters.tryGet<KubeObject>(secrets, { namespace, name }, { signal })
  const data = (secret?.['data'] as Record<string, string> | undefined)?.[key]
  if (data === undefined) throw new Error(`Secret "${namespace}/${name}" with key "${key}" is not there`)
  return Buffer.from(data, 'base64').toString()
}

/** Only what is written in the kubeconfig itself is used: no plugins, files, proxies, insecure TLS. */
export async function connect(kubeconfig: string): Promise<Connection> {
  const transport = httpTransport(await loadKubeconfig({ text: kubeconfig }), { answerTimeoutMs: 30_000 })
  return { client: createClient(transport), kubeconfig, [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose]() }
}

/** Asks the member who it is and how it does. Never rejects but for the signal. */
export async function probe(
  client: KubeClient,
  { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal },
): Promise<Probe> {
  using attempt = childSignal(signal)
  const timer = setTimeout(() => attempt.abort(new Error(`no answer within ${timeoutMs / 1000} s`)), timeoutMs)
  try {
    const options = { signal: attempt.signal }
    const [kubeSystem, version, list] = await Promise.all([
      client.get<KubeObject>(namespaces, { name: 'kube-system' }, options),
      client.raw('/version', options),
      client.list<KubeObject>(nodes, options),
    ])
    const { gitVersion = '' } = version as { gitVersion?: string }
    return {
      kind: 'answered',
      uid: kubeSystem.metadata.uid ?? '',
      version: gitVersion,
      nodes: { ready: list.items.filter(isReady).length, total: list.items.length },
    }
  } catch (error) {
    if (signal.aborted) throw error
    const message = error instanceof Error ? error.message : String(error)
    const refused = isStatusError(error) && (error.code === 401 || error.code === 403)
    return { kind: refused ? 'refused' : 'unreachable', message }
  } finally {
    clearTimeout(timer)
  }
}

function isReady(node: KubeObject): boolean {
  const { conditions = [] } = (node['status'] ?? {}) as { conditions?: { type: string; status: string }[] }
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True')
}

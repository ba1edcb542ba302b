// Which workloads have anything in which member: by their decision, or by the syncer's own mark. Kept true by one watch for
// all members, so that no look at a member reads the workloads of all logical clusters.
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import { createInformer, type DeepReadonly, type Informer } from '../../client/index.ts'
import { hasCopy, placedOn, placedOnAnnotation, syncerFinalizer } from '../../crds/index.ts'
import type { OperatorContext } from '../operator-context.ts'

const deployments = { group: 'apps', version: 'v1', resource: 'deployments' } as const
const finalizerPrefix = syncerFinalizer('')

export class PlacedWorkloads implements AsyncDisposable {
  readonly #informer: Informer<KubeObject>
  /** Keys of workloads by member. */
  readonly #placed = new Map<string, Map<string, string>>()

  constructor({ virtual, log }: Pick<OperatorContext, 'virtual' | 'log'>, signal: AbortSignal) {
    const client = virtual('/clusters/*')
    const options = { client, gvr: deployments, allClusters: true, metadataOnly: true, transform: marksOnly }
    this.#informer = createInformer<KubeObject>({ ...options, log, signal })
    this.#informer.onChange(({ key, before, after }) => {
      for (const member of membersOf(before)) this.#forget(member, key)
      for (const member of membersOf(after)) this.#remember(member, key, after)
    })
  }

  /** `NAMESPACE/NAME` of each workload with anything in the member, once the first list is there. */
  async of(member: string, signal: AbortSignal): Promise<string[]> {
    await this.#informer.synced(signal)
    return [...(this.#placed.get(member)?.values() ?? [])]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#informer[Symbol.asyncDispose]()
  }

  #remember(member: string, key: string, workload: DeepReadonly<KubeObject> | undefined): void {
    const { namespace = '', name = '' } = workload?.metadata ?? {}
    const keys = this.#placed.get(member) ?? new Map<string, string>()
    this.#placed.set(member, keys.set(key, `${namespace}/${name}`))
  }

  #forget(member: string, key: string): void {
    const keys = this.#placed.get(member)
    keys?.delete(key)
    if (keys?.size === 0) this.#placed.delete(member)
  }
}

/** Members in which the workload has something. */
export function membersOf(workload: DeepReadonly<KubeObject> | undefined): string[] {
  if (workload === undefined) return []
  const marked = (workload.metadata.finalizers ?? [])
    .filter((finalizer) => finalizer.startsWith(finalizerPrefix))
    .map((finalizer) => finalizer.slice(finalizerPrefix.length))
  const decided = Object.entries(placedOn(workload as KubeObject))
    .filter(([, copy]) => hasCopy(copy))
    .map(([member]) => member)
  return [...new Set([...marked, ...decided])]
}

/** All that is kept of a workload: nothing a tenant writes without bound, but its finalizers. */
function marksOnly(object: KubeObject): KubeObject {
  const { name, namespace, uid, resourceVersion, finalizers, annotations } = object.metadata
  const decision = annotations?.[placedOnAnnotation]
  const marks = finalizers?.filter((finalizer) => finalizer.startsWith(finalizerPrefix)) ?? []
  return {
    apiVersion: object.apiVersion,
    kind: object.kind,
    metadata: {
      ...(name !== undefined && { name }),
      ...(namespace !== undefined && { namespace }),
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
      ...(marks.length > 0 && { finalizers: marks }),
      ...(decision !== undefined && { annotations: { [placedOnAnnotation]: decision } }),
    },
  }
}

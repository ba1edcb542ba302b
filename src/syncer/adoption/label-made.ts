// Gives kcp's label to what controllers of the member make in adopted namespaces. Their templates stay as they were, so
// new pods, ReplicaSets, Jobs and claims have no label, and the caches of the member would not know them.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import { childSignal, type ChildSignal } from '#async/index.ts'
import { createInformer, keyFor, type Informer } from '#client/index.ts'
import { adoptedNamespace, managedLabel, workloadKinds } from '#crds/index.ts'
import { controllerOf } from '#syncer/context/owners.ts'
import { asOrdinalClaim, claimReferences } from '#syncer/context/references.ts'
import { gvrs, type CachedObject, type ResourceName } from '#syncer/context/resources.ts'
import type { SyncContext } from '#syncer/context/sync-context.ts'

/** Owners before what they make. */
const made = ['replicasets', 'controllerrevisions', 'jobs', 'persistentvolumeclaims', 'pods'] as const
const againMs = 1000
const backoff = { firstMs: 100, maxMs: 5000 }

/** Labels objects in the adopted namespaces of the member until the signal aborts. */
export function startLabelling(context: SyncContext, signal: AbortSignal): Disposable {
  const life = childSignal(signal)
  const namespaces = new Map<string, LabelledNamespace>()
  const follow = (): void => {
    const wanted = new Set(adoptedIn(context))
    for (const [name, one] of namespaces)
      if (!wanted.has(name)) {
        one[Symbol.dispose]()
        namespaces.delete(name)
      }
    for (const name of wanted)
      if (!namespaces.has(name)) namespaces.set(name, new LabelledNamespace(context, name, life.signal))
  }
  const end = context.upstream.informers.namespaces.onChange(({ before, after }) => {
    if (adoptedNamespace(before) !== undefined || adoptedNamespace(after) !== undefined) follow()
  })
  return {
    [Symbol.dispose]() {
      end()
      for (const one of namespaces.values()) one[Symbol.dispose]()
      life.abort(new DOMException('the syncer was closed', 'AbortError'))
      life[Symbol.dispose]()
    },
  }
}

/** The names, in the member, of the namespaces that logical clusters adopt or have adopted from it. */
function* adoptedIn({ upstream, member }: SyncContext): Generator<string> {
  for (const object of upstream.adoptedNamespaces.of(member.name)) {
    const record = adoptedNamespace(object)
    if (record !== undefined && record.state !== 'Leaving') yield record.namespace
  }
}

class LabelledNamespace implements Disposable {
  readonly #context: SyncContext
  readonly #namespace: string
  readonly #life: ChildSignal
  readonly #informers: readonly { readonly resource: (typeof made)[number]; readonly informer: Informer<KubeObject> }[]
  readonly #ends: (() => void)[] = []
  #timer: NodeJS.Timeout | undefined
  #isRunning = false
  #isDue = false

  constructor(context: SyncContext, namespace: string, signal: AbortSignal) {
    this.#context = context
    this.#namespace = namespace
    this.#life = childSignal(signal)
    const { downstream: client, log, caches } = context
    const common = { client, namespace, labelSelector: `!${managedLabel}`, metadataOnly: true, backoff, log }
    this.#informers = made.map((resource) => {
      const informer = createInformer<KubeObject>({ ...common, gvr: gvrs[resource], signal: this.#life.signal })
      this.#ends.push(informer.onChange(() => this.#look(0)))
      return { resource, informer }
    })
    // An owner may get its label after its objects were seen.
    for (const { gvr } of workloadKinds)
      this.#ends.push(
        caches[gvr.resource].onChange(({ before, after }) => {
          if (before === undefined && after?.metadata.namespace === namespace) this.#look(0)
        }),
      )
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    for (const end of this.#ends) end()
    this.#life.abort(new DOMException('the namespace is not adopted any more', 'AbortError'))
    this.#life[Symbol.dispose]()
  }

  #look(afterMs: number): void {
    this.#isDue = true
    if (this.#isRunning || this.#timer !== undefined) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.#labelAll()
    }, afterMs)
  }

  async #labelAll(): Promise<void> {
    this.#isRunning = true
    let waitMs = 0
    try {
      while (this.#isDue && !this.#life.signal.aborted) {
        this.#isDue = false
        for (const { resource, informer } of this.#informers)
          for (const object of informer.store.list())
            if (this.#isOurs(resource, object)) await this.#label(resource, object)
      }
    } catch (error) {
      if (!this.#life.signal.aborted) {
        waitMs = againMs
        this.#isDue = true
        this.#context.log.debug('could not label an object of an adopted namespace', { error })
      }
    }
    this.#isRunning = false
    if (this.#isDue && !this.#life.signal.aborted) this.#look(waitMs)
  }

  async #label(resource: ResourceName, { metadata: { name = '', uid } }: CachedObject): Promise<void> {
    const metadata = { uid, labels: { [managedLabel]: 'true' } }
    await this.#context.downstream
      .patch(gvrs[resource], { namespace: this.#namespace, name }, 'merge', { metadata }, { signal: this.#life.signal })
      .catch(tolerate('NotFound', 'Conflict'))
  }

  /** Whether a copy of ours, or an object made of one, is the controller of the object. */
  #isOurs(resource: ResourceName, object: CachedObject): boolean {
    const { caches } = this.#context
    const namespace = this.#namespace
    const { name = '', deletionTimestamp } = object.metadata
    if (deletionTimestamp !== undefined && resource !== 'pods') return false
    const controller = controllerOf(object)
    const kind = workloadKinds.find((row) => row.kind === controller?.kind && row.apiVersion === controller.apiVersion)
    if (controller !== undefined) {
      const owner = kind && caches[kind.gvr.resource].store.get(keyFor({ namespace, name: controller.name }))
      return owner?.metadata.uid === controller.uid
    }
    const reference = resource === 'persistentvolumeclaims' ? asOrdinalClaim(name)?.reference : undefined
    if (reference === undefined) return false
    return [...this.#context.downstreamIn('statefulsets', namespace)].some((set) =>
      claimReferences(set).some((one) => `${one.resource}/${one.name}` === reference),
    )
  }
}

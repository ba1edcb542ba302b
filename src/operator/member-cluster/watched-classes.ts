// The classes of one member, kept current by watches while we are connected to it.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { createInformer, withoutManagedFields, type Informer, type KubeClient } from '#client/index.ts'
import {
  classKinds,
  isSystemPriorityClass,
  maxClasses,
  memberClassOf,
  type ClassKind,
  type MemberClasses,
} from '#crds/index.ts'
import type { Logger } from '#telemetry/index.ts'

/** Watches the classes of a member until it is disposed of. */
export class WatchedClasses implements AsyncDisposable {
  readonly #informers: readonly { readonly kind: ClassKind; readonly informer: Informer<KubeObject> }[]

  /** `changed` is called when a class changes, and for each class at the start. */
  constructor(
    client: KubeClient,
    { log, signal, changed }: { readonly log: Logger; readonly signal: AbortSignal; readonly changed: () => void },
  ) {
    // A member that joined before classes were read refuses: asked again rarely.
    const backoff = { firstMs: 1000, maxMs: 60_000 }
    this.#informers = classKinds.map((kind) => {
      const informer = createInformer<KubeObject>({
        client,
        gvr: kind.gvr,
        transform: withoutManagedFields,
        backoff,
        log,
        signal,
      })
      informer.onChange(changed)
      informer.synced(signal).then(changed, () => undefined)
      return { kind, informer }
    })
  }

  /** The classes by kind; a kind that could not be read yet is absent. */
  current(): MemberClasses[] {
    return this.#informers.flatMap(({ kind, informer }) => {
      if (!informer.hasSynced) return []
      const items = informer.store
        .list()
        .map((object) => memberClassOf(kind, object as KubeObject))
        .filter(({ name }) => kind.kind !== 'PriorityClass' || !isSystemPriorityClass(name))
        .sort((a, b) => (a.name < b.name ? -1 : 1))
      const truncated = items.length > maxClasses ? { truncated: true } : {}
      return [{ kind: kind.kind, ...truncated, items: items.slice(0, maxClasses) }]
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#informers.map(({ informer }) => informer[Symbol.asyncDispose]()))
  }
}

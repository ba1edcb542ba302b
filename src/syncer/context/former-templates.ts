// The pod templates that tenants wrote a short time ago. A member may still bring up the ReplicaSet, revision or Job of
// one of them after the tenant has written the next: what is shown upstream is the tenant's text, and never the
// member's.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { clusterInKey, type Change, type Informer } from '#client/index.ts'
import { placedOn, templateOf, unchangingHash } from '#crds/index.ts'
import type { CachedObject } from './resources.ts'

/** A template as its tenant wrote it, and the annotations that its workload had then. */
export interface WrittenTemplate {
  readonly template: unknown
  readonly annotations: Readonly<Record<string, string>>
}

interface Former extends WrittenTemplate {
  readonly hash: string
  readonly uid: string
  readonly cluster: string
  readonly bytes: number
  readonly atMs: number
}

/** How long a former template is kept, milliseconds: later, a member makes no object of it any more. */
const keptMs = 600_000
/** Most bytes kept for one logical cluster: beyond this, its oldest templates are forgotten first. */
const maxBytes = 1024 * 1024

export class FormerTemplates {
  readonly #now: () => number
  /** By uid of the workload and hash of the template, the oldest first. */
  readonly #known = new Map<string, Former>()
  readonly #bytes = new Map<string, number>()

  constructor(
    informers: Iterable<Pick<Informer<KubeObject>, 'onChange'>>,
    now: () => number = () => performance.now(),
  ) {
    this.#now = now
    for (const informer of informers) informer.onChange((change) => this.#changed(change))
  }

  /** Bytes kept of a logical cluster. */
  bytesOf(cluster: string): number {
    return this.#bytes.get(cluster) ?? 0
  }

  /** The template of this hash that the workload had; undefined if it had none, or not lately. */
  find(workload: CachedObject, hash: string): WrittenTemplate | undefined {
    return this.#known.get(keyOf(workload.metadata.uid, hash))
  }

  #changed({ key, before, after }: Change<KubeObject>): void {
    if (before === undefined || after === undefined) return
    const { uid = '', generation, annotations = {} } = before.metadata
    // Most changes change the status only, so the generation stays.
    if (uid !== after.metadata.uid || generation === after.metadata.generation) return
    if (Object.keys(placedOn(before as KubeObject)).length === 0) return
    const template = templateOf(before)
    const hash = unchangingHash(template)
    if (template === undefined || hash === unchangingHash(templateOf(after))) return
    const bytes = JSON.stringify([template, annotations]).length
    const cluster = clusterInKey(key)
    const atMs = this.#now()
    this.#forget(keyOf(uid, hash))
    this.#known.set(keyOf(uid, hash), { template, annotations, hash, uid, cluster, bytes, atMs })
    this.#bytes.set(cluster, this.bytesOf(cluster) + bytes)
    for (const [known, one] of this.#known) {
      if (one.atMs >= atMs - keptMs) break
      this.#forget(known)
    }
    if (this.bytesOf(cluster) <= maxBytes) return
    for (const [known, one] of this.#known) {
      if (one.cluster === cluster) this.#forget(known)
      if (this.bytesOf(cluster) <= maxBytes) return
    }
  }

  #forget(key: string): void {
    const one = this.#known.get(key)
    if (one === undefined) return
    this.#known.delete(key)
    const left = this.bytesOf(one.cluster) - one.bytes
    if (left > 0) this.#bytes.set(one.cluster, left)
    else this.#bytes.delete(one.cluster)
  }
}

function keyOf(uid: string | undefined, hash: string): string {
  return `${uid} ${hash}`
}

// Secrets and ConfigMaps that the controller of a member makes for a custom resource, and that the export names: shown
// upstream beside the object, while this member speaks for it.
import { canonicalJson } from '#apimachinery/json/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import { createInformer, withoutManagedFields, type Informer } from '#client/index.ts'
import {
  memberAnnotation,
  memberUidAnnotation,
  placedOn,
  relatedToAnnotation,
  type RelatedReference,
} from '#crds/index.ts'
import { gvrs, type CachedObject } from '#syncer/context/resources.ts'
import type { Reconcile } from '#syncer/context/scope.ts'
import type { SyncContext } from '#syncer/context/sync-context.ts'
import { isRelatedOf, mayShowRelated, relatedName } from '#syncer/rules/related.ts'
import { warnOf } from '#syncer/report/warning-event.ts'
import type { CustomObject } from './custom-object.ts'
import { speaker } from './speaker.ts'

const backoff = { firstMs: 100, maxMs: 5000 }
/** How many related objects of one member are watched; changes of more are seen with those of their custom resources. */
const maxWatched = 500

export interface RelatedSubject extends CustomObject {
  /** The key of the custom resource upstream. */
  readonly key: string
  /** The name of the definition. */
  readonly apiName: string
  /** The copy in the member, if it is the copy of the object. */
  readonly live: CachedObject | undefined
  readonly references: readonly RelatedReference[]
}

interface Watched {
  readonly informer: Informer<KubeObject>
  readonly apiName: string
  readonly key: string
}

export class RelatedObjects implements AsyncDisposable {
  readonly #context: SyncContext
  readonly #enqueue: (apiName: string, key: string) => void
  readonly #signal: AbortSignal
  /** By `RESOURCE NAMESPACE/NAME` in the member. */
  readonly #watched = new Map<string, Watched>()
  /** By name of the API and key of the custom resource: what is watched for it. */
  readonly #bySubject = new Map<string, ReadonlySet<string>>()
  readonly #ends: (() => void)[]

  constructor(context: SyncContext, enqueue: (apiName: string, key: string) => void, signal: AbortSignal) {
    this.#context = context
    this.#enqueue = enqueue
    this.#signal = signal
    // A tenant may change or delete what is shown.
    this.#ends = (['secrets', 'configmaps'] as const).map((resource) =>
      context.upstream.informers[resource].onChange(({ key, before, after }) => {
        const shown = after ?? before
        if (shown?.metadata.annotations?.[memberAnnotation] !== context.member.name) return
        const [apiName = '', name = ''] = (shown.metadata.annotations[relatedToAnnotation] ?? '').split(' ')
        const at = key.slice(0, key.lastIndexOf('/') + 1)
        if (name !== '') enqueue(apiName, `${at}${name}`)
      }),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const end of this.#ends) end()
    await Promise.all([...this.#watched.values()].map(({ informer }) => informer[Symbol.asyncDispose]()))
  }

  /** Shows what is related to the custom resource, and removes what is not related any more. */
  async reconcile(reconcile: Reconcile, subject: RelatedSubject): Promise<void> {
    const { api, object, live, references } = subject
    if (!api.isNamespaced || reconcile.memberNamespace === undefined) return
    const isShown = live !== undefined && object !== undefined
    const speaks = isShown && speaker(placedOn(object as KubeObject)) === reconcile.member.name
    const wanted = new Map<string, RelatedReference>()
    if (speaks)
      for (const reference of references) {
        const name = relatedName(reference, { object, live })
        if (name !== undefined) wanted.set(`${reference.resource} ${name}`, reference)
      }
    await this.#watch(reconcile, subject, wanted.keys())
    for (const [key, { resource }] of wanted)
      await this.#show(reconcile, subject, { resource, name: key.slice(key.indexOf(' ') + 1) })
    if (references.length === 0) return
    for (const resource of ['secrets', 'configmaps'] as const)
      for (const shown of reconcile.allUpstream(resource))
        if (isRelatedOf(reconcile, shown, subject) && !wanted.has(`${resource} ${shown.metadata.name ?? ''}`))
          await remove(reconcile, resource, shown)
  }

  async #show(reconcile: Reconcile, subject: RelatedSubject, { resource, name }: Related): Promise<void> {
    const { object } = subject
    const { context, memberNamespace: namespace = '', upstreamClient: client, signal } = reconcile
    if (object === undefined) return
    const made = await context.downstream.tryGet<KubeObject>(gvrs[resource], { namespace, name }, { signal })
    const ref = { namespace: reconcile.namespace, name }
    // Asked for, not read from the cache: an object of the tenant that the cache lacks must not be written.
    const shown = await client.tryGet<KubeObject>(gvrs[resource], ref, { signal })
    if (made === undefined || made.metadata.deletionTimestamp !== undefined) {
      if (shown !== undefined && isRelatedOf(reconcile, shown, subject)) await remove(reconcile, resource, shown)
      return
    }
    const refusal = mayShowRelated(reconcile, { made, shown, subject, resource })
    if (refusal !== undefined) {
      const message = `member cluster "${reconcile.member.name}": ${refusal}`
      await warnOf(reconcile, object, { reason: 'SyncFailed', message, repeats: false })
      return
    }
    const desired = upstreamForm(reconcile, subject, made)
    if (shown === undefined) {
      await client.create(gvrs[resource], desired, { signal }).catch((error: unknown) => {
        // Somebody else has made it since: the next reconcile compares it.
        if (!isStatusError(error, 'AlreadyExists')) throw error
        this.#enqueue(subject.apiName, subject.key)
      })
      return
    }
    if (contentOf(shown) === contentOf(desired)) return
    const { uid = '', resourceVersion = '' } = shown.metadata
    const metadata = { ...desired.metadata, uid, resourceVersion }
    await client.update(gvrs[resource], { ...desired, metadata }, { signal })
  }

  /** Watches the related objects of a custom resource in the member, and no others for it. */
  async #watch(
    { memberNamespace: namespace = '' }: Reconcile,
    { apiName, key }: RelatedSubject,
    wanted: Iterable<string>,
  ): Promise<void> {
    const { downstream: client, log } = this.#context
    const subject = `${apiName} ${key}`
    const before = this.#bySubject.get(subject) ?? new Set<string>()
    const now = new Set([...wanted].map((one) => one.replace(' ', ` ${namespace}/`)))
    if (now.size === 0) this.#bySubject.delete(subject)
    else this.#bySubject.set(subject, now)
    for (const one of before) {
      if (now.has(one)) continue
      const watched = this.#watched.get(one)
      if (watched?.key !== key || watched.apiName !== apiName) continue
      this.#watched.delete(one)
      await watched.informer[Symbol.asyncDispose]()
    }
    for (const one of now) {
      if (this.#watched.has(one) || this.#watched.size >= maxWatched) continue
      const [resource, name] = [one.slice(0, one.indexOf(' ')), one.slice(one.lastIndexOf('/') + 1)]
      const informer = createInformer<KubeObject>({
        ...{ client, gvr: gvrs[resource as Related['resource']], namespace, fieldSelector: `metadata.name=${name}` },
        ...{ transform: withoutManagedFields, metadataOnly: true, backoff, log, signal: this.#signal },
      })
      this.#watched.set(one, { informer, apiName, key })
      informer.onChange(() => this.#enqueue(apiName, key))
    }
  }
}

interface Related {
  readonly resource: RelatedReference['resource']
  readonly name: string
}

function upstreamForm(
  { namespace, member }: Reconcile,
  { apiName, object, api, version, name: owner }: RelatedSubject,
  { kind, apiVersion, metadata: { name = '', uid = '', labels }, ...content }: KubeObject,
): KubeObject {
  const ownerUid = object?.metadata.uid ?? ''
  const kept: Record<string, unknown> = {}
  for (const field of ['type', 'data', 'binaryData', 'immutable'])
    if (content[field] !== undefined) kept[field] = content[field]
  const ownerReference = {
    apiVersion: `${api.gvr.group}/${version}`,
    kind: object?.kind ?? '',
    name: owner,
    uid: ownerUid,
  }
  const own = Object.entries(labels ?? {}).filter(
    ([label]) => !label.includes('kcp.dev/') && !label.includes('kubernetes.io/'),
  )
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      namespace,
      labels: Object.fromEntries(own),
      annotations: {
        [memberAnnotation]: member.name,
        [memberUidAnnotation]: uid,
        [relatedToAnnotation]: `${apiName} ${owner}`,
      },
      ownerReferences: [ownerReference],
    },
    ...kept,
  }
}

function contentOf({ metadata: { labels = {}, annotations = {} }, ...object }: KubeObject): string {
  const { data, binaryData, type, immutable } = object
  const own = [memberAnnotation, memberUidAnnotation, relatedToAnnotation].map((name) => annotations[name])
  return canonicalJson([data ?? {}, binaryData ?? {}, type ?? 'Opaque', immutable ?? false, labels, own])
}

async function remove(
  { upstreamClient, namespace, signal }: Reconcile,
  resource: Related['resource'],
  { metadata: { name = '', uid } }: CachedObject,
): Promise<void> {
  await upstreamClient
    .delete(gvrs[resource], { namespace, name }, { ...(uid && { uid }), signal })
    .catch(tolerate('NotFound', 'Conflict'))
}

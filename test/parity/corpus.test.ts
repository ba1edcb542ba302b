// Replays the corpus on our write path over a real store: every stored object and every refusal must equal those of a
// real kube-apiserver. Differences are listed in known-differences.ts; a listed case that does not differ fails.
import { WorkBudget } from '#apimachinery/work-budget/index.ts'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { ClusterId, ClusterName, JsonValue, KubeObject } from '#apimachinery/meta/index.ts'
import { parseApiVersion } from '#apimachinery/meta/index.ts'
import { StatusError, type Status } from '#apimachinery/status/index.ts'
import { createWatchCache, type ClusterObjects, type WatchCache } from '#store/watch-cache/index.ts'
import { openSqliteStore } from '#store/sqlite/index.ts'
import type { Store } from '#store/index.ts'
import { createAdmission } from '#virtualapi/write/admission/admission.ts'
import { standardPlugins } from '#virtualapi/write/admission/plugins/index.ts'
import { builtInResourceOfKind } from '#virtualapi/kinds/resources/builtin-resources.ts'
import { ClusterCatalog } from '#virtualapi/catalog/cluster-catalog.ts'
import { readFacts, stampRevision } from '#virtualapi/kinds/resources/object-bytes.ts'
import { Registry } from '#virtualapi/write/registry/registry.ts'
import type { RegistryTarget } from '#virtualapi/write/registry/write.ts'
import type { RequestContext } from '#virtualapi/kinds/resources/resource-definition.ts'
import { comparable, readCorpus, sorted, type Case } from './corpus.ts'
import { knownDifferences } from './known-differences.ts'
import { Conversions } from '#virtualapi/write/conversion/conversions.ts'

const noConversions = new Conversions({ outbound: { post: () => Promise.reject(new Error('there are no webhooks')) } })

// The recorded answers come from a real server without the ServiceAccount plugin.
const plugins = standardPlugins().filter(({ name }) => name !== 'ServiceAccount')

describe('the write path compared with kube-apiserver 1.34.3', () => {
  const registry = new Registry({ admission: createAdmission({ plugins }), conversions: noConversions })
  const catalog = new ClusterCatalog()
  const { signal } = new AbortController()
  let directory: string
  let store: Store
  let watchCache: WatchCache
  let objects: ClusterObjects

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'kcp-parity-'))
    store = await openSqliteStore({ file: join(directory, 'objects.db') })
    watchCache = await createWatchCache(store, { stamp: stampRevision, readFacts, signal })
    objects = await watchCache.cluster('parity0001' as ClusterId, { signal })
    await write({ title: '', object: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default' } } })
  })

  after(async () => {
    await watchCache[Symbol.asyncDispose]()
    await store[Symbol.asyncDispose]()
    await rm(directory, { recursive: true })
  })

  function targetOf({ apiVersion, kind, metadata }: KubeObject): RegistryTarget {
    const info = builtInResourceOfKind({ ...parseApiVersion(apiVersion), kind })
    const definition = info === undefined ? undefined : catalog.findBuiltIn(info)
    if (definition === undefined) throw new Error(`${apiVersion} ${kind} is not built in`)
    const cluster = {
      name: 'parity' as ClusterName,
      id: objects.cluster,
      uid: 'u',
      creationTimestamp: '2025-01-01T00:00:00Z',
      owners: [],
      deleting: false,
      podSecurity: 'privileged' as const,
    }
    const context: RequestContext = {
      cluster,
      objects,
      user: {
        name: 'admin',
        uid: 'admin',
        groups: ['system:masters', 'system:authenticated'],
        extra: {},
        realm: { kind: 'host' },
      },
      dryRun: false,
      fieldManager: '',
      warnings: [],
      work: new WorkBudget(),
      now: Date.now(),
    }
    return {
      definition,
      context,
      signal,
      namespace: definition.info.namespaced ? (metadata.namespace ?? 'default') : '',
    }
  }

  async function write({ object, old }: Case): Promise<KubeObject> {
    const target = targetOf(object)
    const { toStorage, fromStorage } = target.definition
    // As in the endpoints, the write path receives objects in their storage version.
    const kept = (given: KubeObject): KubeObject => toStorage?.(structuredClone(given)) ?? structuredClone(given)
    if (old !== undefined) await registry.create(targetOf(old), kept(old))
    const { object: written } =
      old === undefined
        ? await registry.create(target, kept(object))
        : await registry.update(target, object.metadata.name ?? '', {
            subresource: '',
            change: () => kept(object),
          })
    // A quota would refuse the pods of later cases.
    if (object.kind === 'ResourceQuota') await registry.delete(target, object.metadata.name ?? '', {})
    return fromStorage?.(written) ?? written
  }

  async function answerTo(one: Case): Promise<{ object?: KubeObject; status?: Status }> {
    try {
      return { object: await write(one) }
    } catch (error) {
      if (error instanceof StatusError) return { status: error.status }
      throw error
    }
  }

  function compare(one: Case, check: () => void): void {
    const reason = knownDifferences[one.title]
    if (reason === undefined) check()
    else expect(check, `"${one.title}" is listed as different (${reason}) and is not any more`).to.throw()
  }

  describe('stores', () => {
    for (const one of readCorpus('valid'))
      it(one.title, async () => {
        const { object, status } = await answerTo(one)
        compare(one, () => {
          expect(status?.message).to.equal(undefined)
          if (object === undefined) return
          expect(sorted(comparable(object) as unknown as JsonValue)).to.deep.equal(
            sorted(comparable(one.answer ?? object) as unknown as JsonValue),
          )
        })
      })
  })

  describe('refuses', () => {
    for (const one of readCorpus('invalid'))
      it(one.title, async () => {
        const { status } = await answerTo(one)
        compare(one, () => {
          expect({ code: status?.code, reason: status?.reason }).to.deep.equal({
            code: one.status?.code,
            reason: one.status?.reason,
          })
          expect(causesOf(status)).to.deep.equal(causesOf(one.status))
          expect(status?.details?.kind).to.equal(one.status?.details?.kind)
          if (causesOf(one.status).length === 0) expect(status?.message).to.equal(one.status?.message)
        })
      })
  })
})

const uuid = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g

/** Causes as lines, sorted, because Go's maps have no order. */
function causesOf(status: Status | undefined): string[] {
  const causes = status?.details?.causes ?? []
  return causes
    .map(({ reason = '', field = '', message = '' }) => `${field} | ${reason} | ${message.replace(uuid, 'UID')}`)
    .sort()
}

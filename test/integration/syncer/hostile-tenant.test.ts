// The content that arrives in a member of objects whose tenant fills every field of every kind with hostile values.
// Kinds and fields come from the schemas of the API, so a field that a new version of Kubernetes brings fails here
// until a person has looked at it and written it into the list.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import {
  clusterIdOf,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  type KubeObject,
} from '#apimachinery/meta/index.ts'
import { syncedKinds, type SyncedKind } from '#syncer/rules/synced-kinds.ts'
import { gvrs } from '#syncer/context/resources.ts'
import { podTemplateUp } from '#syncer/transform/pod-template.ts'
import type { PodContext } from '#syncer/transform/pod-template.ts'
import schemas from '#virtualapi/kinds/resources/generated/schemas.json' with { type: 'json' }
import resources from '#virtualapi/kinds/resources/generated/resources.json' with { type: 'json' }

interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly format?: string
  readonly intOrString?: boolean
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly additionalProperties?: Schema
}

const { definitions, kinds } = schemas as unknown as {
  readonly definitions: Readonly<Record<string, Schema>>
  readonly kinds: Readonly<Record<string, string>>
}
const place = { cluster: 'acme', clusterId: clusterIdOf('uid of acme') }
const other = clusterIdOf('uid of bob')
const context: PodContext = {
  namespace: 'shop',
  audience: `${place.clusterId}.klmnopqrst`,
  apiAddress: { host: 'api.example', port: 7443 },
  nameserver: { address: '10.96.0.53', domain: `${place.clusterId}.kcp` },
}
const objectMeta = 'apimachinery.pkg.apis.meta.v1.ObjectMeta'

/** Annotations of the tenant that go down, and those of kcp. */
const goDown = ['team', 'checksum/config', 'kubectl.kubernetes.io/restartedAt', 'prometheus.io/scrape']
const ofKcp = ['locator', 'applied', 'source', 'changes', 'namespace', 'withheld'].map((name) => `kcp.dev/${name}`)
const hostileAnnotations = [
  'pv.kubernetes.io/bind-completed',
  'pv.kubernetes.io/bound-by-controller',
  'volume.kubernetes.io/selected-node',
  'volume.beta.kubernetes.io/storage-class',
  'service.beta.kubernetes.io/aws-load-balancer-internal',
  'external-dns.alpha.kubernetes.io/hostname',
  'iam.amazonaws.com/role',
  'eks.amazonaws.com/role-arn',
  'nginx.ingress.kubernetes.io/configuration-snippet',
  'sidecar.istio.io/inject',
  'scheduler.alpha.kubernetes.io/node-selector',
  'kubernetes.io/service-account.name',
  'kcp.dev/placed-on',
  'kcp.dev/member',
  'kcp.dev/managed',
  'status.kcp.dev/east',
  'deployment.kubernetes.io/revision',
]
const labels = ['app', 'kcp.dev/managed', 'kcp.dev/serving']

/** Values of text fields: each is tried in all of them. */
const texts = [
  'hostile',
  'kcp-api-access',
  'kube-root-ca.crt',
  `web.${other}-shop.svc.kcp`,
  'kube-system',
  'ClusterFirst',
]

/** Every field, with this text and this truth. Lists have two items. */
function filled(schema: Schema, text: string, truth: boolean, within: readonly string[] = []): JsonValue {
  const { $ref } = schema
  if ($ref !== undefined) {
    if ($ref === objectMeta) return hostileMetadata(text)
    // A type inside of itself.
    return within.includes($ref) ? {} : filled(definitions[$ref] ?? {}, text, truth, [...within, $ref])
  }
  if (schema.properties !== undefined)
    return Object.fromEntries(
      Object.entries(schema.properties).map(([field, one]) => [field, filled(one, text, truth, within)]),
    )
  if (schema.items !== undefined)
    return [text, `${text}-2`].map((one) => filled(schema.items ?? {}, one, truth, within))
  if (schema.additionalProperties !== undefined)
    return { hostile: filled(schema.additionalProperties, text, truth, within) }
  if (schema.intOrString === true || schema.type === 'integer' || schema.type === 'number') return 1
  if (schema.type === 'boolean') return truth
  return schema.type === 'object' ? { hostile: 'hostile' } : text
}

function hostileMetadata(text: string): JsonObject {
  const annotations = Object.fromEntries([...goDown, ...hostileAnnotations].map((name) => [name, 'v']))
  const owner = { apiVersion: 'v1', kind: 'Node', name: 'node', uid: 'uid', controller: true, blockOwnerDeletion: true }
  return {
    ...{ name: text, generateName: 'x-', namespace: 'kube-system', uid: 'chosen', resourceVersion: '1', generation: 7 },
    ...{ creationTimestamp: '2020-01-01T00:00:00Z', deletionTimestamp: '2020-01-01T00:00:00Z', selfLink: '/x' },
    ...{ finalizers: ['kubernetes.io/pvc-protection', 'kcp.dev/upstream'], ownerReferences: [owner] },
    ...{ annotations, labels: { app: 'web' }, managedFields: [{ manager: 'x', operation: 'Apply' }] },
  }
}

/**
 * Calls back for every object of a type in the value, with the name of the type; the value has the form of the schema.
 */
function request(schema: Schema, value: unknown, seen: (type: string, object: JsonObject) => void): void {
  if (schema.$ref !== undefined) {
    if (isJsonObject(value)) seen(schema.$ref, value)
    request(definitions[schema.$ref] ?? {}, value, seen)
  } else if (Array.isArray(value)) for (const item of value as unknown[]) request(schema.items ?? {}, item, seen)
  else if (isJsonObject(value))
    for (const [field, one] of Object.entries(value))
      request(schema.properties?.[field] ?? schema.additionalProperties ?? {}, one, seen)
}

const typeOf = ({ resource }: SyncedKind): { apiVersion: string; kind: string; schema: Schema } => {
  const { group, version } = gvrs[resource]
  const { kind = '' } = resources.find((one) => one.resource === resource && one.group === group) ?? {}
  const apiVersion = group === '' ? version : `${group}/${version}`
  return { apiVersion, kind, schema: { $ref: kinds[`${group}/${version}/${kind}`] ?? '' } }
}

const listFile = join(import.meta.dirname, 'arriving-fields.json')
const written = JSON.parse(readFileSync(listFile, 'utf8')) as Readonly<Record<string, readonly string[]>>

describe('objects of a hostile tenant in a member', () => {
  const arriving = new Map<string, Set<string>>()
  const copies: { kind: SyncedKind; object: KubeObject; copy: KubeObject }[] = []

  before(() => {
    for (const kind of syncedKinds)
      for (const text of texts)
        for (const truth of [true, false]) {
          const { apiVersion, kind: name, schema } = typeOf(kind)
          const metadata = { ...hostileMetadata('web'), namespace: 'shop' }
          const object = {
            ...(filled(schema, text, truth) as JsonObject),
            apiVersion,
            kind: name,
            metadata,
          } as unknown as KubeObject
          const copy = kind.down(object, place, context, { copy: undefined, isLeaving: false, isScaled: false })
          copies.push({ kind, object, copy })
          request(schema, copy, (type, part) => {
            const fields = arriving.get(type) ?? new Set()
            for (const field of Object.keys(part)) fields.add(field)
            arriving.set(type, fields)
          })
        }
  })

  const each = (type: string | undefined, check: (part: JsonObject, what: string) => void): void => {
    for (const { kind, copy } of copies)
      request(typeOf(kind).schema, copy, (found, part) => {
        if (type === undefined || found === type) check(part, `${copy.kind}: ${found}`)
      })
  }

  it('have the fields that are written down, and no others', () => {
    const found = Object.fromEntries(
      [...arriving].sort(([a], [b]) => (a < b ? -1 : 1)).map(([type, fields]) => [type, [...fields].sort()]),
    )
    expect(found).to.deep.equal(written)
  })

  it('have names, labels and annotations that are for members, at every depth', () => {
    const allowed = {
      root: ['name', 'namespace', 'labels', 'annotations'],
      embedded: ['name', 'labels', 'annotations'],
    }
    let embedded = 0
    for (const { kind, copy } of copies)
      request(typeOf(kind).schema, copy, (type, part) => {
        if (type !== objectMeta) return
        const isRoot = part === (copy.metadata as unknown as JsonObject)
        if (!isRoot) embedded++
        expect(Object.keys(part), copy.kind).to.include.members(isRoot ? ['namespace'] : [])
        expect(isRoot ? allowed.root : allowed.embedded, copy.kind).to.include.members(Object.keys(part))
        if (isRoot) expect(part['namespace']).to.equal(`${place.clusterId}-shop`)
        const isOurs = (name: string): boolean => ofKcp.includes(name) || name.startsWith('kcp.dev/annotation-')
        const names = Object.keys((part['annotations'] ?? {}) as object).filter((name) => !isOurs(name))
        expect(goDown, copy.kind).to.include.members(names)
        expect(labels, copy.kind).to.include.members(Object.keys((part['labels'] ?? {}) as object))
      })
    // Of 8 kinds of workloads with a template, of Jobs, and of claims in volumes and StatefulSets.
    expect(embedded).to.be.greaterThan(100)
  })

  it('have no annotation of kcp that their tenant chose', () => {
    each(objectMeta, (part) => {
      const { 'kcp.dev/locator': locator, ...others } = (part['annotations'] ?? {}) as Record<string, string>
      if (locator !== undefined)
        expect(JSON.parse(locator)).to.include({ clusterId: place.clusterId, namespace: 'shop' })
      for (const name of ofKcp) expect(others[name]).to.not.equal('v')
    })
  })

  it('have tokens for the API of their logical cluster alone', () => {
    let tokens = 0
    each('api.core.v1.ServiceAccountTokenProjection', ({ audience }, what) => {
      tokens++
      expect(audience, what).to.equal(context.audience)
    })
    expect(tokens).to.be.greaterThan(50)
    each('api.core.v1.PodSpec', ({ automountServiceAccountToken }, what) =>
      expect(automountServiceAccountToken, what).to.equal(false),
    )
  })

  it('name namespaces of their logical cluster alone', () => {
    const isOwn = (name: unknown): boolean => typeof name === 'string' && name.startsWith(`${place.clusterId}-`)
    each('api.core.v1.PodAffinityTerm', ({ namespaces, namespaceSelector }, what) => {
      for (const name of (namespaces ?? []) as unknown[]) expect(isOwn(name), what).to.equal(true)
      expect(namespaceSelector, what).to.have.nested.property('matchLabels.kcp\\.dev/logical-cluster', place.clusterId)
    })
    each('api.networking.v1.NetworkPolicyPeer', ({ namespaceSelector }, what) => {
      const selected = (namespaceSelector ?? {}) as { matchLabels?: Record<string, string> }
      const isNameserver = selected.matchLabels?.['kubernetes.io/metadata.name'] === 'kcp-system'
      if (namespaceSelector !== undefined && !isNameserver)
        expect(selected.matchLabels?.['kcp.dev/logical-cluster'], what).to.equal(place.clusterId)
    })
    each(undefined, (part, what) => {
      const { namespace } = part
      if (namespace !== undefined) expect(isOwn(namespace), `${what}: ${JSON.stringify(namespace)}`).to.equal(true)
    })
  })

  it('lead to no name of the zone of the nameservers', () => {
    each('api.core.v1.ServiceSpec', ({ externalName }, what) =>
      expect(JSON.stringify(externalName ?? ''), what).to.not.match(/kcp\.?"$/),
    )
  })

  it('have pod templates that are those of the tenant again on the way up', () => {
    for (const { copy, object } of copies) {
      if (copy.kind !== 'Deployment') continue
      const [down, up] = [copy, object].map(({ spec }) => (spec as { template: never }).template)
      expect(podTemplateUp(down as never)).to.deep.equal(up)
    }
  })
})

// A scenario for every place of every request with a body, and every verb on what was stored.
import { createHash } from 'node:crypto'
import { readCorpus } from '#test/parity/corpus.ts'
import { goodObjects } from './good-objects.ts'
import { grownBody, type Entries } from './grown-body.ts'
import { bodyRequests, type BodyRequest, type Place } from './places.ts'
import { sampleValue } from './sample-value.ts'
import type { Scenario, Step } from './scenario.ts'
import type { OpenApiDocument } from './schema.ts'

type Manifest = Record<string, unknown> & { metadata?: Record<string, unknown> & { name?: string } }

/** A scenario, and whether a field of this type was tried before. */
interface Generated {
  readonly scenario: Scenario
  readonly isRepeated: boolean
}

const tableAs = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }
const mergePatch = 'application/merge-patch+json'
const strategicPatch = 'application/strategic-merge-patch+json'
const jsonPatch = 'application/json-patch+json'
const applyPatch = 'application/apply-patch+yaml'
/** A JSON patch may have no more. */
const mostOperations = 10_000
/** A number of bytes instead of one of entries is so much larger. */
const bytesPerEntry = 64

/** All of them; those that repeat a field of the same type in another kind come last. */
export function generatedScenarios(documents: readonly OpenApiDocument[]): Scenario[] {
  const seen = new Set<string>()
  const all: Generated[] = documents.flatMap(bodyRequests).flatMap((request) => {
    const base = goodObject(request)
    return request.places.flatMap((place) =>
      (place.kind === 'list' || place.kind === 'siblings'
        ? (['like', 'distinct'] as const)
        : ['distinct' as const]
      ).map((entries) => {
        const signature = `${place.signature} ${entries}`
        const isRepeated = seen.has(signature)
        seen.add(signature)
        return { scenario: scenarioOf(request, base, place, { entries, everyVerb: !isRepeated }), isRepeated }
      }),
    )
  })
  // In an order that has nothing to do with kinds, so that a run that ends early has seen of all.
  const order = (title: string): string => createHash('sha256').update(title).digest('hex')
  const keyed = all.map(({ scenario, isRepeated }) => ({
    scenario,
    key: `${isRepeated ? 1 : 0}${order(scenario.title)}`,
  }))
  return keyed.toSorted((a, b) => (a.key < b.key ? -1 : 1)).map(({ scenario }) => scenario)
}

/** What a subresource is of: the request that creates it. */
function createdBy({ document, path, ...rest }: BodyRequest): BodyRequest {
  const [collection = ''] = path.split('/{name}/')
  const schema = Object.values(document.paths[collection]?.['post']?.requestBody?.content ?? {})[0]?.schema
  return schema === undefined ? { document, path, ...rest } : { ...rest, document, path: collection, schema }
}

let corpus: Map<string, Manifest> | undefined

/**
 * One that the server takes: written by hand, or the smallest object of the corpus of this kind, or one made of its
 * schema.
 */
function goodObject({ document, path, schema }: BodyRequest): Manifest {
  corpus ??= new Map(
    readCorpus('valid')
      .map(({ object }) => object as unknown as Manifest)
      .toSorted((a, b) => JSON.stringify(b).length - JSON.stringify(a).length)
      .map((object) => [`${String(object['apiVersion'])} ${String(object['kind'])}`, object]),
  )
  const creates = (document.paths[path]?.['post'] ?? document.paths[path]?.['put']) as {
    'x-kubernetes-group-version-kind'?: { group: string; version: string; kind: string }
  }
  const { group = '', version = '', kind = '' } = creates['x-kubernetes-group-version-kind'] ?? {}
  const apiVersion = group === '' ? version : `${group}/${version}`
  const made = sampleValue(document, schema, { name: '', index: 0 }) as Manifest
  const key = `${apiVersion} ${kind}`
  return (goodObjects.get(key) as Manifest | undefined) ?? corpus.get(key) ?? { ...made, apiVersion, kind }
}

let count = 0

function scenarioOf(
  request: BodyRequest,
  base: Manifest,
  place: Place,
  { entries, everyVerb }: { entries: Entries; everyVerb: boolean },
): Scenario {
  const [collection = ''] = request.path.split('/{name}')
  const name = /\/(customresourcedefinitions|apiservices|ipaddresses)$/.test(collection)
    ? (base.metadata?.name ?? '10.0.0.9')
    : `amplified-${++count}`
  const named = (one: Manifest): Manifest => ({ ...one, metadata: { ...one.metadata, name, namespace: undefined } })
  const object = named(base)
  const path = request.path.replace('{namespace}', 'default').replace('{name}', name)
  const isSubresource = request.path.includes('{name}')
  const item = isSubresource ? path.split('/').slice(0, -1).join('/') : `${path}/${name}`
  const title = `${request.method} ${request.path} ${place.steps.join('.')} (${place.kind}, ${entries})`
  const isReview = /review|eviction|token|binding/.test(path) && !path.includes('rolebindings')
  const isStored = everyVerb && !isReview && !isSubresource
  const size = (n: number): number => (place.kind === 'text' ? n * bytesPerEntry : place.kind === 'nested' ? n / 8 : n)
  return {
    title,
    before: () =>
      isSubresource
        ? [{ method: 'POST', path: item.slice(0, item.lastIndexOf('/')), body: named(goodObject(createdBy(request))) }]
        : [],
    steps(n) {
      const body = grownBody(request, object, place, { n: size(n), entries })
      const sent = JSON.stringify(body)
      const query = isStored || isReview ? '' : '?dryRun=All'
      const write: Step = {
        name: 'write',
        sent: { method: request.method, path: path + query, body: sent },
        needed: true,
      }
      return isStored ? [write, ...verbs(item, sent, place, n)] : [write]
    },
    after: () =>
      !isStored && !isSubresource
        ? []
        : [
            { method: 'PATCH', path: item, type: mergePatch, body: { metadata: { finalizers: null } } },
            { method: 'DELETE', path: item, body: { gracePeriodSeconds: 0 } },
          ],
  }
}

/** What is done with the stored object. A patch of nothing but its own entries still walks through them. */
function verbs(item: string, sent: string, { kind, steps }: Place, n: number): Step[] {
  const pointer = steps.map((step) => `/${step === '[]' ? '0' : step === '{}' ? 'k0' : step}`).join('')
  const many = Math.min(n, mostOperations)
  const operations = Array.from({ length: many }, (_, i) => ({
    ...(kind === 'map'
      ? { op: 'add', path: `${pointer}/k${i}`, value: 'x' }
      : i % 2 === 0
        ? { op: 'copy', from: `${pointer}/0`, path: `${pointer}/0` }
        : { op: 'remove', path: `${pointer}/0` }),
  }))
  const patch = (name: string, type: string, body: string | object, query = ''): Step => ({
    name,
    sent: { method: 'PATCH', path: item + query, type, body: typeof body === 'string' ? body : JSON.stringify(body) },
  })
  const collection = item.slice(0, item.lastIndexOf('/'))
  return [
    { name: 'get', sent: { method: 'GET', path: item } },
    { name: 'table', sent: { method: 'GET', path: collection, headers: tableAs } },
    { name: 'update', sent: { method: 'PUT', path: item, body: sent.replace('{', '{"unknown":1,') } },
    patch('small merge patch', mergePatch, { metadata: { annotations: { a: 'b' } } }),
    patch('merge patch', mergePatch, sent),
    patch('strategic patch', strategicPatch, sent),
    ...(kind === 'list' || kind === 'map' ? [patch('json patch', jsonPatch, operations)] : []),
    patch('apply', applyPatch, sent, '?fieldManager=amplifier&force=true'),
    { name: 'delete', sent: { method: 'DELETE', path: item, body: { gracePeriodSeconds: 0 } } },
  ]
}

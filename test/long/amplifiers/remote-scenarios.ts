// The answers of a tenant's servers, in every direction in which they can grow: reviews, patches, conversions,
// discovery, OpenAPI.
import { createServer } from 'node:https'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { CertificateAuthority } from '#test/support/certificates.ts'
import { closeWithConnections } from '#test/support/close-with-connections.ts'
import { hostService } from '#test/support/host-service.ts'
import { ownAddress } from '#test/support/sample-api-server.ts'
import type { Sent } from './measured-process.ts'
import type { Scenario } from './scenario.ts'

type Json = Record<string, unknown>

interface Review {
  readonly apiVersion: string
  readonly kind: string
  readonly request: { readonly uid: string; readonly objects?: readonly Json[] }
}

/** What a webhook answers besides the uid, at size n. */
type Respond = (n: number, review: Review) => { readonly response: Json; readonly more?: Json }
/** The document at a path of an aggregated server of this group, at size n; undefined: 404. */
type Documents = (n: number, group: string) => Readonly<Record<string, unknown>>

export interface RemoteScenarios extends AsyncDisposable {
  readonly scenarios: readonly Scenario[]
  /** Of the server that is measured: it may call the one that answers. */
  readonly args: readonly string[]
}

const many = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i))
const named = (count: number, make: (index: number) => unknown): Json =>
  Object.fromEntries(many(count, (i) => [`f${i}`, make(i)]))
const patch = (operations: unknown): Json => ({
  ...{ allowed: true, patchType: 'JSONPatch' },
  patch: Buffer.from(JSON.stringify(operations)).toString('base64'),
})

const validating: Readonly<Record<string, Respond>> = {
  'n warnings': (n) => ({ response: { allowed: true, warnings: many(n, (i) => `warning ${i}`) } }),
  'n audit annotations': (n) => ({ response: { allowed: true, auditAnnotations: named(n, () => 'a') } }),
  'n causes of a refusal': (n) => ({
    response: { allowed: false, status: { message: 'no', details: { causes: many(n, (i) => ({ field: `f${i}` })) } } },
  }),
  'n values beside the response': (n) => ({ response: { allowed: true }, more: { request: many(n, () => []) } }),
  'a text of 100 n bytes beside the response': (n) => ({
    response: { allowed: true },
    more: { a: 'x'.repeat(100 * n) },
  }),
}
const mutating: Readonly<Record<string, Respond>> = {
  'n annotations': (n) => ({
    response: patch([{ op: 'add', path: '/metadata/annotations', value: named(n, () => 'a') }]),
  }),
  'n labels': (n) => ({ response: patch([{ op: 'add', path: '/metadata/labels', value: named(n, () => 'a') }]) }),
  'n keys, one after the other': (n) => ({
    response: patch([
      { op: 'add', path: '/data', value: {} },
      ...many(n, (i) => ({ op: 'add', path: `/data/f${i}`, value: 'a' })),
    ]),
  }),
  'n owners': (n) => ({
    response: patch([
      {
        ...{ op: 'add', path: '/metadata/ownerReferences' },
        value: many(n, (i) => ({ apiVersion: 'v1', kind: 'ConfigMap', name: `o${i}`, uid: `u${i}` })),
      },
    ]),
  }),
  'n values that no field takes': (n) => ({
    response: patch([{ op: 'add', path: '/other', value: many(n, () => ({})) }]),
  }),
}
const converting: Readonly<Record<string, Respond>> = Object.fromEntries(
  Object.entries<(n: number) => Json>({
    'n fields': (n) => ({ spec: named(n, () => 'a') }),
    'n items': (n) => ({ spec: { items: many(n, (i) => ({ i })) } }),
    'n labels': (n) => ({ metadata: { labels: named(n, () => 'a') } }),
  }).map(([title, made]): [string, Respond] => [
    title,
    (n, { request }) => ({
      response: {
        result: { status: 'Success' },
        convertedObjects: (request.objects ?? []).map((object) => {
          const { metadata = {}, ...more } = made(n)
          const own = { ...(object['metadata'] as Json), ...(metadata as Json) }
          return { ...object, ...more, apiVersion: String(object['apiVersion']).replace(/v1$/, 'v2'), metadata: own }
        }),
      },
    }),
  ]),
)

const row = (i: number, name = `r${i}`): Json => ({ name, kind: 'R', namespaced: true, verbs: ['get'] })
const operation = (parameters: unknown[], schema = {}): Json => ({
  get: { parameters, responses: { 200: { description: 'a', schema } } },
})
const discovery: Readonly<Record<string, Documents>> = {
  'n rows': (n, group) => ({ [`/apis/${group}/v1`]: { kind: 'APIResourceList', resources: many(n, (i) => row(i)) } }),
  'n subresources of one row': (n, group) => ({
    [`/apis/${group}/v1`]: { kind: 'APIResourceList', resources: [row(0), ...many(n, (i) => row(i, `r0/s${i}`))] },
  }),
  'n rows of one name': (n, group) => ({
    [`/apis/${group}/v1`]: { kind: 'APIResourceList', resources: many(n, (i) => row(i, i % 2 === 0 ? 'a' : 'a/b')) },
  }),
  'n aggregated resources': (n, group) => ({
    '/apis': {
      kind: 'APIGroupDiscoveryList',
      items: [
        {
          metadata: { name: group },
          versions: [{ version: 'v1', resources: many(n, (i) => ({ resource: `r${i}` })) }],
        },
      ],
    },
  }),
  'n aggregated groups': (n) => ({
    '/apis': { kind: 'APIGroupDiscoveryList', items: many(n, (i) => ({ metadata: { name: `g${i}` } })) },
  }),
}
const openApi: Readonly<Record<string, Documents>> = {
  'n paths': (n, group) => ({
    '/openapi/v2': { paths: Object.fromEntries(many(n, (i) => [`/apis/${group}/v1/r${i}`, operation([])])) },
  }),
  'n references to a parameter of n bytes': (n, group) => ({
    '/openapi/v2': {
      parameters: { own: { name: 'own', in: 'query', type: 'string', description: 'x'.repeat(n) } },
      paths: { [`/apis/${group}/v1/r`]: operation(many(n, () => ({ $ref: '#/parameters/own' }))) },
    },
  }),
  'n definitions that refer to each other': (n, group) => ({
    '/openapi/v2': {
      paths: { [`/apis/${group}/v1/r`]: operation([], { $ref: '#/definitions/D0' }) },
      definitions: Object.fromEntries(
        many(n, (i) => [`D${i}`, { allOf: many(8, (j) => ({ $ref: `#/definitions/D${(i * 8 + j) % n}` })) }]),
      ),
    },
  }),
  'a definition of n properties': (n, group) => ({
    '/openapi/v2': {
      paths: { [`/apis/${group}/v1/r`]: operation([], { $ref: '#/definitions/D' }) },
      definitions: { D: { properties: named(n, () => ({ type: 'string' })) } },
    },
  }),
  'a definition of n levels': (n, group) => ({
    '/openapi/v2': {
      paths: { [`/apis/${group}/v1/r`]: operation([], { $ref: '#/definitions/D' }) },
      definitions: { D: many(Math.min(n, 1000), (i) => i).reduce<Json>((inner) => ({ properties: { a: inner } }), {}) },
    },
  }),
}
const index: Readonly<Record<string, Documents>> = {
  'n documents': (n) => ({
    '/openapi/v3': { paths: named(n, (i) => ({ serverRelativeURL: `/openapi/v3/f${i}?hash=1` })) },
  }),
}

/** Starts the server that answers. What it answers follows from the path or the name by which it is asked. */
export async function remoteScenarios(): Promise<RemoteScenarios> {
  const address = ownAddress()
  const authority = await CertificateAuthority.create('authority of amplifiers')
  const { certificate: cert, key } = await authority.issue({ commonName: 'remote', hosts: [address] })
  const reviews = new Map<string, Respond>()
  const documents = new Map<string, Documents>()
  const server = createServer(
    { cert, key },
    (request, response) => void answer(request, response, { reviews, documents }),
  )
  const close = closeWithConnections(server)
  server.listen(0, address)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const caBundle = Buffer.from(authority.certificate).toString('base64')
  const clientConfig = (name: string, n: number): Json => ({ url: `https://${address}:${port}/${name}/${n}`, caBundle })
  const scenarios: Scenario[] = []
  const more = { from: 64, largest: 131_072 }
  for (const [type, rows] of Object.entries({ Validating: validating, Mutating: mutating }))
    for (const [title, respond] of Object.entries(rows)) {
      const name = `r${reviews.size}`
      reviews.set(name, respond)
      const configurations = `/apis/admissionregistration.k8s.io/v1/${type.toLowerCase()}webhookconfigurations`
      const kind = `${type}WebhookConfiguration`
      scenarios.push({
        ...{ title: `remote: ${type.toLowerCase()} review with ${title}`, ...more },
        before: (n) => [post(configurations, configuration(kind, `${name}-${n}`, clientConfig(name, n)))],
        steps: (n) => [
          {
            name: 'create',
            sent: post('/api/v1/namespaces/default/configmaps', { metadata: { name: `${name}-${n}` } }),
          },
        ],
        after: (n) => [
          { method: 'DELETE', path: `${configurations}/${name}-${n}` },
          { method: 'DELETE', path: `/api/v1/namespaces/default/configmaps/${name}-${n}` },
        ],
      })
    }
  for (const [title, respond] of Object.entries(converting)) {
    const name = `r${reviews.size}`
    reviews.set(name, respond)
    const group = (n: number): string => `n${n}.${name}.example`
    const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
    const things = (n: number, version: string): string => `/apis/${group(n)}/${version}/namespaces/default/things`
    scenarios.push({
      ...{ title: `remote: conversion with ${title}`, ...more },
      before: (n) => [post(crds, definition(group(n), clientConfig(name, n)))],
      steps: (n) => [
        {
          name: 'create',
          sent: post(things(n, 'v1'), { apiVersion: `${group(n)}/v1`, kind: 'Thing', metadata: { name: 'a' } }),
        },
        { name: 'get', sent: { method: 'GET', path: `${things(n, 'v2')}/a` } },
        { name: 'list', sent: { method: 'GET', path: things(n, 'v2') } },
      ],
      after: (n) => [
        { method: 'DELETE', path: `${things(n, 'v1')}/a` },
        { method: 'DELETE', path: `${crds}/things.${group(n)}` },
      ],
    })
  }
  const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
  const asked: readonly [string, Readonly<Record<string, Documents>>, Omit<Sent, 'method'>][] = [
    ['discovery', discovery, { path: '/apis', headers: { accept: aggregated } }],
    ['OpenAPI v2', openApi, { path: '/openapi/v2', headers: { 'accept-encoding': 'gzip' } }],
    ['OpenAPI v3', index, { path: '/openapi/v3' }],
  ]
  for (const [of, rows, request] of asked)
    for (const [title, made] of Object.entries(rows)) {
      const name = `d${documents.size}`
      documents.set(name, made)
      scenarios.push({
        ...{ title: `remote: ${of} with ${title}`, ...more, largest: 32_768 },
        before: (n) => served(`${name}-${n}`, { address, port }),
        steps: () => [{ name: 'get', sent: { method: 'GET', ...request } }],
        after: (n) => [
          { method: 'DELETE', path: `/apis/apiregistration.k8s.io/v1/apiservices/v1.${name}-${n}.example` },
          { method: 'DELETE', path: `/api/v1/namespaces/default/services/${name}-${n}` },
          { method: 'DELETE', path: `/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/${name}-${n}-host` },
        ],
      })
    }
  return { scenarios, args: ['--egress-allow', `${address}/32`], [Symbol.asyncDispose]: close }
}

const post = (path: string, body: object): Sent => ({ method: 'POST', path, body: JSON.stringify(body) })

function configuration(kind: string, name: string, clientConfig: Json): object {
  return {
    ...{ apiVersion: 'admissionregistration.k8s.io/v1', kind, metadata: { name } },
    webhooks: [
      {
        ...{ name: 'hook.remote.example', clientConfig, sideEffects: 'None', admissionReviewVersions: ['v1'] },
        rules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['*'], resources: ['configmaps'] }],
      },
    ],
  }
}

function definition(group: string, clientConfig: Json): object {
  return {
    metadata: { name: `things.${group}` },
    spec: {
      ...{ group, scope: 'Namespaced' },
      names: { plural: 'things', singular: 'thing', kind: 'Thing', listKind: 'ThingList' },
      versions: ['v1', 'v2'].map((name) => ({
        ...{ name, served: true, storage: name === 'v1' },
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      })),
      conversion: { strategy: 'Webhook', webhook: { conversionReviewVersions: ['v1'], clientConfig } },
    },
  }
}

/** An APIService of the group `NAME.example` and what it leads to. */
function served(name: string, place: { address: string; port: number }): Sent[] {
  const { items } = hostService({ name, namespace: 'default', ...place }) as { items: object[] }
  const spec = { group: `${name}.example`, version: 'v1', groupPriorityMinimum: 2000, versionPriority: 15 }
  return [
    post('/api/v1/namespaces/default/services', items[0] ?? {}),
    post('/apis/discovery.k8s.io/v1/namespaces/default/endpointslices', items[1] ?? {}),
    post('/apis/apiregistration.k8s.io/v1/apiservices', {
      ...{ apiVersion: 'apiregistration.k8s.io/v1', kind: 'APIService', metadata: { name: `v1.${name}.example` } },
      spec: { ...spec, insecureSkipTLSVerify: true, service: { namespace: 'default', name } },
    }),
  ]
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { reviews, documents }: { reviews: ReadonlyMap<string, Respond>; documents: ReadonlyMap<string, Documents> },
): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  const { pathname } = new URL(request.url ?? '/', 'https://x')
  const json = (status: number, value: unknown): void =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
  const respond = reviews.get(pathname.split('/')[1] ?? '')
  if (request.method === 'POST' && respond !== undefined) {
    const review = JSON.parse(Buffer.concat(chunks).toString()) as Review
    const { response: given, more = {} } = respond(Number(pathname.split('/')[2]), review)
    const { apiVersion, kind } = review
    json(200, { ...more, apiVersion, kind, response: { uid: review.request.uid, ...given } })
    return
  }
  const [name = '', n = ''] = (request.headers.host?.split('.')[0] ?? '').split('-')
  const found = documents.get(name)?.(Number(n), `${name}-${n}.example`)[pathname]
  json(found === undefined ? 404 : 200, found ?? {})
}

// Stories of several clients that own parts of one custom resource.
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { row, type Row } from '#test/parity/support/compare-rows.ts'
import type { ApiResponse } from '#test/parity/support/comparable-answer.ts'
import type { Session } from '#test/parity/support/session.ts'

const text = { type: 'string' }
const whole = { type: 'integer' }

const spec = {
  type: 'object',
  properties: {
    replicas: whole,
    color: { ...text, default: 'red' },
    atomicMap: { type: 'object', 'x-kubernetes-map-type': 'atomic', additionalProperties: text },
    map: { type: 'object', additionalProperties: text },
    atomicList: { type: 'array', items: text },
    set: { type: 'array', 'x-kubernetes-list-type': 'set', items: text },
    items: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name', 'port'],
      items: {
        type: 'object',
        required: ['name'],
        properties: { name: text, port: { ...whole, default: 80 }, value: text },
      },
    },
    free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    amount: { 'x-kubernetes-int-or-string': true },
    template: {
      type: 'object',
      'x-kubernetes-embedded-resource': true,
      'x-kubernetes-preserve-unknown-fields': true,
    },
  },
}
const status = {
  type: 'object',
  properties: {
    replicas: whole,
    conditions: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['type'],
      items: { type: 'object', required: ['type'], properties: { type: text, state: text } },
    },
  },
}

const kindOf = (plural: string): string => plural.replace(/^./, (letter) => letter.toUpperCase()).replace(/s$/, '')

function definition(plural: string): JsonObject {
  const kind = kindOf(plural)
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec, status } } }
  const scale = { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' }
  const version = (name: string, storage: boolean): JsonObject => ({
    ...{ name, served: true, storage, schema, subresources: { status: {}, ...(storage ? { scale } : {}) } },
  })
  const free = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.own.$ID.example.com` },
    spec: {
      group: 'own.$ID.example.com',
      scope: 'Namespaced',
      names: { plural, kind },
      versions:
        plural === 'frees'
          ? [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: free } }]
          : [version('v1', true), version('v2', false)],
    },
  }
}

interface World {
  readonly apply: (as: string, spec: JsonObject, options?: ApplyOptions) => Promise<ApiResponse>
  readonly path: (version?: string) => string
  readonly session: Session
}

interface ApplyOptions {
  readonly version?: string
  readonly force?: boolean
  readonly subresource?: string
  readonly rest?: JsonObject
}

/** A kind of its own for every story: both servers may serve it at another time. */
function story(title: string, plural: string, tell: (world: World) => Promise<void>): Row {
  return row(`custom: ${title}`, async (session) => {
    await session.send('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      body: definition(plural),
      quiet: true,
    })
    const path = (version = 'v1'): string => `/apis/own.$ID.example.com/${version}/namespaces/$NS/${plural}/one`
    await session.untilQuiet(path().replace(/\/one$/, ''), ({ status: code }) => code === 200)
    const kind = kindOf(plural)
    await tell({
      session,
      path,
      apply(as, wanted, { version = 'v1', force = false, subresource, rest = {} } = {}) {
        const target = subresource === undefined ? path(version) : `${path(version)}/${subresource}`
        const apiVersion = `own.$ID.example.com/${version}`
        const object = { apiVersion, kind, metadata: { name: 'one' }, spec: wanted, ...rest }
        return session.patch(`${target}?fieldManager=${as}${force ? '&force=true' : ''}`, object, 'apply')
      },
    })
  })
}

const lastItem = 'the last item of a list goes'

export const customFlowRows: readonly Row[] = [
  story('lists and maps', 'lists', async ({ apply, session, path }) => {
    await apply('one', { map: { a: '1' }, atomicMap: { a: '1' }, set: ['a', 'b'], atomicList: ['x'] })
    await apply('two', { map: { b: '2' }, set: ['b', 'c'] })
    await apply('two', { atomicMap: { b: '2' }, atomicList: ['y'] })
    await apply('two', { atomicMap: { b: '2' }, atomicList: ['y'] }, { force: true })
    await apply('one', { set: ['b', 'd'] })
    await apply('one', { set: ['b', 'b'] })
    await apply('one', {})
    await session.patch(path(), { spec: { set: ['z'], map: null } })
  }),
  story('items with keys and defaults', 'items', async ({ apply, session, path }) => {
    await apply('one', { items: [{ name: 'a' }, { name: 'b', port: 81, value: 'x' }] })
    await apply('two', { items: [{ name: 'a', port: 80, value: 'y' }, { name: 'c' }] })
    await apply('one', { items: [{ name: 'b', port: 81 }] })
    await apply('one', { items: [{ name: 'b' }, { name: 'b', port: 80 }] })
    await apply('one', { items: [{ value: 'b' }] })
    await apply('one', { items: [null] })
    await session.patch(path(), {
      spec: {
        items: [
          { name: 'b', value: 'new' },
          { name: 'c', value: 'new' },
        ],
      },
    })
    await apply('two', { items: [{ name: 'b' }] }, { force: true })
  }),
  story(lastItem, 'lasts', async ({ apply, session, path }) => {
    await apply('one', { items: [{ name: 'a' }] })
    await session.patch(path(), { spec: { items: [{ name: 'a', value: 'x' }] } })
    await apply('one', {})
  }),
  story('what no schema describes', 'wilds', async ({ apply, session, path }) => {
    await apply('one', { free: { a: { b: 1, c: [1, { d: 2 }] } }, amount: 5 })
    await apply('two', { free: { a: { e: 'x' } }, amount: 5 })
    await apply('two', { free: { a: { c: [] } }, amount: '6' })
    await apply('two', { free: { a: { c: [] } }, amount: '6' }, { force: true })
    const template = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'x', labels: { a: 'b' } },
      data: { a: 'b' },
    }
    await apply('three', { template })
    await session.patch(path(), { spec: { template: { metadata: { labels: { c: 'd' } }, data: { a: 'z' } } } })
    await apply('one', {})
  }),
  story('wrong and unknown fields', 'wrongs', async ({ apply }) => {
    await apply('one', { unknown: 1 })
    await apply('one', { replicas: 'x' })
    await apply('one', { map: [] })
    await apply('one', { set: {} })
    await apply('one', { replicas: 1 }, { rest: { other: true } })
    await apply('one', { replicas: 1 }, { rest: { metadata: { name: 'one', labels: { a: 1 } } } })
    await apply('one', { replicas: 1 }, { rest: { kind: 'Huh' } })
    await apply('one', { replicas: 1 })
  }),
  story('status and scale', 'parts', async ({ apply, session, path }) => {
    await apply('one', { replicas: 1 }, { rest: { status: { replicas: 9 } } })
    const rest = { status: { replicas: 1, conditions: [{ type: 'Ready', state: 'x' }] } }
    await apply('controller', { replicas: 7 }, { subresource: 'status', rest })
    await session.patch(`${path()}/status`, { status: { conditions: [{ type: 'Ready', state: 'y' }] } })
    const other = { status: { replicas: 1, conditions: [{ type: 'Other' }] } }
    await apply('controller', {}, { subresource: 'status', rest: other })
    await session.patch(`${path()}/scale?fieldManager=scaler`, { spec: { replicas: 3 } })
    await session.get(path())
    await apply('one', { replicas: 1 })
    await apply('one', {})
    await session.get(path())
  }),
  story('two versions', 'twos', async ({ apply, session, path }) => {
    await apply('one', { map: { a: '1' }, color: 'blue' })
    await apply('two', { map: { a: '2' }, color: 'blue' }, { version: 'v2' })
    await apply('two', { map: { a: '2' }, color: 'blue' }, { version: 'v2', force: true })
    await apply('one', { color: 'blue' }, { version: 'v2' })
    await session.patch(path('v2'), { spec: { color: 'green' } })
    await session.get(path())
    await apply('one', {})
  }),
  story('without a schema', 'frees', async ({ apply, session, path }) => {
    await apply('one', { a: { b: 1 }, list: [1, 2] }, { rest: { top: 'x' } })
    await apply('two', { a: { b: 2 } })
    await apply('two', { a: { c: 2 }, list: [] }, { force: true })
    await session.patch(path(), { spec: { a: null }, metadata: { labels: { x: 'y' } } })
    await apply('one', {})
  }),
  story('an ordinary client', 'plains', async ({ session, path, apply }) => {
    await session.send('POST', path().replace(/\/one$/, ''), {
      body: {
        apiVersion: 'own.$ID.example.com/v1',
        kind: 'Plain',
        metadata: { name: 'one', labels: { a: 'b' } },
        spec: { replicas: 1, set: ['a', 'a'], items: [{ name: 'x' }] },
      },
    })
    await session.send('POST', path().replace(/\/one$/, ''), {
      body: {
        apiVersion: 'own.$ID.example.com/v1',
        kind: 'Plain',
        metadata: { name: 'one', labels: { a: 'b' } },
        spec: { replicas: 1, set: ['a'], items: [{ name: 'x' }] },
      },
    })
    await session.change(path(), (now) => ((now['spec'] as JsonObject)['color'] = 'blue'))
    await session.patch(path(), [{ op: 'add', path: '/spec/set/-', value: 'b' }], 'json')
    await apply('one', { set: ['b'] })
    await apply('one', { replicas: 2 })
  }),
]

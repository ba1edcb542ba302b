// CustomResourceDefinitions over time: accepted names, several versions, subresources, columns, documents, and
// deletion.
import { isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { row, type Row } from '#test/parity/support/compare-rows.ts'
import type { ApiResponse } from '#test/parity/support/comparable-answer.ts'
import { valueAt, type Session } from '#test/parity/support/session.ts'
import {
  crdPath,
  crdsPath,
  groupOf,
  install,
  nameOf,
  objectsPath,
  sampleCrd,
  sampleObject,
  served,
} from './sample-crd.ts'

const text = { type: 'string' }
const integer = { type: 'integer' }
const object = (properties: JsonObject, rest: JsonObject = {}): JsonObject => ({ type: 'object', properties, ...rest })
const version = (name: string, schema: JsonObject, rest: JsonObject = {}): JsonObject => ({
  ...{ name, served: true, storage: false, schema: { openAPIV3Schema: schema } },
  ...rest,
})

const conditionOf = (response: ApiResponse, type: string): JsonObject | undefined => {
  const conditions = valueAt(response.body, 'status.conditions')
  return Array.isArray(conditions) ? conditions.filter(isJsonObject).find((one) => one['type'] === type) : undefined
}
const established = (response: ApiResponse): boolean => conditionOf(response, 'Established')?.['status'] === 'True'
const tableHeaders = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }
const metadataHeaders = { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' }
const metadataListHeaders = { accept: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io' }

async function changeCrd(
  session: Session,
  word: string,
  change: (spec: JsonObject) => void,
  quiet = false,
): Promise<ApiResponse> {
  return session.change(crdPath(word), (crd) => change(crd['spec'] as JsonObject), { quiet })
}

/** The schema of a kind without the descriptions of kind, apiVersion and metadata. */
function withoutCommon(schema: JsonValue): JsonValue {
  if (!isJsonObject(schema) || !isJsonObject(schema['properties'])) return schema
  const { kind: _kind, apiVersion: _apiVersion, metadata: _metadata, items: _items, ...own } = schema['properties']
  const { 'x-kubernetes-selectable-fields': _fields, ...rest } = schema
  return { ...rest, description: '', properties: own }
}

/** Verb, action and kind of every operation of a path, with its parameter names. */
function operationsOf(item: JsonValue): JsonValue {
  if (!isJsonObject(item)) return null
  const { parameters: common = [], ...operations } = item
  return Object.entries(operations).map(([verb, operation]): JsonValue => {
    const own = valueAt(operation, 'parameters') ?? []
    const names = [own, common].flatMap((list) => (Array.isArray(list) ? list.map((one) => valueAt(one, 'name')) : []))
    const action = valueAt(operation, 'x-kubernetes-action') ?? null
    const kind = valueAt(operation, 'x-kubernetes-group-version-kind') ?? null
    return { verb, action, kind, names: names.map(String).sort() }
  })
}

export const lifeRows: readonly Row[] = [
  row('definition: created, established, read, deleted', async (session) => {
    await session.send('POST', crdsPath, { body: sampleCrd({ word: 'first' }) })
    await session.until(crdPath('first'), established)
    await session.send('POST', crdsPath, { body: sampleCrd({ word: 'first' }) })
    await session.get(`${crdPath('first')}/status`)
    await session.get(`${crdsPath}?fieldSelector=metadata.name%3D${nameOf('first')}`)
    await session.delete(crdPath('first'))
    await session.until(crdPath('first'), ({ status }) => status === 404)
    await session.until(objectsPath('first'), ({ status }) => status === 404)
  }),
  row('definition: the strict group and its approval condition', async (session) => {
    const name = 'approveds.$ID.k8s.io'
    const given = { name, annotations: { 'api-approved.kubernetes.io': 'unapproved, test only' } }
    const crd = sampleCrd({ word: 'approved', metadata: given, spec: { group: '$ID.k8s.io' } })
    await session.send('POST', crdsPath, { body: crd })
    await session.until(
      `${crdsPath}/${name}`,
      (response) =>
        established(response) && conditionOf(response, 'KubernetesAPIApprovalPolicyConformant') !== undefined,
    )
    await session.patch(
      `${crdsPath}/${name}`,
      {
        metadata: { annotations: { 'api-approved.kubernetes.io': 'https://example.com/pull/1' } },
      },
      'merge',
      { quiet: true },
    )
    await session.until(
      `${crdsPath}/${name}`,
      (response) => conditionOf(response, 'KubernetesAPIApprovalPolicyConformant')?.['status'] === 'True',
    )
    await session.patch(`${crdsPath}/${name}`, {
      metadata: { annotations: { 'api-approved.kubernetes.io': 'nonsense' } },
    })
    await session.delete(`${crdsPath}/${name}`, undefined, { quiet: true })
  }),
  row('definition: names of another definition', async (session) => {
    const group = 'names.$ID.example.com'
    const crd = (plural: string, names: JsonObject): JsonObject =>
      sampleCrd({ word: 'x', metadata: { name: `${plural}.${group}` }, spec: { group }, names: { plural, ...names } })
    const at = (plural: string): string => `${crdsPath}/${plural}.${group}`
    const firstNames = {
      singular: 'apple',
      kind: 'Apple',
      listKind: 'AppleList',
      shortNames: ['ap', 'a'],
      categories: ['fruit'],
    }
    await session.send('POST', crdsPath, { body: crd('apples', firstNames), quiet: true })
    await session.until(at('apples'), established)
    // A real server serves a new group a moment after it reports it.
    await session.untilQuiet(`/apis/${group}/v1/namespaces/$NS/apples`, ({ status }) => status === 200)
    const rejected = (response: ApiResponse): boolean =>
      conditionOf(response, 'NamesAccepted')?.['status'] === 'False' &&
      conditionOf(response, 'Established') !== undefined
    const others: [string, JsonObject][] = [
      ['aps', { singular: 'ap', kind: 'Ap', listKind: 'ApList' }],
      ['boats', { singular: 'boat', kind: 'Apple', listKind: 'BoatList' }],
      ['cars', { singular: 'car', kind: 'Car', listKind: 'AppleList', shortNames: ['a', 'ap', 'c'] }],
      ['dogs', { singular: 'apple', kind: 'Dog', listKind: 'Apple', shortNames: ['d'] }],
    ]
    for (const [plural, names] of others) {
      await session.send('POST', crdsPath, { body: crd(plural, names), quiet: true })
      await session.until(at(plural), rejected)
      await session.get(`/apis/${group}/v1/namespaces/$NS/${plural}`)
    }
    // Only one definition may wait for the names, or the winner is random.
    for (const [plural] of others.slice(1)) {
      await session.delete(at(plural), undefined, { quiet: true })
      await session.untilQuiet(at(plural), ({ status }) => status === 404)
    }
    await session.delete(at('apples'), undefined, { quiet: true })
    await session.untilQuiet(at('apples'), ({ status }) => status === 404)
    // The names are free now, so a waiting definition gets them. A real server may have checked too early, and checks
    // again when something changes.
    for (let time = 1; time <= 10; time++) {
      const settled = session.untilQuiet(at('aps'), established, { deadlineMs: 5000 })
      if (await settled.then(() => true).catch(() => false)) break
      await session.patch(at('aps'), { metadata: { labels: { again: `x${time}` } } }, 'merge', { quiet: true })
    }
    await session.until(at('aps'), established, { without: ['metadata.labels'] })
    await session.delete(at('aps'), undefined, { quiet: true })
  }),
  row('definition: changing to taken names keeps the old ones', async (session) => {
    const group = 'rename.$ID.example.com'
    const crd = (plural: string, names: JsonObject): JsonObject =>
      sampleCrd({ word: 'x', metadata: { name: `${plural}.${group}` }, spec: { group }, names: { plural, ...names } })
    const at = (plural: string): string => `${crdsPath}/${plural}.${group}`
    for (const word of ['one', 'two']) {
      const names = {
        singular: word,
        kind: word.toUpperCase(),
        listKind: `${word.toUpperCase()}List`,
        shortNames: [`${word}short`],
      }
      await session.send('POST', crdsPath, { body: crd(`${word}s`, names), quiet: true })
      await session.untilQuiet(at(`${word}s`), established)
    }
    await session.patch(at('twos'), { spec: { names: { shortNames: ['oneshort', 'fresh'] } } }, 'merge', {
      quiet: true,
    })
    await session.until(at('twos'), (response) => conditionOf(response, 'NamesAccepted')?.['status'] === 'False')
    await session.patch(at('twos'), { spec: { names: { shortNames: ['fresh'], categories: ['all'] } } }, 'merge', {
      quiet: true,
    })
    await session.until(
      at('twos'),
      (response) =>
        conditionOf(response, 'NamesAccepted')?.['status'] === 'True' &&
        valueAt(response.body, 'status.acceptedNames.shortNames.0') === 'fresh',
    )
    for (const word of ['one', 'two']) await session.delete(at(`${word}s`), undefined, { quiet: true })
  }),
  row('definition: immutable fields', async (session) => {
    await install(session, { word: 'fixed' })
    // A real server serves the resource a moment before it reports so; until then scope and names may change.
    await session.untilQuiet(crdPath('fixed'), established)
    await changeCrd(session, 'fixed', (spec) => Object.assign(spec, { scope: 'Cluster' }))
    await changeCrd(session, 'fixed', (spec) => Object.assign(spec['names'] as JsonObject, { kind: 'Other' }))
    await changeCrd(session, 'fixed', (spec) => Object.assign(spec['names'] as JsonObject, { plural: 'others' }))
    await changeCrd(session, 'fixed', (spec) => Object.assign(spec, { group: 'other.example.com' }))
    await session.patch(crdPath('fixed'), { status: { storedVersions: ['v7'] } })
    await session.patch(`${crdPath('fixed')}/status`, { status: { storedVersions: ['v1', 'v7'] } })
    await session.patch(`${crdPath('fixed')}/status`, { status: { storedVersions: [] } })
    await session.patch(`${crdPath('fixed')}/status`, {
      status: { storedVersions: ['v1'] },
      spec: { scope: 'Cluster' },
    })
    await session.send('PUT', crdPath('fixed'), { body: sampleCrd({ word: 'fixed' }) })
    await changeCrd(session, 'fixed', () => undefined)
    await session.delete(crdPath('fixed'), undefined, { quiet: true })
  }),
  row('definition: versions come and go', async (session) => {
    const word = 'moving'
    const v = (name: string, rest: JsonObject = {}): JsonObject =>
      version(name, object({ spec: object({ [name]: text }) }), rest)
    await install(session, { word, versions: [v('v1', { storage: true })] })
    const set = (versions: JsonObject[]) => changeCrd(session, word, (spec) => Object.assign(spec, { versions }))
    await set([v('v1'), v('v2', { storage: true })])
    await session.until(crdPath(word), (response) => valueAt(response.body, 'status.storedVersions.1') === 'v2')
    await set([v('v2', { storage: true })])
    await session.patch(`${crdPath(word)}/status`, { status: { storedVersions: ['v2'] } })
    await set([v('v2', { storage: true })])
    await served(session, objectsPath(word, '', 'v2'))
    await session.until(objectsPath(word, '', 'v1'), ({ status }) => status === 404)
    await session.delete(crdPath(word), undefined, { quiet: true })
  }),
  row('definition: deleted after its objects', async (session) => {
    const word = 'ending'
    await install(session, { word })
    await session.send('POST', objectsPath(word), {
      body: sampleObject(word, 'held', { metadata: { name: 'held', finalizers: ['example.com/hold'] } }),
      quiet: true,
    })
    await session.send('POST', objectsPath(word), { body: sampleObject(word, 'free'), quiet: true })
    await session.delete(crdPath(word))
    await session.until(
      crdPath(word),
      (response) => conditionOf(response, 'Terminating')?.['reason'] === 'InstanceDeletionInProgress',
    )
    await session.until(objectsPath(word, 'free'), ({ status }) => status === 404)
    await session.until(
      objectsPath(word, 'held'),
      (response) => valueAt(response.body, 'metadata.deletionTimestamp') !== undefined,
    )
    await session.send('POST', objectsPath(word), { body: sampleObject(word, 'late') })
    await session.patch(objectsPath(word, 'held'), { metadata: { labels: { still: 'here' } } })
    await session.send('POST', crdsPath, { body: sampleCrd({ word }) })
    await session.patch(objectsPath(word, 'held'), { metadata: { finalizers: null } })
    // The next rows require the deletion, however busy the machine is.
    await session.until(crdPath(word), ({ status }) => status === 404, { deadlineMs: 60_000 })
    await session.until(objectsPath(word), ({ status }) => status === 404, { deadlineMs: 60_000 })
    await install(session, { word })
    await session.get(objectsPath(word))
    await session.delete(crdPath(word), undefined, { quiet: true })
  }),
  row('versions: one object in all of them', async (session) => {
    const word = 'version'
    const schema = (extra: JsonObject): JsonObject =>
      object({ spec: object({ both: text, ...extra }), status: object({ n: integer }) })
    await install(session, {
      word,
      versions: [
        version('v1', schema({ one: { ...text, default: 'first' } }), { storage: true, subresources: { status: {} } }),
        version('v2', schema({ two: { ...text, default: 'second' } }), {
          additionalPrinterColumns: [{ name: 'Two', type: 'string', jsonPath: '.spec.two' }],
        }),
        version('v3beta1', schema({ one: text, two: text }), { deprecated: true }),
        version('v4alpha1', schema({}), { deprecated: true, deprecationWarning: 'v4alpha1 goes', served: true }),
        version('v5', schema({}), { served: false }),
      ],
    })
    await served(session, objectsPath(word, '', 'v4alpha1'))
    const at = (v: string, name = ''): string => objectsPath(word, name, v)
    const spec = { both: 'x', one: '1', two: '2' }
    await session.send('POST', at('v2'), { body: sampleObject(word, 'a', { spec, status: { n: 1 } }, 'v2') })
    for (const v of ['v1', 'v2', 'v3beta1', 'v4alpha1', 'v5', 'v6']) await session.get(at(v, 'a'))
    await session.get(at('v2'))
    await session.get(at('v3beta1'))
    await session.get(at('v1', 'a/status'))
    await session.get(at('v2', 'a/status'))
    await session.patch(at('v3beta1', 'a'), { spec: { one: 'changed' } })
    await session.patch(at('v4alpha1', 'a'), { spec: { both: 'changed' } })
    await session.patch(at('v1', 'a'), { status: { n: 5 } })
    await session.patch(at('v1', 'a/status'), { status: { n: 6 }, spec: { both: 'z' } })
    await session.patch(at('v2', 'a'), { status: { n: 7 } })
    await session.get(at('v1', 'a'))
    await session.send('POST', at('v1'), { body: sampleObject(word, 'b', {}, 'v2') })
    await session.get(at('v2'), { headers: tableHeaders })
    await session.get(at('v1', 'a'), { headers: tableHeaders })
    await session.get(at('v2', 'a'), { headers: metadataHeaders })
    await session.get(at('v2'), { headers: metadataListHeaders })
    await session.get(`${at('v2')}?watch=true&timeoutSeconds=1&resourceVersion=0`)
    await session.get(`${at('v1')}?watch=true&timeoutSeconds=1&resourceVersion=0`, { headers: tableHeaders })
    await session.delete(at('v3beta1', 'a'))
    await session.delete(crdPath(word), undefined, { quiet: true })
  }),
  row('versions: discovery of all of them', async (session) => {
    const word = 'found'
    await install(session, {
      word,
      names: { shortNames: ['fo'], categories: ['all', 'mine'] },
      versions: [
        version('v1alpha1', object({})),
        version('v2', object({}), { subresources: { status: {} } }),
        version('v1', object({}), {
          storage: true,
          subresources: { status: {}, scale: { specReplicasPath: '.spec.n', statusReplicasPath: '.status.n' } },
        }),
        version('v3', object({}), { served: false }),
      ],
    })
    const group = `/apis/${groupOf(word)}`
    await session.until(group, ({ status }) => status === 200)
    for (const v of ['v1', 'v2', 'v1alpha1']) await session.until(`${group}/${v}`, ({ status }) => status === 200)
    await session.get(`${group}/v3`)
    await session.delete(crdPath(word), undefined, { quiet: true })
    await session.until(group, ({ status }) => status === 404)
    await session.until(`${group}/v1`, ({ status }) => status === 404)
  }),
  row('subresources: status', async (session) => {
    const word = 'state'
    const at = (name = ''): string => objectsPath(word, name)
    await install(session, {
      word,
      schema: object({
        spec: object({ a: text }),
        status: object({ phase: { ...text, enum: ['x', 'y'] }, n: integer }),
      }),
      version: { subresources: { status: {} } },
    })
    await session.send('POST', at(), { body: sampleObject(word, 'a', { spec: { a: 'x' }, status: { phase: 'zzz' } }) })
    await session.send('POST', at(), { body: sampleObject(word, 'a', { spec: { a: 'x' }, status: { phase: 'x' } }) })
    await session.change(at('a'), (one) => Object.assign(one, { status: { phase: 'y' } }), { subresource: 'status' })
    await session.change(at('a'), (one) => Object.assign(one, { status: { phase: 'q' } }), { subresource: 'status' })
    await session.change(at('a'), (one) => Object.assign(one, { spec: { a: 3 } }), { subresource: 'status' })
    await session.change(
      at('a'),
      (one) => {
        Object.assign(one, { spec: { a: 'changed' }, status: { phase: 'x', n: 1 } })
        Object.assign(one['metadata'] as JsonObject, {
          labels: { l: '1' },
          annotations: { a: '1' },
          finalizers: ['a/b'],
        })
      },
      { subresource: 'status' },
    )
    await session.change(at('a'), (one) => Object.assign(one, { spec: { a: 'new' }, status: { phase: 'y', n: 9 } }))
    await session.change(at('a'), (one) => {
      delete one['status']
    })
    await session.change(
      at('a'),
      (one) => {
        delete one['status']
      },
      { subresource: 'status' },
    )
    await session.patch(at('a/status'), [{ op: 'add', path: '/status', value: { n: 2 } }], 'json')
    await session.patch(at('a/status'), { metadata: { labels: { l: '2' } }, status: { n: 3 } })
    await session.patch(at('a/status'), { spec: { a: 'z' } })
    await session.patch(at('a'), { metadata: { labels: { l: '3' } } })
    await session.send('PUT', at('a/status'), { body: sampleObject(word, 'a', { status: { n: 4 } }) })
    await session.send('PUT', at('absent/status'), { body: sampleObject(word, 'absent', { status: { n: 4 } }) })
    await session.send('POST', at('a/status'), { body: sampleObject(word, 'a', {}) })
    await session.delete(at('a/status'))
    await session.delete(crdPath(word), undefined, { quiet: true })
  }),
  row('subresources: scale', async (session) => {
    const word = 'size'
    const at = (name = ''): string => objectsPath(word, name)
    await install(session, {
      word,
      schema: object({
        spec: object({ replicas: { ...integer, maximum: 50 }, a: text }),
        status: object({ replicas: integer, selector: text }),
      }),
      version: {
        subresources: {
          status: {},
          scale: {
            specReplicasPath: '.spec.replicas',
            statusReplicasPath: '.status.replicas',
            labelSelectorPath: '.status.selector',
          },
        },
      },
    })
    await session.send('POST', at(), { body: sampleObject(word, 'a', { spec: { replicas: 2, a: 'x' } }) })
    await session.send('POST', at(), { body: sampleObject(word, 'none', { spec: { a: 'x' } }) })
    await session.send('POST', at(), { body: sampleObject(word, 'less', {}) })
    await session.patch(at('a/status'), { status: { replicas: 1, selector: 'a=b' } })
    await session.get(at('a/scale'))
    await session.get(at('none/scale'))
    await session.get(at('absent/scale'))
    const scale = (name: string, replicas: unknown, rest: JsonObject = {}): object => ({
      ...{ apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name, namespace: '$NS' } },
      ...{ spec: { replicas }, ...rest },
    })
    await session.send('PUT', at('a/scale'), { body: scale('a', 5) })
    await session.get(at('a'))
    await session.send('PUT', at('a/scale'), { body: scale('a', 0) })
    await session.get(at('a'))
    await session.send('PUT', at('a/scale'), { body: scale('a', -1) })
    await session.send('PUT', at('a/scale'), { body: scale('a', 51) })
    await session.send('PUT', at('a/scale'), { body: scale('a', 'x') })
    await session.send('PUT', at('a/scale'), { body: scale('other', 5) })
    await session.send('PUT', at('a/scale'), { body: { ...scale('a', 5), kind: 'Other' } })
    await session.send('PUT', at('a/scale'), {
      body: { ...scale('a', 5), metadata: { name: 'a', namespace: '$NS', resourceVersion: '1' } },
    })
    await session.send('PUT', at('a/scale'), {
      body: { ...scale('a', 5), metadata: { name: 'a', namespace: '$NS', uid: 'x' } },
    })
    await session.patch(at('a/scale'), { spec: { replicas: 7 } })
    await session.patch(at('a/scale'), [{ op: 'replace', path: '/spec/replicas', value: 8 }], 'json')
    await session.patch(at('a/scale'), { spec: { replicas: 9 } }, 'strategic')
    await session.patch(at('none/scale'), { spec: { replicas: 3 } })
    await session.patch(at('less/scale'), { spec: { replicas: 3 } })
    await session.get(at('less'))
    await session.delete(at('a/scale'))
    await session.delete(crdPath(word), undefined, { quiet: true })
  }),
  row('generation: which changes count', async (session) => {
    for (const [word, subresources] of [
      ['counted', { status: {} }],
      ['uncounted', {}],
    ] as const) {
      const at = (name = ''): string => objectsPath(word, name)
      await install(session, { word, version: { subresources } })
      await session.send('POST', at(), { body: sampleObject(word, 'a', { spec: {}, status: {}, extra: 1 }) })
      await session.patch(at('a'), { metadata: { labels: { a: 'b' } } })
      await session.patch(at('a'), { spec: { a: 1 } })
      await session.patch(at('a'), { status: { a: 1 } })
      await session.patch(at('a'), { extra: 2 })
      await session.patch(at('a'), { metadata: { finalizers: ['a.b/c'] } })
      await session.delete(at('a'))
      await session.patch(at('a'), { metadata: { finalizers: null } })
      await session.delete(crdPath(word), undefined, { quiet: true })
    }
  }),
  row('columns of every type', async (session) => {
    const word = 'column'
    const at = (name = ''): string => objectsPath(word, name)
    await install(session, {
      word,
      version: {
        additionalPrinterColumns: [
          { name: 'Text', type: 'string', jsonPath: '.spec.text', description: 'A text' },
          { name: 'Int', type: 'integer', format: 'int32', jsonPath: '.spec.int' },
          { name: 'Number', type: 'number', jsonPath: '.spec.number' },
          { name: 'Flag', type: 'boolean', jsonPath: '.spec.flag', priority: 1 },
          { name: 'When', type: 'date', jsonPath: '.spec.when' },
          { name: 'Object', type: 'string', jsonPath: '.spec.object' },
          { name: 'List', type: 'string', jsonPath: '.spec.list' },
          { name: 'Items', type: 'string', jsonPath: '.spec.list[*].name' },
          { name: 'Second', type: 'string', jsonPath: '.spec.list[1].name' },
          { name: 'Last', type: 'string', jsonPath: '.spec.list[-1:].name' },
          { name: 'Found', type: 'string', jsonPath: '.spec.list[?(@.name=="b")].value' },
          { name: 'Label', type: 'string', jsonPath: '.metadata.labels.app\\.kubernetes\\.io/name' },
          { name: 'Missing', type: 'string', jsonPath: '.spec.missing.deep' },
          { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
          { name: 'Everywhere', type: 'string', jsonPath: '.spec..name' },
        ],
      },
    })
    const spec = {
      ...{ text: 'x', int: 3, number: 1.5, flag: true, when: '2020-01-01T00:00:00Z', object: { b: 1, a: 'x' } },
      list: [
        { name: 'a', value: 1 },
        { name: 'b', value: 2 },
      ],
    }
    const labels = { 'app.kubernetes.io/name': 'n' }
    await session.send('POST', at(), {
      body: sampleObject(word, 'full', { spec, metadata: { name: 'full', labels } }),
      quiet: true,
    })
    await session.send('POST', at(), { body: sampleObject(word, 'empty', {}), quiet: true })
    const odd = { text: 3, int: 'x', number: 'y', flag: 'z', when: 'never', object: null, list: [] }
    await session.send('POST', at(), { body: sampleObject(word, 'odd', { spec: odd }), quiet: true })
    await session.get(at('full'), { headers: tableHeaders })
    await session.get(at(), { headers: tableHeaders })
    await session.get(`${at()}?includeObject=None`, { headers: tableHeaders })
    await session.get(`${at('odd')}?includeObject=Object`, { headers: tableHeaders })
    await session.delete(crdPath(word), undefined, { quiet: true })
  }),
  row('selectable fields', async (session) => {
    const word = 'selectable'
    const at = (name = ''): string => objectsPath(word, name)
    await install(session, {
      word,
      schema: object({
        spec: object({ color: text, size: integer, on: { type: 'boolean' }, deep: object({ a: text }) }),
      }),
      version: {
        selectableFields: ['.spec.color', '.spec.size', '.spec.on', '.spec.deep.a'].map((jsonPath) => ({ jsonPath })),
      },
    })
    for (const [name, spec] of [
      ['a', { color: 'blue', size: 3, on: true, deep: { a: 'x' } }],
      ['b', { color: 'red' }],
      ['c', {}],
    ] as [string, JsonObject][])
      await session.send('POST', at(), { body: sampleObject(word, name, { spec }), quiet: true })
    for (const selector of [
      'spec.color=blue',
      'spec.color!=blue',
      'spec.color=',
      'spec.size=3',
      'spec.size=0',
      'spec.on=true',
      'spec.on=false',
      'spec.deep.a=x',
      'spec.color=blue,spec.size=4',
      'spec.color=blue,metadata.name=a',
      'spec.unknown=x',
      'status.x=y',
    ])
      await session.get(`${at()}?fieldSelector=${encodeURIComponent(selector)}`)
    await session.get(`${at()}?watch=true&timeoutSeconds=1&resourceVersion=0&fieldSelector=spec.color%3Dred`)
    await session.delete(`${at()}?fieldSelector=spec.color%3Dred`)
    await session.delete(crdPath(word), undefined, { quiet: true })
  }),
  row('cluster-scoped', async (session) => {
    const word = 'wide'
    const at = (name = ''): string => `/apis/${groupOf(word)}/v1/${word}s${name === '' ? '' : `/${name}`}`
    await session.send('POST', crdsPath, { body: sampleCrd({ word, spec: { scope: 'Cluster' } }), quiet: true })
    await served(session, at())
    await session.send('POST', at(), { body: sampleObject(word, 'a') })
    await session.send('POST', at(), {
      body: { ...sampleObject(word, 'b'), metadata: { name: 'b', namespace: '$NS' } },
    })
    await session.send('POST', objectsPath(word), { body: sampleObject(word, 'c') })
    await session.get(objectsPath(word))
    await session.get(objectsPath(word, 'a'))
    await session.get(at(), { headers: tableHeaders })
    await session.delete(crdPath(word), undefined, { quiet: true })
  }),
  row('defaults on read', async (session) => {
    const word = 'late'
    const at = (name = ''): string => objectsPath(word, name)
    const before = object({ spec: object({ a: text }) })
    await install(session, { word, schema: before })
    await session.send('POST', at(), { body: sampleObject(word, 'a', { spec: { a: 'x', gone: 1 } }), quiet: true })
    const later = object({
      spec: object({
        a: { ...text, maxLength: 0 },
        b: { ...text, default: 'added' },
        c: object({ d: { ...integer, default: 3 } }, { default: {} }),
      }),
    })
    await changeCrd(
      session,
      word,
      (spec) => Object.assign(spec, { versions: [version('v1', later, { storage: true })] }),
      true,
    )
    await session.until(at('a'), (response) => valueAt(response.body, 'spec.b') === 'added')
    await session.get(at())
    await session.patch(at('a'), { metadata: { labels: { a: 'b' } } })
    await changeCrd(
      session,
      word,
      (spec) =>
        Object.assign(spec, { versions: [version('v1', object({ spec: object({ b: text }) }), { storage: true })] }),
      true,
    )
    await session.until(at('a'), (response) => valueAt(response.body, 'spec.a') === undefined)
    await session.delete(crdPath(word), undefined, { quiet: true })
  }),
  row('documents of a definition', async (session) => {
    const word = 'told'
    await install(session, {
      word,
      schema: object(
        {
          spec: object(
            {
              a: { ...text, description: 'An a', default: 'x', enum: ['x', 'y'], nullable: true },
              b: { 'x-kubernetes-int-or-string': true },
              c: {
                type: 'array',
                items: object({ k: text }, { required: ['k'] }),
                'x-kubernetes-list-type': 'map',
                'x-kubernetes-list-map-keys': ['k'],
              },
              d: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
              e: {
                type: 'object',
                'x-kubernetes-embedded-resource': true,
                'x-kubernetes-preserve-unknown-fields': true,
              },
              f: { ...integer, format: 'int32', minimum: 1, oneOf: [{ minimum: 3 }] },
            },
            { required: ['a'], description: 'The wish' },
          ),
          status: object({}),
        },
        { description: 'Something told of' },
      ),
      version: {
        subresources: { status: {}, scale: { specReplicasPath: '.spec.f', statusReplicasPath: '.status.f' } },
        selectableFields: [{ jsonPath: '.spec.a' }],
      },
    })
    const at = `/openapi/v3/apis/${groupOf(word)}/v1`
    await session.untilQuiet(at, ({ status }) => status === 200)
    const { body } = await session.get(at, { quiet: true })
    // Descriptions of metadata and of common kinds are each server's own text.
    const schema = valueAt(body, 'components.schemas')
    const own = isJsonObject(schema) ? Object.entries(schema).filter(([name]) => name.includes('example')) : []
    session.note(
      'schemas',
      own.map(([name, value]) => [name, withoutCommon(value)]),
    )
    const paths = Object.entries((valueAt(body, 'paths') ?? {}) as JsonObject).sort(([a], [b]) => (a < b ? -1 : 1))
    session.note(
      'operations',
      paths.map(([path, item]) => [path, operationsOf(item)]),
    )
    await session.delete(crdPath(word), undefined, { quiet: true })
    await session.untilQuiet(at, ({ status }) => status === 404)
  }),
]

// The requests about conversion webhooks that both servers get. Both call the same webhook server.
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import type { WebhookServer } from '#test/support/webhook-server.ts'
import { crdPath, install, objectsPath, sampleObject, served } from '#test/parity/crds/sample-crd.ts'
import { row, type Row } from '#test/parity/support/compare-rows.ts'
import { valueAt, type Session } from '#test/parity/support/session.ts'

const text = { type: 'string' }
const status = {
  type: 'object',
  properties: { phase: text, replicas: { type: 'integer' }, ready: { type: 'boolean' } },
}
const specOf = (properties: JsonObject): JsonObject => ({
  type: 'object',
  properties: {
    spec: { type: 'object', properties: { ...properties, replicas: { type: 'integer' } } },
    status,
  },
})
const subresources = {
  status: {},
  scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
}
const first = { name: 'v1', served: true, schema: { openAPIV3Schema: specOf({ hostPort: text }) }, subresources }
const second = {
  ...{ name: 'v2', served: true, subresources },
  schema: { openAPIV3Schema: specOf({ host: text, port: text, mode: { ...text, default: 'slow' } }) },
  selectableFields: [{ jsonPath: '.spec.host' }],
}

const versions = (stored: 'v1' | 'v2'): JsonValue[] => [
  { ...first, storage: stored === 'v1' },
  { ...second, storage: stored === 'v2' },
]
const one = { spec: { hostPort: 'a.example.com:80' } }
const two = { spec: { host: 'b.example.com', port: '81' } }

/** The rows; `server` is started before they run. */
export function conversionRows(server: () => WebhookServer): readonly Row[] {
  const installed = async (
    session: Session,
    word: string,
    path: string,
    { stored = 'v1', reviews = ['v1'] }: { stored?: 'v1' | 'v2'; reviews?: readonly string[] } = {},
  ): Promise<void> => {
    const webhook = { clientConfig: server().at(path), conversionReviewVersions: [...reviews] }
    const conversion = { strategy: 'Webhook', webhook }
    await install(session, { word, versions: versions(stored), spec: { conversion } })
    await served(session, objectsPath(word, '', 'v2'))
  }
  const create = (session: Session, word: string, name: string, version = 'v1', body: JsonObject = one) =>
    session.send('POST', objectsPath(word, '', version), { body: sampleObject(word, name, body, version) })

  /** An object is stored in v1 and asked for in v2. */
  const converting = (title: string, word: string, path: string): Row =>
    row(`conversion: ${title}`, async (session) => {
      await installed(session, word, path)
      const labels = { labels: { app: 'shop' }, annotations: { by: 'row' } }
      const object = { ...sampleObject(word, 'a', one), metadata: { name: 'a', ...labels } }
      await session.send('POST', objectsPath(word), { body: object })
      await session.get(objectsPath(word, 'a', 'v2'))
      await create(session, word, 'b', 'v2', two)
      await session.patch(objectsPath(word, 'a', 'v2'), { spec: { port: '82' } })
      await session.get(objectsPath(word, 'a'))
    })

  return [
    row('conversion: objects are created, read, changed and deleted in both versions', async (session) => {
      await installed(session, 'plain', '/convert')
      await create(session, 'plain', 'a')
      await create(session, 'plain', 'b', 'v2', two)
      for (const version of ['v1', 'v2']) {
        await session.get(objectsPath('plain', 'a', version))
        await session.get(objectsPath('plain', 'b', version))
        await session.get(objectsPath('plain', '', version))
      }
      await session.change(objectsPath('plain', 'a', 'v2'), (object) => {
        object['spec'] = { host: 'c.example.com', port: '83' }
      })
      await session.change(objectsPath('plain', 'a', 'v2'), () => undefined)
      await session.patch(objectsPath('plain', 'b', 'v1'), { spec: { hostPort: 'd.example.com:84' } })
      await session.patch(objectsPath('plain', 'b', 'v2'), [{ op: 'replace', path: '/spec/port', value: '85' }], 'json')
      await session.get(objectsPath('plain', 'b', 'v1'))
      await session.delete(objectsPath('plain', 'a', 'v2'))
      await session.delete(objectsPath('plain', '', 'v2'))
      await session.get(objectsPath('plain', '', 'v1'))
    }),
    row('conversion: dry runs', async (session) => {
      await installed(session, 'dry', '/convert')
      const body = sampleObject('dry', 'a', two, 'v2')
      await session.send('POST', `${objectsPath('dry', '', 'v2')}?dryRun=All`, { body })
      await session.send('POST', objectsPath('dry', '', 'v2'), { body, quiet: true })
      await session.send('PATCH', `${objectsPath('dry', 'a', 'v2')}?dryRun=All`, {
        body: { spec: { host: 'e.example.com' } },
        headers: { 'content-type': 'application/merge-patch+json' },
      })
      await session.get(objectsPath('dry', 'a', 'v2'))
      await session.delete(`${objectsPath('dry', 'a', 'v2')}?dryRun=All`)
    }),
    row('conversion: finalizers', async (session) => {
      await installed(session, 'final', '/convert')
      const body = {
        ...sampleObject('final', 'a', two, 'v2'),
        metadata: { name: 'a', finalizers: ['example.com/wait'] },
      }
      await session.send('POST', objectsPath('final', '', 'v2'), { body })
      await session.delete(objectsPath('final', 'a', 'v2'), undefined, { without: ['metadata.managedFields'] })
      await session.patch(objectsPath('final', 'a', 'v2'), { metadata: { finalizers: null } })
      await session.get(objectsPath('final', 'a', 'v1'))
    }),
    row('conversion: status and scale in both versions', async (session) => {
      await installed(session, 'parted', '/convert')
      await create(session, 'parted', 'a', 'v1', { spec: { hostPort: 'a:1', replicas: 2 } })
      await session.patch(`${objectsPath('parted', 'a', 'v2')}/status`, { status: { phase: 'Up', replicas: 1 } })
      await session.get(`${objectsPath('parted', 'a', 'v2')}/scale`)
      await session.patch(`${objectsPath('parted', 'a', 'v2')}/scale`, { spec: { replicas: 5 } })
      await session.get(objectsPath('parted', 'a', 'v1'))
      await session.get(objectsPath('parted', 'a', 'v2'), {
        headers: { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' },
      })
    }),
    row('conversion: server-side apply across versions', async (session) => {
      await installed(session, 'applied', '/convert')
      const apply = (version: string, manager: string, spec: JsonObject, force = '') =>
        session.patch(
          `${objectsPath('applied', 'a', version)}?fieldManager=${manager}${force}`,
          sampleObject('applied', 'a', { spec }, version),
          'apply',
        )
      await apply('v1', 'alice', { hostPort: 'a:1' })
      await apply('v2', 'bob', { port: '2' })
      await apply('v2', 'bob', { port: '2' }, '&force=true')
      await apply('v2', 'bob', { mode: 'fast' }, '&force=true')
      await apply('v1', 'alice', { hostPort: 'a:3' })
      await session.patch(objectsPath('applied', 'a', 'v1'), { spec: { hostPort: 'b:4' } })
      await session.get(objectsPath('applied', 'a', 'v2'))
    }),
    row('conversion: the stored version changes', async (session) => {
      await installed(session, 'moved', '/convert')
      await create(session, 'moved', 'a')
      await create(session, 'moved', 'b')
      await session.change(
        crdPath('moved'),
        (crd) => {
          const spec = crd['spec'] as JsonObject
          const all = spec['versions'] as JsonObject[]
          spec['versions'] = all.map((version) => ({ ...version, storage: version['name'] === 'v2' }))
        },
        { quiet: true },
      )
      await session.untilQuiet(crdPath('moved'), ({ body }) => valueAt(body, 'status.storedVersions.1') === 'v2')
      for (const version of ['v1', 'v2']) {
        await served(session, objectsPath('moved', '', version))
        await session.get(objectsPath('moved', 'a', version))
      }
      const before = await session.get(objectsPath('moved', 'a', 'v1'), { quiet: true })
      await session.change(objectsPath('moved', 'a', 'v1'), () => undefined)
      const after = await session.get(objectsPath('moved', 'a', 'v1'), { quiet: true })
      const revision = (answer: typeof before): JsonValue => valueAt(answer.body, 'metadata.resourceVersion') ?? null
      session.note('written by a PUT that changes nothing', revision(before) !== revision(after))
      await session.get(objectsPath('moved', '', 'v2'))
    }),
    row('conversion: labels that the webhook sets are selected', async (session) => {
      await installed(session, 'marked', '/convert/mark')
      await create(session, 'marked', 'a')
      await session.get(objectsPath('marked', 'a', 'v2'))
      await session.get(`${objectsPath('marked', '', 'v2')}?labelSelector=version%3Dv2`)
      await session.get(`${objectsPath('marked', '', 'v1')}?labelSelector=version%3Dv2`)
      await session.get(`${objectsPath('marked', '', 'v2')}?fieldSelector=spec.host%3Da.example.com`)
      await session.get(`${objectsPath('marked', '', 'v2')}?fieldSelector=spec.host%3Dx`)
      await session.get(`${objectsPath('marked', '', 'v2')}?limit=1`)
    }),
    row('conversion: what the webhook is shown', async (session) => {
      await installed(session, 'shown', '/convert/tell')
      await create(session, 'shown', 'a')
      await session.get(objectsPath('shown', 'a', 'v2'))
      await create(session, 'shown', 'b', 'v2', two)
    }),
    row('conversion: a review of v1beta1', async (session) => {
      await installed(session, 'beta', '/convert/tell', { reviews: ['v7', 'v1beta1', 'v1'] })
      await create(session, 'beta', 'a')
      await session.get(objectsPath('beta', 'a', 'v2'))
    }),
    row('conversion: a review of v1beta1 needs no uid', async (session) => {
      await installed(session, 'lax', '/convert/other-uid', { reviews: ['v1beta1'] })
      await create(session, 'lax', 'a')
      await session.get(objectsPath('lax', 'a', 'v2'))
    }),
    row('conversion: what cannot be converted cannot be deleted in another version', async (session) => {
      await installed(session, 'stuck', '/convert/refuse/no')
      await create(session, 'stuck', 'a')
      await session.delete(objectsPath('stuck', 'a', 'v2'))
      await session.delete(objectsPath('stuck', 'a', 'v1'))
    }),
    converting('labels and annotations dropped', 'nolabel', '/convert/no-labels'),
    converting('unknown fields', 'unknown', '/convert/unknown-field'),
    converting('refused with a message', 'refused', '/convert/refuse/because'),
    converting('no result', 'unfinished', '/convert/unfinished'),
    converting('fewer objects', 'fewer', '/convert/fewer'),
    converting('another uid of the review', 'otheruid', '/convert/other-uid'),
    converting('no response', 'noresponse', '/convert/no-response'),
    converting('another name', 'renamed', '/convert/rename'),
    converting('another namespace', 'movedns', '/convert/move'),
    converting('another uid', 'newuid', '/convert/new-uid'),
    converting('an invalid label', 'oddlabel', '/convert/odd-label'),
    converting('an invalid annotation', 'oddnote', '/convert/odd-annotation'),
    converting('a label that is a number', 'numlabel', '/convert/number-label'),
    converting('labels that are a list', 'listlabel', '/convert/list-labels'),
    converting('no metadata', 'nometa', '/convert/no-meta'),
    converting('metadata that is a text', 'textmeta', '/convert/text-meta'),
    converting('another version', 'otherversion', '/convert/other-version'),
    converting('another kind', 'otherkind', '/convert/other-object-kind'),
    converting('a status of 404', 'missing', '/status/404'),
    converting('a redirect', 'redirect', '/redirect'),
  ]
}

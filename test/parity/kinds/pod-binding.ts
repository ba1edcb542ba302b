// Bindings of pods to nodes, and how invalid ones are refused.
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { row, type Row } from '#test/parity/support/compare-rows.ts'
import type { Session } from '#test/parity/support/session.ts'

const pods = '/api/v1/namespaces/$NS/pods'
/** Set by the ServiceAccount plugin, which runs in only one of the servers. */
const without = ['spec.serviceAccountName', 'spec.serviceAccount']
const container = { name: 'main', image: 'nginx:1.27' }

const binding = (name: string, target: JsonObject, metadata: JsonObject = {}): JsonObject => ({
  ...{ apiVersion: 'v1', kind: 'Binding' },
  metadata: { name: `${name}-$ID`, ...metadata },
  target,
})

/** A pod without a node, and a request about it. */
function about(
  title: string,
  name: string,
  spec: JsonObject,
  ask: (session: Session, path: string) => Promise<void>,
): Row {
  return row(`v1 Binding: ${title}`, async (session) => {
    const metadata = { name: `${name}-$ID` }
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [container], ...spec } }
    await session.create(pod, { quiet: true })
    await ask(session, `${pods}/${name}-$ID`)
    await session.delete(`${pods}/${name}-$ID?gracePeriodSeconds=0`, undefined, { quiet: true })
  })
}

export const bindingRows: readonly Row[] = [
  about('to a node', 'bound', {}, async (session, path) => {
    const body = binding('bound', { kind: 'Node', name: 'n' }, { labels: { a: 'b' }, annotations: { c: 'd' } })
    await session.send('POST', `${path}/binding?dryRun=All`, { body })
    await session.send('POST', `${path}/binding`, { body })
    await session.get(path, { without })
    await session.send('POST', `${path}/binding`, { body })
    await session.get(`${path}/binding`)
  }),
  about('that is wrong', 'unbound', {}, async (session, path) => {
    for (const target of [
      {},
      { kind: 'Node' },
      { kind: 'Pod', name: 'n' },
      { name: 'n' },
      { kind: 'Minion', name: 'n' },
    ])
      await session.send('POST', `${path}/binding?dryRun=All`, { body: binding('unbound', target) })
    await session.send('POST', `${path}/binding?dryRun=All`, { body: binding('other', { kind: 'Node', name: 'n' }) })
    await session.send('POST', `${path}/binding?dryRun=All`, {
      body: binding('unbound', { kind: 'Node', name: 'n' }, { uid: 'x' }),
    })
  }),
  about('by the collection', 'listed', {}, async (session, path) => {
    await session.send('POST', '/api/v1/namespaces/$NS/bindings', {
      body: binding('listed', { kind: 'Node', name: 'n' }),
    })
    await session.get(path, { without })
    await session.send('POST', '/api/v1/namespaces/$NS/bindings', { body: binding('listed', {}) })
    await session.send('POST', '/api/v1/namespaces/$NS/bindings', {
      body: binding('nobody', { kind: 'Node', name: 'n' }),
    })
  }),
  about('of a pod that waits at a gate', 'gated', { schedulingGates: [{ name: 'a.b/c' }] }, async (session, path) => {
    await session.send('POST', `${path}/binding`, { body: binding('gated', { kind: 'Node', name: 'n' }) })
  }),
]

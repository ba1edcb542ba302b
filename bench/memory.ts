// Measures what definitions of custom resources cost in memory, the first of their content and those of other logical
// clusters with the same content; and what managedFields cost where nobody uses server-side apply.
import { sleep } from '#async/index.ts'
import { packedManagers } from '#virtualapi/kinds/resources/packed-managers.ts'
import { startKcpUnderTest, type KcpUnderTest } from './kcp-under-test.ts'
import { openEndpoint } from './load.ts'
import { inParallel } from './in-parallel.ts'
import type { Measurement, Numbers } from './measurement.ts'
import { residentMiB, withChildren } from './process-usage.ts'
import { rounded } from './statistics.ts'

const definitionCount = 300
const sharers = 8
const group = 'memory.example.com'
const settleMs = 10_000
const names = (count: number): string[] => Array.from({ length: count }, (_, i) => `thing${i}s`)

export const memory: Measurement = {
  name: 'memory',
  describes: `KiB per CustomResourceDefinition, first and shared by logical clusters; bytes per object of managedFields`,
  async run({ signal, say }) {
    await using kcp = await startKcpUnderTest()
    return { ...(await ofObjects(kcp, say)), ...(await ofDefinitions(kcp, signal)) }
  },
}

/** Before and after the same definitions are in one logical cluster, and then in eight more. */
async function ofDefinitions(kcp: KcpUnderTest, signal: AbortSignal): Promise<Numbers> {
  const pids = withChildren(kcp.pid)
  const settled = async (): Promise<number> => {
    await sleep(settleMs, signal)
    return residentMiB(pids)
  }
  const kubeconfigs: string[] = []
  for (let i = 0; i <= sharers; i++) kubeconfigs.push(await kcp.tenantKubeconfig(`kinds-${i}`))
  const [first = '', ...others] = kubeconfigs
  // The first few load what is loaded once: schemas of CRDs, the compiler.
  await define(first, names(definitionCount), 'warm.example.com')
  const before = await settled()
  await define(first, names(definitionCount), group)
  const withFirst = await settled()
  for (const kubeconfig of others) await define(kubeconfig, names(definitionCount), group)
  const withAll = await settled()
  const kib = (mib: number, count: number): number => rounded((mib * 1024) / count)
  return {
    'KiB per definition, first': kib(withFirst - before, definitionCount),
    'KiB per definition, shared': kib(withAll - withFirst, definitionCount * sharers),
  }
}

async function define(kubeconfig: string, plurals: readonly string[], inGroup: string): Promise<void> {
  await using endpoint = openEndpoint(kubeconfig, { connections: 8 })
  const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
  await inParallel(plurals, 8, async (plural) => {
    const body = JSON.stringify(definitionOf(plural, inGroup))
    await endpoint.json('POST', definitions, body)
    const object = { apiVersion: `${inGroup}/v1`, kind: kindOf(plural), metadata: { name: 'one' } }
    await endpoint.json('POST', `/apis/${inGroup}/v1/namespaces/default/${plural}`, JSON.stringify(object))
  })
}

const kindOf = (plural: string): string => `T${plural.slice(1, -1)}`

/** Of ordinary size: fifty fields with descriptions, 6 KB of JSON; no two definitions have parts in common. */
function definitionOf(plural: string, inGroup: string): object {
  const field = { type: 'string', description: `what this field of a ${plural} is for, in some words`, maxLength: 63 }
  const fields = (count: number, one: object): object =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`${inGroup[0]}${plural}${i}`, one]))
  const spec = { type: 'object', properties: fields(10, { type: 'object', properties: fields(5, field) }) }
  const openAPIV3Schema = { type: 'object', properties: { spec, status: { type: 'object' } } }
  const version = { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${inGroup}` },
    spec: {
      group: inGroup,
      scope: 'Namespaced',
      names: { plural, singular: plural.slice(0, -1), kind: kindOf(plural) },
      versions: [version],
    },
  }
}

const kinds = [
  {
    title: 'ConfigMap',
    collection: '/api/v1/namespaces/default/configmaps',
    object: (name: string) => ({ metadata: { name, labels: { app: 'bench' } }, data: { text: 'x'.repeat(512) } }),
  },
  {
    title: 'Deployment',
    collection: '/apis/apps/v1/namespaces/default/deployments',
    object: (name: string) => ({
      metadata: { name, labels: { app: name } },
      spec: {
        replicas: 0,
        selector: { matchLabels: { app: name } },
        template: {
          metadata: { labels: { app: name } },
          spec: { containers: [{ name: 'main', image: 'registry.example.com/main:1' }] },
        },
      },
    }),
  },
]

/**
 * Bytes of objects that were created without server-side apply: as they are kept in memory while nobody reads them, as
 * they are answered, and without managedFields.
 */
async function ofObjects(kcp: KcpUnderTest, say: (line: string) => void): Promise<Numbers> {
  await using endpoint = openEndpoint(await kcp.tenantKubeconfig('objects'), { connections: 1 })
  const numbers: Record<string, number> = {}
  for (const { title, collection, object } of kinds) {
    let [kept, answered, without] = [0, 0, 0]
    // From the second on, what they have in common is shared.
    for (const name of names(3)) {
      await endpoint.json('POST', collection, JSON.stringify(object(name)))
      const text = (await endpoint.text('GET', `${collection}/${name}`)).trimEnd()
      const { metadata, ...rest } = JSON.parse(text) as { metadata: Record<string, unknown> }
      const { managedFields: _fields, ...others } = metadata
      kept = packedManagers.pack(Buffer.from(text)).length
      answered = Buffer.byteLength(text)
      without = Buffer.byteLength(JSON.stringify({ ...rest, metadata: others }))
    }
    numbers[`${title}: bytes kept`] = kept
    numbers[`${title}: bytes without managedFields`] = without
    numbers[`${title}: bytes as answered`] = answered
    say(`${title}: ${answered - without} bytes of managedFields are kept in ${kept - without}`)
  }
  return numbers
}

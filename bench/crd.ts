// Measures the time from applying a CustomResourceDefinition until the first object of it is accepted.
import { startContenders, type Contender } from './contenders.ts'
import { openEndpoint, type Endpoint } from './load.ts'
import type { Measurement } from './measurement.ts'
import { median, quantile, rounded } from './statistics.ts'

const rounds = 7
const group = 'bench.example.com'
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

export const crd: Measurement = {
  name: 'crd',
  describes: 'CustomResourceDefinition applied to first object of it accepted, asked again and again',
  async run({ signal }) {
    await using contenders = await startContenders('crd', signal)
    await using second = openEndpoint(await contenders.kcp.tenantKubeconfig('second'), { connections: 1 })
    const elapsed: Record<Contender['name'], number[]> = { kcp: [], 'kube-apiserver': [] }
    const inSecond: number[] = []
    for (let round = 0; round < rounds; round++) {
      for (const { name, kubeconfig } of contenders.both) {
        await using endpoint = openEndpoint(kubeconfig, { connections: 1 })
        elapsed[name].push(await timeOne(endpoint, round))
      }
      inSecond.push(await timeOne(second, round))
    }
    return {
      'kcp p50 ms': rounded(median(elapsed.kcp)),
      'kcp p50 ms in a second logical cluster': rounded(median(inSecond)),
      'kcp max ms': rounded(quantile(elapsed.kcp, 1)),
      'kube-apiserver p50 ms': rounded(median(elapsed['kube-apiserver'])),
      'times faster': rounded(median(elapsed['kube-apiserver']) / median(elapsed.kcp)),
    }
  },
}

async function timeOne(endpoint: Endpoint, round: number): Promise<number> {
  const plural = `things${round}`
  const began = performance.now()
  await endpoint.json('POST', definitions, definitionOf(plural))
  const object = JSON.stringify({
    apiVersion: `${group}/v1`,
    kind: kindOf(plural),
    metadata: { name: 'first' },
    spec: { size: 1 },
  })
  while (performance.now() - began < 30_000) {
    const { status } = await endpoint.request('POST', `/apis/${group}/v1/namespaces/default/${plural}`, object)
    if (status === 201) return performance.now() - began
    if (status !== 404 && status !== 429 && status !== 503) throw new Error(`create of a ${plural}: ${status}`)
  }
  throw new Error(`"${plural}" is not served after 30 s`)
}

function kindOf(plural: string): string {
  return `Thing${plural.replace('things', '')}`
}

function definitionOf(plural: string): string {
  const size = { type: 'integer', minimum: 0 }
  const openAPIV3Schema = {
    type: 'object',
    properties: { spec: { type: 'object', properties: { size } }, status: { type: 'object' } },
  }
  return JSON.stringify({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { plural, singular: plural.replace('s', ''), kind: kindOf(plural) },
      versions: [
        { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema }, subresources: { status: {} } },
      ],
    },
  })
}

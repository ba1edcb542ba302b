import { expect } from 'chai'
import type { JsonObject, KubeObject } from '#apimachinery/meta/index.ts'
import { versionConversions } from './convert-versions.ts'

const seeds = 300

/** Numbers below `n`, the same for the same seed (mulberry32). */
function randomOf(seed: number): (n: number) => number {
  let state = seed
  return (n) => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) % n
  }
}

function randomClaims(random: (n: number) => number, isAnswer: boolean): JsonObject[] {
  return Array.from({ length: random(4) }, (_, i) => ({
    group: random(2) === 0 ? '' : 'example.io',
    resource: `things${i}`,
    verbs: random(2) === 0 ? ['*'] : ['get', 'list'],
    ...(random(2) === 0 && { identityHash: 'abc' }),
    ...(random(3) === 0 && { objects: [{ name: 'one' }] }),
    ...(random(3) === 0 && { namespaces: ['default'] }),
    ...(random(3) === 0 && { cel: 'true' }),
    ...(isAnswer && { state: random(2) === 0 ? 'Accepted' : 'Rejected', selector: { matchAll: true } }),
    ...(isAnswer && random(2) === 0 && { selector: { matchLabels: { a: 'b' } } }),
  }))
}

function randomObject(seed: number): { readonly resource: string; readonly object: KubeObject } {
  const random = randomOf(seed)
  const isExport = random(2) === 0
  const metadata = { name: 'x', ...(random(2) === 0 && { annotations: { own: 'yes' } }) }
  const resources = Array.from({ length: random(4) }, (_, i) =>
    random(3) === 0
      ? { name: `crds${i}`, group: 'example.io', crd: `crds${i}.example.io` }
      : { name: `kinds${i}`, group: 'example.io', schema: `v${random(3)}.kinds${i}.example.io`, storage: { crd: {} } },
  )
  const claims = randomClaims(random, !isExport)
  const spec = {
    ...(isExport ? resources.length > 0 && { resources } : { reference: { export: { path: 'a', name: 'b' } } }),
    ...(claims.length > 0 && { permissionClaims: claims }),
  }
  const object = { apiVersion: 'apis.kcp.io/v1alpha2', kind: isExport ? 'APIExport' : 'APIBinding', metadata, spec }
  return { resource: isExport ? 'apiexports' : 'apibindings', object: object }
}

describe('conversion of shared APIs', () => {
  it('to v1alpha1 and back changes nothing', () => {
    for (let seed = 0; seed < seeds; seed++) {
      const { resource, object } = randomObject(seed)
      const before = structuredClone(object)
      const conversion = versionConversions[resource]!
      const old = conversion.fromStorage(object)
      expect(object, 'the argument').to.deep.equal(before)
      expect(old.apiVersion).to.equal('apis.kcp.io/v1alpha1')
      const again = conversion.toStorage(old)
      const sorted = (one: KubeObject | undefined) => {
        const { resources, ...spec } = (one?.['spec'] ?? {}) as { resources?: { name: string }[] }
        const byName = resources?.toSorted((a, b) => (a.name < b.name ? -1 : 1))
        return { ...one, spec: { ...spec, ...(byName && { resources: byName }) } }
      }
      expect(sorted(again), `seed ${seed}`).to.deep.equal(sorted(before))
    }
  })
})

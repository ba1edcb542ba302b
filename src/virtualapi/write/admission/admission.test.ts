import { setImmediate } from 'node:timers/promises'
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { createAdmission, type AdmissionPlugin, type AdmissionRequest } from './admission.ts'

const request = {} as AdmissionRequest
const object = (): KubeObject => ({ kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'a', labels: {} } })

/** Writes its name into the labels; with `waits`, in a later turn of the event loop. */
function plugin(name: string, { waits = false, refuses = false } = {}): AdmissionPlugin {
  const label = ({ metadata }: KubeObject): void => {
    if (refuses) throw new Error(`refused by ${name}`)
    metadata.labels = { ...metadata.labels, [name]: String(Object.keys(metadata.labels ?? {}).length) }
  }
  return {
    name,
    mutate: (_request, changed) => (waits ? setImmediate().then(() => label(changed)) : label(changed)),
  }
}

describe('admission', () => {
  it('is done at once where no plugin waits', () => {
    const changed = object()
    const admission = createAdmission({ plugins: [plugin('a'), { name: 'without hooks' }, plugin('b')] })
    expect(admission.mutate(request, changed, undefined)).to.equal(undefined)
    expect(changed.metadata.labels).to.deep.equal({ a: '0', b: '1' })
    expect(admission.validate(request, changed, undefined)).to.equal(undefined)
  })

  it('waits for each plugin that waits before it runs the next', async () => {
    const changed = object()
    const names = ['a', 'b', 'c', 'd']
    const admission = createAdmission({
      plugins: names.map((name) => plugin(name, { waits: name === 'b' || name === 'c' })),
    })
    await admission.mutate(request, changed, undefined)
    expect(changed.metadata.labels).to.deep.equal({ a: '0', b: '1', c: '2', d: '3' })
  })

  for (const waits of [false, true])
    it(`runs nothing after a plugin that refuses${waits ? ' later' : ''}`, async () => {
      const changed = object()
      const admission = createAdmission({ plugins: [plugin('a'), plugin('b', { waits, refuses: true }), plugin('c')] })
      const refusal = await (async () => admission.mutate(request, changed, undefined))().catch(String)
      expect(refusal).to.equal('Error: refused by b')
      expect(changed.metadata.labels).to.deep.equal({ a: '0' })
    })
})

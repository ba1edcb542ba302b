import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { Change } from '#client/index.ts'
import { contentHash, placedOnAnnotation, templateOf } from '#crds/index.ts'
import { FormerTemplates } from './former-templates.ts'

const templateWith = (image: string) => ({ spec: { containers: [{ name: 'app', image }] } })

function deployment(image: string, generation: number, uid = 'a'): KubeObject {
  const annotations = { [placedOnAnnotation]: JSON.stringify({ east: { state: 'Serving' } }), note: image }
  return {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', uid, generation, annotations } },
    spec: { template: templateWith(image) },
  }
}

describe('the templates that a tenant wrote before', () => {
  let listener: (change: Change<KubeObject>) => void = () => undefined
  let now = 0
  let known: FormerTemplates
  const changed = (before: KubeObject, after: KubeObject | undefined, cluster = 'acme'): void =>
    listener({ key: `${cluster}|shop/web`, before, after })
  const found = (image: string, uid = 'a'): unknown =>
    known.find(deployment('', 0, uid), contentHash(templateWith(image)))

  beforeEach(() => {
    now = 0
    const informer = {
      onChange(one: typeof listener) {
        listener = one
        return () => undefined
      },
    }
    known = new FormerTemplates([informer], () => now)
  })

  it('are found with the annotations of that time', () => {
    changed(deployment('one', 1), deployment('two', 2))
    changed(deployment('two', 2), deployment('three', 3))
    expect(found('one')).to.have.nested.property('annotations.note', 'one')
    expect(found('two'))
      .to.have.property('template')
      .that.deep.equals(templateOf(deployment('two', 2)))
    expect(found('three')).to.equal(undefined)
    expect(found('one', 'another uid')).to.equal(undefined)
  })

  it('are none after a change of anything else', () => {
    changed(deployment('one', 1), deployment('one', 1))
    changed(deployment('one', 1), { ...deployment('one', 2), status: {} })
    changed(deployment('one', 1), deployment('two', 2, 'created again'))
    expect(known.bytesOf('acme')).to.equal(0)
  })

  it('are forgotten after some minutes', () => {
    changed(deployment('one', 1), deployment('two', 2))
    now = 700_000
    changed(deployment('other', 1, 'b'), deployment('two', 2, 'b'))
    expect(found('one')).to.equal(undefined)
    expect(found('other', 'b')).not.to.equal(undefined)
  })

  it('of one logical cluster have a bound, and displace none of another', () => {
    changed(deployment('theirs', 1, 'b'), deployment('two', 2, 'b'), 'other')
    for (let i = 0; i < 100; i++) changed(deployment(`${i}`.padEnd(50_000, 'x'), i), deployment(`${i + 1}`, i + 1))
    expect(known.bytesOf('acme')).to.be.lessThan(1024 * 1024 + 1)
    expect(found('theirs', 'b')).not.to.equal(undefined)
    expect(found(`99`.padEnd(50_000, 'x'))).not.to.equal(undefined)
  })
})

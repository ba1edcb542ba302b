import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { consumerForm } from './consumer-form.ts'
import type { ReviewedForm } from './reviewed-form.ts'

const form: ReviewedForm = {
  group: 'example.io',
  version: 'v1',
  resource: 'widgets',
  kind: { group: 'example.io', version: 'v1', kind: 'Widget' },
  show: (object) => object,
  take: (shown) => shown,
}
const widget = (annotations?: Record<string, string>): KubeObject => ({
  apiVersion: 'example.io/v1',
  kind: 'Widget',
  metadata: { name: 'one', ...(annotations && { annotations }) },
})

describe('the form of an object of a consumer for its provider', () => {
  const told = consumerForm(form, 'acme')

  for (const { title, stored } of [
    { title: 'without annotations', stored: widget() },
    { title: 'with other annotations', stored: widget({ a: 'b' }) },
    { title: 'with a forged annotation', stored: widget({ 'kcp.io/cluster': 'other' }) },
  ])
    it(`names the consumer, and stores an object ${title} as it was`, async () => {
      const before = structuredClone(stored)
      const shown = await told.show(stored)
      expect(shown.metadata.annotations).to.include({ 'kcp.io/cluster': 'acme' })
      expect(stored).to.deep.equal(before)
      expect(await told.take(shown, stored)).to.deep.equal(before)
    })
})

import { expect } from 'chai'
import { effortToReformat } from './effort.ts'

const values = (count: number): Uint8Array => Buffer.from(JSON.stringify({ items: new Array<number>(count).fill(1) }))

describe('the effort to reformat a document', () => {
  for (const { title, body, json, yaml } of [
    { title: 'a small one', body: values(10), json: 'little', yaml: 'little' },
    { title: 'a hundred objects', body: values(3000), json: 'much', yaml: 'much' },
    { title: 'more values than one object may have', body: values(150_000), json: 'much', yaml: 'too much' },
    { title: 'a list of everything', body: values(1_500_000), json: 'too much', yaml: 'too much' },
    {
      title: 'one that is deeper than an object may be',
      body: Buffer.from(`${'['.repeat(500)}${'1,'.repeat(3000)}1${']'.repeat(500)}`),
      json: 'much',
      yaml: 'much',
    },
  ] as const)
    it(title, () => {
      expect(effortToReformat(body, 'json')).to.equal(json)
      expect(effortToReformat(body, 'yaml')).to.equal(yaml)
    })
})

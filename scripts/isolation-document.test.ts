import { expect } from 'chai'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
const document = readFileSync(join(root, 'docs/isolation.md'), 'utf8')
const named = [...document.matchAll(/\| `([^`]+\.test\.ts)` "([^"]+)" +\|$/gm)].map(([, file = '', title = '']) => ({
  file,
  title,
}))
const rows = document.split('\n').filter((line) => line.startsWith('|') && line.includes('.test.ts` '))

describe('docs/isolation.md', () => {
  it('names a file and a title in each row of a boundary', () => {
    expect(named.length).to.be.greaterThan(30)
    expect(named).to.have.length(rows.length)
  })

  for (const { file, title } of named)
    it(`names a test that exists: ${file} "${title}"`, () => {
      expect(readFileSync(join(root, file), 'utf8')).to.include(title)
    })
})

// The paths that documents name exist, and the page for newcomers stays short.
import { expect } from 'chai'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
/** applications.md names files of other projects. */
const exclude = ['docs/reference/applications.md']
const documents = globSync(['*.md', 'docs/**/*.md', 'bench/*.md', 'charts/**/*.md'], { cwd: root, exclude })
const pathPattern = /`((?:src|test|scripts|bench|config|charts|examples)\/[\w./-]+)`/g
/** Below src, or below src/virtualapi with `v/`, as the walks of ARCHITECTURE.md have them. */
const walkPattern = /`((?:v|operator|placement|store|syncer)\/[\w./-]+)`/g

describe('documents', () => {
  for (const document of documents)
    it(`${document} names paths that exist`, () => {
      const text = readFileSync(join(root, document), 'utf8')
      const named = [...text.matchAll(pathPattern)].map(([, path = '']) => path)
      if (document === 'ARCHITECTURE.md')
        for (const [, path = ''] of text.matchAll(walkPattern)) named.push(`src/${path.replace(/^v\//, 'virtualapi/')}`)
      expect(named.filter((path) => !existsSync(join(root, path)))).to.deep.equal([])
    })

  it('explain the architecture in 16 KB', () => {
    expect(readFileSync(join(root, 'ARCHITECTURE.md')).length).to.be.below(16 * 1024)
  })
})

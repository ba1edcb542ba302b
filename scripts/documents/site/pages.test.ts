// The site of the documents: links that lead somewhere, and pages that scripts of others cannot change.
import { expect } from 'chai'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { documentPaths, projectRoot, readDocument } from '../documents.ts'
import { siteOf } from './pages.ts'
import { pageHtml } from './template.ts'

const site = (documents: Record<string, string>, sourceUrl?: string): ReturnType<typeof siteOf> =>
  siteOf({
    documents: new Map(Object.entries(documents)),
    exists: (path) => path === 'src',
    ...(sourceUrl && { sourceUrl }),
  })

describe('the site of the documents', () => {
  it('has no broken link, and all documents in its index', () => {
    const documents = new Map(documentPaths().map((path) => [path, readDocument(path)]))
    const { faults } = siteOf({ documents, exists: (path) => existsSync(join(projectRoot, path)) })
    expect(faults).to.deep.equal([])
  })

  it('finds broken links and pages that nobody finds', () => {
    const { faults } = site({
      'docs/README.md': '# Index\n[a](a.md#two) [b](b.md) [c](../src) [x](https://example.com)',
      'docs/a.md': '# A\n## Two\n[up](README.md#none)',
      'docs/lost.md': '# Lost',
    })
    expect(faults).to.deep.equal([
      'docs/README.md:2: b.md does not exist',
      'docs/a.md:3: docs/README.md has no heading #none',
      'docs/lost.md is not in docs/README.md',
    ])
  })

  it('links pages, and sources only where their address is given', () => {
    const documents = {
      'docs/README.md': '[a](a/b.md#c) [s](../src) ![i](images/x.svg)',
      'docs/a/b.md': '# B\n## C\n[i](../README.md)',
    }
    const [index, page] = site(documents).pages
    expect(index?.html).to.include('<a href="a/b.html#c">a</a> <span>s</span> <img src="images/x.svg"')
    expect(page?.html).to.include('<a href="../index.html">i</a>')
    expect(site(documents, 'https://code.example/kcp').pages[0]?.html).to.include('href="https://code.example/kcp/src"')
  })

  it('has pages without scripts, styles and handlers of their own', () => {
    const { pages } = siteOf({
      documents: new Map(documentPaths().map((path) => [path, readDocument(path)])),
      exists: () => true,
    })
    for (const page of pages) {
      const html = pageHtml(page, { version: '1', navigation: [{ title: 'x', pages }] })
      expect(html, page.path).to.include("script-src 'self'")
      expect(html, page.path).not.to.match(/<script(?! type="module" src=)|<style|<[^>]+ (?:on\w+|style)=/)
    }
  })
})

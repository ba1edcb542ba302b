import { expect } from 'chai'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PageFiles } from './page-files.ts'

describe('the files of the console', () => {
  let folder: string
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'kcp-page-'))
    mkdirSync(join(folder, 'assets'))
    writeFileSync(join(folder, 'index.html'), '<meta name="csp-nonce" content="__CSP_NONCE__">')
    writeFileSync(join(folder, 'assets', 'app-1.js'), 'plain')
    writeFileSync(join(folder, 'assets', 'app-1.js.br'), 'packed')
    writeFileSync(join(folder, 'assets', 'evil.html'), '<script>')
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  it('give each page a nonce of its own, which its policy names', () => {
    const files = new PageFiles(folder)
    const nonces = [files.index(), files.index()].map(({ headers, body }) => {
      const [, nonce = ''] = /content="([^"]+)"/.exec(Buffer.from(body).toString()) ?? []
      expect(headers['content-security-policy']).to.include(`style-src 'self' 'nonce-${nonce}'`)
      return nonce
    })
    expect(nonces[0]).to.have.length(24).and.not.equal(nonces[1])
  })

  it('allow no script inline, no frame around the page, and nothing from elsewhere', () => {
    const { headers } = new PageFiles(folder).index()
    const policy = headers['content-security-policy'] ?? ''
    expect(policy).not.to.include('unsafe')
    for (const rule of ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"])
      expect(policy).to.include(rule)
    expect(headers).to.include({
      'x-frame-options': 'DENY',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cache-control': 'no-store',
    })
  })

  for (const [accepted, encoding] of [
    ['gzip, deflate, br', 'br'],
    ['br;q=0, gzip', undefined],
    ['', undefined],
  ] as const)
    it(`are compressed as accepted: ${accepted}`, () => {
      const asset = new PageFiles(folder).asset('app-1.js', accepted)
      expect(asset?.headers['content-encoding']).to.equal(encoding)
      expect(Buffer.from(asset?.body ?? []).toString()).to.equal(encoding === undefined ? 'plain' : 'packed')
      expect(asset?.headers).to.include({ 'content-type': 'text/javascript; charset=utf-8' })
    })

  it('are those of the folder, of known types', () => {
    const files = new PageFiles(folder)
    for (const name of [
      'evil.html',
      'app-1.js.br',
      '../index.html',
      '..%2findex.html',
      '',
      '/',
      'app-1.js/',
      '__proto__',
    ])
      expect(files.asset(name, ''), name).to.equal(undefined)
  })

  it('say so where they were not built', () => {
    const { status, body } = new PageFiles(join(folder, 'none')).index()
    expect([status, Buffer.from(body).toString()]).to.deep.equal([
      503,
      'The console is not part of this build: npm run build makes it.\n',
    ])
  })
})

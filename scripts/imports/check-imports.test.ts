import { expect } from 'chai'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { checkImports, importsByFolder, type ImportRules } from './check-imports.ts'
import { readImports } from './read-imports.ts'

const rules: ImportRules = {
  folders: { async: [], store: ['async'], api: ['async', 'store'], 'api/codec': ['async'] },
  floors: { store: ['.', 'hub'], api: ['codec', 'server', '.'] },
}

const tree: Readonly<Record<string, string>> = {
  'async/index.ts': `export * from './sleep.ts'`,
  'async/sleep.ts': 'export const sleep = 1',
  'store/index.ts': `export { sleep as store } from '../async/index.ts'`,
  'store/hub/index.ts': `export { store as hub } from '../index.ts'`,
  'store/hub/state.ts': 'export type State = string',
  'api/index.ts': `export * from './server/server.ts'\nexport * from './codec/codec.ts'`,
  'api/server/server.ts': `import { codec } from '../codec/codec.ts'\nimport { hub } from '../../store/hub/index.ts'\nexport const server = [codec, hub]`,
  'api/codec/codec.ts': `import { sleep } from '../../async/index.ts'\nexport const codec = sleep`,
}

describe('the check of imports', () => {
  let src: string

  beforeEach(() => {
    src = mkdtempSync(join(tmpdir(), 'kcp-imports-'))
    add(tree)
  })
  afterEach(() => rmSync(src, { recursive: true, force: true }))

  function add(files: Readonly<Record<string, string>>): void {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(join(src, dirname(path)), { recursive: true })
      writeFileSync(join(src, path), text)
    }
  }
  const check = (): readonly string[] => checkImports(readImports(src), rules)

  it('finds nothing in a tree that follows the rules', () => {
    expect(check()).to.deep.equal([])
  })

  it('lists what each folder imports, down to two levels', () => {
    add({ 'api/codec/json/parse.ts': `import { sleep } from '../../../async/index.ts'\nexport const parse = sleep` })
    const byFolder = Object.fromEntries(importsByFolder(readImports(src)))
    expect(byFolder).to.deep.include({ 'api/server': ['api/codec', 'store/hub'], 'api/codec': ['async'], async: [] })
  })

  for (const { title, files, complaint } of [
    {
      title: 'a climb within a top-level folder',
      files: { 'api/codec/climb.ts': `import { server } from '../server/server.ts'\nexport const climb = server` },
      complaint: 'api/codec/climb.ts: may not import api/server/server.ts: server is not below codec',
    },
    {
      title: 'a climb to another top-level folder',
      files: { 'async/climb.ts': `export * from '../store/index.ts'` },
      complaint: 'async/climb.ts: may not import store',
    },
    {
      title: 'a climb by name',
      files: { 'async/climb.ts': `export * from '#store/index.ts'` },
      complaint: 'async/climb.ts: may not import store',
    },
    {
      title: 'an import that only other rooms of the folder may have',
      files: { 'api/codec/climb.ts': `export * from '../../store/index.ts'` },
      complaint: 'api/codec/climb.ts: may not import store',
    },
    {
      title: 'a climb of a type',
      files: { 'async/climb.ts': `import type { Store } from '../store/index.ts'\nexport type Climb = Store` },
      complaint: 'async/climb.ts: may not import store',
    },
    {
      title: 'a climb by import()',
      files: { 'async/climb.ts': `export const climb = (): Promise<unknown> => import('../store/index.ts')` },
      complaint: 'async/climb.ts: may not import store',
    },
    {
      title: 'a top-level folder that is not entered through its index.ts',
      files: {
        'api/server/back.ts': `import type { State } from '../../store/hub/state.ts'\nexport type Back = State`,
      },
      complaint: 'api/server/back.ts: enters store by store/hub/state.ts; use store/hub/index.ts',
    },
    {
      title: 'a room without a floor',
      files: { 'api/late/late.ts': `export * from '../codec/codec.ts'` },
      complaint: 'api/late/late.ts: its room late has no floor of api',
    },
    {
      title: 'a folder without a rule',
      files: { 'late/late.ts': `export * from '../async/index.ts'` },
      complaint: 'late/late.ts: its folder late is not in scripts/imports/rules.ts',
    },
    {
      title: 'a cycle of two files of one folder',
      files: {
        'api/codec/a.ts': `import type { B } from './b.ts'\nexport type A = B`,
        'api/codec/b.ts': `import type { A } from './a.ts'\nexport type B = A | 1`,
      },
      complaint: 'cycle of files: api/codec/a.ts, api/codec/b.ts',
    },
    {
      title: 'a cycle of three files',
      files: {
        'api/codec/a.ts': `export * from './b.ts'`,
        'api/codec/b.ts': `export * from './c.ts'`,
        'api/codec/c.ts': `export * from './a.ts'`,
      },
      complaint: 'cycle of files: api/codec/a.ts, api/codec/b.ts, api/codec/c.ts',
    },
    {
      title: 'a cycle of folders whose files have none',
      files: {
        'api/codec/a.ts': `export * from '../server/b.ts'`,
        'api/server/b.ts': 'export const b = 1',
      },
      complaint: 'cycle of folders: api/codec, api/server',
    },
    {
      title: 'a cycle of a folder and one within it, below two levels',
      files: {
        'api/codec/json/parse.ts': `export * from '../text.ts'`,
        'api/codec/text.ts': 'export const text = 1',
        'api/codec/read.ts': `export * from './json/parse.ts'`,
      },
      complaint: 'cycle of folders: api/codec, api/codec/json',
    },
  ])
    it(`fails on ${title}`, () => {
      add(files)
      const complaints = check()
      expect(
        complaints.filter((line) => line.startsWith(complaint)),
        complaints.join('\n'),
      ).to.have.length(1)
    })

  it('fails on a rule about a room that does not exist any more', () => {
    rmSync(join(src, 'api/server'), { recursive: true })
    add({ 'api/index.ts': `export * from './codec/codec.ts'` })
    expect(check()).to.deep.equal(['scripts/imports/rules.ts names api/server, which does not exist'])
  })
})

import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect } from 'chai'
import { HashPool } from '#mover/files/hash-pool.ts'
import { readAttributes, tryStatAt } from '#mover/files/metadata.ts'
import { NameSet } from '#mover/files/name-set.ts'
import { openVolume } from '#mover/files/volume.ts'
import type { WireEntry } from '#mover/wire/entries.ts'
import { FrameStream } from '#mover/wire/frames.ts'
import { FileReceiver } from './file-receiver.ts'
import { lookAgain, Repairs, type Repaired } from './repairs.ts'
import { RoundCounts } from './round-counts.ts'

describe('the second look at what a final round has repaired', () => {
  const damages: readonly (readonly [string, string])[] = [
    ['a byte of a file', `printf X > folder/file; touch -d '2001-01-01' folder/file`],
    ['a file that is longer', `printf ab > folder/file; touch -d '2001-01-01' folder/file`],
    ['a file that is gone', 'rm folder/file'],
    ['a mode', 'chmod 755 folder/file'],
    ['a time', 'touch folder/file'],
    ['the time of a folder', 'touch folder'],
    ['a name more in a folder', `: > folder/more; touch -d '2001-01-01' folder`],
    ['a name less in a folder', `rm folder/other; touch -d '2001-01-01' folder`],
    ['a further name that is another file', `cp -p folder/file f; mv f folder/link; touch -d '2001-01-01' folder`],
    ['a symbolic link that leads elsewhere', `ln -sfn elsewhere symlink; touch -hd '2001-01-01' symlink`],
    ['a symbolic link that is a file', `rm symlink; : > symlink; touch -d '2001-01-01' symlink`],
  ]
  for (const [title, damage] of [['nothing', ''], ...damages] as const)
    it(`finds ${title}`, async () => {
      const root = mkdtempSync(join(tmpdir(), 'kcp-repairs-'))
      const shell = (script: string): unknown => execFileSync('/bin/bash', ['-euc', script], { cwd: root })
      await using pool = new HashPool()
      try {
        mkdirSync(join(root, 'folder'))
        shell(`printf a > folder/file; : > folder/other; ln folder/file folder/link; ln -s somewhere symlink
          touch -hd '2001-01-01' folder/* symlink folder`)
        using volume = openVolume(root)
        using frames = new FrameStream(new PassThrough())
        const entryOf = (path: string): WireEntry => {
          const name = Buffer.from(path)
          const stat = tryStatAt(volume.fd, name)
          if (stat === undefined) throw new Error(path)
          const { kept: attributes } = readAttributes({ folder: volume.fd, name })
          const target = Buffer.from(stat.kind === 'symlink' ? 'somewhere' : '')
          const digest = stat.kind === 'file' ? hash('sha256', readFileSync(join(root, path)), 'buffer') : undefined
          return { ...stat, name, attributes, target, link: 0, isLastLink: false, digest }
        }
        const names = new NameSet()
        for (const name of ['file', 'other', 'link']) names.add(Buffer.from(name))
        const repaired = (path: string, more: Partial<Repaired> = {}): Repaired => ({
          path: Buffer.from(path),
          entry: entryOf(path),
          ...more,
        })
        const repairs = new Repairs()
        repairs.add(repaired('folder/file', { isContentNew: true }))
        repairs.add(repaired('folder/link', { first: Buffer.from('folder/file') }))
        repairs.add(repaired('symlink'))
        repairs.add(repaired('folder', { names }))
        shell(damage)
        const compared: string[] = []
        const isSame = await lookAgain(repairs.all ?? [], {
          volume,
          files: new FileReceiver({ frames, pool, counts: new RoundCounts(() => 0) }),
          onCompared: ({ path }) => void compared.push(path.toString()),
        })
        expect(isSame).to.equal(damage === '')
        if (isSame) expect(compared).to.deep.equal(['folder/file'])
      } finally {
        rmSync(root, { recursive: true, force: true })
      }
    })
  it('does not begin if more was repaired than is remembered', () => {
    const repairs = new Repairs()
    expect(repairs.all).to.deep.equal([])
    const names = { bytes: 33 << 20 } as unknown as NameSet
    const entry = { attributes: [] as unknown } as WireEntry
    repairs.add({ path: Buffer.from('a'), entry })
    expect(repairs.all).to.have.length(1)
    repairs.add({ path: Buffer.from('b'), entry, names })
    expect(repairs.all).to.equal(undefined)
    repairs.add({ path: Buffer.from('c'), entry })
    expect(repairs.all).to.equal(undefined)
  })
})

import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { runCommand } from './command.ts'
import { writeImageArchive } from './image-archive.ts'
import { type TarEntry } from './tar.ts'

describe('an image archive', () => {
  let dir = ''
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'kcp-image-'))
  })
  afterEach(() => rmSync(dir, { recursive: true }))

  it('contains layers that tar can read, named by their digest, shared between images', async () => {
    const long = `deep/${'folder/'.repeat(30)}file`
    writeFileSync(join(dir, 'program'), 'x'.repeat(70_000), { mode: 0o755 })
    const layer: TarEntry[] = [
      { path: 'tmp', directory: true, mode: 0o1777 },
      { path: 'bin/program', file: join(dir, 'program') },
      { path: long, content: 'far down' },
      { path: 'bin/alias', link: 'program' },
    ]
    const archive = join(dir, 'images.tar')
    await writeImageArchive(archive, [
      { tags: ['example.test/a:1'], layers: [layer], entrypoint: ['/bin/program'] },
      {
        tags: ['example.test/b:1', 'example.test/b:2'],
        layers: [layer],
        entrypoint: ['/bin/program', 'b'],
        user: '65532',
      },
    ])
    await runCommand('tar', ['xf', archive, '-C', dir])
    const manifest = JSON.parse(readFileSync(join(dir, 'manifest.json'), 'utf8')) as Manifest
    expect(manifest.map(({ RepoTags }) => RepoTags)).to.deep.equal([
      ['example.test/a:1'],
      ['example.test/b:1', 'example.test/b:2'],
    ])
    expect(manifest[0]!.Layers).to.deep.equal(manifest[1]!.Layers)
    const file = join(dir, manifest[0]!.Layers[0]!)
    const digest = createHash('sha256').update(readFileSync(file)).digest('hex')
    const config = JSON.parse(readFileSync(join(dir, manifest[1]!.Config), 'utf8')) as Config
    expect(config.rootfs.diff_ids).to.deep.equal([`sha256:${digest}`])
    expect(config.config).to.include({ User: '65532' })
    const root = mkdtempSync(join(dir, 'root-'))
    await runCommand('tar', ['xf', file, '-C', root])
    expect(readFileSync(join(root, 'bin/alias')).length).to.equal(70_000)
    expect(statSync(join(root, 'bin/program')).mode & 0o777).to.equal(0o755)
    expect(readFileSync(join(root, long), 'utf8')).to.equal('far down')
  })

  it('leaves no file behind when an input file is missing', async () => {
    const layers = [[{ path: 'x', file: join(dir, 'missing') }]]
    const archive = writeImageArchive(join(dir, 'a.tar'), [{ tags: ['a:1'], layers, entrypoint: ['/x'] }])
    expect(String(await archive.catch((error: unknown) => error))).to.contain('missing')
    expect((await runCommand('ls', ['-A', dir])).stdout).to.equal('')
  })
})

type Manifest = { Config: string; RepoTags: string[]; Layers: string[] }[]
interface Config {
  rootfs: { diff_ids: string[] }
  config: Record<string, unknown>
}

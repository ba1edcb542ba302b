// Manifest sets of well-known applications, put through every kubectl operation in two logical clusters at once. Where
// the expected output is not obvious, recorded.json has that of a real cluster.
import { expect } from 'chai'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startInstance } from '#test/integration/kcp-instance.ts'
import { isLongRun, repositoryRoot } from '#test/support/index.ts'
import { applicationSets, applicationTitles } from './application-sets.ts'
import { explainKinds, live, writeEditor, type Home, type ManifestSet } from './manifest-life.ts'
import { readRecording } from './recording.ts'

describe('manifests of well-known applications', function () {
  this.timeout(180_000)
  const stack = new AsyncDisposableStack()
  const recording = readRecording()
  let homes: readonly Home[]
  let sets: readonly ManifestSet[]
  let editor: string

  before(async function () {
    this.timeout(15 * 60_000) // the first run downloads
    const dir = mkdtempSync(join(tmpdir(), 'kcp-manifests-'))
    stack.defer(() => rmSync(dir, { recursive: true, force: true }))
    editor = writeEditor(dir)
    sets = await applicationSets(dir)
    const kcp = stack.use(await startInstance())
    const tenants = [
      await kcp.tenant('acme', { podSecurity: 'privileged' }),
      await kcp.tenant('umbrella', { podSecurity: 'privileged' }),
    ]
    homes = tenants.map(({ kubeconfig }) => ({ kubeconfig, hasControllers: true }))
  })
  after(() => stack.disposeAsync())

  it('cover many applications, all of them recorded', () => {
    expect(applicationTitles).to.have.length.of.at.least(30)
    expect(sets.map(({ title }) => title)).to.deep.equal(applicationTitles)
    expect(Object.keys(recording.transcripts)).to.deep.equal(applicationTitles)
  })

  // All of them in `make test-long`; a tenth shows what breaks all.
  const played = applicationTitles.filter((_, index) => isLongRun || index % 10 === 0)
  for (const title of played)
    it(title, async () => {
      const set = sets.find((candidate) => candidate.title === title)!
      const transcripts = await Promise.all(homes.map((home) => live(set, home, { editor })))
      for (const transcript of transcripts) expect(transcript).to.deep.equal(recording.transcripts[title])
    })

  it('have the same explain output as in a real cluster', async function () {
    // Descriptions for explain exist only in a build, not when run from sources.
    if (!existsSync(join(repositoryRoot, 'dist'))) this.skip()
    const kinds = await explainKinds(sets, homes[0]!)
    expect(Object.keys(kinds)).to.have.length.of.at.least(25)
    const differing = Object.keys(kinds).filter((kind) => kinds[kind] !== recording.explained[kind])
    expect(differing).to.deep.equal([])
    expect(Object.keys(kinds)).to.deep.equal(Object.keys(recording.explained))
  })
})

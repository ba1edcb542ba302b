// The manifest of krew, and the archive that it names: what krew checks before it installs a plugin.
import { expect } from 'chai'
import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { programVersion } from '#telemetry/index.ts'
import { kcpProgram, repositoryRoot, runCommand } from '#test/support/index.ts'

interface Manifest {
  metadata: { name: string }
  spec: { version: string; platforms: { uri: string; sha256: string; bin: string; files: { from: string }[] }[] }
}

describe('the krew manifest', function () {
  this.timeout(120_000)
  let dir: string
  before(() => (dir = mkdtempSync(join(tmpdir(), 'kcp-krew-test-'))))
  after(() => rmSync(dir, { recursive: true }))

  const krew = (...args: string[]): ReturnType<typeof runCommand> =>
    runCommand(process.execPath, [join(repositoryRoot, 'scripts/krew.ts'), ...args], { expectCode: 'any' })

  it('names archives below the given address, with their checksums and a plugin that runs', async () => {
    const [packages, out] = [join(dir, 'packages'), join(dir, 'out')]
    mkdirSync(packages)
    for (const arch of ['amd64', 'arm64']) {
      const program = join(packages, `kcp-${programVersion}-linux-${arch}`)
      writeFileSync(program, `#!/bin/sh\nexec ${kcpProgram} "$@"\n`, { mode: 0o755 })
    }
    const { code, stderr } = await krew(
      '--base-url',
      'https://code.example/releases/',
      '--packages',
      packages,
      '--out',
      out,
    )
    expect(code, stderr).to.equal(0)
    const { metadata, spec } = parse(readFileSync(join(out, 'kcp.yaml'), 'utf8')) as Manifest
    expect([metadata.name, spec.version, spec.platforms.length]).to.deep.equal(['kcp', `v${programVersion}`, 2])
    for (const { uri, sha256, bin, files } of spec.platforms) {
      const file = join(out, uri.replace('https://code.example/releases/', ''))
      expect(createHash('sha256').update(readFileSync(file)).digest('hex')).to.equal(sha256)
      const installed = mkdtempSync(join(dir, 'installed-'))
      await runCommand('tar', ['-xzf', file, '-C', installed])
      for (const { from } of files) copyFileSync(join(installed, from), join(installed, `${from}.copy`))
      const { stdout } = await runCommand(join(installed, bin), ['version'])
      expect(stdout).to.include(programVersion)
    }
  })

  it('is refused without an address, and without a program', async () => {
    expect((await krew()).code).to.equal(2)
    expect((await krew('--base-url', 'https://code.example', '--packages', dir)).code).to.equal(1)
  })
})

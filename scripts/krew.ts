// Makes kcp a plugin that krew installs: archives of the single files of dist/packages, and the manifest with their
// checksums.   node scripts/krew.ts --base-url URL [--packages DIR] [--out DIR]
// URL is the folder at which the archives will be. Run `make packages` first, on a machine of each platform.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { stringify } from 'yaml'
import { programVersion } from '#telemetry/index.ts'

const root = resolve(import.meta.dirname, '..')
const { values } = parseArgs({
  options: {
    'base-url': { type: 'string' },
    packages: { type: 'string', default: join(root, 'dist/packages') },
    out: { type: 'string', default: join(root, 'dist/krew') },
  },
})
const baseUrl = values['base-url']
if (baseUrl === undefined || !URL.canParse(baseUrl)) {
  console.error('usage: node scripts/krew.ts --base-url URL [--packages DIR] [--out DIR]')
  process.exit(2)
}
const programs = globSync(`kcp-${programVersion}-linux-*`, { cwd: values.packages }).sort()
if (programs.length === 0) {
  console.error(`${values.packages} has no kcp-${programVersion}-linux-ARCH: run 'make packages' first`)
  process.exit(1)
}
rmSync(values.out, { recursive: true, force: true })
mkdirSync(values.out, { recursive: true })
const platforms = programs.map((program) => {
  const arch = program.slice(program.lastIndexOf('-') + 1)
  const name = `kubectl-kcp-${programVersion}-linux-${arch}.tar.gz`
  const archive = archiveOf(join(values.packages, program), join(values.out, name))
  return {
    selector: { matchLabels: { os: 'linux', arch } },
    uri: `${baseUrl.replace(/\/$/, '')}/${name}`,
    sha256: createHash('sha256').update(archive).digest('hex'),
    bin: 'kubectl-kcp',
    files: ['kubectl-kcp', 'LICENSE'].map((from) => ({ from, to: '.' })),
  }
})
writeFileSync(join(values.out, 'kcp.yaml'), stringify(manifestOf(platforms), { lineWidth: 0 }))
console.log(`${join(values.out, 'kcp.yaml')}: ${platforms.map(({ uri }) => uri).join(', ')}`)

/** The archive with the same bytes for the same program: krew compares checksums. */
function archiveOf(program: string, out: string): Buffer {
  const dir = mkdtempSync(join(tmpdir(), 'kcp-krew-'))
  try {
    copyFileSync(program, join(dir, 'kubectl-kcp'))
    const license = join(root, 'LICENSE')
    if (existsSync(license)) copyFileSync(license, join(dir, 'LICENSE'))
    const fixed = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner']
    const tar = spawnSync('tar', [
      ...fixed,
      '--use-compress-program',
      'gzip -n',
      '-cf',
      out,
      '-C',
      dir,
      'kubectl-kcp',
      'LICENSE',
    ])
    if (tar.status !== 0) throw new Error(`tar: ${tar.stderr.toString()}`)
    return readFileSync(out)
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

function manifestOf(all: readonly object[]): object {
  return {
    apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
    kind: 'Plugin',
    metadata: { name: 'kcp' },
    spec: {
      version: `v${programVersion}`,
      shortDescription: 'Logical clusters, and workloads in many members',
      description: `Creates and lists logical clusters, switches between them, reads objects across all of them, joins, drains and explains
members, and moves workloads. kubectl kcp --help begins with examples.`,
      platforms: all,
    },
  }
}

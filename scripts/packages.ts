// Builds the packages of a release in dist/packages: the npm package, the single file for this platform, the container
// image, the list of all components (CycloneDX), and checksums.   node scripts/packages.ts [--only npm,file,image,sbom]
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { arch } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { cacheDir, repositoryRoot } from '#test/support/index.ts'
import { nativeFiles } from './image/native-files.ts'
import { platformOf } from './image/platform.ts'
import { programFiles } from './image/program-files.ts'
import { componentsOf } from './packages/components.ts'
import { writeSingleFile } from './packages/single-file.ts'

const { version } = JSON.parse(readFileSync(join(repositoryRoot, 'package.json'), 'utf8')) as { version: string }
const out = join(repositoryRoot, 'dist/packages')
const platform = `linux-${arch() === 'x64' ? 'amd64' : arch()}`

const native = nativeFiles({
  repository: repositoryRoot,
  platform: platformOf(arch()),
  cacheDir: join(cacheDir(), 'image'),
})

const parts: Readonly<Record<string, () => unknown>> = {
  npm: () => run('npm', ['pack', '--silent', '--pack-destination', out]),
  file: () =>
    writeSingleFile({
      node: process.execPath,
      files: [...programFiles(repositoryRoot).flat(), ...native],
      version,
      out: join(out, `kcp-${version}-${platform}`),
    }),
  image: () =>
    run(process.execPath, [
      join(repositoryRoot, 'scripts/image.ts'),
      '--out',
      join(out, `kcp-${version}-image-${platform}.tar`),
    ]),
  sbom: () =>
    writeFileSync(join(out, `kcp-${version}-sbom.cdx.json`), componentsOf(repositoryRoot, process.version.slice(1))),
}

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: Object.keys(parts).join(',') },
    help: { type: 'boolean', default: false },
  },
})
const wanted = values.only.split(',')
const unknown = wanted.filter((name) => !(name in parts))
if (values.help || unknown.length > 0) {
  console.error(`usage: node scripts/packages.ts [--only ${Object.keys(parts).join(',')}]`)
  process.exit(values.help ? 0 : 2)
}
if (!existsSync(join(repositoryRoot, 'dist/src/cli/main.js')))
  throw new Error("there is no build: run 'make build' first")
rmSync(out, { recursive: true, force: true })
mkdirSync(out, { recursive: true })
for (const name of wanted) {
  console.error(`building ${name} ...`)
  await parts[name]?.()
}
const files = readdirSync(out).sort()
const sums = files.map(
  (file) =>
    `${createHash('sha256')
      .update(readFileSync(join(out, file)))
      .digest('hex')}  ${file}\n`,
)
writeFileSync(join(out, 'SHA256SUMS'), sums.join(''))
for (const file of files) console.log(`${file}: ${(statSync(join(out, file)).size / 2 ** 20).toFixed(1)} MiB`)

function run(command: string, args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd: repositoryRoot,
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr}`)
  return stdout
}

// Builds the container image without a container engine and without a base image: Node's official binary, the libraries
// it is linked against, our build.   node scripts/image.ts [--arch amd64,arm64] [--name NAME:TAG] [--out FILE]
// [--compression 0-9]
import { existsSync, readFileSync, statSync } from 'node:fs'
import { arch } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { cacheDir, repositoryRoot } from '#test/support/index.ts'
import { writeOciArchive } from './image/oci-archive.ts'
import { nativeFiles } from './image/native-files.ts'
import { platformOf } from './image/platform.ts'
import { programFiles } from './image/program-files.ts'
import { pinnedNodeVersion, runtimeFiles } from './image/runtime-files.ts'

const { version } = JSON.parse(readFileSync(join(repositoryRoot, 'package.json'), 'utf8')) as { version: string }

const { values } = parseArgs({
  options: {
    arch: { type: 'string', default: arch() },
    name: { type: 'string', default: `kcp.dev/kcp:v${version}` },
    out: { type: 'string', default: join(repositoryRoot, 'dist', 'image', 'kcp.tar') },
    compression: { type: 'string', default: '6' },
    help: { type: 'boolean', default: false },
  },
})

if (values.help) {
  console.log(
    [
      'usage: node scripts/image.ts [--arch amd64,arm64] [--name NAME:TAG] [--out FILE] [--compression 0-9]',
      '',
      'Writes an OCI image archive: `ctr -n k8s.io images import FILE`, `docker load -i FILE`, `skopeo copy oci-archive:FILE ...`.',
    ].join('\n'),
  )
  process.exit(0)
}
if (!existsSync(join(repositoryRoot, 'dist/src/cli/main.js')))
  throw new Error("there is no build: run 'make build' first")

const program = programFiles(repositoryRoot)
const config = {
  User: '65532:65532',
  WorkingDir: '/tmp',
  Env: ['PATH=/usr/local/bin:/usr/bin:/bin', 'NODE_ENV=production', 'HOME=/tmp'],
  Entrypoint: [
    '/usr/local/bin/node',
    '--max-http-header-size=262144',
    '--disable-warning=ExperimentalWarning',
    '/app/dist/src/cli/main.js',
  ],
}
const nodeVersion = pinnedNodeVersion(repositoryRoot)
const images = values.arch.split(',').map((name) => {
  const platform = platformOf(name.trim())
  console.error(`collecting the files for ${platform.architecture} ...`)
  const fetched = { platform, cacheDir: join(cacheDir(), 'image') }
  const runtime = runtimeFiles({ ...fetched, nodeVersion })
  const native = nativeFiles({ ...fetched, repository: repositoryRoot })
  return { architecture: platform.architecture, layers: [runtime, native, ...program], config }
})
await writeOciArchive(values.out, values.name, images, Number(values.compression))
console.log(`${values.out}: ${values.name}, ${(statSync(values.out).size / 2 ** 20).toFixed(0)} MiB`)

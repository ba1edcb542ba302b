// The list of all components of the program, as a CycloneDX 1.6 document. npm's own command refuses packages that
// `overrides` replaces.
import { readFileSync } from 'node:fs'
import { arch } from 'node:os'
import { join } from 'node:path'
import { nativePackages } from '../image/native-files.ts'

interface Locked {
  readonly name?: string
  readonly version?: string
  readonly integrity?: string
  readonly dev?: boolean
  readonly optional?: boolean
  readonly link?: boolean
}

/** The document, JSON text. */
export function componentsOf(repository: string, nodeVersion: string): string {
  const text = readFileSync(join(repository, 'package-lock.json'), 'utf8')
  const lock = JSON.parse(text) as { name: string; version: string; packages: Readonly<Record<string, Locked>> }
  const packages = Object.entries(lock.packages).filter(
    ([path, { dev = false, optional = false, link = false }]) =>
      path.startsWith('node_modules/') && !dev && !optional && !link,
  )
  const here = arch() === 'x64' ? 'amd64' : 'arm64'
  const native = nativePackages({ repository, platform: { architecture: here } })
  packages.push(...native.map(([path]): [string, Locked] => [path, lock.packages[path] ?? {}]))
  const node = { type: 'platform', name: 'node', version: nodeVersion, purl: `pkg:generic/node@${nodeVersion}` }
  const document = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { type: 'application', name: lock.name, version: lock.version } },
    components: [node, ...packages.map(([path, locked]) => component(repository, path, locked))],
  }
  return `${JSON.stringify(document, null, 2)}\n`
}

function component(repository: string, path: string, { version = '', integrity = '' }: Locked): object {
  const name = path.replace(/^.*node_modules\//, '')
  const text = readFileSync(join(repository, path, 'package.json'), 'utf8')
  const { license } = JSON.parse(text) as { license?: string }
  const [, algorithm, digest] = /^(sha\d+)-(.*)$/.exec(integrity) ?? []
  const hashes =
    digest === undefined
      ? {}
      : {
          hashes: [
            {
              alg: algorithm === 'sha512' ? 'SHA-512' : 'SHA-1',
              content: Buffer.from(digest, 'base64').toString('hex'),
            },
          ],
        }
  return {
    type: 'library',
    name,
    version,
    purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
    ...(license !== undefined && { licenses: [{ expression: license }] }),
    ...hashes,
  }
}

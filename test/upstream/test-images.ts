// The images of the upstream suite's pods, made of programs of this machine: a shell, curl and a web server where the
// published ones have them.
import { createHash } from 'node:crypto'
import { existsSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import {
  agnhostImage,
  cacheDir,
  CertificateAuthority,
  ensurePrograms,
  runCommand,
  writeImageArchive,
  type TarEntry,
} from '#test/support/index.ts'
import { installPackages, systemProgram } from '#test/support/system-packages.ts'

const registry = 'registry.k8s.io/e2e-test-images'

/** Part of the file's name; to be raised when the images change in another way than by their programs. */
const version = 6

const packages = {
  'bind9-dnsutils': ['dig'],
  'busybox-static': ['busybox'],
  curl: ['curl'],
  'netcat-openbsd': ['nc.openbsd'],
}

/** An archive with all of them, built once per version of the programs. */
export async function testImages({ signal }: { signal?: AbortSignal } = {}): Promise<string> {
  await installPackages(packages, { signal })
  const { agnhost, etcd, ...programs } = await ensurePrograms(['agnhost', 'etcd', 'sample-apiserver'], { signal })
  const key = createHash('sha256').update([version, agnhost, etcd, programs['sample-apiserver']].join())
  const file = join(cacheDir(), 'images', `upstream-${key.digest('hex').slice(0, 16)}.tar`)
  if (existsSync(file)) return file
  // Not busybox's own shell: it runs its own nc whatever PATH says, and drops variables like "a.b".
  const shell = [...(await shellLayer()), ...(await withLibraries({ bash: 'bash', printenv: 'printenv' }))]
  // The tests of this image compare the messages of busybox's own shell.
  const busyboxShell: TarEntry[] = [{ path: 'bin/sh', link: 'busybox' }]
  const server = await (
    await CertificateAuthority.create('upstream')
  ).issue({ commonName: 'localhost', hosts: ['localhost'] })
  const agnhostLayers = [
    shell,
    await withLibraries({ curl: 'curl', dig: 'dig', getent: 'getent', nc: 'nc.openbsd' }),
    [
      { path: 'agnhost', file: agnhost, mode: 0o755 },
      { path: 'agnhost-2', link: 'agnhost' },
      { path: 'uploads', directory: true as const },
      { path: 'localhost.crt', content: server.certificate },
      { path: 'localhost.key', content: server.key, mode: 0o644 },
    ],
  ]
  const serve = ['/bin/httpd', '-f', '-h', '/htdocs', '-p', '80']
  await writeImageArchive(file, [
    { tags: [agnhostImage], layers: agnhostLayers, entrypoint: ['/agnhost'], cmd: ['pause'] },
    { tags: [`${registry}/jessie-dnsutils:1.7`], layers: agnhostLayers, entrypoint: ['/agnhost'], cmd: ['pause'] },
    { tags: [`${registry}/busybox:1.37.0-1`], layers: [shell, busyboxShell], entrypoint: [], cmd: ['sh'] },
    {
      tags: [`${registry}/httpd:2.4.38-4`, `${registry}/httpd:2.4.39-4`],
      layers: [shell, page('index.html', '<html><body><h1>It works!</h1></body></html>\n')],
      entrypoint: [],
      cmd: serve,
    },
    {
      tags: [`${registry}/nginx:1.14-4`, `${registry}/nginx:1.15-4`],
      layers: [shell, page('index.html', '<title>Welcome to nginx!</title>\n')],
      entrypoint: [],
      cmd: serve,
    },
    ...['nautilus', 'kitten'].map((name) => ({
      tags: [`${registry}/${name}:1.7`],
      layers: [shell, page('data.json', `{"image": "${name}.jpg"}\n`)],
      entrypoint: [],
      cmd: serve,
    })),
    { tags: [`${registry}/nonroot:1.4`], layers: [shell], entrypoint: [], cmd: ['id', '-u'], user: '1234' },
    {
      tags: [`${registry}/sample-apiserver:1.29.2`],
      layers: [shell, [{ path: 'sample-apiserver', file: programs['sample-apiserver'], mode: 0o755 }]],
      entrypoint: ['/sample-apiserver'],
    },
    {
      tags: ['registry.k8s.io/etcd:3.6.4-0'],
      layers: [shell, [{ path: 'usr/local/bin/etcd', file: etcd, mode: 0o755 }]],
      entrypoint: [],
      cmd: ['/usr/local/bin/etcd'],
    },
  ])
  return file
}

/** Busybox under all of its names, and the users that the tests name. */
export async function shellLayer(): Promise<TarEntry[]> {
  const busybox = systemProgram('busybox')
  const { stdout } = await runCommand(busybox, ['--list'])
  const names = stdout.split('\n').filter((name) => !['', 'busybox', 'sh'].includes(name))
  const users = ['root:x:0:0:root:/root:/bin/sh', 'user-defined-in-image:x:1000:1000::/home:/bin/sh']
  const groups = ['root:x:0:', 'group-defined-in-image:x:50000:user-defined-in-image']
  return [
    { path: 'tmp', directory: true, mode: 0o1777 },
    ...['bin', 'etc', 'root', 'home', 'usr', 'usr/bin', 'usr/local', 'usr/local/bin', 'var', 'run'].map(
      (path): TarEntry => ({ path, directory: true }),
    ),
    { path: 'etc/passwd', content: users.map((line) => `${line}\n`).join('') },
    { path: 'etc/group', content: groups.map((line) => `${line}\n`).join('') },
    { path: 'bin/busybox', file: busybox, mode: 0o755 },
    { path: 'bin/sh', link: '/usr/bin/bash' },
    ...names.map((name): TarEntry => ({ path: `bin/${name}`, link: 'busybox' })),
  ]
}

/**
 * Programs of this machine, by their names in the image, and the libraries that the loader finds for them, at the same
 * paths.
 */
export async function withLibraries(programs: Readonly<Record<string, string>>): Promise<TarEntry[]> {
  const files = Object.values(programs).map(systemProgram)
  const { stdout } = await runCommand('ldd', files)
  const libraries = new Set([...stdout.matchAll(/(\/\S+) \(0x/g)].map(([, library = '']) => library))
  const entry = (file: string, path: string): TarEntry => ({ path, file: realpathSync(file), mode: 0o755 })
  return [
    ...Object.entries(programs).map(([name, program]) => entry(systemProgram(program), `usr/bin/${name}`)),
    ...[...libraries].map((library) => entry(library, library.slice(1))),
  ]
}

const page = (name: string, content: string): TarEntry[] => [
  { path: 'htdocs', directory: true },
  { path: `htdocs/${name}`, content },
]

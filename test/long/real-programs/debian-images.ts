// Container images made of Debian packages, with all that these depend on. Nothing is installed on this machine, and no
// script of a package runs.
import { createHash } from 'node:crypto'
import { existsSync, lstatSync, readdirSync, readlinkSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { cacheDir, ensurePrograms, runCommand, writeImageArchive, type TarEntry } from '#test/support/index.ts'

/** Part of the name of the file; to be raised when the images change in another way than by their packages. */
const version = 5

const tools = ['bash', 'coreutils', 'sed', 'grep', 'gawk', 'procps', 'hostname', 'libc-bin', 'netcat-openbsd', 'curl']

/** By name of the image `example.com/NAME:1`: its packages, besides the tools of a shell. */
const images: Readonly<Record<string, readonly string[]>> = {
  servers: [
    ...['postgresql-15', 'redis-server', 'redis-sentinel', 'nginx-light', 'haproxy', 'memcached'],
    ...['mosquitto', 'mosquitto-clients', 'prometheus', 'nats-server'],
  ],
  java: ['zookeeper', 'default-jre-headless'],
  erlang: ['rabbitmq-server', 'util-linux'],
  mariadb: ['mariadb-server'],
  // Python has SQLite.
  stateful: ['postgresql-15', 'python3', 'python3-psycopg2'],
}

const searchPath = '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin'
const people = [
  'root:x:0:0:root:/root:/bin/bash',
  'app:x:1000:1000:app:/tmp:/bin/bash',
  'nobody:x:65534:65534:nobody:/:/bin/bash',
  '',
]
const groups = ['root:x:0:', 'app:x:1000:', 'nogroup:x:65534:', '']
const etc: Readonly<Record<string, string>> = {
  passwd: people.join('\n'),
  group: groups.join('\n'),
  'nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
}

/** Links that scripts of packages would make. */
const alternatives = { 'bin/sh': '/bin/bash', 'usr/bin/nc': '/bin/nc.openbsd', 'usr/bin/awk': '/usr/bin/gawk' }

/** The archives of all images, made once; image `servers` has etcd and etcdctl, too. */
export async function debianImages(): Promise<string[]> {
  const archives: string[] = []
  // One after the other: apt has a lock.
  for (const name of Object.keys(images)) if (name !== 'stateful') archives.push(await debianImage(name))
  return archives
}

/** The archive of one image. */
export async function debianImage(name: string, packages = [...tools, ...(images[name] ?? [])]): Promise<string> {
  const { etcd, etcdctl } = await ensurePrograms(['etcd', 'etcdctl'])
  const urls = await closure(packages)
  const key = createHash('sha256').update(JSON.stringify([version, urls.map(({ file }) => file), etcd, etcdctl, etc]))
  const archive = join(cacheDir(), 'images', `debian-${name}-${key.digest('hex').slice(0, 16)}.tar`)
  if (existsSync(archive)) return archive
  await mkdir(join(cacheDir(), 'images'), { recursive: true })
  const work = await mkdtemp(join(cacheDir(), 'images', '.debian-'))
  try {
    const root = join(work, 'root')
    await mkdir(join(work, 'archives', 'partial'), { recursive: true })
    await mkdir(root)
    await runCommand('apt-get', ['install', '-y', '--download-only', ...aptOptions(work), ...packages], {
      timeoutMs: 600_000,
    })
    for (const file of await readdir(join(work, 'archives')))
      if (file.endsWith('.deb')) await runCommand('dpkg-deb', ['-x', join(work, 'archives', file), root])
    const layer: TarEntry[] = [
      ...entriesOf(root),
      ...Object.entries(etc).map(([file, content]) => ({ path: `etc/${file}`, content })),
      ...Object.entries(alternatives).map(([path, link]) => ({ path, link })),
      ...['tmp', 'run', 'var/run', 'var/tmp'].map((path) => ({ path, directory: true as const, mode: 0o1777 })),
      ...(name === 'servers' ? [program('etcd', etcd), program('etcdctl', etcdctl)] : []),
    ]
    await writeImageArchive(archive, [
      { tags: [`example.com/${name}:1`], layers: [layer], entrypoint: [], cmd: ['bash'], env: { PATH: searchPath } },
    ])
  } finally {
    await rm(work, { recursive: true, force: true })
  }
  return archive
}

function program(name: string, file: string): TarEntry {
  return { path: `usr/local/bin/${name}`, file, mode: 0o755 }
}

/** Makes apt act as on a system without packages: it then resolves everything that the packages depend on. */
function aptOptions(archives?: string): string[] {
  const options = ['Dir::State::status=/dev/null', 'APT::Sandbox::User=root', 'APT::Install-Recommends=false']
  return [...options, ...(archives === undefined ? [] : [`Dir::Cache::archives=${archives}/archives`])].flatMap(
    (one) => ['-o', one],
  )
}

/** The files of the packages and all they depend on, with their versions. */
async function closure(packages: readonly string[]): Promise<{ file: string }[]> {
  const list = async (): Promise<string> =>
    (await runCommand('apt-get', ['install', '-y', '--print-uris', ...aptOptions(), ...packages])).stdout
  const text = await list().catch(async () => {
    await runCommand('apt-get', ['update'], { timeoutMs: 300_000 })
    return await list()
  })
  return [...text.matchAll(/^'[^']+' (\S+\.deb) /gm)]
    .map(([, file = '']) => ({ file }))
    .sort((a, b) => (a.file < b.file ? -1 : 1))
}

/** Files that the programs do not need; libLLVM is for queries that PostgreSQL compiles. */
const left = /^usr\/share\/(?:doc|man|locale|info|lintian|icons|bug|maven-repo)\/|libLLVM/

function entriesOf(root: string, folder = ''): TarEntry[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry): TarEntry[] => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`
    const file = join(root, path)
    if (left.test(`${path}/`)) return []
    if (entry.isSymbolicLink()) return [{ path, link: readlinkSync(file) }]
    if (entry.isDirectory()) return [{ path, directory: true, mode: 0o755 }, ...entriesOf(root, path)]
    return entry.isFile() ? [{ path, file, mode: lstatSync(file).mode & 0o777 }] : []
  })
}

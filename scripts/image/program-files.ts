// Our program as the image has it: the build, its packages, and the few system files that Node looks for.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { TarEntry } from '#test/support/tar.ts'

interface LockFile {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean; readonly optional?: boolean }>>
}

/** Folders of node_modules that the program needs when it runs: what package-lock.json does not mark as `dev`. */
function productionPackages(repository: string): string[] {
  const lock = JSON.parse(readFileSync(join(repository, 'package-lock.json'), 'utf8')) as LockFile
  return Object.entries(lock.packages)
    .filter(([path, { dev = false, optional = false }]) => path !== '' && !dev && !optional)
    .map(([path]) => path)
}

/** Layer by layer, the ones that change least first: system files, packages, the build. */
export function programFiles(repository: string): TarEntry[][] {
  const system: TarEntry[] = [
    { path: 'tmp', directory: true, mode: 0o1777 },
    { path: 'etc/passwd', content: 'root:x:0:0:root:/:/sbin/nologin\nkcp:x:65532:65532:kcp:/tmp:/sbin/nologin\n' },
    { path: 'etc/group', content: 'root:x:0:\nkcp:x:65532:\n' },
    { path: 'etc/nsswitch.conf', content: 'hosts: files dns\n' },
  ]
  const packages = productionPackages(repository).flatMap((path) => filesBelow(repository, path))
  const build = ['dist/src', 'dist/console', 'dist/openapi', 'package.json', 'LICENSE'].flatMap((path) =>
    filesBelow(repository, path),
  )
  return [system, packages, build]
}

/** Files below a path of the repository, at the same path below /app; nested node_modules have entries of their own. */
function filesBelow(repository: string, path: string): TarEntry[] {
  const file = join(repository, path)
  if (!statSync(file).isDirectory()) return [{ path: join('app', path), file, mode: 0o644 }]
  return readdirSync(file)
    .filter((name) => name !== 'node_modules' && !name.endsWith('.test.js') && !name.endsWith('.d.ts'))
    .sort()
    .flatMap((name) => filesBelow(repository, join(path, name)))
}

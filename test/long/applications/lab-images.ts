// The images that play the applications: one program under all the names that their manifests run.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { cacheDir, ensurePrograms, writeImageArchive, type ImageSpec, type TarEntry } from '#test/support/index.ts'
import { shellLayer, withLibraries } from '#test/upstream/test-images.ts'
import { installPackages } from '#test/support/system-packages.ts'
import { busyboxImage, standInProgram, standIns } from './lab-version.ts'

/** An archive with all of them, made once per version of the program and set of names. */
export async function labImages(programs: ReadonlySet<string>): Promise<string> {
  await installPackages({ 'busybox-static': ['busybox'], 'netcat-openbsd': ['nc.openbsd'] })
  const { 'stand-in': program } = await ensurePrograms(['stand-in'])
  const names = [...new Set(['sh', '/bin/sh', '/bin/bash', ...programs])].sort()
  const key = createHash('sha256').update(JSON.stringify([2, program, names, standIns, busyboxImage]))
  const file = join(cacheDir(), 'images', `applications-${key.digest('hex').slice(0, 16)}.tar`)
  if (existsSync(file)) return file
  const layer: TarEntry[] = [
    { path: 'tmp', directory: true, mode: 0o1777 },
    { path: 'etc', directory: true },
    { path: 'etc/passwd', content: 'root:x:0:0:root:/:/bin/sh\n' },
    { path: standInProgram.slice(1), file: program, mode: 0o755 },
    ...names
      .map((name) => (name.includes('/') ? name : `/usr/local/bin/${name}`))
      .filter((path) => path.startsWith('/') && path !== standInProgram)
      .map((path) => ({ path: path.slice(1), link: standInProgram })),
  ]
  await writeImageArchive(file, [
    ...standIns.map((tag): ImageSpec => ({
      tags: [tag],
      layers: [layer],
      entrypoint: [standInProgram],
      env: { STAND_IN_ROLE: tag.includes(':once') ? 'once' : 'serve' },
      ...(tag.endsWith('-nonroot') && { user: '65532' }),
    })),
    // Debian's busybox has an nc without -z.
    {
      tags: [busyboxImage],
      layers: [await shellLayer(), await withLibraries({ bash: 'bash', nc: 'nc.openbsd' })],
      entrypoint: [],
      cmd: ['sh'],
    },
  ])
  return file
}

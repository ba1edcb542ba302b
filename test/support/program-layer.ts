// Programs of this machine as files of an image.

import { realpathSync } from 'node:fs'
import { runCommand } from './command.ts'
import { type TarEntry } from './tar.ts'

/** These programs, by their paths, and the libraries that they load. */
export async function programLayer(programs: readonly string[]): Promise<TarEntry[]> {
  const paths = new Set(programs)
  for (const program of programs) {
    const { stdout } = await runCommand('ldd', [program])
    for (const [, library = ''] of stdout.matchAll(/(?:=> |^\s*)(\/\S+) \(/gm)) paths.add(library)
  }
  return [...paths].map((path) => ({ path: path.slice(1), file: realpathSync(path), mode: 0o755 }))
}

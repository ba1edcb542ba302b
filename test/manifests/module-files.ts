// Reads files of other projects from their Go modules, pinned by test/programs/manifests. None of them is committed.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { repositoryRoot, runCommand } from '#test/support/index.ts'

/**
 * The folders of all modules that a folder of test/programs pins, by module path; downloads those that are not in Go's module cache. `go mod
 * download` verifies downloads against go.sum.
 */
export async function moduleFolders(programs = 'manifests'): Promise<ReadonlyMap<string, string>> {
  const moduleDir = join(repositoryRoot, 'test', 'programs', programs)
  const pinned = [...readFileSync(join(moduleDir, 'go.mod'), 'utf8').matchAll(/^\t(\S+) (v\S+)$/gm)]
  const { stdout } = await runCommand(
    'go',
    ['mod', 'download', '-json', ...pinned.map(([, path, v]) => `${path}@${v}`)],
    {
      cwd: moduleDir,
      env: { GOWORK: 'off', GOFLAGS: '-mod=readonly' },
      timeoutMs: 10 * 60_000,
    },
  )
  // The output is a sequence of JSON objects.
  const found = JSON.parse(`[${stdout.replaceAll(/^\}\n\{/gm, '},{')}]`) as {
    Path: string
    Dir?: string
    Error?: string
  }[]
  return new Map(
    found.map(({ Path, Dir, Error: problem }) => {
      if (Dir === undefined || !existsSync(Dir)) throw new Error(`could not have module "${Path}": ${problem}`)
      return [Path, Dir] as const
    }),
  )
}

// Copies the Kubernetes shell tests of kubectl (test/cmd) out of the Go module cache, adapted so that they can run.
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ensurePrograms, repositoryRoot, runCommand, type ProgramName } from '#test/support/index.ts'

/** The files that the functions read, relative to the module. */
const parts = [
  'hack/lib',
  'hack/testdata',
  'test/cmd',
  'test/e2e/testing-manifests',
  'test/fixtures',
  'third_party/forked/shell2junit',
]

export interface WorkingCopy {
  readonly dir: string
  /** All functions in the order in which upstream calls them. */
  readonly functions: readonly string[]
}

/** Name for the assertions that upstream makes between its functions. */
export const betweenFunctions = 'between_functions'

export interface Adaptation {
  readonly server: string
  readonly token: string
  /** Address of the Service `kubernetes`: the first of the range. */
  readonly serviceIp: string
}

/**
 * Creates the copy in `dir`, replacing an old one. The scripts assume a server at an address without a path, a fixed
 * token, a Service range and files in /tmp: all are replaced.
 */
export async function makeWorkingCopy(
  dir: string,
  adaptation: Adaptation,
  programs: readonly ProgramName[] = ['kubectl', 'kubectl-convert'],
): Promise<WorkingCopy> {
  const module = await moduleFolder()
  rmSync(dir, { recursive: true, force: true })
  for (const part of parts) {
    // The files of the module cache are read-only.
    cpSync(join(module, part), join(dir, part), { recursive: true })
    await runCommand('chmod', ['-R', 'u+w', join(dir, part)])
  }
  const scripts = join(dir, 'test', 'cmd')
  const data = join(dir, 'hack', 'testdata')
  const files = [scripts, data].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  )
  for (const file of files.filter((name) => /\.(sh|yaml|json)$/.test(name))) {
    writeFileSync(file, adapted(readFileSync(file, 'utf8'), { ...adaptation, tmp: join(dir, 'tmp') }))
  }
  // Go modules do not keep file modes.
  await runCommand('chmod', ['-R', '+x', join(dir, 'test/fixtures/pkg/kubectl/plugins')])
  mkdirSync(join(dir, 'tmp'))
  const bin = join(dir, '_output', 'bin')
  mkdirSync(bin, { recursive: true })
  for (const [name, path] of Object.entries(await ensurePrograms(programs))) symlinkSync(path, join(bin, name))
  return { dir, functions: functionsOf(readFileSync(join(scripts, 'legacy-script.sh'), 'utf8')) }
}

/** A script with these values instead of upstream's own. */
export function adapted(
  script: string,
  { server, token, serviceIp, tmp }: Adaptation & { readonly tmp: string },
): string {
  return script
    .replaceAll(/https:\/\/(127\.0\.0\.1|localhost):\$\{SECURE_API_PORT\}/g, () => server)
    .replaceAll('admin-token', () => token)
    .replaceAll(/\b10\.0\.0\.(?=\d)/g, () => serviceIp.replace(/\d+$/, ''))
    .replaceAll(/(?<![\w.}])\/tmp\//g, () => `${tmp}/`)
}

/** The functions that upstream's script calls, and its assertions between them. */
export function functionsOf(script: string): string[] {
  const called = [...script.matchAll(/^ +record_command (run_\w+)$/gm)].map(([, name]) => name ?? '')
  return [...new Set(called), betweenFunctions]
}

async function moduleFolder(): Promise<string> {
  const cwd = join(repositoryRoot, 'test', 'programs', 'kubernetes')
  const env = { GOWORK: 'off', GOFLAGS: '-mod=readonly' }
  const options = { cwd, env, timeoutMs: 10 * 60_000 }
  await runCommand('go', ['mod', 'download', 'k8s.io/kubernetes'], options)
  const { stdout } = await runCommand('go', ['list', '-m', '-f', '{{.Dir}}', 'k8s.io/kubernetes'], options)
  const dir = stdout.trim()
  if (dirname(dir) === dir || dir === '') throw new Error('the module k8s.io/kubernetes is not in the module cache')
  return dir
}

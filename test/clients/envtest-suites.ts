// Suites of projects that start a control plane by envtest of controller-runtime, run with an asset folder of ours or of
// upstream's programs.
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { moduleFolders } from '#test/manifests/module-files.ts'
import { ensurePrograms, repositoryRoot, runCommand } from '#test/support/index.ts'

/**
 * The folder of a package, relative to the folder of its module: suites read files beside them. `skip`: a test that
 * fails now and then with upstream's programs, too.
 */
interface Suite {
  readonly module: string
  readonly folder: string
  readonly skip?: string
}

export const envtestSuites = {
  'controller-runtime-client': { module: 'sigs.k8s.io/controller-runtime', folder: 'pkg/client' },
  'controller-runtime-envtest': { module: 'sigs.k8s.io/controller-runtime', folder: 'pkg/envtest' },
  'flux-ssa': { module: 'github.com/fluxcd/pkg/ssa', folder: '.', skip: 'TestWaitForSet_JobWithTTL' },
  'cert-controller': { module: 'github.com/open-policy-agent/cert-controller', folder: 'pkg/rotator' },
} as const satisfies Record<string, Suite>

export type EnvtestSuite = keyof typeof envtestSuites

/** Our asset folder. */
export const ourAssets = join(repositoryRoot, 'bin/envtest')

/** A folder with the real programs, for the length of the call. */
export async function withRealAssets<T>(use: (assets: string) => Promise<T>): Promise<T> {
  const programs = await ensurePrograms(['kube-apiserver', 'etcd', 'kubectl'])
  const folder = mkdtempSync(join(tmpdir(), 'kcp-assets-'))
  try {
    for (const [name, path] of Object.entries(programs)) symlinkSync(path, join(folder, name))
    return await use(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export interface SuiteResult {
  readonly code: number
  /** Failed tests, with what the suite said at the end. */
  readonly failures: string
  /** `Ran N of M Specs` of Ginkgo, or the number of passed Go tests. */
  readonly summary: string
}

/** Runs the suite with these assets. */
export async function runSuite(name: EnvtestSuite, assets: string): Promise<SuiteResult> {
  const { module, folder, skip }: Suite = envtestSuites[name]
  const programs = await ensurePrograms([name])
  const home = (await moduleFolders('envtest')).get(module)
  if (home === undefined) throw new Error(`test/programs/envtest does not pin ${module}`)
  const { code, stdout, stderr } = await runCommand(
    programs[name],
    ['-test.v', '-test.timeout=20m', ...(skip === undefined ? [] : [`-test.skip=^${skip}$`])],
    {
      cwd: join(home, folder),
      env: { KUBEBUILDER_ASSETS: assets },
      expectCode: 'any',
      timeoutMs: 20 * 60_000,
    },
  )
  const lines = stdout.split('\n')
  const specs = /Ran (\d+) of \d+ Specs[^\n]*\n[^\n]*/.exec(stdout)?.[0].replace(/ in [\d.]+ seconds/, '')
  const passed = lines.filter((line) => /^\s*--- PASS/.test(line)).length
  const failed = lines.filter((line) => /^\s*--- FAIL|\[FAIL\]|\[PANICKED\]|\[TIMEDOUT\]/.test(line))
  return {
    code,
    failures: [...new Set(failed)].join('\n') + stderr.slice(-2000),
    summary: specs ?? `${passed} tests passed`,
  }
}

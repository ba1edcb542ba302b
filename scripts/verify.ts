// Runs all static checks one after the other; each failure names the command that repairs it.   node scripts/verify.ts
// [--help]
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
const bin = (name: string): string => join(root, 'node_modules/.bin', name)

/** With their results of the last run here, the slow checks take seconds. */
const cache = (name: string): string => `node_modules/.cache/${name}`

interface Check {
  readonly name: string
  readonly command: readonly string[]
  readonly repair: string
}

const checks: readonly Check[] = [
  {
    name: 'types',
    // The native compiler. Package `typescript` is the one with an API, which typescript-eslint needs.
    command: [
      ...[process.execPath, 'node_modules/typescript-7/bin/tsc', '-p', 'tsconfig.json'],
      ...['--incremental', '--tsBuildInfoFile', cache('types.tsbuildinfo')],
    ],
    repair: 'mend the code',
  },
  {
    name: 'console',
    // Its own project: the pages have the types of a browser.
    command: [process.execPath, 'node_modules/typescript-7/bin/tsc', '-p', 'console/tsconfig.json'],
    repair: 'mend the code',
  },
  {
    name: 'site',
    command: [
      process.execPath,
      'node_modules/typescript-7/bin/tsc',
      '-p',
      'scripts/documents/site/client/tsconfig.json',
    ],
    repair: 'mend the code',
  },
  {
    name: 'lint',
    // A changed type can alter the result for a file that did not change: a clean clone, as in CI, finds that.
    command: [bin('eslint'), '--cache', '--cache-strategy', 'content', '--cache-location', cache('eslint'), '.'],
    repair: 'npx eslint --fix .',
  },
  {
    name: 'format',
    command: [
      ...[bin('prettier'), '--check', '--log-level', 'warn'],
      ...['--cache', '--cache-strategy', 'content', '--cache-location', cache('format'), '.'],
    ],
    repair: 'npm run format',
  },
  {
    name: 'imports',
    command: [process.execPath, 'scripts/verify-imports.ts'],
    repair: 'move the code, or a row of scripts/imports/rules.ts',
  },
  {
    name: 'unused',
    command: [bin('knip'), '--no-progress', '--cache', '--cache-location', cache('knip')],
    repair: 'delete what nobody uses',
  },
  { name: 'manifests', command: [process.execPath, 'scripts/manifests.ts', '--check'], repair: 'make manifests' },
  {
    name: 'kustomize',
    command: [process.execPath, 'scripts/kustomize-base.ts', '--check'],
    repair: 'make manifests',
  },
  { name: 'benchmarks', command: [process.execPath, 'bench/page.ts', '--check'], repair: 'node bench/page.ts' },
  {
    name: 'reference',
    command: [process.execPath, 'scripts/documents/write-reference.ts', '--check'],
    repair: 'make reference',
  },
  { name: 'generated', command: [process.execPath, 'scripts/generate.ts', '--check'], repair: 'make generate' },
]

if (process.argv.includes('--help')) {
  console.log(
    `usage: node scripts/verify.ts [${checks.map(({ name }) => name).join('|')} ...]\nRuns the static checks (all, or those named).`,
  )
  process.exit(0)
}
const wanted = process.argv.slice(2)
const failed: string[] = []
for (const { name, command, repair } of checks) {
  if (wanted.length > 0 && !wanted.includes(name)) continue
  const started = performance.now()
  const [program = '', ...args] = command
  if (!existsSync(program)) throw new Error(`${program} is missing: run 'make install'`)
  const { status } = spawnSync(program, args, { cwd: root, stdio: 'inherit' })
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  console.error(`verify ${name}: ${status === 0 ? 'ok' : `FAILED (repair: ${repair})`} in ${seconds} s`)
  if (status !== 0) failed.push(name)
}
process.exitCode = failed.length === 0 ? 0 : 1

// Regenerates every table that is derived from Kubernetes.   node scripts/generate.ts [--check] [--help]
// With --check nothing is changed: a difference is named and the exit code is 1. Requires the go command.
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')

interface Step {
  readonly command: readonly string[]
  /** The files it writes, relative to the project's root. */
  readonly outputs: readonly string[]
}

const tables = 'src/virtualapi/kinds/resources/generated'
const typedTables = 'src/virtualapi/kinds/resources/typed/generated'
const steps: readonly Step[] = [
  {
    command: [process.execPath, 'scripts/generate/kubernetes-facts.ts'],
    outputs: [
      ...['resources', 'schemas', 'protobuf', 'enums', 'table-columns'].map((name) => `${tables}/${name}.json`),
      'test/vectors/protobuf.json',
      'test/vectors/table.json',
    ],
  },
  {
    command: ['bash', 'scripts/generate/bootstrap-objects.sh'],
    outputs: ['src/virtualapi/catalog/bootstrap/generated/bootstrap-objects.json'],
  },
  {
    command: ['bash', 'scripts/generate/go-tables.sh'],
    outputs: ['go-types', 'internal-types'].map((name) => `${typedTables}/${name}.json`),
  },
]

function main(args: readonly string[]): void {
  if (args.includes('--help')) {
    console.log(
      'usage: node scripts/generate.ts [--check]\nRegenerates the tables of built-in kinds, or only compares.',
    )
    return
  }
  const stale = steps.flatMap((step) => run(step, { check: args.includes('--check') }))
  if (stale.length === 0) return
  console.error(`not what Kubernetes' sources give: ${stale.join(', ')}\nrepair with: make generate`)
  process.exitCode = 1
}

/** Runs a step; with `check`, restores changed files and returns their names. */
function run({ command, outputs }: Step, { check }: { check: boolean }): string[] {
  const before = new Map(outputs.map((path) => [path, readText(path)]))
  const [program = '', ...args] = command
  const { status, error } = spawnSync(program, args, { cwd: root, stdio: 'inherit' })
  if (status !== 0) throw new Error(`${command.join(' ')} failed`, { cause: error })
  if (!check) return []
  const changed = outputs.filter((path) => readText(path) !== before.get(path))
  for (const path of changed) {
    const text = before.get(path)
    if (text !== undefined) writeFileSync(join(root, path), text)
  }
  return changed
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(join(root, path), 'utf8')
  } catch {
    return undefined
  }
}

main(process.argv.slice(2))

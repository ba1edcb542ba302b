// Writes facts about Kubernetes as tables: resources and schemas from its published documents, protobuf layouts, table
// columns and test vectors from its Go types. Called by `make generate`.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { kubernetesModuleDir, root } from './kubernetes-module.ts'
import { readResources } from './resource-table.ts'
import { readSchemas } from './schema-table.ts'

const generated = 'src/virtualapi/kinds/resources/generated'
const tableCorpus = join(root, 'test/vectors/table-corpus.json')

/** The output file of each part of the Go program. */
const fromGo: Record<string, string> = {
  'protobuf.json': `${generated}/protobuf.json`,
  'enums.json': `${generated}/enums.json`,
  'table-columns.json': `${generated}/table-columns.json`,
  'protobuf-vectors.json': 'test/vectors/protobuf.json',
  'table-vectors.json': 'test/vectors/table.json',
}

function generate(): Map<string, string> {
  const files = new Map<string, string>()
  const module = kubernetesModuleDir()
  files.set(`${generated}/resources.json`, lines(readResources(module)))
  files.set(`${generated}/schemas.json`, lines(readSchemas(module)))
  const out = mkdtempSync(join(tmpdir(), 'kcp-generate-'))
  try {
    execFileSync('go', ['run', '.', '-out', out, '-table-corpus', tableCorpus], {
      cwd: join(root, 'scripts/generate/go'),
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    for (const [name, path] of Object.entries(fromGo))
      files.set(path, lines(JSON.parse(readFileSync(join(out, name), 'utf8'))))
  } finally {
    rmSync(out, { recursive: true })
  }
  return files
}

/** JSON with one line per entry at the second level: compact, with readable diffs. Keys of both levels are sorted. */
function lines(value: unknown): string {
  return `${section(value, 2)}\n`
}

function section(value: unknown, levels: number): string {
  if (levels === 0 || typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[\n${value.map((item) => JSON.stringify(item)).join(',\n')}\n]`
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{\n${entries.map(([key, item]) => `${JSON.stringify(key)}:${section(item, levels - 1)}`).join(',\n')}\n}`
}

function main(): void {
  for (const [path, text] of generate()) {
    const file = join(root, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
}

main()

// What the built program needs besides JavaScript: the generated tables, and Kubernetes' own OpenAPI documents with their texts, for
// `kubectl explain`. The documents and their licence come from the pinned Go module; without a Go command they are left out,
// and the program makes documents without texts. `node scripts/generate/build-assets.ts`, after tsc.
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { kubernetesModuleDir, root } from './kubernetes-module.ts'
import { stableGroupVersions } from './resource-table.ts'
import { kubernetesVersion } from '../../src/virtualapi/discovery/version-info.ts'

const out = join(root, 'dist/openapi/v3')

function copyTables(): void {
  for (const file of globSync('src/**/generated/*.json', { cwd: root }))
    if (!file.endsWith('vectors.json')) cpSync(join(root, file), join(root, 'dist', file))
}

function writeDocuments(module: string): void {
  const documents: Record<string, { file: string; hash: string }> = {}
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out, { recursive: true })
  for (const { group, version } of stableGroupVersions(module)) {
    const key = group === '' ? `api/${version}` : `apis/${group}/${version}`
    const name = key.replaceAll('/', '__')
    const text = readFileSync(join(module, 'api/openapi-spec/v3', `${name}_openapi.json`), 'utf8')
    const body = JSON.stringify(JSON.parse(text))
    documents[key] = { file: `${name}.json.gz`, hash: createHash('sha512').update(body).digest('hex').toUpperCase() }
    writeFileSync(join(out, `${name}.json.gz`), gzipSync(body, { level: 9 }))
  }
  cpSync(join(module, 'LICENSE'), join(out, 'LICENSE'))
  // Last: without it the directory does not count.
  writeFileSync(join(out, 'index.json'), JSON.stringify({ version: kubernetesVersion, documents }))
  console.log(`dist/openapi/v3: ${Object.keys(documents).length} documents`)
}

function main(): void {
  copyTables()
  let module: string
  try {
    module = kubernetesModuleDir()
  } catch (error) {
    console.warn(`no OpenAPI texts: ${error instanceof Error ? error.message : String(error)}`)
    return
  }
  writeDocuments(module)
}

main()

// What the built program needs besides JavaScript: the generated tables, and Kubernetes' own OpenAPI documents with their texts, for
// `kubectl explain`. The documents and their licence come from the pinned Go module; without a Go command they are left out,
// and the program makes documents without texts. `node scripts/generate/build-assets.ts`, after tsc.
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { kubernetesModuleDir, root } from './kubernetes-module.ts'
import { writeSwagger } from './openapi-v2.ts'
import { stableGroupVersions } from './resource-table.ts'
import type { JsonObject } from '../../src/apimachinery/meta/index.ts'
import { withEnums } from '../../src/virtualapi/discovery/openapi-definitions.ts'
import { readGenerated } from '../../src/virtualapi/registry/generated-facts.ts'
import { kubernetesVersion } from '../../src/virtualapi/discovery/version-info.ts'

const out = join(root, 'dist/openapi/v3')

function copyTables(): void {
  for (const file of globSync('src/**/generated/*.json', { cwd: root }))
    if (!file.endsWith('vectors.json')) cpSync(join(root, file), join(root, 'dist', file))
}

function writeDocuments(module: string): void {
  const enums = readGenerated('enums') as Record<string, Record<string, string[]>>
  const documents: Record<string, { file: string; hash: string }> = {}
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out, { recursive: true })
  for (const { group, version } of stableGroupVersions(module)) {
    const key = group === '' ? `api/${version}` : `apis/${group}/${version}`
    const name = key.replaceAll('/', '__')
    const text = readFileSync(join(module, 'api/openapi-spec/v3', `${name}_openapi.json`), 'utf8')
    const document = JSON.parse(text, withoutCbor) as {
      info: { version: string }
      components: { schemas: Record<string, JsonObject> }
    }
    for (const [name, schema] of Object.entries(document.components.schemas))
      withEnums(schema, enums[name.replace(/^io\.k8s\./, '')] ?? {})
    document.info.version = '1.34'
    const body = JSON.stringify(document)
    documents[key] = { file: `${name}.json.gz`, hash: createHash('sha512').update(body).digest('hex').toUpperCase() }
    writeFileSync(join(out, `${name}.json.gz`), gzipSync(body, { level: 9 }))
  }
  cpSync(join(module, 'LICENSE'), join(out, 'LICENSE'))
  // Last: without it the directory does not count.
  writeFileSync(join(out, 'index.json'), JSON.stringify({ version: kubernetesVersion, documents }))
  console.log(`dist/openapi/v3: ${Object.keys(documents).length} documents`)
}

/** The published documents have CBOR switched on; a server by default has not, and nor have we. */
function withoutCbor(key: string, value: unknown): unknown {
  return /^application\/([a-z-]+\+)?cbor(-seq)?$/.test(key) ? undefined : value
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
  writeSwagger(module, join(root, 'dist/openapi/v2'))
}

main()

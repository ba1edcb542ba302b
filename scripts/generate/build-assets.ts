// Adds to the built program what it needs besides JavaScript: the generated tables, and Kubernetes' own OpenAPI
// documents with descriptions, for `kubectl explain`. The documents and their licence come from the pinned Go module;
// without a Go command they are left out, and the program generates documents without descriptions. Run `node
// scripts/generate/build-assets.ts` after the bundles.
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { enumTexts, withEnumTexts } from './enum-texts.ts'
import { kubernetesModuleDir, root } from './kubernetes-module.ts'
import { writeSwagger } from './openapi-v2.ts'
import { servedGroupVersions } from './resource-table.ts'
import { isJsonObject, type JsonObject } from '#apimachinery/meta/index.ts'
import { commonTextsFile, type CommonTexts } from '#virtualapi/discovery/common-descriptions.ts'
import { withEnums } from '#virtualapi/discovery/openapi-definitions.ts'
import { readGenerated } from '#virtualapi/kinds/resources/generated-facts.ts'
import { kubernetesVersion } from '#virtualapi/discovery/version-info.ts'

const out = join(root, 'dist/openapi/v3')

function copyTables(): void {
  for (const file of globSync('src/**/generated/*.json', { cwd: root }))
    cpSync(join(root, file), join(root, 'dist', file))
}

function writeDocuments(module: string): void {
  const enums = readGenerated('enums') as Record<string, Record<string, string[]>>
  const texts = enumTexts(module)
  const documents: Record<string, { file: string; hash: string }> = {}
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out, { recursive: true })
  for (const { group, version } of servedGroupVersions(module)) {
    const key = group === '' ? `api/${version}` : `apis/${group}/${version}`
    const name = key.replaceAll('/', '__')
    const text = readFileSync(join(module, 'api/openapi-spec/v3', `${name}_openapi.json`), 'utf8')
    const document = JSON.parse(text, withoutCbor) as {
      info: { version: string }
      components: { schemas: Record<string, JsonObject> }
    }
    for (const [name, schema] of Object.entries(document.components.schemas))
      withEnumTexts(withEnums(schema, enums[name.replace(/^io\.k8s\./, '')] ?? {}), texts)
    document.info.version = '1.34'
    const body = JSON.stringify(document)
    documents[key] = { file: `${name}.json.gz`, hash: createHash('sha512').update(body).digest('hex').toUpperCase() }
    writeFileSync(join(out, `${name}.json.gz`), gzipSync(body, { level: 9 }))
    if (key === 'api/v1') writeCommonTexts(document.components.schemas)
  }
  cpSync(join(module, 'LICENSE'), join(out, 'LICENSE'))
  // Written last: without it the directory is ignored.
  writeFileSync(join(out, 'index.json'), JSON.stringify({ version: kubernetesVersion, documents }))
  console.log(`dist/openapi/v3: ${Object.keys(documents).length} documents`)
}

/** The descriptions of apiVersion, kind and metadata for custom kinds: Kubernetes uses those of pods. */
function writeCommonTexts(schemas: Record<string, JsonObject>): void {
  const textOf = (kind: string, field: string): string => {
    const properties = schemas[`io.k8s.api.core.v1.${kind}`]?.['properties']
    const property = isJsonObject(properties) ? properties[field] : undefined
    if (!isJsonObject(property) || typeof property['description'] !== 'string')
      throw new Error(`${kind}.${field} has no text`)
    return property['description']
  }
  const common = Object.entries(schemas).filter(([name]) => name.startsWith('io.k8s.apimachinery.'))
  const texts: CommonTexts = {
    apiVersion: textOf('Pod', 'apiVersion'),
    kind: textOf('Pod', 'kind'),
    metadata: textOf('Pod', 'metadata'),
    items: textOf('PodList', 'items').replace('pods', 'PLURAL'),
    listMetadata: textOf('PodList', 'metadata'),
    definitions: Object.fromEntries(common),
  }
  writeFileSync(join(out, commonTextsFile), JSON.stringify({ version: kubernetesVersion, ...texts }))
}

/** The published documents include CBOR; a server does not serve it by default, and neither do we. */
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

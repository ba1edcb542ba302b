// Descriptions of the fields that every kind has, custom ones included: Kubernetes' own descriptions if the build has
// put them into dist.
import { parseJsonText } from '#apimachinery/json/index.ts'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { kubernetesVersion } from './version-info.ts'

/**
 * Descriptions of the common fields of objects and lists, and the definitions to which these fields and the operations
 * refer.
 */
export interface CommonTexts {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: string
  /** `PLURAL` is a placeholder for the resource. */
  readonly items: string
  readonly listMetadata: string
  readonly definitions: Readonly<Record<string, JsonObject>>
}

/** Name of the file beside the documents of OpenAPI v3. */
export const commonTextsFile = 'common.json'

/** The descriptions without a build. */
const defaultTexts: CommonTexts = {
  apiVersion: 'APIVersion defines the group and the version of the schema that this object is written in.',
  kind: 'Kind is the name of the type of this object.',
  metadata: "Standard object's metadata: what every object has.",
  items: 'List of PLURAL.',
  listMetadata: 'Metadata of the list.',
  definitions: {},
}

let known: CommonTexts | undefined

/** The texts that `make build` wrote, or else our own. Cached. */
export function commonDescriptions(): CommonTexts {
  return (known ??= read() ?? defaultTexts)
}

function read(): CommonTexts | undefined {
  // Relative to dist/src/virtualapi/discovery, then to src/virtualapi/discovery of a checkout.
  for (const place of ['../../../openapi/v3/', '../../../dist/openapi/v3/']) {
    const file = fileURLToPath(new URL(place + commonTextsFile, import.meta.url))
    if (!existsSync(file)) continue
    const built = parseJsonText(readFileSync(file, 'utf8')) as unknown as CommonTexts & { version: string }
    if (built.version === kubernetesVersion) return built
  }
  return undefined
}

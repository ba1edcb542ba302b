// What Kubernetes' own documents say of the parts that every kind has, custom ones too: read from where the build put it.
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { JsonObject } from '../../apimachinery/meta/index.ts'
import { kubernetesVersion } from './version-info.ts'

/** Texts of an object's and a list's first fields, and the definitions of what they and the operations refer to. */
export interface CommonTexts {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: string
  /** `PLURAL` stands for the resource. */
  readonly items: string
  readonly listMetadata: string
  readonly definitions: Readonly<Record<string, JsonObject>>
}

/** Beside the documents of OpenAPI v3. */
export const commonTextsFile = 'common.json'

/** Where there is no build: in our words. */
const ours: CommonTexts = {
  apiVersion: 'APIVersion defines the group and the version of the schema that this object is written in.',
  kind: 'Kind is the name of the type of this object.',
  metadata: "Standard object's metadata: what every object has.",
  items: 'List of PLURAL.',
  listMetadata: 'Metadata of the list.',
  definitions: {},
}

let known: CommonTexts | undefined

/** Kubernetes' texts as `make build` leaves them, else our own. Read once. */
export function commonTexts(): CommonTexts {
  return (known ??= read() ?? ours)
}

function read(): CommonTexts | undefined {
  // Seen from dist/src/virtualapi/discovery, then from a checkout's src/virtualapi/discovery.
  for (const place of ['../../../openapi/v3/', '../../../dist/openapi/v3/']) {
    const file = fileURLToPath(new URL(place + commonTextsFile, import.meta.url))
    if (!existsSync(file)) continue
    const built = JSON.parse(readFileSync(file, 'utf8')) as CommonTexts & { version: string }
    if (built.version === kubernetesVersion) return built
  }
  return undefined
}

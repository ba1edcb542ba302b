// Reads the lists of allowed values in field descriptions. The published documents do not have them; a server's own
// ones, in Kubernetes' generated Go code, append them to the description of the field.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isJsonObject, type JsonObject } from '#apimachinery/meta/index.ts'

const file = 'pkg/generated/openapi/zz_generated.openapi.go'
/** Matches the start of a property, and its description, as the Go generator writes them. */
const property = /^\t*"([^"]+)": \{$/
const description = /^\t*Description: ("(?:[^"\\]|\\.)*"),$/
/** Skipped: in versions that are not served here (of beta versions one is), the same fields have fewer values. */
const unstable = /^func schema_(?!k8sio_api_admissionregistration_v1beta1_)\w+_v\d+(?:alpha|beta)\d+_\w+\(/
const values = '\n\nPossible enum values:\n'

/**
 * Descriptions with values, by field name and description without values. `module` is the unpacked k8s.io/kubernetes.
 */
export function enumTexts(module: string): ReadonlyMap<string, string> {
  const texts = new Map<string, string>()
  let [name, skipped] = ['', false]
  for (const line of readFileSync(join(module, file), 'utf8').split('\n')) {
    name = property.exec(line)?.[1] ?? name
    if (line.startsWith('func ')) skipped = unstable.test(line)
    const text = skipped ? undefined : description.exec(line)?.[1]
    if (text === undefined) continue
    // JSON understands every escape that the Go generator uses.
    const whole = JSON.parse(text) as string
    const end = whole.indexOf(values)
    if (end < 0) continue
    const key = keyOf(name, whole.slice(0, end))
    if ((texts.get(key) ?? whole) !== whole) throw new Error(`two fields have other values and the same text: ${key}`)
    texts.set(key, whole)
  }
  return texts
}

/** Adds the values to the descriptions of enum fields. Returns the definition. */
export function withEnumTexts(definition: JsonObject, texts: ReadonlyMap<string, string>): JsonObject {
  const properties = definition['properties']
  if (!isJsonObject(properties)) return definition
  for (const [name, field] of Object.entries(properties)) {
    if (!isJsonObject(field) || typeof field['description'] !== 'string' || !namesItsValues(field)) continue
    const whole = texts.get(keyOf(name, field['description']))
    if (whole !== undefined) field['description'] = whole
  }
  return definition
}

/** Only fields with an enum: the same description may belong to a field of another version without one. */
function namesItsValues(field: JsonObject): boolean {
  const inside = [field, field['items'], field['additionalProperties']]
  return inside.some((part) => isJsonObject(part) && part['enum'] !== undefined)
}

const keyOf = (name: string, text: string): string => `${name}: ${text.trimEnd()}`

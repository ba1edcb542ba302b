// How messages of a real server show a struct: as its internal types print it, with every member, under its Go name.
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../apimachinery/meta/index.ts'
import type { StatusCause } from '../../../../apimachinery/status/index.ts'
import { structNamed, type Member } from '../typed/go-types.ts'

/** Members whose Go name is more than their own with a capital. */
const goNames: Readonly<Record<string, string>> = {
  'resource.v1.DeviceSelector.cel': 'CEL',
  'resource.v1.DeviceAttribute.int': 'IntValue',
  'resource.v1.DeviceAttribute.bool': 'BoolValue',
  'resource.v1.DeviceAttribute.string': 'StringValue',
  'resource.v1.DeviceAttribute.version': 'VersionValue',
  'core.v1.PersistentVolumeSpec.csi': 'CSI',
}

const initials: Readonly<Record<string, string>> = { api: 'API', uid: 'UID', ips: 'IPs', fs: 'FS' }

/** "The value is malformed" of a struct. `struct`: its name in the table of Go types; `value`: as it was decoded. */
export function invalidInternal(path: string, struct: string, value: JsonObject, detail: string): StatusCause {
  return {
    reason: 'FieldValueInvalid',
    message: `Invalid value: ${internalText(struct, value)}: ${detail}`,
    field: path,
  }
}

/** The JSON that Go prints of a struct's internal form. */
export function internalText(struct: string, value: JsonObject): string {
  return JSON.stringify(internalStruct(struct, value))
}

function internalStruct(name: string, value: JsonObject): JsonObject {
  const result: JsonObject = {}
  for (const member of structNamed(name).members) {
    const inner = value[member.name] ?? undefined
    // Embedded: its members stand beside the others.
    if (member.struct === 'meta.v1.ObjectMeta') Object.assign(result, withoutNulls(inner))
    else result[goNameOf(name, member.name)] = inner === undefined ? zeroOf(member) : printed(member, inner)
  }
  return result
}

function withoutNulls(value: JsonValue | undefined): JsonObject {
  return Object.fromEntries(Object.entries(isJsonObject(value) ? value : {}).filter(([, inner]) => inner !== null))
}

function goNameOf(struct: string, member: string): string {
  const own = goNames[`${struct}.${member}`]
  if (own !== undefined) return own
  const head = /^[a-z]+/.exec(member)?.[0] ?? ''
  const rest = member.slice(head.length)
  return (initials[head] ?? head.charAt(0).toUpperCase() + head.slice(1)) + rest
}

function zeroOf({ code, container, pointer, struct }: Member): JsonValue {
  if (container !== 'none' || pointer) return null
  if (code === '@') return struct.startsWith('meta.v1.') ? {} : internalStruct(struct, {})
  if (code === 'b') return false
  if (code === 'Q') return '0'
  return 'ild'.includes(code) ? 0 : 'sD'.includes(code) ? '' : null
}

/** Types of meta/v1 have no other form. */
function printed(member: Member, value: JsonValue): JsonValue {
  if (member.code !== '@' || member.struct.startsWith('meta.v1.')) return sortedMap(member, value)
  const one = (item: JsonValue): JsonValue => (isJsonObject(item) ? internalStruct(member.struct, item) : item)
  if (Array.isArray(value)) return value.map(one)
  if (member.container === 'none' || !isJsonObject(value)) return one(value)
  return sortedMap(member, Object.fromEntries(Object.entries(value).map(([key, item]) => [key, one(item)])))
}

function sortedMap({ container }: Member, value: JsonValue): JsonValue {
  if (container !== 'map' || !isJsonObject(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}

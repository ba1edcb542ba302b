// Removes server-specific values from an answer: uids, revisions, current times, generated names and allocated
// addresses.
import { isJsonObject, putField, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'

export interface ApiResponse {
  readonly status: number
  readonly warnings: readonly string[]
  readonly body: JsonValue
}

const uuid = /\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g
const fingerprint = /\bX509SHA256=[0-9a-f]{64}\b/g
const tokenVolume = /\bkube-api-access-[a-z0-9]{5}\b/g
const time = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)/g
const dayMs = 86_400_000

/** The body of Go's mux for an unserved path; client libraries read it as the Status that our server returns. */
const nothingServed = '404 page not found\n'
const nothingServedStatus: JsonObject = {
  ...{ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', reason: 'NotFound', code: 404, details: {} },
  message: 'the server could not find the requested resource',
}

/** The answer in comparable form. `neutral`: words specific to one run, and their placeholders. */
export function comparableResponse(response: ApiResponse, neutral: Readonly<Record<string, string>>): ApiResponse {
  const text = Object.entries(neutral).reduce(
    (all, [word, placeholder]) => all.replaceAll(word, placeholder),
    JSON.stringify([response.warnings, response.body === nothingServed ? nothingServedStatus : response.body]),
  )
  const [warnings, body] = JSON.parse(text) as [string[], JsonValue]
  return { status: response.status, warnings: warnings.map(maskText), body: mask(body, '') }
}

function mask(value: JsonValue, key: string): JsonValue {
  if (typeof value === 'string') return key === 'resourceVersion' && /^\d+$/.test(value) ? 'RV' : maskText(value)
  if (Array.isArray(value)) return key === 'cells' ? value.map(maskCell) : value.map((item) => mask(item, ''))
  if (!isJsonObject(value)) return value
  return value['kind'] === 'Table' ? maskTable(value) : maskObject(value)
}

/** Descriptions of columns are each server's own text. */
function maskTable(table: JsonObject): JsonObject {
  const columns = table['columnDefinitions']
  if (!Array.isArray(columns)) return maskObject(table)
  const bare = columns.map((column) => (isJsonObject(column) ? { ...column, description: '' } : column))
  return maskObject({ ...table, columnDefinitions: bare })
}

function maskObject(value: JsonObject): JsonObject {
  const result: JsonObject = {}
  for (const [name, member] of Object.entries(value)) {
    if (name === 'managedFields' && Array.isArray(member)) {
      result[name] = maskManagers(member)
      continue
    }
    const masked = withoutPlacement(mask(member, name), name)
    if (masked !== undefined) putField(result, name, masked)
  }
  maskGeneratedName(result)
  if (result['kind'] === 'Service') maskAllocated(result['spec'] ?? null)
  if (result['kind'] === 'Deployment') shareWithPlacement(result['metadata'] ?? null)
  if (result['kind'] === 'Status') sortCauses(result)
  // Written by a controller, at any time; test/parity/quota compares it.
  if (result['kind'] === 'ResourceQuota') dropStatus(result)
  if (result['kind'] === 'ValidatingAdmissionPolicy') {
    dropManager(result['metadata'] ?? null, 'validatingadmissionpolicy-status')
    // Written by a controller, at any time; test/parity/policies compares it.
    if (isJsonObject(result['status'] ?? null)) result['status'] = {}
  }
  if (result['kind'] === 'CustomResourceDefinition') {
    sortConditions(result['status'] ?? null)
    dropManager(result['metadata'] ?? null, 'kube-apiserver')
  }
  return result
}

/** The status, and who owns its fields. */
function dropStatus(object: JsonObject): void {
  delete object['status']
  if (isJsonObject(object['metadata'] ?? null)) delete (object['metadata'] as JsonObject)['managedFields']
}

/**
 * Fields as text, to compare their order too. Entries are ordered by when they were written: both servers in turn may
 * be late.
 */
function maskManagers(entries: readonly JsonValue[]): JsonValue {
  const masked = entries
    .filter((entry) => !isJsonObject(entry) || entry['manager'] !== 'kcp')
    .map((entry) => {
      const { fieldsV1, ...rest } = isJsonObject(entry) ? entry : {}
      return JSON.stringify(ordered({ ...maskObject(rest), fieldsV1: maskText(JSON.stringify(fieldsV1)) }))
    })
  return masked.sort()
}

/**
 * The conditions and annotations of a Deployment may be there before a client writes some: then it does not own them
 * all.
 */
function shareWithPlacement(metadata: JsonValue): void {
  const entries = isJsonObject(metadata) ? metadata['managedFields'] : undefined
  if (!isJsonObject(metadata) || !Array.isArray(entries)) return
  const withoutAll = (entry: JsonValue): JsonValue =>
    textOf(entry).replace(/("f:(conditions|annotations)\\*":\{)\\*"\.\\*":\{\},?/g, '$1')
  metadata['managedFields'] = entries.map(withoutAll)
}

/** What a controller of a real server writes a moment later comes with the write itself here. */
function dropManager(metadata: JsonValue, manager: string): void {
  const entries = isJsonObject(metadata) ? metadata['managedFields'] : undefined
  if (!isJsonObject(metadata) || !Array.isArray(entries)) return
  metadata['managedFields'] = entries.filter((entry) => !textOf(entry).includes(`"manager":"${manager}"`))
}

/** Entries are texts here. */
const textOf = (entry: JsonValue): string => (typeof entry === 'string' ? entry : '')

/** Removes kcp's placement information, which a real server does not have. */
function withoutPlacement(value: JsonValue, name: string): JsonValue | undefined {
  if (name === 'annotations' && isJsonObject(value)) {
    const others = Object.entries(value).filter(([key]) => !key.startsWith('kcp.dev/'))
    return others.length === Object.keys(value).length
      ? value
      : others.length > 0
        ? Object.fromEntries(others)
        : undefined
  }
  if (name !== 'conditions' || !Array.isArray(value)) return value
  const others = value.filter((one) => !(isJsonObject(one) && one['type'] === 'Placed'))
  return others.length === value.length ? value : others.length > 0 ? others : undefined
}

function maskText(text: string): string {
  return text
    .replace(uuid, 'UID')
    .replace(fingerprint, 'FINGERPRINT')
    .replace(tokenVolume, 'kube-api-access-XXXXX')
    .replace(time, (found, fraction) => {
      const isNow = Math.abs(Date.parse(found) - Date.now()) < dayMs
      return isNow ? (fraction === undefined ? 'TIME' : 'MICROTIME') : found
    })
}

function maskCell(cell: JsonValue): JsonValue {
  return typeof cell === 'string' ? maskText(cell.replace(/^\d+s$/, 'AGE')) : mask(cell, '')
}

function maskGeneratedName(object: JsonObject): void {
  const { generateName, name } = object
  if (
    typeof generateName === 'string' &&
    typeof name === 'string' &&
    generateName !== '' &&
    name.startsWith(generateName)
  )
    object['name'] = `${generateName}XXXXX`
}

function maskAllocated(spec: JsonValue): void {
  if (!isJsonObject(spec)) return
  const ip = (value: JsonValue | undefined): JsonValue =>
    typeof value === 'string' && value.startsWith('10.') ? 'IP' : (value ?? null)
  if ('clusterIP' in spec) spec['clusterIP'] = ip(spec['clusterIP'])
  if (Array.isArray(spec['clusterIPs'])) spec['clusterIPs'] = spec['clusterIPs'].map(ip)
  if ('healthCheckNodePort' in spec) spec['healthCheckNodePort'] = 'PORT'
  for (const port of Array.isArray(spec['ports']) ? spec['ports'] : [])
    if (isJsonObject(port) && typeof port['nodePort'] === 'number' && port['nodePort'] >= 30_086)
      port['nodePort'] = 'PORT'
}

/** Several controllers add conditions in any order. */
function sortConditions(status: JsonValue): void {
  if (!isJsonObject(status) || !Array.isArray(status['conditions'])) return
  const typeOf = (condition: JsonValue): string => JSON.stringify(isJsonObject(condition) ? condition['type'] : '')
  status['conditions'] = status['conditions'].toSorted((a, b) => (typeOf(a) < typeOf(b) ? -1 : 1))
}

/** Causes come from Go's maps in any order; the message is their concatenation. */
function sortCauses(status: JsonObject): void {
  const { details } = status
  if (!isJsonObject(details) || !Array.isArray(details['causes']) || details['causes'].length < 2) return
  details['causes'] = details['causes'].map((cause) => JSON.stringify(ordered(cause))).sort()
  status['message'] = 'CAUSES'
}

function ordered(value: JsonValue): JsonValue {
  if (!isJsonObject(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}

// ConfigMaps and Secrets: keys, size and immutability.
import { isDeepStrictEqual } from 'node:util'
import { configMapKeyErrors } from '#apimachinery/field/index.ts'
import { parseJsonText } from '#apimachinery/json/index.ts'
import { isJsonNumber, isJsonObject, type JsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import {
  all,
  fieldImmutable,
  validating,
  validatingChange,
  type Report,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import { keyPairWarnings } from '#virtualapi/kinds/warnings/key-pair-warnings.ts'
import type { KindRules } from './kind-rules.ts'

const maxBytes = 1024 * 1024
const immutableText = 'field is immutable when `immutable` is set'
const redacted = '<secret contents redacted>'

function mapIn(object: KubeObject, member: string): JsonObject {
  const value = object[member]
  return isJsonObject(value) ? value : {}
}

function checkKeys(member: string, data: JsonObject, report: Report): void {
  for (const key in data) {
    const errors = configMapKeyErrors(key)
    if (errors.length > 0) report.invalidFor(`${member}[${key}]`, key, errors)
  }
}

/** Sum over the values. With a loop over keys, because an array of 100,000 values costs more than the lookups. */
function sizeOf(data: JsonObject, bytesOf: (value: unknown) => number): number {
  let size = 0
  for (const key in data) size += bytesOf(data[key])
  return size
}

function textBytes(value: unknown): number {
  return typeof value === 'string' ? Buffer.byteLength(value) : 0
}

function decodedBytes(value: unknown): number {
  return typeof value === 'string' ? Buffer.byteLength(value, 'base64') : 0
}

/** An immutable object must stay immutable and keep these members. */
const kept =
  (members: readonly string[]): Rule<KubeObject, KubeObject> =>
  (object, report, old) => {
    if (old['immutable'] !== true) return
    if (object['immutable'] !== true) report.forbidden('immutable', immutableText)
    for (const member of members)
      if (!isDeepStrictEqual(mapIn(object, member), mapIn(old, member))) report.forbidden(member, immutableText)
  }

export const configMapRules: KindRules = {
  validate: validating<KubeObject>((object, report) => {
    const data = mapIn(object, 'data')
    const binary = mapIn(object, 'binaryData')
    checkKeys('data', data, report)
    for (const key in binary)
      if (Object.hasOwn(data, key)) report.invalid(`data[${key}]`, key, 'duplicate of key present in binaryData')
    checkKeys('binaryData', binary, report)
    const size = sizeOf(data, textBytes) + sizeOf(binary, decodedBytes)
    if (size > maxBytes) report.tooLong('', maxBytes)
  }),
  validateChange: validatingChange(kept(['data', 'binaryData'])),
}

/** The keys that Secrets of a type need. */
const needed: Readonly<Record<string, readonly string[]>> = {
  'kubernetes.io/dockercfg': ['.dockercfg'],
  'kubernetes.io/dockerconfigjson': ['.dockerconfigjson'],
  'kubernetes.io/tls': ['tls.crt', 'tls.key'],
}
const accountAnnotation = 'kubernetes.io/service-account.name'

/** The keys and annotations that the type of a Secret requires. */
const ofType: Rule<KubeObject> = ({ type, metadata, data: given }, report) => {
  const data = isJsonObject(given) ? given : {}
  const require = (...keys: readonly string[]): void => {
    for (const key of keys) if (!Object.hasOwn(data, key)) report.required(`data[${key}]`)
  }
  if (typeof type !== 'string') return
  if (Object.hasOwn(needed, type)) require(...(needed[type] ?? []))
  if (type === 'kubernetes.io/dockercfg') checkJson(data, '.dockercfg', report)
  if (type === 'kubernetes.io/dockerconfigjson') checkJson(data, '.dockerconfigjson', report)
  if (type === 'kubernetes.io/basic-auth' && !Object.hasOwn(data, 'username') && !Object.hasOwn(data, 'password'))
    require('username', 'password')
  if (type === 'kubernetes.io/ssh-auth' && !data['ssh-privatekey']) report.required('data[ssh-privatekey]')
  if (type === 'kubernetes.io/service-account-token' && !metadata.annotations?.[accountAnnotation])
    report.required(`metadata.annotations[${accountAnnotation}]`)
}

function checkJson(data: JsonObject, key: string, report: Report): void {
  if (!Object.hasOwn(data, key)) return
  const json = Buffer.from(typeof data[key] === 'string' ? data[key] : '', 'base64').toString()
  const wrong = (detail: string): void => report.invalid(`data[${key}]`, redacted, detail)
  try {
    const value = parseJsonText(json)
    if (value === null || isJsonObject(value)) return
    const what = Array.isArray(value)
      ? 'array'
      : typeof value === 'boolean'
        ? 'bool'
        : isJsonNumber(value)
          ? 'number'
          : typeof value
    wrong(`json: cannot unmarshal ${what} into Go value of type map[string]interface {}`)
  } catch (error) {
    const end = error instanceof SyntaxError && /end of JSON|Unterminated|Expected property name/.test(error.message)
    const first = /[^ \t\r\n]/u.exec(json)?.[0] ?? ''
    if (end) wrong('unexpected end of JSON input')
    else if (/[[{"\-0-9tfn]/.test(first)) wrong('invalid character')
    else wrong(`invalid character '${first}' looking for beginning of value`)
  }
}

/** A Secret: keys, size, and what its type requires. */
const secretRule = all<KubeObject>((object, report) => {
  const data = mapIn(object, 'data')
  checkKeys('data', data, report)
  if (sizeOf(data, decodedBytes) > maxBytes) report.tooLong('data', maxBytes)
}, ofType)

/** The type of a Secret is immutable; an immutable Secret also keeps its data. */
const secretChange = all<KubeObject, KubeObject>(
  ({ type }, report, old) => {
    if (type !== old['type'] && typeof type === 'string') report.invalid('type', type, fieldImmutable)
  },
  kept(['data']),
)

export const secretRules: KindRules = {
  warningsOf: keyPairWarnings,
  beforeDefaults: moveStringData,
  validate: validating(secretRule),
  validateChange: validatingChange(secretChange),
}

function moveStringData(secret: KubeObject): void {
  const { stringData, data } = secret
  delete secret['stringData']
  if (!isJsonObject(stringData)) return
  const encoded = Object.entries(stringData).map(([key, text]) => [
    key,
    Buffer.from(typeof text === 'string' ? text : '').toString('base64'),
  ])
  secret['data'] = { ...(isJsonObject(data) ? data : {}), ...(Object.fromEntries(encoded) as Record<string, string>) }
}

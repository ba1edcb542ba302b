// ConfigMaps and Secrets: keys, size and immutability.
import { parseJsonText } from '#apimachinery/json/index.ts'
import { isDeepStrictEqual } from 'node:util'
import {
  configMapKeyErrors,
  fieldForbidden,
  fieldInvalid,
  fieldRequired,
  fieldTooLong,
} from '#apimachinery/field/index.ts'
import { isJsonObject, type JsonObject, type KubeObject, isJsonNumber } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { KindRules } from './kind-rules.ts'
import { fieldImmutable } from '#virtualapi/kinds/validation/values.ts'

const maxBytes = 1024 * 1024
const immutableText = 'field is immutable when `immutable` is set'
const redacted = '<secret contents redacted>'

function mapIn(object: KubeObject, member: string): JsonObject {
  const value = object[member]
  return isJsonObject(value) ? value : {}
}

function keyCauses(member: string, data: JsonObject): StatusCause[] {
  const causes: StatusCause[] = []
  for (const key in data)
    for (const text of configMapKeyErrors(key)) causes.push(fieldInvalid(`${member}[${key}]`, key, text))
  return causes
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
function immutableCauses(object: KubeObject, old: KubeObject, members: readonly string[]): StatusCause[] {
  if (old['immutable'] !== true) return []
  const causes = object['immutable'] === true ? [] : [fieldForbidden('immutable', immutableText)]
  for (const member of members)
    if (!isDeepStrictEqual(mapIn(object, member), mapIn(old, member)))
      causes.push(fieldForbidden(member, immutableText))
  return causes
}

export const configMapRules: KindRules = {
  validate(object) {
    const data = mapIn(object, 'data')
    const binary = mapIn(object, 'binaryData')
    const twice = Object.keys(binary).filter((key) => Object.hasOwn(data, key))
    const size = sizeOf(data, textBytes) + sizeOf(binary, decodedBytes)
    return [
      ...keyCauses('data', data),
      ...twice.map((key) => fieldInvalid(`data[${key}]`, key, 'duplicate of key present in binaryData')),
      ...keyCauses('binaryData', binary),
      ...(size > maxBytes ? [fieldTooLong('', maxBytes)] : []),
    ]
  },
  validateChange: (object, old) => immutableCauses(object, old, ['data', 'binaryData']),
}

/** Validation errors of a Secret: keys, size, and what its type requires. */
export function secretCauses(object: KubeObject): StatusCause[] {
  const data = mapIn(object, 'data')
  const size = sizeOf(data, decodedBytes)
  return [
    ...keyCauses('data', data),
    ...(size > maxBytes ? [fieldTooLong('data', maxBytes)] : []),
    ...typeCauses(object, data),
  ]
}

function typeCauses({ type, metadata }: KubeObject, data: JsonObject): StatusCause[] {
  const needs = (key: string): StatusCause[] => (Object.hasOwn(data, key) ? [] : [fieldRequired(`data[${key}]`)])
  switch (type) {
    case 'kubernetes.io/service-account-token': {
      const name = 'kubernetes.io/service-account.name'
      return metadata.annotations?.[name] ? [] : [fieldRequired(`metadata.annotations[${name}]`)]
    }
    case 'kubernetes.io/dockercfg':
      return needs('.dockercfg').length > 0 ? needs('.dockercfg') : jsonCauses(data, '.dockercfg')
    case 'kubernetes.io/dockerconfigjson':
      return needs('.dockerconfigjson').length > 0 ? needs('.dockerconfigjson') : jsonCauses(data, '.dockerconfigjson')
    case 'kubernetes.io/basic-auth':
      return Object.hasOwn(data, 'username') || Object.hasOwn(data, 'password')
        ? []
        : [...needs('username'), ...needs('password')]
    case 'kubernetes.io/ssh-auth':
      return data['ssh-privatekey'] ? [] : [fieldRequired('data[ssh-privatekey]')]
    case 'kubernetes.io/tls':
      return [...needs('tls.crt'), ...needs('tls.key')]
    default:
      return []
  }
}

function jsonCauses(data: JsonObject, key: string): StatusCause[] {
  const text = Buffer.from(typeof data[key] === 'string' ? data[key] : '', 'base64').toString()
  try {
    const value = parseJsonText(text)
    if (value === null || isJsonObject(value)) return []
    const what = Array.isArray(value)
      ? 'array'
      : typeof value === 'boolean'
        ? 'bool'
        : isJsonNumber(value)
          ? 'number'
          : typeof value
    const target = 'Go value of type map[string]interface {}'
    return [fieldInvalid(`data[${key}]`, redacted, `json: cannot unmarshal ${what} into ${target}`)]
  } catch (error) {
    const end = error instanceof SyntaxError && /end of JSON|Unterminated|Expected property name/.test(error.message)
    const first = /[^ \t\r\n]/u.exec(text)?.[0] ?? ''
    const why = end
      ? 'unexpected end of JSON input'
      : /[[{"\-0-9tfn]/.test(first)
        ? 'invalid character'
        : `invalid character '${first}' looking for beginning of value`
    return [fieldInvalid(`data[${key}]`, redacted, why)]
  }
}

/** The type of a Secret is immutable; an immutable Secret also keeps its data. */
export function secretChangeCauses(object: KubeObject, old: KubeObject): StatusCause[] {
  const { type } = object
  const moved = type !== old['type'] && typeof type === 'string'
  return [...(moved ? [fieldInvalid('type', type, fieldImmutable)] : []), ...immutableCauses(object, old, ['data'])]
}

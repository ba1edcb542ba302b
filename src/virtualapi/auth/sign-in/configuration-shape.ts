// The fields of configuration files and their types: AuthenticationConfiguration here, policies in `audit`.
import { childPath, indexPath } from '#apimachinery/field/index.ts'
import { isJsonObject } from '#apimachinery/meta/index.ts'

export type Shape =
  'text' | 'flag' | 'anything' | { readonly each: Shape } | { readonly fields: Readonly<Record<string, Shape>> }

const textFields = (...names: readonly string[]): Readonly<Record<string, Shape>> =>
  Object.fromEntries(names.map((name) => [name, 'text']))
const object = (fields: Readonly<Record<string, Shape>>): Shape => ({ fields })
const listOf = (each: Shape): Shape => ({ each })

const mapping = object(textFields('claim', 'prefix', 'expression'))

export const configurationShape: Shape = object({
  ...textFields('apiVersion', 'kind'),
  jwt: listOf(
    object({
      issuer: object({
        ...textFields('url', 'discoveryURL', 'certificateAuthority', 'audienceMatchPolicy', 'egressSelectorType'),
        audiences: listOf('text'),
      }),
      claimValidationRules: listOf(object(textFields('claim', 'requiredValue', 'expression', 'message'))),
      claimMappings: object({
        ...{ username: mapping, groups: mapping },
        uid: object(textFields('claim', 'expression')),
        extra: listOf(object(textFields('key', 'valueExpression'))),
      }),
      userValidationRules: listOf(object(textFields('expression', 'message'))),
    }),
  ),
  anonymous: object({ enabled: 'flag', conditions: listOf(object(textFields('path'))) }),
})

const maxMisfits = 20

/** Fields that do not exist, and values of another type: at most 20 sentences. */
export function misfitsOf(value: unknown, shape: Shape, path = ''): string[] {
  if (value === null || shape === 'anything') return []
  if (shape === 'text') return typeof value === 'string' ? [] : [`${path}: it must be a text`]
  if (shape === 'flag') return typeof value === 'boolean' ? [] : [`${path}: it must be true or false`]
  if ('each' in shape) {
    if (!Array.isArray(value)) return [`${path}: it must be a list`]
    return value
      .flatMap((item: unknown, index) => misfitsOf(item, shape.each, indexPath(path, index)))
      .slice(0, maxMisfits)
  }
  if (!isJsonObject(value)) return [`${path}: it must be an object`]
  const found = Object.entries(value).flatMap(([name, field]) => {
    const at = childPath(path, name)
    const known = Object.hasOwn(shape.fields, name) ? shape.fields[name] : undefined
    return known === undefined ? [`unknown field "${at}"`] : misfitsOf(field, known, at)
  })
  return found.slice(0, maxMisfits)
}

/** The value without null in objects; null in a list is an empty object. */
export function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item: unknown) => (item === null ? {} : withoutNulls(item)))
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(([, field]) => field !== null)
  return Object.fromEntries(kept.map(([name, field]) => [name, withoutNulls(field)]))
}

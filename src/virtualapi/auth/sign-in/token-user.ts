// The user of a token that its issuer has signed: by claims or expressions, as the configuration says.
import {
  itemsOf,
  CelList,
  dynamicValue,
  printValue,
  typedValue,
  type Program,
  type Value,
} from '#apimachinery/cel/index.ts'
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import { userSchema, type CompiledIssuer, type CompiledRule } from './configuration.ts'

export interface MappedUser {
  readonly name: string
  readonly uid?: string
  readonly groups: readonly string[]
  readonly extra: Readonly<Record<string, readonly string[]>>
}

export interface MappingLimits {
  /** Cost units of CEL of each expression; absent: as kube-apiserver, which trusts its admins. */
  readonly costLimit?: number
}

/** The most groups that a user may have, and characters of a name. */
const maxGroups = 1000
const maxNameLength = 4096

/** Throws an Error with the reason if the claims give no user. */
export function userOfClaims(issuer: CompiledIssuer, claims: JsonObject, limits: MappingLimits = {}): MappedUser {
  const { claimValidationRules: rules = [] } = issuer.source
  const run = runnerOf('claims', dynamicValue(claims), limits)
  const user: MappedUser = {
    name: nameOf(issuer, claims, run),
    ...uidOf(issuer, claims, run),
    groups: groupsOf(issuer, claims, run),
    extra: extraOf(issuer, claims, run),
  }
  for (const { claim = '', requiredValue = '' } of rules) {
    if (claim === '') continue
    if (!Object.hasOwn(claims, claim)) throw new Error(`required claim ${claim} not present in ID token`)
    if (claims[claim] !== requiredValue) throw new Error(`required claim ${claim} value does not match`)
  }
  requireAll(issuer.claimRules, run)
  if (issuer.userRules.length > 0)
    requireAll(issuer.userRules, runnerOf('user', typedValue(asVariable(user), userSchema), limits))
  return user
}

function asVariable({ name, uid = '', groups, extra }: MappedUser): JsonObject {
  const more = Object.fromEntries(Object.entries(extra).map(([key, values]) => [key, [...values]]))
  return { username: name, uid, groups: [...groups], extra: more }
}

type Run = (program: Program) => Value

function runnerOf(variable: string, value: Value, { costLimit }: MappingLimits): Run {
  const variables = new Map([[variable, value]])
  return (program) => {
    const outcome = program.run(variables, costLimit === undefined ? {} : { costLimit })
    if (outcome.error !== undefined || outcome.value === undefined) throw new Error(outcome.error ?? 'no value')
    return outcome.value
  }
}

function requireAll(rules: readonly CompiledRule[], run: Run): void {
  for (const { program, expression, message } of rules)
    if (run(program) !== true)
      throw new Error(`validation expression '${expression}' failed${message === '' ? '' : `: ${message}`}`)
}

function nameOf({ source, username }: CompiledIssuer, claims: JsonObject, run: Run): string {
  const { claim = '', prefix = '' } = source.claimMappings.username
  const name = username === undefined ? textClaim(claims, claim) : run(username)
  if (typeof name !== 'string') throw new Error('username claim expression must return a string')
  if (name === '') throw new Error('empty username is not allowed')
  if (name.length > maxNameLength) throw new Error('the username is too long')
  if (username === undefined && claim === 'email' && 'email_verified' in claims && claims['email_verified'] !== true)
    throw new Error('email not verified')
  return username === undefined ? `${prefix}${name}` : name
}

function uidOf({ source, uid }: CompiledIssuer, claims: JsonObject, run: Run): { readonly uid?: string } {
  const { claim = '' } = source.claimMappings.uid ?? {}
  if (claim !== '') return { uid: textClaim(claims, claim) }
  if (uid === undefined) return {}
  const value = run(uid)
  if (typeof value !== 'string') throw new Error('uid claim expression must return a string')
  return value === '' ? {} : { uid: value }
}

function groupsOf({ source, groups }: CompiledIssuer, claims: JsonObject, run: Run): string[] {
  const { claim = '', prefix = '' } = source.claimMappings.groups ?? {}
  const found =
    claim !== '' && Object.hasOwn(claims, claim)
      ? textsOfJson(claims[claim], `groups claim "${claim}"`).map((group) => `${prefix}${group}`)
      : groups === undefined
        ? []
        : textsOf(run(groups))
  if (found.length > maxGroups) throw new Error(`the user has more than ${maxGroups} groups`)
  return found
}

function extraOf({ extra }: CompiledIssuer, { jti }: JsonObject, run: Run): Record<string, readonly string[]> {
  const found: Record<string, readonly string[]> = {}
  if (typeof jti === 'string' && jti !== '') found['authentication.kubernetes.io/credential-id'] = [`JTI=${jti}`]
  for (const { key, program } of extra) {
    const values = textsOf(run(program))
    if (values.length > 0) found[key] = values
  }
  return found
}

function textClaim(claims: JsonObject, name: string): string {
  const value = claims[name]
  if (typeof value !== 'string') throw new Error(`the token has no text in claim "${name}"`)
  return value
}

function textsOfJson(value: JsonValue | undefined, what: string): string[] {
  const list = typeof value === 'string' ? [value] : value
  if (!Array.isArray(list) || list.some((item) => typeof item !== 'string'))
    throw new Error(`${what} is neither a text nor a list of texts`)
  return list as string[]
}

/** A text or a list of texts; empty texts and null are left out, as kube-apiserver does. */
function textsOf(value: Value): string[] {
  if (value === null) return []
  if (typeof value === 'string') return value === '' ? [] : [value]
  if (!(value instanceof CelList))
    throw new Error(`expression must return a string or a list of strings: ${printValue(value)}`)
  return [...itemsOf(value)].flatMap((item) => {
    if (typeof item !== 'string') throw new Error('expression must return a string or a list of strings')
    return item === '' ? [] : [item]
  })
}

// The file with the installation's AuthenticationConfiguration. It is read again when it changes; a file with an error
// changes nothing, and its error is logged.
import { parse } from 'yaml'
import { isJsonObject } from '#apimachinery/meta/index.ts'
import { causeText, fieldInvalid } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { followFile } from '#async/index.ts'
import type { Logger } from '#telemetry/index.ts'
import type { JwtIssuer } from '#crds/index.ts'
import { compileIssuers, type CompiledIssuer } from './configuration.ts'
import { configurationShape, misfitsOf, withoutNulls } from './configuration-shape.ts'

export interface AnonymousRule {
  readonly enabled: boolean
  /** Paths on which clients without credentials are served; absent: all. */
  readonly paths?: readonly string[]
}

export interface InstallationSignIn {
  readonly issuers: readonly CompiledIssuer[]
  /** Absent: clients without credentials are anonymous. */
  readonly anonymous?: AnonymousRule
}

const versions = ['v1', 'v1beta1', 'v1alpha1'].map((version) => `apiserver.config.k8s.io/${version}`)

/** The configuration in a text, YAML or JSON. Throws with all errors. */
export function parseConfiguration(text: string, disallowed: readonly string[] = []): InstallationSignIn {
  const { configuration, errors } = tryConfiguration(text, disallowed)
  if (configuration === undefined) throw new Error(errors.join('; '))
  return configuration
}

/** The configuration, or all its errors, in the words and the order of kube-apiserver. */
export function tryConfiguration(
  text: string,
  disallowed: readonly string[] = [],
): { readonly configuration?: InstallationSignIn; readonly errors: readonly string[] } {
  const document: unknown = parse(text, { maxAliasCount: 0 })
  if (!isJsonObject(document)) return { errors: ['it is no AuthenticationConfiguration'] }
  const { apiVersion, kind } = document
  if (kind !== 'AuthenticationConfiguration' || !versions.some((version) => version === apiVersion))
    return { errors: [`it is no AuthenticationConfiguration of ${versions.join(' or ')}`] }
  const misfits = misfitsOf(document, configurationShape)
  if (misfits.length > 0) return { errors: misfits }
  // Null is as good as absent, as it is for Go.
  const { jwt, anonymous } = withoutNulls(document) as {
    readonly jwt?: JwtIssuer[]
    readonly anonymous?: AnonymousAuth
  }
  const { issuers, causes } = compileIssuers(jwt ?? [], { disallowed })
  const all = anonymous === undefined ? causes : [...causes, ...anonymousCauses(anonymous)]
  if (all.length > 0) return { errors: all.map(causeText) }
  return { configuration: { issuers, ...(anonymous && { anonymous: anonymousRule(anonymous) }) }, errors: [] }
}

interface AnonymousAuth {
  readonly enabled?: boolean
  readonly conditions?: readonly { readonly path?: string }[]
}

function anonymousCauses({ enabled = false, conditions = [] }: AnonymousAuth): StatusCause[] {
  if (enabled || conditions.length === 0) return []
  // The names of Go's fields, as kube-apiserver prints them.
  const printed = conditions.map(({ path = '' }) => ({ Path: path }))
  const why = 'enabled should be set to true when conditions are defined'
  return [fieldInvalid('anonymous.conditions', printed, why)]
}

function anonymousRule({ enabled = false, conditions }: AnonymousAuth): AnonymousRule {
  return { enabled, ...(conditions && { paths: conditions.map(({ path = '' }) => path) }) }
}

export interface ConfigurationFile {
  current(): InstallationSignIn
}

interface FollowOptions {
  /** Issuers that are our own. */
  readonly disallowed: readonly string[]
  readonly log: Logger
  readonly signal: AbortSignal
  /** Milliseconds between two looks at the file. Default 2000. */
  readonly everyMs?: number
}

/** Reads the file and follows it until the signal aborts. Rejects if it has an error at the start. */
export async function followConfiguration(
  file: string,
  { disallowed, log, ...options }: FollowOptions,
): Promise<ConfigurationFile> {
  return await followFile(file, {
    ...options,
    parse: (text) => parseConfiguration(text, disallowed),
    onChange: ({ issuers }) => log.info('the configuration of sign-in has changed', { file, issuers: issuers.length }),
    onRefused: (error) =>
      log.error('the new configuration of sign-in has an error; the one before counts', { file, error }),
    onUnreadable: (error) => log.warn('the configuration of sign-in cannot be read', { file, error }),
  })
}

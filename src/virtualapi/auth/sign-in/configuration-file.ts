// The file with the installation's AuthenticationConfiguration. It is read again when it changes; a file with an error
// changes nothing, and its error is logged.
import { readFile } from 'node:fs/promises'
import { parse } from 'yaml'
import { isJsonObject } from '#apimachinery/meta/index.ts'
import { causeText } from '#apimachinery/field/index.ts'
import { sleep } from '#async/index.ts'
import type { Logger } from '#telemetry/index.ts'
import type { JwtIssuer } from '#crds/index.ts'
import { compileIssuers, type CompiledIssuer } from './configuration.ts'

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

const versions = ['apiserver.config.k8s.io/v1', 'apiserver.config.k8s.io/v1beta1']
const lookMs = 2000
const maxBytes = 1024 * 1024

/** The configuration in a text, YAML or JSON. Throws with all errors. */
export function parseConfiguration(text: string, disallowed: readonly string[] = []): InstallationSignIn {
  const document: unknown = parse(text, { maxAliasCount: 0 })
  if (!isJsonObject(document)) throw new Error('it is no AuthenticationConfiguration')
  const { apiVersion, kind, jwt = [], anonymous, ...unknown } = document as Record<string, unknown>
  if (kind !== 'AuthenticationConfiguration' || !versions.includes(String(apiVersion)))
    throw new Error(`it is no AuthenticationConfiguration of ${versions.join(' or ')}`)
  const [field] = Object.keys(unknown)
  if (field !== undefined) throw new Error(`unknown field "${field}"`)
  if (!Array.isArray(jwt)) throw new Error('jwt: it is no list')
  const { issuers, causes } = compileIssuers(jwt as JwtIssuer[], { disallowed })
  if (causes.length > 0) throw new Error(causes.map(causeText).join('; '))
  return { issuers, ...(anonymous !== undefined && { anonymous: anonymousRule(anonymous) }) }
}

function anonymousRule(value: unknown): AnonymousRule {
  const { enabled = false, conditions } = (value ?? {}) as { enabled?: boolean; conditions?: { path?: string }[] }
  if (!enabled && (conditions?.length ?? 0) > 0)
    throw new Error('anonymous.conditions: enabled should be set to true when conditions are defined')
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
  { disallowed, log, signal, everyMs = lookMs }: FollowOptions,
): Promise<ConfigurationFile> {
  let text = await readBounded(file)
  let current = parseConfiguration(text, disallowed)
  let refused: string | undefined
  const look = async (): Promise<void> => {
    const next = await readBounded(file)
    if (next === text || next === refused) return
    try {
      current = parseConfiguration(next, disallowed)
      text = next
      refused = undefined
      log.info('the configuration of sign-in has changed', { file, issuers: current.issuers.length })
    } catch (error) {
      refused = next
      log.error('the new configuration of sign-in has an error; the one before counts', { file, error })
    }
  }
  // Ends with the signal.
  void (async () => {
    for (;;) {
      await sleep(everyMs, signal)
      await look().catch((error: unknown) => log.warn('the configuration of sign-in cannot be read', { file, error }))
    }
  })().catch(() => undefined)
  return { current: () => current }
}

async function readBounded(file: string): Promise<string> {
  const bytes = await readFile(file)
  if (bytes.length > maxBytes) throw new Error(`${file} is larger than ${maxBytes} bytes`)
  return bytes.toString('utf8')
}

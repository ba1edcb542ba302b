// A check of kubeconfigs from Secrets, which are not trusted: fields that would read files, run programs, or lead to an
// unverified server are refused by name.
import { badRequest } from '#apimachinery/status/index.ts'

/** A parsed kubeconfig, before any check. */
export type RawKubeconfig = object

export interface PlainCluster {
  server: string
  'certificate-authority-data'?: string
  'tls-server-name'?: string
  /** An http or https URL; only if the kubeconfig may name a proxy. */
  'proxy-url'?: string
  /** This field and the next are set only if `needs` is not `nothing`. */
  'certificate-authority'?: string
  'insecure-skip-tls-verify'?: boolean
}
export interface PlainUser {
  token?: string
  'client-certificate-data'?: string
  'client-key-data'?: string
  /** This field and the next two are set only if `needs` is not `nothing`. */
  tokenFile?: string
  'client-certificate'?: string
  'client-key'?: string
}
export interface ChosenContext {
  context: string
  namespace?: string
  cluster: PlainCluster
  user: PlainUser
  /**
   * The needs of the kubeconfig besides its own content: files of credentials, or plugins and other fields that are
   * unknown here.
   */
  needs: 'nothing' | 'files' | 'plugins'
}

const clusterFields = ['server', 'certificate-authority-data', 'tls-server-name', 'extensions', 'disable-compression']
const userFields = ['token', 'client-certificate-data', 'client-key-data', 'extensions']
const ownFields = ['certificate-authority', 'insecure-skip-tls-verify', 'client-certificate', 'client-key', 'tokenFile']

const untyped = ['extensions', 'disable-compression', 'insecure-skip-tls-verify']

const reasons: Record<string, string> = {
  exec: 'it would run a program here',
  'auth-provider': 'it would run a credentials plugin here',
  'certificate-authority': 'it names a file here; use certificate-authority-data',
  'client-certificate': 'it names a file here; use client-certificate-data',
  'client-key': 'it names a file here; use client-key-data',
  tokenFile: 'it names a file here; use token',
  'proxy-url': 'the connection would leave for an address other than the server',
  'insecure-skip-tls-verify': 'the server would not be verified; use certificate-authority-data',
}

/** The chosen context, after the checks. Throws BadRequest. */
export function checkKubeconfig(
  raw: RawKubeconfig,
  { where, trusted, mayUseProxy, context }: { where: string; trusted: boolean; mayUseProxy: boolean; context?: string },
): ChosenContext {
  const config = raw as Record<string, unknown>
  const name = context ?? config['current-context']
  if (typeof name !== 'string' || name === '') throw badRequest(`${where} has no current-context`)
  const chosen = entry(config, where, { list: 'contexts', kind: 'context', name })
  const cluster = entry(config, where, {
    list: 'clusters',
    kind: 'cluster',
    name: text(chosen, 'cluster', `${where}: context "${name}"`),
  })
  const userName = chosen['user']
  const user =
    typeof userName === 'string' && userName !== ''
      ? entry(config, where, { list: 'users', kind: 'user', name: userName })
      : {}
  const foreign = [
    ...foreignFields(cluster, mayUseProxy ? [...clusterFields, 'proxy-url'] : clusterFields),
    ...foreignFields(user, userFields),
  ]
  const server = checkServer(text(cluster, 'server', `${where}: cluster of context "${name}"`), where, trusted)
  if (!trusted && foreign[0] !== undefined) {
    throw badRequest(
      `${where} uses "${foreign[0]}", which is not allowed in a kubeconfig given to us: ${reasons[foreign[0]] ?? 'it is not known here'}`,
    )
  }
  // A proxy is set because the server cannot, or must not, be reached directly: connecting directly would be wrong.
  if (foreign.includes('proxy-url'))
    throw badRequest(
      `${where} uses "proxy-url", which is not supported here: give one whose server is reached directly`,
    )
  if (mayUseProxy) checkProxy(cluster['proxy-url'], { where, server })
  const needs =
    foreign.length === 0 ? 'nothing' : foreign.every((field) => ownFields.includes(field)) ? 'files' : 'plugins'
  if (needs !== 'plugins') {
    for (const field of [...clusterFields, ...userFields, ...ownFields])
      checkText({ ...cluster, ...user }, field, where)
    const has = (field: string): boolean => `${field}-data` in user || Boolean(user[field])
    if (has('client-certificate') !== has('client-key'))
      throw badRequest(`${where}: client-certificate-data and client-key-data must come together`)
  }
  const namespace = chosen['namespace']
  return {
    context: name,
    ...(typeof namespace === 'string' && namespace !== '' && { namespace }),
    cluster: { ...(cluster as unknown as PlainCluster), server },
    user,
    needs,
  }
}

/**
 * The entry of this name in a list such as `clusters`, whose entries have their content in a field such as `cluster`.
 */
function entry(
  config: Record<string, unknown>,
  where: string,
  { list, kind, name }: { readonly list: string; readonly kind: string; readonly name: string },
): Record<string, unknown> {
  const items = config[list]
  const found: unknown = Array.isArray(items)
    ? items.find((item: unknown) => isRecord(item) && item['name'] === name)
    : undefined
  const value = isRecord(found) ? found[kind] : undefined
  if (!isRecord(value)) throw badRequest(`${where} has no ${kind} "${name}"`)
  return value
}

/** Names of the fields that a plain kubeconfig does not have. `insecure-skip-tls-verify: false` does not count. */
function foreignFields(record: Record<string, unknown>, known: readonly string[]): string[] {
  return Object.keys(record).filter((field) => {
    const value = record[field]
    return !known.includes(field) && value !== false && value !== null && value !== ''
  })
}

function checkServer(server: string, where: string, trusted: boolean): string {
  let url: URL
  try {
    url = new URL(server)
  } catch (error) {
    throw badRequest(`${where}: server "${server}" is not a URL`, error)
  }
  if (url.protocol !== 'https:' && !(trusted && url.protocol === 'http:')) {
    throw badRequest(`${where}: server "${server}" must be an https URL`)
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw badRequest(`${where}: server "${url.host}" must have no user, query or fragment`)
  }
  return server.replace(/\/+$/, '')
}

/**
 * Throws BadRequest unless the proxy is an HTTP proxy and the server uses https: over http the proxy would see our
 * requests, and other proxies need another protocol.
 */
function checkProxy(value: unknown, { where, server }: { where: string; server: string }): void {
  if (value === undefined || value === null || value === '') return
  const url = typeof value === 'string' ? URL.parse(value) : null
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    throw badRequest(`${where}: "proxy-url" must be an http or https URL`)
  if (!server.startsWith('https:')) throw badRequest(`${where}: "proxy-url" needs a server with https`)
}

function text(record: Record<string, unknown>, field: string, where: string): string {
  const value = record[field]
  if (typeof value !== 'string' || value === '') throw badRequest(`${where} has no "${field}"`)
  return value
}

function checkText(record: Record<string, unknown>, field: string, where: string): void {
  const value = record[field]
  if (untyped.includes(field) || value === undefined || value === null) return
  if (typeof value !== 'string') throw badRequest(`${where}: "${field}" must be a string`)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

// Reads kubeconfigs. The kubeconfig of the person who runs the program may run plugins; a kubeconfig from a Secret is
// not trusted and may not.
import { readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { ConnectionOptions } from 'node:tls'
import { parse, stringify } from 'yaml'
import { badRequest } from '#apimachinery/status/index.ts'
import { checkedEndpoint, credentialFiles, endpointOf } from './credential-files.ts'
import type { Endpoint, EndpointSource } from './endpoint.ts'
import { checkKubeconfig, type RawKubeconfig } from './kubeconfig-check.ts'

export interface Kubeconfig extends EndpointSource {
  readonly server: string
  readonly context: string
  /** The namespace of the context, if it has one. */
  readonly namespace?: string
}

export type KubeconfigSource = { readonly file: string } | { readonly text: string }

export interface KubeconfigOptions {
  /** Default: the file's current-context. */
  readonly context?: string
  /**
   * True only for the kubeconfig of the person who runs the program: it may use exec plugins, auth providers, files,
   * proxies and insecure TLS. Default false: these are refused.
   */
  readonly trusted?: boolean
  /**
   * Whether a trusted kubeconfig may name an HTTP proxy. Default: the value of `trusted`. False if others will connect
   * to the same server without the proxy.
   */
  readonly mayUseProxy?: boolean
  /**
   * If a server refuses the credentials of an exec plugin, the plugin runs again, at most once in this time. Default 10
   * s.
   */
  readonly pluginAgainMs?: number
}

/** Reads one context of a kubeconfig. Rejects with BadRequest if something is missing, malformed or not allowed. */
export async function loadKubeconfig(
  source: KubeconfigSource,
  { context, trusted = false, mayUseProxy = trusted, pluginAgainMs = 10_000 }: KubeconfigOptions = {},
): Promise<Kubeconfig> {
  const where = 'file' in source ? `kubeconfig "${source.file}"` : 'kubeconfig'
  const text = 'file' in source ? await readText(source.file) : source.text
  const raw = parseText(text, where)
  const chosen = checkKubeconfig(raw, { where, trusted, mayUseProxy, ...(context === undefined ? {} : { context }) })
  const shared = {
    server: chosen.cluster.server,
    context: chosen.context,
    ...(chosen.namespace === undefined ? {} : { namespace: chosen.namespace }),
  }
  if (!trusted || chosen.needs === 'nothing') {
    const plain = plainEndpoint(chosen.cluster, chosen.user)
    const endpoint = trusted ? checkedEndpoint(plain, where) : plain
    if (!trusted || !('file' in source)) return { ...shared, endpoint: () => Promise.resolve(endpoint) }
    return {
      ...shared,
      refreshAfterMs: fileAgainMs,
      endpoint: () => endpointInFile(source.file, { context: chosen.context, mayUseProxy }),
    }
  }
  const directory = 'file' in source ? dirname(source.file) : '.'
  if (chosen.needs === 'files') return { ...shared, ...credentialFiles(chosen, { directory, where }) }
  return {
    ...shared,
    ...(await withPlugins(text, {
      context: chosen.context,
      proxyUrl: chosen.cluster['proxy-url'],
      directory,
      where,
      pluginAgainMs,
    })),
  }
}

/**
 * Milliseconds after which the file is read again: tools such as kubeadm rewrite it when they renew the certificates in
 * it.
 */
const fileAgainMs = 30_000

async function endpointInFile(
  file: string,
  { context, mayUseProxy }: { context: string; mayUseProxy: boolean },
): Promise<Endpoint> {
  const where = `kubeconfig "${file}"`
  const raw = parseText(await readText(file), where)
  const { cluster, user, needs } = checkKubeconfig(raw, { where, trusted: true, mayUseProxy, context })
  if (needs !== 'nothing')
    throw badRequest(`${where} has changed and now names a plugin or files: restart this program`)
  return checkedEndpoint(plainEndpoint(cluster, user), where)
}

/** The endpoint and ServiceAccount of the pod this process runs in. Rejects with BadRequest outside of a pod. */
export async function inClusterConfig({
  env = process.env,
  directory = '/var/run/secrets/kubernetes.io/serviceaccount',
}: { env?: NodeJS.ProcessEnv; directory?: string } = {}): Promise<Kubeconfig> {
  const host = env['KUBERNETES_SERVICE_HOST']
  const port = env['KUBERNETES_SERVICE_PORT']
  if (!host || !port) throw badRequest('not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set')
  const server = `https://${host.includes(':') ? `[${host}]` : host}:${port}`
  const namespace = await readFile(`${directory}/namespace`, 'utf8').catch(() => undefined)
  return {
    server,
    context: 'in-cluster',
    ...(namespace === undefined ? {} : { namespace: namespace.trim() }),
    // The kubelet renews the token long before it expires, and adds authorities long before they are used to sign.
    refreshAfterMs: 60_000,
    endpoint: async () => ({
      server,
      ca: await readText(`${directory}/ca.crt`),
      token: (await readText(`${directory}/token`)).trim(),
    }),
  }
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    throw badRequest(`could not read "${file}": ${(error as Error).message}`, error)
  }
}

function parseText(text: string, where: string): RawKubeconfig {
  let value: unknown
  try {
    value = parse(text, { maxAliasCount: 0 })
  } catch (error) {
    throw badRequest(`${where} is not YAML: ${(error as Error).message.split('\n')[0] ?? ''}`, error)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw badRequest(`${where} is not a kubeconfig`)
  return value
}

type Chosen = ReturnType<typeof checkKubeconfig>

function plainEndpoint(cluster: Chosen['cluster'], user: Chosen['user']): Endpoint {
  const pem = (data: string | undefined): Buffer | undefined => (data ? Buffer.from(data, 'base64') : undefined)
  return endpointOf(cluster, {
    ca: pem(cluster['certificate-authority-data']),
    cert: pem(user['client-certificate-data']),
    key: pem(user['client-key-data']),
    token: user.token,
  })
}

interface PluginOptions {
  readonly context: string
  readonly proxyUrl: string | undefined
  readonly directory: string
  readonly where: string
  readonly pluginAgainMs: number
}

/**
 * client-node implements exec plugins and auth providers. It is loaded only if a kubeconfig uses them, because loading
 * it takes 0.6 s and 90 MB (measured on Node 24).
 */
async function withPlugins(
  text: string,
  { context, proxyUrl, directory, where, pluginAgainMs }: PluginOptions,
): Promise<EndpointSource> {
  const { KubeConfig } = await import('@kubernetes/client-node')
  const open = (): InstanceType<typeof KubeConfig> => {
    const config = new KubeConfig()
    config.loadFromString(text)
    config.makePathsAbsolute(directory)
    config.setCurrentContext(context)
    return config
  }
  let config = open()
  let openedAt = performance.now()
  const server = config.getCurrentCluster()?.server ?? ''
  return {
    refreshAfterMs: 30_000,
    async endpoint({ refused = false } = {}) {
      // client-node caches the credentials of a plugin until they expire, or forever, even if a server refuses them.
      if (refused && performance.now() - openedAt > pluginAgainMs) {
        config = open()
        openedAt = performance.now()
      }
      const options: ConnectionOptions & { headers?: Record<string, string>; auth?: string } = {}
      try {
        await config.applyToHTTPSOptions(options)
      } catch (error) {
        throw badRequest(`${where}: no credentials for context "${context}": ${(error as Error).message}`, error)
      }
      const headers: Record<string, string> = {}
      for (const [name, value] of Object.entries(options.headers ?? {})) headers[name.toLowerCase()] = value
      if (options.auth) headers['authorization'] = `Basic ${Buffer.from(options.auth).toString('base64')}`
      return {
        server,
        ...(options.ca && { ca: options.ca as Buffer }),
        ...(options.cert && { cert: options.cert as Buffer }),
        ...(options.key && { key: options.key as Buffer }),
        ...(options.servername && { serverName: options.servername }),
        ...(proxyUrl && { proxyUrl }),
        ...(options.rejectUnauthorized === false && { insecureSkipTlsVerify: true }),
        headers,
      }
    },
  }
}

/** PEM client certificate and its key, or a bearer token. */
export type KubeconfigCredentials = { readonly cert: string; readonly key: string } | { readonly token: string }

/** A program that prints credentials (client.authentication.k8s.io/v1), and what to do if it is not there. */
export interface ExecCommand {
  readonly command: string
  readonly args: readonly string[]
  readonly installHint: string
}

type KubeconfigContent = (KubeconfigCredentials | { readonly exec: ExecCommand }) & {
  /** Name of the context and of its cluster; the user is `NAME-admin`, with a program `NAME-user`. */
  readonly name: string
  /** URL, including the logical cluster's path. */
  readonly server: string
  /** PEM certificate of the authority that signed the server's certificate. */
  readonly ca: string
}

/** A kubeconfig with one context, which is current. Certificates, keys and tokens are embedded: no file paths. */
export function kubeconfigText(content: KubeconfigContent): string {
  const { name, server, ca } = content
  const user = 'exec' in content ? `${name}-user` : `${name}-admin`
  return stringify(
    {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name, cluster: { server, 'certificate-authority-data': base64(ca) } }],
      users: [{ name: user, user: credentialsOf(content) }],
      contexts: [{ name, context: { cluster: name, user } }],
      'current-context': name,
    },
    { lineWidth: 0 },
  )
}

function credentialsOf(content: KubeconfigContent): object {
  if ('token' in content) return { token: content.token }
  if ('cert' in content)
    return { 'client-certificate-data': base64(content.cert), 'client-key-data': base64(content.key) }
  // People who sign in type in passwords, or read where to go.
  const plugin = { apiVersion: 'client.authentication.k8s.io/v1', interactiveMode: 'IfAvailable' }
  return { exec: { ...plugin, ...content.exec } }
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}
